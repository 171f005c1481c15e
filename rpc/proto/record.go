package proto

import (
	"github.com/confine-dev/confine/sandbox"
	"github.com/confine-dev/confine/sandbox/harden"
)

// Record is what this host can enforce and how confine is set and protected. A
// server makes it in one place; capabilities, the doctor, setup --status and a bug
// report show the same one.
type Record struct {
	OK        bool             `json:"ok"`       // the configured mode can be enforced; false while probing
	Problems  []string         `json:"problems"` // why not, and what to do
	Mode      sandbox.Mode     `json:"mode"`     // configured
	Provider  string           `json:"provider"` // that confines commands; none if nothing does
	Settings  []Setting        `json:"settings"`
	Providers []sandbox.Report `json:"providers"` // empty while probing

	SettingsProblems []SettingsProblem `json:"settingsProblems"`

	Hints     []string      `json:"hints"`               // what is amiss around confine, and what to do
	Hardening *harden.State `json:"hardening,omitempty"` // of the server's process; left out if nobody looked
	Limits    Limits        `json:"limits"`
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

// Limits are the fixed limits of the server.
type Limits struct {
	DefaultTimeoutMs int64 `json:"defaultTimeoutMs"`
	MaxTimeoutMs     int64 `json:"maxTimeoutMs"`
	TextBytes        int   `json:"textBytes"`     // of each stream in a result
	ChunkBytes       int   `json:"chunkBytes"`    // of one confine/output
	UnsentBytes      int   `json:"unsentBytes"`   // of one run before output is left out
	InputBytes       int   `json:"inputBytes"`    // of one run that wait for the command, before confine/runs/write takes no more
	FinishedRuns     int   `json:"finishedRuns"`  // kept for reading
	FinishedRunMs    int64 `json:"finishedRunMs"` // how long
	Background       int   `json:"background"`    // runs at once
	Sessions         int   `json:"sessions"`      // of a connection, until its end
}

// NewRecord is a record of nothing, without a list that is null.
func NewRecord() Record {
	return Record{
		Provider: sandbox.ProviderNone, Problems: []string{}, Settings: []Setting{}, Providers: []sandbox.Report{},
		SettingsProblems: []SettingsProblem{}, Hints: []string{},
	}
}
