package osbtest_test

import (
	"bufio"
	"bytes"
	"encoding/json"
	"net/http"
	"os"
	"strings"
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
	for range 100 {
		if got := w.Marked(w.sandbox); len(got) != 1 {
			t.Fatalf("in the sandbox: %v", got)
		}
	}
	w.lifecycle(t, "DELETE", "/v1/sandboxes/"+w.sandbox, "")
}

// TestCloseOutside: the one-call contract knows no sandbox that could be deleted; what
// its commands left ends with the service.
func TestCloseOutside(t *testing.T) {
	s := newServer(t, osbtest.Options{})
	// What is left has begun, and becomes no other program any more.
	body, err := json.Marshal(map[string]string{"cmd": `d=$(mktemp -d); mkfifo $d/f
		setsid sh -c "echo \$\$ > $d/up; read x < $d/f" >/dev/null 2>&1 &
		until [ -s $d/up ]; do sleep 0.01; done; cat $d/up`})
	if err != nil {
		t.Fatal(err)
	}
	r, err := http.NewRequestWithContext(t.Context(), "POST", s.URL()+"/v1/sandbox/run", bytes.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+s.Key())
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	var result struct{ Stdout string }
	if err := json.NewDecoder(answer.Body).Decode(&result); err != nil {
		t.Fatal(err)
	}
	// Empty for what is gone, and for what waits to be.
	arguments := func() string {
		text, _ := os.ReadFile("/proc/" + strings.TrimSpace(result.Stdout) + "/cmdline")
		return string(text)
	}
	if arguments() == "" {
		t.Fatalf("nothing was left: %q", result.Stdout)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if got := arguments(); got != "" {
		t.Errorf("left after the service: %q", got)
	}
}
