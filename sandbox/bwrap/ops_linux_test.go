package bwrap_test

import (
	"testing"

	"github.com/confine-dev/confine/sandbox"
	"github.com/confine-dev/confine/sandbox/bwrap"
	"github.com/confine-dev/confine/sandbox/local"
	"github.com/confine-dev/confine/sandbox/observe"
	"github.com/confine-dev/confine/sandbox/sandboxtest"
)

func TestOperations(t *testing.T) {
	needBubblewrap(t)
	sandboxtest.RunOps(t, sandboxtest.Config{NeedsNamespaces: true, New: func(state string) (confined, unconfined sandbox.Provider, err error) {
		e, err := local.New(bwrap.New(bwrap.Options{}), local.Options{StateDir: state, Observer: observe.New(observe.Options{})})
		if err != nil {
			return nil, nil, err
		}
		return e, e.Unconfined(), nil
	}})
}
