package approval

import (
	"context"
	"fmt"

	"github.com/confine-dev/confine/approval/rules"
	"github.com/confine-dev/confine/sandbox"
)

// Request is a command that wants to run, and the policy that it wants.
// Exactly one of Command and Argv is set.
type Request struct {
	RunID   string
	Session string // owner of grants and refusals; with none, nothing is remembered
	Kind    Kind
	Policy  Policy // of this request; empty means the gate's

	// Verdict is what the rules say about the command. It never makes Want any
	// wider without a question.
	Verdict rules.Verdict

	Command string   // for bash -c
	Argv    []string // program and arguments
	Stdin   string   // what the command is given to read
	Dir     string   // absolute working directory

	// StdinOpen means that more input than Stdin may follow, which no question shows;
	// Terminal that it is typed at a terminal.
	StdinOpen, Terminal bool
	Env                 map[string]string // variables that the request itself sets

	Have sandbox.Policy // what is configured and needs no question
	Want sandbox.Policy // what the command would run under

	// Grants say more about paths that Want opens one by one. A path without
	// one is shown without more.
	Grants []Grant

	Reason        string           // why confine asks; may quote untrusted text
	Justification string           // why it is needed, in the words of whoever asks: a model mostly
	Evidence      []sandbox.Denial // what the sandbox refused before
	Warnings      []string         // what else the person should know

	everyTime bool // a rule wants it asked every time: no answer is kept as a yes
}

// Grant says what a person should know about one file or folder that is opened
// beyond the mode.
type Grant struct {
	Path string // as in Want.Writable or Want.Readable
	Kind sandbox.GrantKind

	// Missing are the paths below Path, a folder, that were asked for and do not
	// exist, so that the folder is opened in their place.
	Missing []string

	Perils     []sandbox.Peril
	NotRefused bool // nothing there was refused before
}

// Kind says what a request is about.
type Kind string

// The closed set of kinds.
const (
	KindCommand    Kind = "command"    // runs for the first time
	KindEscalation Kind = "escalation" // ran confined and would run again
)

// Decision is what became of a request. A refusal is a decision, not an error.
type Decision struct {
	Outcome    Outcome
	By         By
	QuestionID string // the question that was answered, now or earlier; may be empty
	Reason     string // one sentence, safe to show to a person or a model
}

// Outcome says whether the command may run and for how long that holds. The
// zero value allows nothing.
type Outcome string

// The closed set of outcomes.
const (
	AllowedOnce    Outcome = "allowed-once"
	AllowedSession Outcome = "allowed-session"
	AllowedAlways  Outcome = "allowed-always"
	Rejected       Outcome = "rejected"
	Cancelled      Outcome = "cancelled"   // the request ended or the question was closed
	TimedOut       Outcome = "timed-out"   // nobody answered in time
	Unavailable    Outcome = "unavailable" // nobody could be asked, or what came back is no answer
)

// Allowed reports whether the command may run.
func (o Outcome) Allowed() bool {
	return o == AllowedOnce || o == AllowedSession || o == AllowedAlways
}

// By says what made a decision.
type By string

// The closed set of deciders.
const (
	ByMode    By = "mode"    // the configured policy already allows it
	ByLimits  By = "limits"  // the request can never be allowed
	ByPolicy  By = "policy"  // the approval policy forbids to ask, or a rule denies the command
	ByMemory  By = "memory"  // the person refused the same before
	ByGrant   By = "grant"   // the person allowed the same before
	ByPerson  By = "person"  // the person answered, or closed the question
	ByDefault By = "default" // no answer came, and no answer is a no
)

// Policy says when a person is asked.
type Policy string

// The closed set of policies.
const (
	PolicyAsk       Policy = "ask"       // ask for what is wider than configured; the default
	PolicyUntrusted Policy = "untrusted" // ask about every command that no rule allows, too
	PolicyNever     Policy = "never"     // refuse what would be asked without asking
)

// Asks reports whether a command of which the rules say this is asked about although
// it wants nothing beyond what is configured.
func (p Policy) Asks(v rules.Verdict) bool {
	return v.Decision == rules.Ask || p == PolicyUntrusted && v.Decision != rules.Allow
}

// ParsePolicy accepts exactly the spellings of the policies.
func ParsePolicy(s string) (Policy, error) {
	switch p := Policy(s); p {
	case PolicyAsk, PolicyUntrusted, PolicyNever:
		return p, nil
	}
	return "", fmt.Errorf("unknown approval policy %q: use ask, untrusted or never", s)
}

// Option is one answer that the person can choose.
type Option struct {
	ID    string
	Name  string // unique within a question, and says the scope
	Kind  OptionKind
	Scope Scope
}

// OptionKind is the kind of an option as editors know it from ACP.
type OptionKind string

// The closed set of option kinds.
const (
	AllowOnce    OptionKind = "allow_once"
	AllowAlways  OptionKind = "allow_always"
	RejectOnce   OptionKind = "reject_once"
	RejectAlways OptionKind = "reject_always"
)

// Scope says how long an answer holds.
type Scope string

// The scopes that options offer.
const (
	ScopeOnce    Scope = "once"
	ScopeSession Scope = "session"
)

// Answer is what a Prompter brings back. Exactly one of the fields is set;
// anything else counts as no answer.
type Answer struct {
	OptionID  string
	Cancelled bool // the person closed the question without choosing
}

// Prompter shows a question to a person. Prompt is called once per question,
// from a goroutine of its own, for several questions at once.
//
// When ctx ends the question is withdrawn: Prompt should tell the client (see
// Withdrawal) and return soon; what it returns then is ignored. An error, like
// a panic, means that there is no answer.
type Prompter interface {
	Prompt(ctx context.Context, q Question) (Answer, error)
}
