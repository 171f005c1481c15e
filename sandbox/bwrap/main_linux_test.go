package bwrap

import (
	"os"
	"testing"

	"github.com/confine-dev/confine/sandbox/local"
	"github.com/confine-dev/confine/sandbox/sandboxtest"
)

func TestMain(m *testing.M) {
	local.Child(os.Args)
	sandboxtest.Child(os.Args)
	os.Exit(m.Run())
}
