package proto

import "github.com/confine-dev/confine/sandbox"

// Question is what confine/requestApproval asks the person. Every text in it is
// escaped by the server: one visible line each, save Text, with \n, \u{202E},
// \xff and the like for what would not be seen, and ⟨20 × a⟩ for runs.
type Question struct {
	ID    string `json:"id"`
	RunID string `json:"runId"`
	Kind  string `json:"kind"`  // command: runs for the first time; escalation: ran confined and would run again
	Title string `json:"title"` // what would happen

	Command string   `json:"command"` // whole, or its first and last 32 KiB and a warning that says so
	Stdin   string   `json:"stdin,omitempty"`
	Env     []string `json:"env,omitempty"` // NAME=value, what the request itself sets
	Cwd     string   `json:"cwd"`

	Mode          sandbox.Mode `json:"mode"` // without the grant
	Wanted        Wanted       `json:"wanted"`
	Reason        string       `json:"reason"`
	Justification string       `json:"justification,omitempty"` // of whoever asks, a model mostly: not to be trusted

	Evidence []sandbox.Denial `json:"evidence"`
	Warnings []string         `json:"warnings"` // must not be overlooked, the most important first

	PolicyHash      string   `json:"policyHash"` // of what a yes would allow
	Options         []Option `json:"options"`    // the first refuses
	DefaultOptionID string   `json:"defaultOptionId"`
	ExpiresAt       string   `json:"expiresAt"` // RFC 3339
	Text            string   `json:"text"`      // all of it in some lines, for clients that can only show a message

	// Unshown is how many of the things that a yes depends on Text does not show
	// whole. A client that shows nothing else must refuse then.
	Unshown int `json:"unshown,omitempty"`
}

// Wanted is what a yes would grant.
type Wanted struct {
	Mode       sandbox.Mode `json:"mode,omitempty"`
	Additional *Additional  `json:"additional,omitempty"` // what more becomes writable, readable or reachable, with links resolved
}

// Option is one possible answer. Names are unique within a question.
type Option struct {
	OptionID string `json:"optionId"`
	Name     string `json:"name"`
	Kind     string `json:"kind"` // allow_once, allow_always, reject_once or reject_always
	Scope    string `json:"scope,omitempty"`
}

// Values of ApprovalOutcome.Outcome.
const (
	OutcomeSelected  = "selected"
	OutcomeCancelled = "cancelled"
)

// ApprovalAnswer answers a Question.
type ApprovalAnswer struct {
	Outcome ApprovalOutcome `json:"outcome"`
}

// ApprovalOutcome is the chosen option, or that none was chosen.
type ApprovalOutcome struct {
	Outcome  string `json:"outcome"`            // selected or cancelled
	OptionID string `json:"optionId,omitempty"` // with selected only
}

// ApprovalWithdrawn says that a question needs no answer any more. The reply
// to it is still owed, and ignored.
type ApprovalWithdrawn struct {
	ID     string `json:"id"`
	Reason string `json:"reason"` // expired or cancelled
}

// Values of ApprovalWithdrawn.Reason.
const (
	WithdrawnExpired   = "expired"
	WithdrawnCancelled = "cancelled"
)
