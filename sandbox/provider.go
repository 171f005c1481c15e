package sandbox

import (
	"context"
	"io"
	"os"
	"time"
)

// Provider is one way of confining commands on this host. Implementations may
// be called from several goroutines at once.
type Provider interface {
	// Name is one of the Provider… constants.
	Name() string

	// Interaction says what can be had of Spec.StdinOpen and Spec.Terminal. Start
	// fails where they cannot.
	Interaction() Interaction

	// Probe says what this host can enforce, from having tried it. It may take
	// some hundred milliseconds the first time; the answer is kept until the
	// provider itself failed once.
	Probe(ctx context.Context) Report

	// Start begins a command. The error is a *StartError if the command could
	// not begin through its own fault, a *UnavailableError if the sandbox
	// failed, and any other error only for a cancelled ctx or invalid Spec.
	// ctx covers starting, not the command's life.
	Start(ctx context.Context, spec Spec) (Process, error)

	// CloseSession ends what a session still runs and removes its temporary
	// folder and network. Closing an unknown session does nothing.
	CloseSession(session string)

	// Close ends every session and helper process.
	Close() error
}

// Spec is one command. Exactly one of Command and Argv is set.
type Spec struct {
	RunID   string
	Session string // opaque; never part of a path

	Command string   // given to bash -c; any length, no NUL bytes
	Argv    []string // program and arguments; the program is looked up on PATH of Env

	Dir   string    // absolute working directory
	Env   []string  // the whole environment; see Environment
	Stdin io.Reader // nil means /dev/null, or nothing before what Process.Input brings

	// StdinOpen keeps input open behind Stdin, for Process.Input.
	StdinOpen bool

	// Terminal, if set, gives the command a terminal of this size in place of pipes,
	// with open input. All output is on StdoutStream.
	Terminal *TerminalSize

	Policy Policy

	Timeout time.Duration // 0 means none
	Grace   time.Duration // between TERM and KILL; 0 means DefaultGrace

	// KeepOutput is what is held in memory per stream; 0 means DefaultKeep.
	KeepOutput int

	// SpillDir is an existing private folder for streams longer than
	// KeepOutput; empty means that only the tail is kept.
	SpillDir string

	// Output, if set, is called with each piece of output in the order it was
	// read, never twice at once. It must not block for long and must not keep
	// Data. After the last call Wait returns.
	Output func(Chunk)
}

// Defaults and limits of a run.
const (
	DefaultTimeout = 120 * time.Second
	MaxTimeout     = 600 * time.Second
	DefaultGrace   = 3 * time.Second
	DefaultKeep    = 64000 // bytes of each stream kept in memory
)

// Stream names one of the two output streams.
type Stream string

// The output streams.
const (
	StdoutStream Stream = "stdout"
	StderrStream Stream = "stderr"
)

// Chunk is a piece of output as it was read.
type Chunk struct {
	Stream Stream
	Offset int64 // of Data in its stream, from 0
	Data   []byte
}

// Process is a command that began.
type Process interface {
	// Wait blocks until the command ended, its output is complete and nothing
	// of it is left, and returns the same each time. The error means that the
	// sandbox failed, never the command: an *UnavailableError, with Started set
	// unless it turned out that the command never began.
	Wait() (Result, error)

	// Done is closed when Wait would not block any more.
	Done() <-chan struct{}

	// Signal sends a signal to the command's process group; for an ended
	// command it does nothing.
	Signal(sig os.Signal) error

	// Cancel ends the command: TERM, then KILL after the grace time. It does
	// not wait and may be called again.
	Cancel()

	// Provider names what confines the command: of several, the one that does;
	// ProviderNone if nothing does, whatever was asked for.
	Provider() string

	// Output gives access to what was captured so far.
	Output(Stream) *Capture

	// Input takes what the command reads next; nil if its input is not open.
	Input() *Input

	// Resize changes the size of the command's terminal; it fails if it has none, and
	// does nothing once the command has ended.
	Resize(TerminalSize) error
}

// Result is how a command ended. Its facts stand side by side; none is derived
// from another.
type Result struct {
	ExitCode  int    // valid if Signal is empty
	Signal    string // such as SIGTERM; empty if the command exited
	TimedOut  bool   // confine ended it because of Spec.Timeout
	Cancelled bool   // confine ended it because of Cancel
	Started   time.Time
	Duration  time.Duration
	Facts     Facts
	Denied    bool // the sandbox refused something that made a difference as far as known
	Denials   []Denial

	// Missing says why part of the output did not come; empty if all did. What came
	// is right, and so is how the command ended.
	Missing string

	// Observation says how far the refusals of this run were seen.
	Observation Observation
}

// Report is what a provider can do on this host, from having tried.
type Report struct {
	Provider string   `json:"provider"`
	Kind     string   `json:"kind,omitempty"`
	Usable   bool     `json:"usable"`
	Reason   string   `json:"reason,omitempty"` // why not usable, or why less than full
	Remedies []string `json:"remedies,omitempty"`
	Version  string   `json:"version,omitempty"` // of the mechanism: Landlock ABI, bubblewrap version
	Layers   []string `json:"layers,omitempty"`

	// ABI is the version of Landlock that takes part, 0 if none does or it is not
	// known. MissingRights is what it cannot refuse and a newer one can; whether
	// something else does is in Facets.
	ABI           int      `json:"abi,omitempty"`
	MissingRights []string `json:"missingRights,omitempty"`

	Facets map[Facet]FacetReport    `json:"facets,omitempty"` // for workspace-write without network
	Limits map[Resource]FacetReport `json:"limits,omitempty"` // which limits hold if they are set
	Checks []Check                  `json:"checks,omitempty"` // what was tried and what came of it
}

// Check is one thing that a probe tried.
type Check struct {
	Name   string `json:"name"`
	OK     bool   `json:"ok"`
	Detail string `json:"detail,omitempty"`
}
