package sandbox

import (
	"fmt"
	"runtime"
	"strings"
)

// Limits bound what commands can use up, so that a runaway one hurts only
// itself. Zero asks for no limit. A limit never exceeds what the person who runs
// confine is held to.
type Limits struct {
	// Processes is how many processes and threads there may be at once: in a
	// session where the kernel counts so, else in one run.
	Processes uint64 `json:"processes,omitempty"`

	// Memory is what all processes of a run may use together, in bytes.
	Memory uint64 `json:"memory,omitempty"`

	// OpenFiles is how many descriptors one process may have. The soft limit stays
	// what it is, if it is lower.
	OpenFiles uint64 `json:"openFiles,omitempty"`

	// FileSize is how large one file may become, in bytes. A program that goes on
	// gets SIGXFSZ.
	FileSize uint64 `json:"fileSize,omitempty"`

	// TempSize is what a session's temporary files may take, in bytes, and a run's
	// shared memory, each by itself. They lie in memory, so that even zero bounds
	// each: by a quarter of it.
	TempSize uint64 `json:"tmpSize,omitempty"`
}

// DefaultLimits are far beyond what honest work needs. Builds run a few processes
// per processor and each may have dozens of threads; a browser or a build daemon
// has hundreds. Memory and files have no limit by default: what a link step or a
// database of tests needs nobody can tell beforehand.
func DefaultLimits() Limits {
	return Limits{Processes: max(4096, 128*uint64(runtime.NumCPU())), OpenFiles: 65536}
}

// String is the limits in one line, for people and logs; empty if there are none.
func (l Limits) String() string {
	var parts []string
	for _, p := range []struct {
		name  string
		value uint64
	}{{"processes", l.Processes}, {"memory", l.Memory}, {"open files", l.OpenFiles}, {"file size", l.FileSize}, {"temporary files", l.TempSize}} {
		if p.value != 0 {
			parts = append(parts, fmt.Sprintf("%s %d", p.name, p.value))
		}
	}
	return strings.Join(parts, ", ")
}

// Room is how large a file system in memory may become.
type Room struct{ Bytes, Files uint64 }

// TempRoom is the room of a file system for temporary files. A file takes memory
// even if it is empty, so that their number is bounded as well.
func (l Limits) TempRoom() Room {
	bytes := l.TempSize
	if bytes == 0 {
		bytes = max(machineMemory()/4, 64<<20)
	}
	return Room{Bytes: bytes, Files: max(bytes/(8<<10), 1024)}
}

// Resource is one thing that can be used up.
type Resource string

// The closed set of resources.
const (
	ProcessCount   Resource = "processes" // processes and threads
	Memory         Resource = "memory"    // of all processes of a run together, in bytes
	OpenFiles      Resource = "openFiles" // descriptors of one process
	FileSize       Resource = "fileSize"  // of one file, in bytes
	TemporaryFiles Resource = "tmpSize"   // of a session, in bytes
	Disk           Resource = "disk"      // what a run writes elsewhere, in bytes
)

// Resources lists every resource in reporting order.
var Resources = []Resource{ProcessCount, Memory, OpenFiles, FileSize, TemporaryFiles, Disk}

// ReachedLimits says in words which limits a run was seen to reach.
func ReachedLimits(reports []LimitReport) []string {
	texts := map[Resource]string{
		FileSize:       "the command was ended because one of its files would have become larger than %d bytes",
		TemporaryFiles: "the temporary files of this session take all of the %d bytes, or of the number of files, that they may",
	}
	var reached []string
	for _, r := range reports {
		if text, known := texts[r.Resource]; known && r.Reached {
			reached = append(reached, fmt.Sprintf(text, r.Limit))
		}
	}
	return reached
}

// LimitReport says how one resource is bounded, with the number that cannot be
// exceeded (0: there is none) and, unless the state is Enforced, why.
type LimitReport struct {
	Resource Resource   `json:"resource"`
	Limit    uint64     `json:"limit"`
	State    FacetState `json:"state"` // Enforced, Partial or Open
	Reason   string     `json:"reason,omitempty"`

	// Reached means that the run was seen to reach it. That it was not seen says
	// nothing.
	Reached bool `json:"reached,omitempty"`
}
