package local

import (
	"os/exec"
	"testing"

	"golang.org/x/sys/unix"
)

// TestKilledOnce: what was killed is left alone, and what could not be is tried again.
func TestKilledOnce(t *testing.T) {
	cmd := exec.Command("sleep", "60")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer cmd.Wait() // it stays as a zombie until then, with its number
	defer cmd.Process.Kill()
	p, ok := readProcess(cmd.Process.Pid)
	if !ok {
		t.Fatal("the process table does not show a child")
	}

	hunted := hunted{}
	withoutDescriptors(t, func() {
		if !hunted.kill([]process{p}) || len(hunted) != 0 {
			t.Errorf("without descriptors: %v", hunted)
		}
	})
	if !hunted.kill([]process{p}) {
		t.Error("what could not be killed was not tried again")
	}
	if err := cmd.Wait(); err == nil {
		t.Error("it was not killed")
	}
	if hunted.kill([]process{p}) {
		t.Error("it was killed twice")
	}
	other := p
	other.start++
	if !hunted.kill([]process{other}) {
		t.Error("one that got its number was taken for it")
	}
}

// withoutDescriptors calls do while this process can open no file.
func withoutDescriptors(t *testing.T, do func()) {
	var limit unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &limit); err != nil {
		t.Fatal(err)
	}
	if err := unix.Setrlimit(unix.RLIMIT_NOFILE, &unix.Rlimit{Cur: 0, Max: limit.Max}); err != nil {
		t.Fatal(err)
	}
	defer unix.Setrlimit(unix.RLIMIT_NOFILE, &limit)
	do()
}
