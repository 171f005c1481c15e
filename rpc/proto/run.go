package proto

import "github.com/confine-dev/confine/sandbox"

// RunCommandParams are the params of runCommand. Exactly one of Command and
// Argv is given.
type RunCommandParams struct {
	Command string   `json:"command,omitempty"` // one argument of bash -c
	Argv    []string `json:"argv,omitempty"`    // program and arguments, no shell

	RunID   string            `json:"runId,omitempty"`   // chosen by the client: fresh, [A-Za-z0-9_-]{1,64}
	Session string            `json:"session,omitempty"` // opaque key, at most 256 bytes; default: the connection
	Cwd     string            `json:"cwd,omitempty"`     // absolute; default: the only workspace folder
	Env     map[string]string `json:"env,omitempty"`     // added to the scrubbed environment
	Stdin   string            `json:"stdin,omitempty"`   // default: /dev/null

	StdinOpen bool          `json:"stdinOpen,omitempty"` // more may follow by confine/runs/write
	Pty       *TerminalSize `json:"pty,omitempty"`       // a terminal of this size in place of pipes; its input is open

	Mode    sandbox.Mode `json:"mode,omitempty"`    // default: the configured one
	Network *bool        `json:"network,omitempty"` // default: as configured

	TimeoutMs  *int64 `json:"timeoutMs,omitempty"` // default 120000, at most 600000; for a background run none unless given
	Background bool   `json:"background,omitempty"`

	SandboxPermissions sandbox.Mode `json:"sandboxPermissions,omitempty"` // workspace-write or danger-full-access: ask first, then run this call wider
	Justification      string       `json:"justification,omitempty"`      // one sentence for the person, with SandboxPermissions only

	WorkDoneToken Token `json:"workDoneToken,omitempty"`
}

// TerminalSize is how large a terminal is, in characters: 1 to 10000 of each.
type TerminalSize struct {
	Columns int `json:"columns,omitempty"` // default 80
	Rows    int `json:"rows,omitempty"`    // default 24
}

// EscalationParams are the params of requestEscalation. Exactly one of
// SandboxPermissions and Additional is given.
type EscalationParams struct {
	RunID              string       `json:"runId"` // a run that ran and ended
	SandboxPermissions sandbox.Mode `json:"sandboxPermissions,omitempty"`
	Additional         *Additional  `json:"additional,omitempty"` // what to add in the run's own mode
	Justification      string       `json:"justification"`
	NewRunID           string       `json:"newRunId,omitempty"` // id of the second run, as RunCommandParams.RunID
	WorkDoneToken      Token        `json:"workDoneToken,omitempty"`
}

// Additional is what is added to a mode: files and folders, each with everything
// in it, and the network. In a request at most 16 absolute paths of at most 4096
// bytes; at least one of the fields is given.
type Additional struct {
	Write   []string `json:"write,omitempty"`
	Read    []string `json:"read,omitempty"` // although they are hidden
	Network bool     `json:"network,omitempty"`
}

// Status says where a run is.
type Status string

// The closed set of statuses.
const (
	StatusRunning   Status = "running"   // waiting for an answer included
	StatusCompleted Status = "completed" // it ended, in whatever way
	StatusCancelled Status = "cancelled" // it was ended, or not begun, because somebody asked for that
	StatusRefused   Status = "refused"   // it never ran because it was not allowed
)

// RunResult is everything about one run, always complete: what is not known or
// does not apply has its zero value, and only fields marked optional are left
// out.
type RunResult struct {
	RunID    string `json:"runId"`
	Status   Status `json:"status"`
	ExitCode *int   `json:"exitCode,omitempty"` // only of a run that exited
	Signal   string `json:"signal,omitempty"`   // such as SIGTERM, only of a run that a signal ended
	TimedOut bool   `json:"timedOut"`

	DurationMs         int64 `json:"durationMs"`
	EffectiveTimeoutMs int64 `json:"effectiveTimeoutMs"` // after clamping; 0 means none

	Stdout StreamText `json:"stdout"`
	Stderr StreamText `json:"stderr"`

	// OutputMissing says why part of the output did not come from a remote sandbox;
	// left out if all of it did.
	OutputMissing string `json:"outputMissing,omitempty"`

	Sandbox    *SandboxFacts   `json:"sandbox,omitempty"` // left out for a background run in danger-full-access
	Approval   *ApprovalFacts  `json:"approval,omitempty"`
	Escalation *EscalationHint `json:"escalation,omitempty"`

	DroppedEnv []string `json:"droppedEnv"` // names of the variables that the command did not get
	PolicyHash string   `json:"policyHash"`
	ModelText  string   `json:"modelText"` // what an agent should be shown

	// Error is set only if a run that was already answered could not begin or
	// its sandbox broke.
	Error *Error `json:"error,omitempty"`
}

// StreamText is the end of one output stream.
type StreamText struct {
	Text      string `json:"text"`  // valid UTF-8, cut at a rune border
	Bytes     int64  `json:"bytes"` // of the whole stream
	Truncated bool   `json:"truncated"`
	SpillPath string `json:"spillPath,omitempty"` // file with the whole stream
}

// SandboxFacts say how a run was confined. In danger-full-access only Mode and
// Denied are given.
type SandboxFacts struct {
	Mode        sandbox.Mode                          `json:"mode"`
	Provider    string                                `json:"provider,omitempty"`
	Kind        string                                `json:"kind,omitempty"`
	Layers      []string                              `json:"layers,omitempty"`
	Enforcement sandbox.Enforcement                   `json:"enforcement,omitempty"`
	Facets      map[sandbox.Facet]sandbox.FacetReport `json:"facets,omitempty"`

	Denied       bool             `json:"denied"`
	Denials      []sandbox.Denial `json:"denials,omitempty"`
	SkippedRoots []string         `json:"skippedRoots,omitempty"`
	Planted      []string         `json:"planted,omitempty"`

	// Limits says of each resource how it was bounded.
	Limits []sandbox.LimitReport `json:"limits,omitempty"`

	// Observation says how complete Denials is; left out where it is not known.
	Observation *sandbox.Observation `json:"observation,omitempty"`

	// RunnerFailed means that the sandbox itself broke; only a run that was
	// answered before it ended carries it.
	RunnerFailed bool `json:"runnerFailed,omitempty"`
}

// ApprovalFacts say how a run came to be allowed or refused; left out when
// nothing had to be asked.
type ApprovalFacts struct {
	Outcome string `json:"outcome"` // allowed-once … unavailable
	By      string `json:"by"`      // what decided: person, grant, memory, policy, limits or default
	Reason  string `json:"reason"`  // one sentence, safe to show
}

// EscalationHint says what, asked for with requestEscalation, would let the
// command do what it was refused. Additional, if given, is the narrowest;
// otherwise the first of Targets is.
type EscalationHint struct {
	Targets    []sandbox.Mode `json:"targets"` // wider modes that would do, narrowest first
	Additional *Additional    `json:"additional,omitempty"`
}

// Output is one piece of output. Data or Base64 holds it; neither is given if
// only Skipped is to be told.
type Output struct {
	RunID   string         `json:"runId"`
	Seq     int64          `json:"seq"` // from 0, per run, without gaps
	Stream  sandbox.Stream `json:"stream"`
	Offset  int64          `json:"offset"`            // of the first byte in its stream
	Data    string         `json:"data,omitempty"`    // only if the bytes are valid UTF-8
	Base64  string         `json:"base64,omitempty"`  // otherwise
	Skipped int64          `json:"skipped,omitempty"` // bytes of this stream left out just before this piece
}
