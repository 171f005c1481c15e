package local

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
)

// newTestKeeper is one for a folder that exists.
func newTestKeeper(t *testing.T) *keeper {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(t.TempDir(), "server")
	if err := os.MkdirAll(filepath.Join(dir, "t1"), 0o700); err != nil {
		t.Fatal(err)
	}
	k := newKeeper(self, dir)
	t.Cleanup(k.close)
	return k
}

func startGroup(t *testing.T) *exec.Cmd {
	t.Helper()
	cmd := exec.Command("sleep", "1000")
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { cmd.Process.Kill(); cmd.Wait() })
	return cmd
}

// killed waits for a process and reports whether a signal ended it.
func killed(t *testing.T, cmd *exec.Cmd) {
	t.Helper()
	err := cmd.Wait()
	exit, ok := errors.AsType[*exec.ExitError](err)
	if !ok || exit.Sys().(syscall.WaitStatus).Signal() != syscall.SIGKILL {
		t.Errorf("it ended by itself: %v", err)
	}
}

// TestKeeperOfADeadServer: the end of a server is the end of its pipe.
func TestKeeperOfADeadServer(t *testing.T) {
	k := newTestKeeper(t)
	running, over := startGroup(t), startGroup(t)
	for _, cmd := range []*exec.Cmd{running, over} {
		if err := k.add(cmd.Process.Pid); err != nil {
			t.Fatal(err)
		}
	}
	k.remove(over.Process.Pid)
	k.pipe.Close()
	killed(t, running)
	if err := k.cmd.Wait(); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(k.dir); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the server's folder is left: %v", err)
	}
	if err := syscall.Kill(over.Process.Pid, 0); err != nil {
		t.Errorf("what is not the server's any more was ended: %v", err)
	}
	k.cmd = nil
}

func TestKeeperThatWasKilled(t *testing.T) {
	k := newTestKeeper(t)
	first, second := startGroup(t), startGroup(t)
	if err := k.add(first.Process.Pid); err != nil {
		t.Fatal(err)
	}
	before := k.cmd
	before.Process.Kill()
	before.Process.Wait()
	if err := k.add(second.Process.Pid); err != nil {
		t.Fatal(err)
	}
	if k.cmd == before {
		t.Fatal("it was not started again")
	}
	k.close()
	killed(t, first)
	killed(t, second)
}
