package proto

import (
	"github.com/confine-dev/confine/approval/rules"
	"github.com/confine-dev/confine/sandbox"
)

// ApprovalsParams are the params of confine/approvals/list.
type ApprovalsParams struct {
	Session string `json:"session,omitempty"` // default: every session of this connection
}

// ApprovalsResult lists what spares a question or refuses a command without one:
// first the person's answers, newest first, then rules in the order of the settings.
type ApprovalsResult struct {
	Approvals []Approval `json:"approvals"`
}

// Approval is one answer of the person that still counts, or one rule. Its texts are
// escaped as those of a Question.
type Approval struct {
	ID       string         `json:"id"` // of an answer: that of its question
	Source   ApprovalSource `json:"source"`
	Decision rules.Decision `json:"decision"`
	Text     string         `json:"text"`              // what it means for later requests, in a sentence
	Scope    string         `json:"scope"`             // session or settings
	Session  string         `json:"session,omitempty"` // of an answer, as the client names it; absent: the connection's own

	Command    string       `json:"command"` // of a long one the beginning and the end; of a rule its words
	Cwd        string       `json:"cwd,omitempty"`
	Mode       sandbox.Mode `json:"mode,omitempty"`   // in force without the answer
	Wanted     *Wanted      `json:"wanted,omitempty"` // what a yes opened, or a no kept closed
	Warnings   []string     `json:"warnings,omitempty"`
	PolicyHash string       `json:"policyHash,omitempty"`
	Outcome    string       `json:"outcome,omitempty"` // of the question: allowed-session, rejected or cancelled
	At         string       `json:"at,omitempty"`      // of the answer, RFC 3339

	Reason string `json:"reason,omitempty"` // of a rule, in the words of whoever wrote it
	Origin string `json:"origin,omitempty"` // of a rule: file and line

	Revocable bool `json:"revocable"` // confine/approvals/revoke ends it
}

// ApprovalSource is who decided.
type ApprovalSource string

// The closed set of sources.
const (
	ApprovalByPerson ApprovalSource = "person"
	ApprovalByRule   ApprovalSource = "rule"
)

// Scopes of an Approval.
const (
	ApprovalOfSession  = "session"
	ApprovalOfSettings = "settings"
)

// RevokeParams are the params of confine/approvals/revoke.
type RevokeParams struct {
	ID string `json:"id"`
}
