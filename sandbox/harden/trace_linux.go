package harden

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"

	"golang.org/x/sys/unix"
)

// forbidTracing closes the process's memory and descriptors to others of the same
// user. It is a property of the memory, so one call is enough for every thread.
// What this process executes is on its own.
func forbidTracing() error { return unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0) }

func dumpable() (int, error) { return unix.PrctlRetInt(unix.PR_GET_DUMPABLE, 0, 0, 0, 0) }

var errCgo = errors.New("a program that was built with cgo cannot set the flag for all its threads: build confine with CGO_ENABLED=0")

// forbidPrivileges sets the flag, which each thread has for itself, in all of
// them. A new thread has it from the one that made it.
func forbidPrivileges() error {
	_, _, errno := syscall.AllThreadsSyscall6(unix.SYS_PRCTL, unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0, 0)
	switch errno {
	case 0:
		return nil
	case unix.ENOTSUP:
		return errCgo
	}
	return errno
}

// noNewPrivs reports whether every thread has the flag.
func noNewPrivs() (bool, error) {
	tasks, err := filepath.Glob("/proc/self/task/[0-9]*/status")
	if err != nil || len(tasks) == 0 {
		return false, fmt.Errorf("/proc lists no threads of this process")
	}
	for _, name := range tasks {
		status, err := os.ReadFile(name)
		if errors.Is(err, os.ErrNotExist) || errors.Is(err, unix.ESRCH) {
			continue // it has ended
		}
		if err != nil {
			return false, err
		}
		if !bytes.Contains(status, []byte("\nNoNewPrivs:\t1\n")) {
			return false, nil
		}
	}
	return true, nil
}
