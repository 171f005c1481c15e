package proto

import "github.com/confine-dev/confine/approval/rules"

// Explanation is the result of confine/explain: what would become of a command,
// which is neither run nor asked about.
type Explanation struct {
	// Auto says that rules allow the command and that it asks for nothing beyond
	// what is configured: it runs without a question under every approval policy.
	Auto bool `json:"auto"`

	Now      Outlook        `json:"now"`                // under the settings in force, whatever was answered before
	Decision rules.Decision `json:"decision,omitempty"` // of the rules; absent if none says anything
	Rule     *rules.Rule    `json:"rule,omitempty"`     // that decided; absent if none did, or what is built in
	Why      string         `json:"why"`                // what the rules say and why, in a clause

	Prompt string `json:"prompt"` // the text of the question that a person would be shown, if it is asked
}

// Outlook says what would become of a command.
type Outlook string

// The closed set of outlooks.
const (
	OutlookRuns    Outlook = "runs"    // without a question
	OutlookAsks    Outlook = "asks"    // somebody is asked before
	OutlookRefused Outlook = "refused" // without a question
)
