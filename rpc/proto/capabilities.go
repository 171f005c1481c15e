package proto

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

// Capabilities is what this host can enforce and how this server is set, and what
// this connection has of it.
type Capabilities struct {
	Record

	ProtocolVersion int          `json:"protocolVersion"`
	Version         string       `json:"version"` // of confine
	State           ProbeState   `json:"state"`
	Roots           []string     `json:"roots"` // canonical paths
	RefusedRoots    []RefusedURI `json:"refusedRoots"`
	CanAsk          bool         `json:"canAsk"`    // somebody can be asked for more
	StdinOpen       bool         `json:"stdinOpen"` // runCommand takes stdinOpen here, as far as it is known what will run commands
	Pty             bool         `json:"pty"`       // the same of pty
	Tool            Tool         `json:"tool"`
}

// RefusedURI is a workspace folder that is not used as a root.
type RefusedURI struct {
	URI    string `json:"uri"`
	Reason string `json:"reason"`
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
