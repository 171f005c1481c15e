//go:build !linux

package local_test

import (
	"os"
	"strings"
	"testing"

	"github.com/confine-dev/confine/sandbox"
	"github.com/confine-dev/confine/sandbox/local"
)

// TestWithoutAWrapperNothingIsConfined: whatever the command is, the refusal comes
// first and is the sentence that agents know.
func TestWithoutAWrapperNothingIsConfined(t *testing.T) {
	engine, err := local.New(nil, local.Options{StateDir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	defer engine.Close()
	for _, mode := range []sandbox.Mode{sandbox.ReadOnly, sandbox.WorkspaceWrite, "typo"} {
		_, err := engine.Start(t.Context(), sandbox.Spec{RunID: "r", Argv: []string{"no such program"}, Dir: t.TempDir(), Env: os.Environ(), Policy: sandbox.Policy{Mode: mode}})
		if err == nil || !strings.Contains(err.Error(), "refusing to run the command unconfined. Install bubblewrap or run a Landlock-enforcing kernel (Linux), "+
			"ensure sandbox-exec is usable (macOS) \u2014 Windows has no confinement backend yet") {
			t.Errorf("%s: the error is %v", mode, err)
		}
	}
}
