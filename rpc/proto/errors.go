package proto

import "github.com/confine-dev/confine/sandbox"

// Error codes. Codes -32800 to -32802 of the Language Server Protocol are
// never used: some editors drop such answers without a word.
const (
	CodeParseError     int64 = -32700 // the message is no JSON
	CodeInvalidRequest int64 = -32600 // no valid request, or not in this state
	CodeMethodNotFound int64 = -32601
	CodeInvalidParams  int64 = -32602
	CodeInternalError  int64 = -32603
	CodeNotInitialized int64 = -32002 // a request before initialize
	CodeRequestFailed  int64 = -32803 // valid, but it could not be done; see FailureData
)

// Values of FailureData.Code.
const (
	// FailureSandboxUnavailable means that no sandbox could be enforced.
	FailureSandboxUnavailable = sandbox.UnavailableCode

	// FailureTooManyRuns means that a limit of runs at once was reached.
	FailureTooManyRuns = "TOO_MANY_RUNS"

	// FailureTooManySessions means that a connection used too many sessions.
	FailureTooManySessions = "TOO_MANY_SESSIONS"

	// FailureGrantChanged means that a file or folder was replaced between the
	// question and the start, so the command did not run.
	FailureGrantChanged = "GRANT_CHANGED"

	// FailureSettings means that the settings have a mistake that could have meant
	// to forbid the command, so it did not run.
	FailureSettings = "SETTINGS_INVALID"

	// FailureSettingsChanged means that the settings changed while a question was
	// open, so that what it said of them may not hold and the command did not run.
	FailureSettingsChanged = "SETTINGS_CHANGED"

	// FailureInputClosed means that a run takes no input: it has not begun, it has
	// ended, or its input was closed.
	FailureInputClosed = "INPUT_CLOSED"

	// FailureNotRecorded means that the audit could not be written, so the
	// command did not run.
	FailureNotRecorded = "NOT_RECORDED"
)

// UnavailableName is FailureData.Name of FailureSandboxUnavailable.
const UnavailableName = "SandboxUnavailableError"

// Error is the error object of a response. In a RunResult it says why a run
// that was answered before it began never ran or broke.
type Error struct {
	Code    int64        `json:"code"`
	Message string       `json:"message"`
	Data    *FailureData `json:"data,omitempty"`
}

// FailureData is the data of a CodeRequestFailed error.
type FailureData struct {
	Code string `json:"code"` // a Failure… constant, or a sandbox.StartErrorKind

	Name     string       `json:"name,omitempty"`     // UnavailableName, for FailureSandboxUnavailable only
	Mode     sandbox.Mode `json:"mode,omitempty"`     // the mode that could not be enforced
	Detail   string       `json:"detail,omitempty"`   // what failed, in one line
	Remedies []string     `json:"remedies,omitempty"` // what the person can do, best first
	Started  bool         `json:"started,omitempty"`  // the sandbox broke after the command had begun; otherwise it did not run

	Path string `json:"path,omitempty"` // program or folder, for a sandbox.StartErrorKind; file or folder, for FailureGrantChanged
}
