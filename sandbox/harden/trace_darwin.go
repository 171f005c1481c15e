package harden

import (
	"errors"

	"golang.org/x/sys/unix"
)

// forbidTracing asks for PT_DENY_ATTACH: whoever attaches to the process ends with a
// failure.
func forbidTracing() error { return unix.PtraceDenyAttach() }

func dumpable() (int, error) {
	return 0, errors.New("macOS was asked to refuse debuggers and does not tell whether it will")
}

// There is nothing to forbid: macOS has no such flag.
func forbidPrivileges() error { return nil }

func noNewPrivs() (bool, error) { return false, errors.New("macOS has no such flag") }
