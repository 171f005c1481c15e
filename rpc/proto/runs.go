package proto

import "github.com/confine-dev/confine/sandbox"

// RunParams names a run of this connection.
type RunParams struct {
	RunID string `json:"runId"`
}

// ListParams are the params of confine/runs/list.
type ListParams struct {
	Session string `json:"session,omitempty"` // default: every session of this connection
}

// ListResult lists the running runs, then the ended ones, newest first in both
// parts.
type ListResult struct {
	Runs []RunInfo `json:"runs"`
}

// RunInfo is one run in short. Of Command, or of Argv, only the first 4 KiB are
// given.
type RunInfo struct {
	RunID      string       `json:"runId"`
	Session    string       `json:"session,omitempty"`
	Status     Status       `json:"status"`
	Command    string       `json:"command,omitempty"`
	Argv       []string     `json:"argv,omitempty"`
	Bytes      int          `json:"bytes"` // of the whole Command, or of Argv together
	Cwd        string       `json:"cwd"`
	Mode       sandbox.Mode `json:"mode"`
	Background bool         `json:"background"`
	StdinOpen  bool         `json:"stdinOpen"` // it takes what confine/runs/write brings
	Pty        bool         `json:"pty"`       // it has a terminal
	StartedAt  string       `json:"startedAt"` // RFC 3339
	DurationMs int64        `json:"durationMs"`
	ExitCode   *int         `json:"exitCode,omitempty"`
	Signal     string       `json:"signal,omitempty"`
	TimedOut   bool         `json:"timedOut"`
}

// ReadParams are the params of confine/runs/read.
type ReadParams struct {
	RunID    string         `json:"runId"`
	Stream   sandbox.Stream `json:"stream,omitempty"` // default stdout
	Offset   int64          `json:"offset,omitempty"` // byte cursor, from 0
	MaxBytes int            `json:"maxBytes,omitempty"`
}

// ReadResult is what a stream holds from a byte cursor on. Asking again with
// NextOffset goes on without loss or repetition.
type ReadResult struct {
	RunID      string         `json:"runId"`
	Stream     sandbox.Stream `json:"stream"`
	Status     Status         `json:"status"`
	Offset     int64          `json:"offset"`            // of the first byte returned
	Data       string         `json:"data,omitempty"`    // only if the bytes are valid UTF-8
	Base64     string         `json:"base64,omitempty"`  // otherwise
	Skipped    int64          `json:"skipped,omitempty"` // bytes from the cursor on that are no longer held
	NextOffset int64          `json:"nextOffset"`
	TotalBytes int64          `json:"totalBytes"` // seen so far
	EOF        bool           `json:"eof"`        // the run ended and nothing follows
}

// WaitParams are the params of confine/runs/wait.
type WaitParams struct {
	RunID     string `json:"runId"`
	TimeoutMs *int64 `json:"timeoutMs,omitempty"` // default 30000, at most 600000; the answer then says running
}

// KillResult says whether the run was still going.
type KillResult struct {
	RunID  string `json:"runId"`
	Killed bool   `json:"killed"`
}

// WriteParams are the params of confine/runs/write. At most one of Data and Base64
// is given.
type WriteParams struct {
	RunID  string `json:"runId"`
	Data   string `json:"data,omitempty"`
	Base64 string `json:"base64,omitempty"`
	Close  bool   `json:"close,omitempty"` // nothing follows; not for a terminal
}

// WriteResult says what became of input. What was not taken is to be sent again.
type WriteResult struct {
	RunID  string `json:"runId"`
	Taken  int    `json:"taken"`  // bytes of what was sent, from its beginning
	Queued int    `json:"queued"` // bytes that the command has not been given yet
	Open   bool   `json:"open"`   // more may follow
}

// ResizeParams are the params of confine/runs/resize.
type ResizeParams struct {
	RunID   string `json:"runId"`
	Columns int    `json:"columns"`
	Rows    int    `json:"rows"`
}

// Started answers workspace/executeCommand.
type Started struct {
	RunID string `json:"runId"`
}
