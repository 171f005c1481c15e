package local

import (
	"context"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/confine-dev/confine/sandbox"
)

// fakeFront writes a program that stands where sandbox-exec does. It is given what
// it is to become.
func fakeFront(t *testing.T, script string) []string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "front")
	if err := os.WriteFile(path, []byte("#!/bin/sh\n"+script+"\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	return []string{"/bin/sh", path}
}

// startBehind starts a program behind another and returns what both printed.
func startBehind(t *testing.T, front []string, o frontOrders) (stdout, stderr string, err error) {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	outRead, outWrite, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer outRead.Close()
	errRead, errWrite, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer errRead.Close()
	f := &fronted{Cmd: &exec.Cmd{Stdout: outWrite, Stderr: errWrite, SysProcAttr: &syscall.SysProcAttr{Setsid: true}}, Orders: o, Self: self, Ends: []*os.File{outWrite, errWrite}}
	err = f.start(t.Context(), front, errRead)
	if err != nil {
		return "", "", err
	}
	out, _ := io.ReadAll(outRead)
	said, _ := io.ReadAll(errRead)
	return string(out), string(said), f.Cmd.Wait()
}

func TestCommandBehindAProgram(t *testing.T) {
	dir := t.TempDir()
	sh := func(script string) frontOrders {
		return frontOrders{Path: []byte("/bin/sh"), Dir: []byte(dir), Argv: toBytes([]string{"sh", "-c", script}), Env: toBytes([]string{"A=b \xff", "PATH=/usr/bin:/bin"})}
	}
	pass := `exec "$@"`
	missing, secret := sh(""), sh("")
	missing.Path = []byte("/no/such/program")
	secret.Path = []byte(dir)
	nowhere := sh("")
	nowhere.Dir = []byte(dir + "/none")
	huge := sh("")
	huge.Env = append(huge.Env, []byte("X="+strings.Repeat("x", 3<<20)))

	for _, test := range []struct {
		name    string
		front   string
		orders  frontOrders
		stdout  string
		stderr  string
		problem func(error) bool
	}{
		{"it begins, where and with what was ordered", pass, sh(`pwd; printf %s "$A"; echo "$#" >&2; env | grep -c FRONT`), dir + "\nb \xff0\n", "0\n", exits(1)},
		{"it inherits nothing of confine's", pass, sh(`for fd in 3 4 5; do [ -e /proc/$$/fd/$fd ] && echo $fd; done; :`), "", "", nil},
		{"its status is its own", pass, sh("exit 71"), "", "", exits(71)},
		{"the program in front fails", "echo 'front: refused' >&2; exit 71", sh("echo never"), "", "", said("front: refused")},
		{"the program in front dies", "kill -9 $$", sh("echo never"), "", "", said("")},
		{"the program in front does nothing", "exit 0", sh("echo never"), "", "", said("")},
		{"the program in front becomes something else", "exec echo other", sh("echo never"), "", "", said("")},
		{"there is no such program", pass, missing, "", "", startsNot(sandbox.ProgramNotFound)},
		{"it cannot be executed", pass, secret, "", "", startsNot(sandbox.ProgramNotExecutable)},
		{"there is no such folder", pass, nowhere, "", "", startsNot(sandbox.BadWorkingDirectory)},
		{"it is too long", pass, huge, "", "", startsNot(sandbox.ArgumentListTooLong)},
	} {
		t.Run(test.name, func(t *testing.T) {
			stdout, stderr, err := startBehind(t, fakeFront(t, test.front), test.orders)
			if test.problem == nil && err != nil || test.problem != nil && !test.problem(err) {
				t.Errorf("the error is %v", err)
			}
			if stdout != test.stdout || stderr != test.stderr {
				t.Errorf("it printed %q and %q, want %q and %q", stdout, stderr, test.stdout, test.stderr)
			}
		})
	}
}

func TestNobodyWaitsForAProgramThatHangs(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	errRead, errWrite, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer errRead.Close()
	f := &fronted{Cmd: &exec.Cmd{Stderr: errWrite, SysProcAttr: &syscall.SysProcAttr{Setsid: true}}, Self: "/bin/true", Ends: []*os.File{errWrite}}
	done := make(chan error, 1)
	go func() { done <- f.start(ctx, fakeFront(t, "sleep 1000"), errRead) }()
	cancel()
	if err := <-done; !errors.Is(err, context.Canceled) {
		t.Errorf("the error is %v", err)
	}
	if rest, err := io.ReadAll(errRead); err != nil || len(rest) > 0 { // at its end once nobody holds it
		t.Errorf("something is left: %q, %v", rest, err)
	}
}

// For the processes that tests start.
var StartInside, AttemptAll, Keep = startInside, attemptAll, keep

func exits(code int) func(error) bool {
	return func(err error) bool {
		exit, ok := errors.AsType[*exec.ExitError](err)
		return ok && exit.ExitCode() == code
	}
}

func said(text string) func(error) bool {
	return func(err error) bool {
		front, ok := errors.AsType[*frontError](err)
		return ok && strings.TrimSpace(front.said) == text
	}
}

func startsNot(kind sandbox.StartErrorKind) func(error) bool {
	return func(err error) bool {
		start, ok := errors.AsType[*sandbox.StartError](err)
		return ok && start.Kind == kind
	}
}
