package landlock_test

import (
	"os"
	"testing"

	"github.com/confine-dev/confine/sandbox/local"
)

func TestMain(m *testing.M) {
	local.Child(os.Args)
	os.Exit(m.Run())
}
