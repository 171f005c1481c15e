package rules

import (
	"fmt"
	"path"
	"slices"
	"strings"
)

// Decision is what a rule says about a command.
type Decision string

// The closed set of decisions. The zero value is that of no rule.
const (
	Allow Decision = "allow" // run it without the question that policy "untrusted" asks; nothing becomes wider
	Ask   Decision = "ask"   // ask every time
	Deny  Decision = "deny"  // refuse it without a question
)

// Rule is a decision about commands that begin with some words.
type Rule struct {
	Decision Decision `json:"decision"`
	Command  []string `json:"command"`          // literal words, the first the program's name or path
	Reason   string   `json:"reason,omitempty"` // why, in the words of whoever wrote the rule
	Origin   string   `json:"origin"`           // where it stands
}

// Check says what is wrong with a rule; it completes a sentence about it.
func (r Rule) Check() string {
	switch r.Decision {
	case Allow, Ask, Deny:
	default:
		return fmt.Sprintf("has the decision %q: use allow, ask or deny", string(r.Decision))
	}
	if len(r.Command) == 0 || strings.TrimSpace(r.Command[0]) == "" {
		return `needs a command: a list of words such as ["git", "push"]`
	}
	if name := r.Command[0]; strings.ContainsAny(name, " \t\n") || path.Base(name) == "/" || path.Base(name) == "." {
		return fmt.Sprintf("names the program %q: give each word of the command as a text of its own", name)
	}
	return ""
}

// String is the rule's words, as one would type them.
func (r Rule) String() string { return strings.Join(r.Command, " ") }

// Rules are all that are in force, in any order.
type Rules []Rule

// Command is what would run. Exactly one of Script and Argv is set.
type Command struct {
	Script    string   // for bash -c
	Argv      []string // program and arguments
	Env       bool     // it brings environment variables of its own
	Elsewhere bool     // it begins in a folder where git may find a repository that is not trusted
}

// Verdict is what the rules say about a command.
type Verdict struct {
	Decision Decision // empty: no rule says anything
	Rule     *Rule    // that decided; nil if none did, or what is built in
	Why      string   // one clause; may quote the command and the rule
}

// Restrict reports whether there is a rule that denies or asks.
func (rs Rules) Restrict() bool {
	return slices.ContainsFunc(rs, func(r Rule) bool { return r.Decision != Allow })
}

// Judge applies the rules: deny before ask before allow, wherever they stand.
func (rs Rules) Judge(c Command) Verdict {
	s := read(c)
	for _, decision := range []Decision{Deny, Ask} {
		for i := range rs {
			if rs[i].Decision == decision && rs[i].best(s.calls) == certain {
				return Verdict{decision, &rs[i], rs[i].why()}
			}
		}
	}
	if v, found := rs.doubt(s); found {
		return v
	}
	if c.Env {
		return Verdict{Why: "it sets environment variables, so no rule can allow it"}
	}
	if s.loose != "" {
		return Verdict{Why: s.loose + ", so no rule can allow it"}
	}
	return rs.covered(s.calls, c.Elsewhere)
}

// doubt finds what could be a command that a rule denies or asks about.
func (rs Rules) doubt(s *script) (Verdict, bool) {
	for i := range rs {
		if rs[i].Decision == Allow {
			continue
		}
		if s.unread != "" {
			return Verdict{Ask, &rs[i], s.unread + ", so it could be " + quoted(rs[i].String())}, true
		}
		if rs[i].best(s.calls) == possible {
			return Verdict{Ask, &rs[i], "parts of it cannot be read, so it could be " + quoted(rs[i].String())}, true
		}
	}
	return Verdict{}, false
}

// covered allows commands of which each one has a rule, or is built in.
func (rs Rules) covered(calls []call, elsewhere bool) Verdict {
	if len(calls) == 0 {
		return Verdict{Why: "there is no command in it"}
	}
	v := Verdict{Decision: Allow, Why: "it only reads and prints, as is built in"}
	elsewhere = elsewhere || moves(calls)
	for _, c := range calls {
		words := c.texts()
		if c.inner || harmless(words) && !(elsewhere && words[0] == "git") {
			continue // what runs an inner one is covered as a whole, or not at all
		}
		rule := rs.covering(words)
		if rule == nil {
			why := "no rule allows " + quoted(strings.Join(words, " "))
			if harmless(words) {
				why = "git may find another repository there, which can name programs to run, and " + why
			}
			return Verdict{Why: why}
		}
		if v.Rule == nil {
			v.Rule, v.Why = rule, rule.why()
		}
	}
	return v
}

// moves reports whether a script changes the folder. The repository that it may go
// to can have a configuration of its own, which names programs for git to run.
func moves(calls []call) bool {
	return slices.ContainsFunc(calls, func(c call) bool { return listed("cd pushd popd", c.words[0].text) })
}

func (rs Rules) covering(words []string) *Rule {
	for i := range rs {
		if rs[i].Decision == Allow && rs[i].covers(words) {
			return &rs[i]
		}
	}
	return nil
}

func (r Rule) why() string {
	verb := map[Decision]string{Allow: "allows", Ask: "asks about", Deny: "denies"}[r.Decision]
	origin := quoted(r.Origin)
	why := fmt.Sprintf("a rule (%s) %s %s", origin[1:len(origin)-1], verb, quoted(r.String()))
	if r.Reason != "" {
		why += ": " + quoted(r.Reason)
	}
	return why
}

// quoted is a text in quotes, with escapes for what is not visible, and not long:
// the rules of a workspace are as foreign as the command.
func quoted(s string) string {
	const most = 200
	if runes := []rune(s); len(runes) > most {
		s = string(runes[:most]) + "…"
	}
	return fmt.Sprintf("%q", s)
}
