package bwrap_test

import (
	"os"
	"testing"

	"github.com/confine-dev/confine/sandbox"
	"github.com/confine-dev/confine/sandbox/bwrap"
	"github.com/confine-dev/confine/sandbox/local"
	"github.com/confine-dev/confine/sandbox/observe"
	"github.com/confine-dev/confine/sandbox/sandboxtest"
)

// TestProvider is for hosts that let confine make user namespaces: bubblewrap
// runs in the session's.
func TestProvider(t *testing.T) { suite(t, local.Options{}) }

// TestProviderAlone is for hosts that let only bubblewrap make user namespaces.
func TestProviderAlone(t *testing.T) { suite(t, local.Options{NoNamespaces: true}) }

func suite(t *testing.T, o local.Options) {
	needBubblewrap(t)
	sandboxtest.Run(t, config(o))
}

func config(o local.Options) sandboxtest.Config {
	return sandboxtest.Config{NeedsNamespaces: true, Alone: o.NoNamespaces, Brief: true, New: func(state string) (confined, unconfined sandbox.Provider, err error) {
		o.StateDir, o.Observer = state, observe.New(observe.Options{})
		e, err := local.New(bwrap.New(bwrap.Options{}), o)
		if err != nil {
			return nil, nil, err
		}
		return e, e.Unconfined(), nil
	}}
}

// needBubblewrap skips a test where bubblewrap is missing. On CI it must be there.
func needBubblewrap(t *testing.T) {
	t.Helper()
	claims := bwrap.New(bwrap.Options{}).Claims(sandbox.Policy{}, true)
	if claims.Missing == "" {
		return
	}
	if os.Getenv("CI") != "" {
		t.Fatalf("on CI bubblewrap must be usable: %s", claims.Missing)
	}
	t.Skip(claims.Missing)
}
