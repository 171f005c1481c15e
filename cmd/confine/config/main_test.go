package config

import (
	"os"
	"testing"

	"github.com/confine-dev/confine/sandbox/ramtest"
)

func TestMain(m *testing.M) {
	ramtest.Begin()
	os.Exit(m.Run())
}
