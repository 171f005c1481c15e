package proto

import "github.com/confine-dev/confine/sandbox"

// ClientConfine is what a client announces as
// capabilities.experimental.confine.
type ClientConfine struct {
	ProtocolVersion int  `json:"protocolVersion"`    // at least 1
	Approval        bool `json:"approval,omitempty"` // it answers confine/requestApproval
	Output          bool `json:"output,omitempty"`   // it wants confine/output
}

// ServerConfine is what the server answers at the same place.
type ServerConfine struct {
	ProtocolVersion int          `json:"protocolVersion"` // the lower of both, or the server's own
	State           ProbeState   `json:"state"`
	RefusedRoots    []RefusedURI `json:"refusedRoots,omitempty"`
}

// ProbeState says whether the providers have been tried yet.
type ProbeState string

// The states of probing.
const (
	StateProbing ProbeState = "probing"
	StateReady   ProbeState = "ready"
)

// CapabilitiesChanged says that asking for capabilities again is worth it.
type CapabilitiesChanged struct {
	State ProbeState `json:"state"`
}

// CapabilitiesParams are the params of capabilities.
type CapabilitiesParams struct {
	Wait bool `json:"wait,omitempty"` // answer only when probing is done
}

// Capabilities is what this host can enforce and how this server is set.
type Capabilities struct {
	ProtocolVersion int               `json:"protocolVersion"`
	Version         string            `json:"version"` // of confine
	State           ProbeState        `json:"state"`
	Provider        string            `json:"provider"`  // that confines commands; none if nothing does
	Providers       []sandbox.Report  `json:"providers"` // empty while probing
	Settings        []Setting         `json:"settings"`
	Problems        []SettingsProblem `json:"settingsProblems"`
	Roots           []string          `json:"roots"` // canonical paths
	RefusedRoots    []RefusedURI      `json:"refusedRoots"`
	CanAsk          bool              `json:"canAsk"` // somebody can be asked for more
	Limits          Limits            `json:"limits"`
	Tool            Tool              `json:"tool"`
}

// Setting is one effective setting.
type Setting struct {
	Key    string `json:"key"` // as in the settings file
	Value  any    `json:"value"`
	Origin string `json:"origin"` // default, or where it was set
}

// SettingsProblem is something to be said of the settings.
type SettingsProblem struct {
	Severity Severity `json:"severity"`
	Message  string   `json:"message"` // may have paths of files in it
}

// Severity says what a problem does.
type Severity string

// The severities: a warning is about something that counts for nothing; an error
// means that what held before holds on, or that no command runs.
const (
	SeverityWarning Severity = "warning"
	SeverityError   Severity = "error"
)

// RefusedURI is a workspace folder that is not used as a root.
type RefusedURI struct {
	URI    string `json:"uri"`
	Reason string `json:"reason"`
}

// Limits are the fixed limits of the server.
type Limits struct {
	DefaultTimeoutMs int64 `json:"defaultTimeoutMs"`
	MaxTimeoutMs     int64 `json:"maxTimeoutMs"`
	TextBytes        int   `json:"textBytes"`     // of each stream in a result
	ChunkBytes       int   `json:"chunkBytes"`    // of one confine/output
	UnsentBytes      int   `json:"unsentBytes"`   // of one run before output is left out
	FinishedRuns     int   `json:"finishedRuns"`  // kept for reading
	FinishedRunMs    int64 `json:"finishedRunMs"` // how long
	Background       int   `json:"background"`    // runs at once
	Sessions         int   `json:"sessions"`      // of a connection, until its end
}

// Tool describes the shell tool for an agent.
type Tool struct {
	Name        string         `json:"name"`
	Description string         `json:"description"`
	InputSchema map[string]any `json:"inputSchema"` // a JSON Schema
	Arguments   []ToolArgument `json:"arguments"`   // how each argument maps to runCommand
}

// ToolArgument maps one argument of the tool to a field of RunCommandParams.
type ToolArgument struct {
	Name  string `json:"name"`
	Field string `json:"field,omitempty"` // empty: for people only, not sent
}
