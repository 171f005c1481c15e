package sandbox

import (
	"errors"
	"fmt"
	"io/fs"
)

// UnavailableCode is the code of UnavailableError on every wire.
const UnavailableCode = "SANDBOX_UNAVAILABLE"

// UnavailableError says that a confined mode was asked for and could not be
// enforced. The command did not run unconfined; unless Started is set, it did
// not run at all.
type UnavailableError struct {
	Mode     Mode
	Detail   string   // what failed, in one line; empty if no provider is usable at all
	Remedies []string // what the person can do, best first
	Started  bool     // the sandbox broke after the command had begun
	Unsure   bool     // of Started: it may have begun, and nobody can tell

	// Lacking means that this host has nothing that confines, whatever commands do
	// and however busy it is. A failure that a command may have brought about, or
	// that may pass, is none of that: it must never mean that the next one runs free.
	Lacking bool

	// Remote means that the service failed that commands are sent to. Nothing that
	// could be installed here would help, and no wider mode.
	Remote bool
}

// Error is the exact sentence that agents know, with the detail behind it, or of a
// service one like it, since of that every part would be untrue. If the command had
// begun it says so: the sentence alone does not.
func (e *UnavailableError) Error() string {
	msg := fmt.Sprintf("sandbox mode %q is requested but no sandbox backend is usable on this host; refusing to run the command unconfined. Install bubblewrap or run a Landlock-enforcing kernel (Linux), ensure sandbox-exec is usable (macOS) — Windows has no confinement backend yet — or switch the consumer to danger-full-access.", string(e.Mode))
	if e.Remote {
		msg = fmt.Sprintf("sandbox mode %q is requested but the remote sandbox of the settings is not usable; refusing to run the command on this machine instead.", string(e.Mode))
	}
	switch {
	case e.Unsure:
		msg += " Runner failure: whether the command began is not known, and what it did then stays done: " + e.Detail
	case e.Started:
		msg += " Runner failure: the command had begun, and what it did until then stays done: " + e.Detail
	case e.Detail != "":
		msg += " Runner failure: " + e.Detail
	}
	return msg
}

// StartErrorKind says why a command could not begin through no fault of the
// sandbox.
type StartErrorKind string

// The closed set of kinds. Their values are the codes on the wire.
const (
	ProgramNotFound      StartErrorKind = "PROGRAM_NOT_FOUND"
	ProgramNotExecutable StartErrorKind = "PROGRAM_NOT_EXECUTABLE"
	BadWorkingDirectory  StartErrorKind = "BAD_WORKING_DIRECTORY"
	ArgumentListTooLong  StartErrorKind = "ARGUMENT_LIST_TOO_LONG"
	NoTerminal           StartErrorKind = "NO_TERMINAL"
)

// StartError says that the command itself could not begin: the sandbox was
// ready, the program, folder or arguments were not. It is never a denial.
type StartError struct {
	Kind StartErrorKind
	Path string // program or folder
	Err  error  // what the system said
}

func (e *StartError) Error() string {
	switch e.Kind {
	case ProgramNotFound:
		if errors.Is(e.Err, fs.ErrPermission) { // somewhere it could not be looked for
			return fmt.Sprintf("program %q was not found (%v): check its spelling and the PATH of the command", e.Path, e.Err)
		}
		return fmt.Sprintf("program %q was not found: check its spelling and the PATH of the command", e.Path)
	case ProgramNotExecutable:
		return fmt.Sprintf("program %q cannot be executed (%v): check its permissions and its first line", e.Path, e.Err)
	case BadWorkingDirectory:
		return fmt.Sprintf("working directory %q cannot be used (%v): give an existing folder", e.Path, e.Err)
	case ArgumentListTooLong:
		return fmt.Sprintf("the arguments and environment of %q are too long for the system: put them in a file", e.Path)
	case NoTerminal:
		return fmt.Sprintf("the command got no terminal from %q (%v): end other programs that have one, or leave pty out and the command gets pipes", e.Path, e.Err)
	}
	return fmt.Sprintf("starting %q: %v", e.Path, e.Err)
}

func (e *StartError) Unwrap() error { return e.Err }
