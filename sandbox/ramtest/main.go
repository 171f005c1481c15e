package ramtest

import (
	"os"
	"testing"
)

// Main is TestMain of a package that has nothing else to do before its tests.
func Main(m *testing.M) {
	Begin()
	os.Exit(m.Run())
}
