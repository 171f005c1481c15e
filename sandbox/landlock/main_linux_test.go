package landlock_test

import (
	"os"
	"testing"

	"github.com/confine-dev/confine/sandbox/local"
	"github.com/confine-dev/confine/sandbox/ramtest"
	"github.com/confine-dev/confine/sandbox/sandboxtest"
)

func TestMain(m *testing.M) {
	local.Child(os.Args)
	sandboxtest.Child(os.Args)
	ramtest.Begin()
	os.Exit(m.Run())
}
