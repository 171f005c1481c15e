package local

import (
	"os"

	"github.com/confine-dev/confine/sandbox"
	"golang.org/x/sys/unix"
)

// Observer sees the operations that a confined command is refused. It never
// decides: what it is told of goes on into the kernel.
type Observer interface {
	// Filter is the seccomp program that is installed with a listener, last of
	// all filters. None of its notified calls is made by the init.
	Filter(namespaces bool) []unix.SockFilter

	// Watch answers the notifications of a listener from now on. It takes the
	// listener over and keeps it open until End: a trapped call whose listener
	// is gone fails.
	Watch(listener *os.File, run Watched) Watch
}

// Watched is what an Observer is told of a run.
type Watched struct {
	Policy     sandbox.Policy
	Namespaces bool

	// Writable are the places besides the policy's roots that the command can
	// write to, as the command names them.
	Writable []string

	// Notable, if set, knows the names of files and folders that are listed when a
	// command makes them, or something in them: last says which.
	Notable func(name string, last bool) bool

	// Absent are protected paths that do not exist on the host but for a folder or
	// file that keeps them absent during the run.
	Absent []string

	// Progress is shared with the guardian, which answers when it sees that the
	// numbers stand still while a call waits.
	Progress *Progress
}

// Progress lies in memory that the server shares with its guardian. Both use
// atomic operations only.
type Progress struct {
	Received uint64 // notifications that the observer took
	Stolen   uint64 // notifications that the guardian answered in its place
}

// Watch is one run that is watched.
type Watch interface {
	// End is called once, when no process of the run is left.
	End() Observed
}

// Observed is what was seen of a run.
type Observed struct {
	Denials []sandbox.Denial // each with evidence "observed", the oldest first
	Made    []string         // paths that Watched.Notable knows and the command tried to make, each once
	sandbox.Observation
}
