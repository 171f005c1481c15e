package osbtest_test

import (
	"bufio"
	"testing"

	"github.com/confine-dev/confine/sandbox/opensandbox/osbtest"
)

// TestLeavingTheGroup: to interrupt a command ends its process group. What left the
// group lives on until the sandbox ends.
func TestLeavingTheGroup(t *testing.T) {
	w := newWorld(t, osbtest.Options{})
	answer := w.command(t, map[string]any{"command": `setsid sh -c 'echo up; exec sleep 1000' & wait`})
	lines := bufio.NewReader(answer.Body)
	id := w.until(t, lines, "up")
	if got := w.execd(t, "DELETE", "/command?id="+id, nil, ""); got.StatusCode != 200 {
		t.Errorf("status %d", got.StatusCode)
	}
	if got := w.status(t, id); got["running"] != false || got["exit_code"] != -1.0 || got["error"] != "signal: terminated" {
		t.Errorf("status: %v", got)
	}
	if left := w.Marked(w.sandbox); len(left) != 1 {
		t.Errorf("left in the sandbox: %v", left)
	}
	w.lifecycle(t, "DELETE", "/v1/sandboxes/"+w.sandbox, "")
	if left := w.Marked(w.sandbox); len(left) != 0 {
		t.Errorf("left after the sandbox: %v", left)
	}
}

// TestMarkedWithinExec: a process that becomes another program is no gap.
func TestMarkedWithinExec(t *testing.T) {
	w := newWorld(t, osbtest.Options{})
	answer := w.command(t, map[string]any{"command": `echo up; exec bash -c 'exec bash -c "$0" "$0"' 'exec bash -c "$0" "$0"'`})
	w.until(t, bufio.NewReader(answer.Body), "up")
	for range 500 {
		if got := w.Marked(w.sandbox); len(got) != 1 {
			t.Fatalf("in the sandbox: %v", got)
		}
	}
	w.lifecycle(t, "DELETE", "/v1/sandboxes/"+w.sandbox, "")
}
