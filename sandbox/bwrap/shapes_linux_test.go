package bwrap_test

import (
	"testing"

	"github.com/confine-dev/confine/sandbox/local"
	"github.com/confine-dev/confine/sandbox/sandboxtest"
)

func TestShapes(t *testing.T) { shapes(t, local.Options{}) }

// TestShapesAlone is for hosts that let only bubblewrap make user namespaces.
func TestShapesAlone(t *testing.T) { shapes(t, local.Options{NoNamespaces: true}) }

func shapes(t *testing.T, o local.Options) {
	needBubblewrap(t)
	sandboxtest.RunShapes(t, config(o))
}
