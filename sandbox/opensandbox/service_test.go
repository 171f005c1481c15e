//go:build unix

package opensandbox_test

import (
	"errors"
	"os"
	"testing"
	"time"

	"github.com/confine-dev/confine/sandbox"
	"github.com/confine-dev/confine/sandbox/opensandbox"
	"github.com/confine-dev/confine/sandbox/opensandbox/osbtest"
)

// toCancel is the time limit of a command that is to be cancelled.
const toCancel = time.Hour

// honest is what is expected of any service when nothing fails. Commands begin in dir.
func honest(t *testing.T, c opensandbox.Config, dir string) {
	t.Helper()
	provider, err := opensandbox.New(c)
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := provider.Close(); err != nil {
			t.Error(err)
		}
	}()
	start := func(t *testing.T, s sandbox.Spec) account {
		t.Helper()
		s.RunID, s.Session, s.Policy.Mode = "run", "session", sandbox.ReadOnly
		if s.Dir == "" {
			s.Dir = dir
		}
		process, err := provider.Start(t.Context(), s)
		if err != nil {
			return account{startErr: err}
		}
		if s.Timeout == toCancel {
			process.Cancel()
		}
		return account{}.wait(process)
	}
	for _, test := range []struct {
		name, command  string
		code           int
		signal         string
		stdout, stderr string
	}{
		{name: "success", command: "echo hi", stdout: "hi\n"},
		{name: "failure", command: "echo no >&2; exit 3", code: 3, stderr: "no\n"},
		{name: "largest code", command: "exit 255", code: 255},
		{name: "signal of its own", command: "kill -9 $$", signal: "SIGKILL"},
		{name: "environment", command: `echo "$GREETING"`, stdout: "it's \"here\"\n"},
		{name: "quotes", command: `printf '%s\n' 'a b' "c'd" \$e`, stdout: "a b\nc'd\n$e\n"},
		{name: "no input", command: "cat; echo end", stdout: "end\n"},
		{name: "empty lines", command: `printf '\na\n\nb\n'`, stdout: "\na\n\nb\n"},
		{name: "long line", command: `head -c 200000 /dev/zero | tr '\0' y | wc -c | tr -d ' '`, stdout: "200000\n"},
		{name: "what earlier commands left", command: "echo kept > kept && cat kept", stdout: "kept\n"},
		{name: "the same sandbox", command: "cat kept", stdout: "kept\n"},
	} {
		t.Run(test.name, func(t *testing.T) {
			a := start(t, sandbox.Spec{Command: test.command, Env: []string{`GREETING=it's "here"`}})
			r := a.result
			if a.how() != ended || r.ExitCode != test.code || r.Signal != test.signal || a.stdout != test.stdout || a.stderr != test.stderr {
				t.Errorf("%s: %s", a.how(), a.text())
			}
		})
	}
	t.Run("missing folder", func(t *testing.T) {
		a := start(t, sandbox.Spec{Command: "true", Dir: "/no/such/folder"})
		if fault, ok := errors.AsType[*sandbox.StartError](a.startErr); !ok || fault.Kind != sandbox.BadWorkingDirectory {
			t.Errorf("%s: %s", a.how(), a.text())
		}
	})
	t.Run("cancel", func(t *testing.T) {
		a := start(t, sandbox.Spec{Command: "sleep 1000", Timeout: toCancel})
		if a.how() != ended || !a.result.Cancelled || a.result.Signal == "" {
			t.Errorf("%s: %s", a.how(), a.text())
		}
	})
	t.Run("timeout", func(t *testing.T) {
		a := start(t, sandbox.Spec{Command: "sleep 1000", Timeout: 100 * time.Millisecond})
		if a.how() != ended || !a.result.TimedOut || a.result.Signal == "" {
			t.Errorf("%s: %s", a.how(), a.text())
		}
	})
}

// TestHonestService: the fake, when nothing fails.
func TestHonestService(t *testing.T) {
	for name, options := range map[string]osbtest.Options{
		"at once":         {},
		"pending":         {PendingPolls: 2},
		"held connection": {Grace: time.Hour},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t, options, nil)
			honest(t, b.config, "/tmp")
			b.expectClean(t)
		})
	}
}

// TestRealService holds a service that is named in the environment to the same.
func TestRealService(t *testing.T) {
	url := os.Getenv("CONFINE_OPENSANDBOX_URL")
	if url == "" {
		t.Skip("CONFINE_OPENSANDBOX_URL names no service")
	}
	honest(t, opensandbox.Config{URL: url, APIKey: os.Getenv("CONFINE_OPENSANDBOX_API_KEY"), StateDir: t.TempDir()}, "/tmp")
}
