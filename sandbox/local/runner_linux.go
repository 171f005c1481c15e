package local

import (
	"fmt"
	"os"
)

// Runner is a program outside confine, such as bubblewrap, that makes the
// namespaces and the view of a run and executes the run's init in them as PID 1.
type Runner struct {
	Program *os.File // what is executed, opened with O_PATH
	Name    string   // argv[0], and what it is called in messages

	// Args are its arguments, before the program that it shall execute, which
	// the engine adds. RunnerStatus in them is a descriptor for its own report.
	Args []string

	// Inside is run by the init in what the runner made, before it starts
	// anything: restrictions belong here.
	Inside Script
}

// RunnerStatus is the descriptor on which a runner may report what it did; what
// it wrote is in RunnerError.
const RunnerStatus = 11

// RunnerError says that a runner ended without executing the init.
type RunnerError struct {
	Name   string
	Stderr string // what it printed, at most a few KiB
	Status string // what it wrote to RunnerStatus
	Cause  error  // how it ended
}

func (e *RunnerError) Error() string {
	if line := firstLine(e.Stderr); line != "" {
		return fmt.Sprintf("%s did not start the command: %s", e.Name, line)
	}
	return fmt.Sprintf("%s did not start the command: %v", e.Name, e.Cause)
}

func (e *RunnerError) Unwrap() error { return e.Cause }

// Explainer is a Wrapper that knows why its runner failed.
type Explainer interface {
	// Explain says in one sentence why, and what a person can do about it.
	Explain(*RunnerError) (reason string, remedies []string)
}
