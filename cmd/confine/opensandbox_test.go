//go:build unix

package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/confine-dev/confine/sandbox/opensandbox/osbtest"
)

// newService starts an OpenSandbox and settings that send commands to it.
func newService(t *testing.T, w world) *osbtest.Server {
	t.Helper()
	s, err := osbtest.New(osbtest.Options{Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	w.configure(t, remoteSettings(s.URL(), s.Key()))
	return s
}

func remoteSettings(url, key string) string {
	return fmt.Sprintf("sandbox_backend = \"opensandbox\"\nsandbox_url = %q\nsandbox_api_key = %q\n", url, key)
}

// output runs confine to its end.
func output(t *testing.T, w world, args ...string) (stdout, stderr string, status int) {
	t.Helper()
	var out, errs bytes.Buffer
	cmd := w.confine(t, args...)
	cmd.Stdout, cmd.Stderr = &out, &errs
	if err := cmd.Run(); err != nil {
		if _, ended := errors.AsType[*exec.ExitError](err); !ended {
			t.Fatal(err)
		}
	}
	return out.String(), errs.String(), cmd.ProcessState.ExitCode()
}

// expectNothingLeft wants no sandbox and no command to be left at a service, and no key
// to be seen in what confine printed.
func expectNothingLeft(t *testing.T, s *osbtest.Server, printed ...string) {
	t.Helper()
	l := s.Ledger()
	if len(l.Existing()) != 0 || len(l.Running()) != 0 {
		t.Errorf("left: %+v, %+v", l.Existing(), l.Running())
	}
	if strays := s.Strays(); len(strays) != 0 {
		t.Errorf("%v", strays)
	}
	for _, text := range printed {
		for _, secret := range s.Secrets() {
			if strings.Contains(text, secret) {
				t.Errorf("a key is in: %s", text)
			}
		}
	}
}

func TestRunRemotely(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	s := newService(t, w)
	out, errs, status := output(t, w, "run", "echo out; echo err >&2; exit 3")
	if out != "out\n" || errs != "err\n" || status != 3 {
		t.Errorf("status %d, stdout %q, stderr %q", status, out, errs)
	}
	if made := s.Ledger().Sandboxes; len(made) != 1 {
		t.Errorf("%d sandboxes were made for one command", len(made))
	}
	ran := s.Ledger().With("echo out")
	if len(ran) != 1 || ran[0].ExitCode != 3 || ran[0].Dir != w.work {
		t.Errorf("ran: %+v", ran)
	}
	for name := range ran[0].Env {
		if name == "HOME" || name == "PATH" || strings.HasPrefix(name, asConfine) {
			t.Errorf("the environment of this machine was sent: %s", name)
		}
	}
	expectNothingLeft(t, s, out, errs)
}

func TestTimeoutRemotely(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	s := newService(t, w)
	out, errs, status := output(t, w, "run", "--timeout", "100ms", "echo up; sleep 1000")
	if status != 124 {
		t.Errorf("status %d, stdout %q, stderr %q", status, out, errs)
	}
	if ran := s.Ledger().With("sleep"); len(ran) > 1 || len(ran) == 1 && !ran[0].Interrupted {
		t.Errorf("ran: %+v", ran)
	}
	expectNothingLeft(t, s, out, errs)
}

func TestDoctorShowsTheService(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	s := newService(t, w)
	out, errs, status := output(t, w, "doctor")
	for _, want := range []string{"opensandbox: usable", "unverified", "check a command that fails is said to: ok", "check a sandbox is deleted: ok"} {
		if status != 0 || !strings.Contains(out, want) {
			t.Errorf("status %d, %q is not in:\n%s%s", status, want, out, errs)
		}
	}
	settings, _, _ := output(t, w, "config")
	expectNothingLeft(t, s, out, errs, settings)
}

// TestProgramRunsNothingHereInstead: whatever keeps a command from the service, it does not run
// on this machine.
func TestProgramRunsNothingHereInstead(t *testing.T) {
	const free = "on_unavailable = \"run-unconfined\"\n"
	for _, test := range []struct{ name, settings, says string }{
		{"unreachable", remoteSettings("http://127.0.0.1:1", "key-of-nobody"), "connection refused"},
		{"unreachable, and free where nothing confines", free + remoteSettings("http://127.0.0.1:1", "key-of-nobody"), "connection refused"},
		{"no TLS", free + remoteSettings("http://sandbox.example:8080", "key-of-nobody"), "sandbox_plain_http"},
		{"misspelled", free + strings.Replace(remoteSettings("http://127.0.0.1:1", "key-of-nobody"), `"opensandbox"`, `"opensandbx"`, 1), "sandbox_backend cannot be"},
		{"no address", free + "sandbox_backend = \"opensandbox\"\n", ""},
		{"full access", "sandbox_mode = \"danger-full-access\"\n" + remoteSettings("http://127.0.0.1:1", "key-of-nobody"), "sandbox_backend"},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.configure(t, test.settings)
			witness := filepath.Join(w.work, "it-ran-here")
			out, errs, status := output(t, w, "run", "touch '"+witness+"'")
			if _, err := os.Lstat(witness); !os.IsNotExist(err) {
				t.Errorf("it ran on this machine (%v)", err)
			}
			if status != 125 || !strings.Contains(errs, test.says) || strings.Contains(errs, "key-of-nobody") {
				t.Errorf("status %d, stdout %q, stderr %q, want %q", status, out, errs, test.says)
			}
		})
	}
}

// TestProviderBesideAService: who names what confines here is not sent elsewhere, and
// nothing runs here instead, whoever named it.
func TestProviderBesideAService(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	s := newService(t, w)
	remote := remoteSettings(s.URL(), s.Key())
	for _, test := range []struct {
		name, settings string
		args           []string
		ran            bool
	}{
		{"by a flag", remote, []string{"--provider", "landlock"}, false},
		{"in the file", remote + "provider = \"bwrap\"\n", nil, false},
		{"a flag takes it back", remote + "provider = \"bwrap\"\n", []string{"--provider", "auto"}, true},
	} {
		w.configure(t, test.settings)
		before := len(s.Requests())
		out, errs, status := output(t, w, append(append([]string{"run"}, test.args...), "echo ran")...)
		sent := len(s.Requests()) > before
		switch {
		case test.ran && (status != 0 || !sent || out != "ran\n"):
			t.Errorf("%s: status %d, sent %v: %s%s", test.name, status, sent, out, errs)
		case !test.ran && (status != 125 || sent || out != "" || !strings.Contains(errs, "provider = ") || !strings.Contains(errs, `sandbox_backend = "none"`)):
			t.Errorf("%s: status %d, sent %v: %s%s", test.name, status, sent, out, errs)
		}
	}
	expectNothingLeft(t, s)
}

// TestKilledConfine: what a confine that was killed left at the service has an end of its
// own, and the next one deletes it.
func TestKilledConfine(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	s := newService(t, w)
	cmd := w.confine(t, "run", "echo up; sleep 1000")
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	if _, err := out.Read(make([]byte, 2)); err != nil {
		t.Error(err)
	}
	if err := cmd.Process.Kill(); err != nil {
		t.Error(err)
	}
	_ = cmd.Wait() // it was killed
	left := s.Ledger().Existing()
	if len(left) == 0 {
		t.Error("nothing is left, so that this shows nothing")
	}
	for _, box := range left {
		if box.Expires.IsZero() {
			t.Errorf("a sandbox without an end: %+v", box)
		}
	}
	if _, errs, status := output(t, w, "run", "true"); status != 0 {
		t.Errorf("the next run: status %d, %s", status, errs)
	}
	expectNothingLeft(t, s)
}

// TestServeRemotely: a run in the background is read and ended through the protocol.
func TestServeRemotely(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	s := newService(t, w)
	e := startServe(t, w)
	folder, err := json.Marshal("file://" + w.work)
	if err != nil {
		t.Fatal(err)
	}
	e.send(`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"processId":null,"workspaceFolders":[{"uri":` + string(folder) + `,"name":"w"}],
		"capabilities":{"experimental":{"confine":{"protocolVersion":1,"approval":true,"output":true}}}}}`)
	e.answer("1")
	e.send(`{"jsonrpc":"2.0","method":"initialized","params":{}}`)
	e.send(`{"jsonrpc":"2.0","id":2,"method":"runCommand","params":{"command":"echo up; sleep 1000","runId":"r1","background":true}}`)
	if answer := e.answer("2"); !bytes.Contains(answer["result"], []byte(`"running"`)) {
		t.Fatalf("runCommand: %s %s", answer["result"], answer["error"])
	}
	e.send(`{"jsonrpc":"2.0","id":3,"method":"confine/runs/kill","params":{"runId":"r1"}}`)
	e.send(`{"jsonrpc":"2.0","id":4,"method":"confine/runs/wait","params":{"runId":"r1"}}`)
	answer := e.answer("4")
	var result struct {
		Status string
		Signal string
	}
	if err := json.Unmarshal(answer["result"], &result); err != nil || result.Status != "cancelled" || result.Signal != "SIGTERM" {
		t.Errorf("wait: %s %s", answer["result"], answer["error"])
	}
	if ran := s.Ledger().With("sleep 1000"); len(ran) != 1 || !ran[0].Interrupted {
		t.Errorf("ran: %+v", ran)
	}
	e.send(`{"jsonrpc":"2.0","id":5,"method":"shutdown"}`)
	e.answer("5")
	if status, _ := e.leave(); status != 0 {
		t.Errorf("status %d: %s", status, e.err)
	}
	expectNothingLeft(t, s, string(answer["result"]), e.err.String())
}
