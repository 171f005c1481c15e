package local_test

import (
	"flag"
	"os"
	"testing"

	"github.com/confine-dev/confine/sandbox/harden"
	"github.com/confine-dev/confine/sandbox/local"
	"github.com/confine-dev/confine/sandbox/ramtest"
)

// TestMain is also the main function of the processes that tests start.
func TestMain(m *testing.M) {
	local.Child(os.Args)
	if len(os.Args) > 1 {
		if entry, ok := testEntries[os.Args[1]]; ok {
			os.Exit(entry(os.Args[2:]))
		}
	}
	ramtest.Begin()
	local.BeforeHardening()
	harden.Apply(harden.Options{MayGain: true}) // as the server that an engine serves
	// The tests mostly wait for other processes.
	if err := flag.Set("test.parallel", "6"); err != nil {
		panic(err)
	}
	os.Exit(m.Run())
}

// testEntries are the subcommands by which tests start this program again.
var testEntries = map[string]func(args []string) int{}
