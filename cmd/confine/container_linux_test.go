package main

import (
	"encoding/json"
	"os"
	"os/exec"
	"testing"

	"github.com/confine-dev/confine/rpc/proto"
)

// TestFewProcesses: where there are so few processes that bubblewrap's numbers for its
// own are nobody's outside, as in a container, it is used as ever.
func TestFewProcesses(t *testing.T) {
	requireRoot(t, "only root can make a PID namespace with a /proc of its own")
	requireBubblewrap(t)
	unshare, err := exec.LookPath("unshare")
	require(t, err == nil, "unshare is missing")
	w := newWorld(t)
	inside := w.confine(t, "run", "--json", "--mode", "workspace-write", "--provider", "bwrap", "cat /proc/self/uid_map")
	// Number 2 has been given away and is nobody's: bubblewrap's child has it in a namespace of its own.
	inside.Args = append([]string{unshare, "--mount", "--pid", "--fork", "--kill-child", "--mount-proc", "sh", "-c", `env true; "$@"; exit $?`, "sh", inside.Path}, inside.Args[1:]...)
	inside.Path = unshare
	out, err := inside.Output()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	var result proto.RunResult
	if err := json.Unmarshal(out, &result); err != nil {
		t.Fatal(err)
	}
	own, err := os.ReadFile("/proc/self/uid_map")
	if err != nil {
		t.Fatal(err)
	}
	// bubblewrap alone leaves root the only user there is.
	if result.Stdout.Text != string(own) {
		t.Errorf("users are mapped as %q and not as here, %q", result.Stdout.Text, own)
	}
}
