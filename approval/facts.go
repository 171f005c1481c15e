package approval

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/confine-dev/confine/sandbox"
)

// Facts are the warnings of a question. Each is one sentence of ours in which
// untrusted text stands in quotes.

// gainFacts say what a yes opens, the most important first, save what is opened
// one by one.
func gainFacts(r Request, g gain) []string {
	var facts []string
	if r.Kind == KindEscalation {
		facts = append(facts, "The whole command runs again, from its beginning.")
	}
	switch r.Want.Mode {
	case sandbox.DangerFullAccess:
		return append(facts, "No sandbox at all: it can read, change and send whatever you can, and reach every service on localhost.")
	case sandbox.ExternalSandbox:
		return append(facts, "No sandbox of confine: only what you run confine in still holds the command.")
	}
	if g.network {
		facts = append(facts, "Network: it reaches the internet and every service on localhost.")
	}
	facts = append(facts, listFact("Becomes writable", g.writable)...)
	facts = append(facts, listFact("No longer protected from writing", g.unguarded)...)
	return append(facts, listFact("No longer hidden from reading", g.readable)...)
}

// oddities say what else the person should know: what the command is given,
// how it is written, and what the request warns of.
func oddities(r Request, g gain) []string {
	facts := envFacts(r.Env)
	for _, root := range slices.Concat(g.write, g.read) {
		facts = append(facts, textFacts("path to open", root.Path)...)
	}
	facts = append(facts, textFacts("command", commandText(r))...)
	facts = append(facts, textFacts("folder", r.Dir)...)
	facts = append(facts, textFacts("input", r.Stdin)...)
	for i, w := range r.Warnings {
		if i == maxWarnings {
			return append(facts, fmt.Sprintf("%d more warnings are not shown.", len(r.Warnings)-i))
		}
		short, _ := escape(w, style{prose: true, markup: true, closed: true}).fit(maxWarning)
		facts = append(facts, "Note: "+openQuote+short+closeQuote)
	}
	return facts
}

// evidenceFacts say what was refused before, and apart from that what only the
// command's own messages say: it can print what it likes.
func evidenceFacts(evidence []sandbox.Denial) []string {
	var seen, told []sandbox.Denial
	for _, d := range evidence {
		if d.Evidence == sandbox.Observed {
			seen = append(seen, d)
		} else {
			told = append(told, d)
		}
	}
	return append(listFact("The sandbox refused", denials(seen)), listFact("Refused, as its messages say", denials(told))...)
}

func envFacts(env map[string]string) []string {
	var changes []string
	for _, name := range slices.Sorted(maps.Keys(env)) {
		changes = append(changes, name+"="+env[name])
	}
	return listFact("Sets environment variables", changes)
}

// Limits of a list in one sentence.
const (
	listed    = 3
	listedLen = 50 // units
)

// listFact is a sentence with the first few of some untrusted texts, or
// nothing.
func listFact(what string, texts []string) []string {
	if len(texts) == 0 {
		return nil
	}
	var quoted []string
	for _, s := range texts[:min(len(texts), listed)] {
		short, _ := escape(s, style{markup: true, closed: true}).fit(listedLen)
		quoted = append(quoted, openQuote+short+closeQuote)
	}
	list := strings.Join(quoted, ", ")
	if more := len(texts) - listed; more > 0 {
		list += fmt.Sprintf(" and %d more", more)
	}
	return []string{fmt.Sprintf("%s: %s.", what, list)}
}

// textFacts say what is odd about the characters of a text.
func textFacts(name, s string) []string {
	var facts []string
	t := escape(s, style{})
	if t.omitted > 0 {
		facts = append(facts, fmt.Sprintf("Too long to show whole: the %s. %d of its %d bytes are left out.", name, t.omitted, t.bytes))
	}
	if t.unusual > 0 {
		facts = append(facts, fmt.Sprintf("Invisible or misleading, shown as escapes: %s of the %s.", characters(t.unusual), name))
	}
	f := foreignIn(s)
	if f.count == 0 {
		return facts
	}
	which := strings.Join(f.alphabets, ", ")
	if f.mixed {
		which += " MIXED IN ONE WORD"
	}
	if which != "" {
		which = " (" + strings.TrimSpace(which) + ")"
	}
	return append(facts, fmt.Sprintf("Not ASCII, may look like others: %s of the %s%s.", characters(f.count), name, which))
}

func characters(n int) string {
	if n == 1 {
		return "1 character"
	}
	return fmt.Sprintf("%d characters", n)
}
