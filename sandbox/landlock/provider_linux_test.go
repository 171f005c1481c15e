package landlock_test

import (
	"testing"

	"github.com/confine-dev/confine/sandbox"
	"github.com/confine-dev/confine/sandbox/landlock"
	"github.com/confine-dev/confine/sandbox/local"
	"github.com/confine-dev/confine/sandbox/observe"
	"github.com/confine-dev/confine/sandbox/sandboxtest"
)

func TestProvider(t *testing.T) { sandboxtest.Run(t, config) }

func TestOperations(t *testing.T) { sandboxtest.RunOps(t, config) }

func TestShapes(t *testing.T) { sandboxtest.RunShapes(t, config) }

var config = sandboxtest.Config{New: func(state string) (confined, unconfined sandbox.Provider, err error) {
	e, err := local.New(landlock.New(), local.Options{StateDir: state, Observer: observe.New(observe.Options{})})
	if err != nil {
		return nil, nil, err
	}
	return e, e.Unconfined(), nil
}}
