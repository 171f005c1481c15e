package local

import (
	"context"
	"errors"
	"os"
	"syscall"

	"github.com/confine-dev/confine/sandbox"
	"golang.org/x/sys/unix"
)

// explain tells whose fault it is that a command did not begin.
func (e *Engine) explain(err error, spec sandbox.Spec, program resolved) error {
	var start *sandbox.StartError
	var unavailable *sandbox.UnavailableError
	if errors.As(err, &start) || errors.As(err, &unavailable) || errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	var step *StepError
	if errors.As(err, &step) {
		if start := startError(step, spec, program); start != nil {
			return start
		}
	}
	if !spec.Policy.Mode.Confined() {
		return err
	}
	if _, crowded := errors.AsType[*crowdedError](err); !crowded {
		e.probes.forget() // the host may have changed
	}
	return &sandbox.UnavailableError{Mode: spec.Policy.Mode, Detail: err.Error(), Remedies: remedies(err)}
}

// startError is nil if the step's failure is the sandbox's.
func startError(step *StepError, spec sandbox.Spec, program resolved) *sandbox.StartError {
	failed := func(kind sandbox.StartErrorKind, path string, err error) *sandbox.StartError {
		return &sandbox.StartError{Kind: kind, Path: path, Err: err}
	}
	switch {
	case step.Step == stepTerminal, step.Step == stepOwnTerminal:
		return failed(sandbox.NoTerminal, "/dev/ptmx", step.Errno)
	case step.Step == stepChdir:
		return failed(sandbox.BadWorkingDirectory, spec.Dir, step.Errno)
	case step.Errno == unix.E2BIG && (step.Step == stepInit || step.Step == stepExec):
		return failed(sandbox.ArgumentListTooLong, program.argv[0], step.Errno)
	case step.Step != stepExec:
		return nil
	}
	switch step.Errno {
	case unix.ENOENT:
		if _, err := os.Stat(program.path); err == nil {
			return failed(sandbox.ProgramNotExecutable, program.path, errors.New("the interpreter or loader it names was not found"))
		}
		return failed(sandbox.ProgramNotFound, program.path, step.Errno)
	case unix.ENOTDIR:
		return failed(sandbox.ProgramNotFound, program.path, step.Errno)
	case unix.EACCES, unix.EPERM, unix.ENOEXEC, unix.ELIBBAD, unix.EISDIR, unix.ELOOP, unix.ENAMETOOLONG, unix.EINVAL, unix.ETXTBSY:
		return failed(sandbox.ProgramNotExecutable, program.path, step.Errno)
	}
	return nil
}

// remedies turns a failure into what the person can do.
func remedies(err error) []string {
	var runner *RunnerError
	if errors.As(err, &runner) && len(runner.Remedies) > 0 {
		return runner.Remedies
	}
	if _, crowded := errors.AsType[*crowdedError](err); crowded {
		return []string{"end what runs in the background of this session", "raise processes in [limits] of the settings"}
	}
	var errno syscall.Errno
	if !errors.As(err, &errno) {
		return nil
	}
	switch errno {
	case unix.ESTALE:
		return []string{"reopen the workspace folder in the editor, so that it is declared anew; ask again for what was granted"}
	case unix.EMFILE, unix.ENFILE, unix.ENOMEM, unix.EAGAIN:
		return []string{"end other programs or raise the limits on open files and processes, then try again"}
	}
	return []string{"run `confine doctor` to see what this host refuses"}
}
