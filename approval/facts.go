package approval

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/confine-dev/confine/sandbox"
)

// fact is a warning of a question: one sentence of ours in which untrusted text
// stands in quotes.
type fact struct {
	text  string
	whole string // the same, if text leaves out some of a list
}

func saying(text string) fact { return fact{text: text} }

// complete is the fact with nothing left out.
func (f fact) complete() string { return cmp.Or(f.whole, f.text) }

func textsOf(facts []fact) []string {
	var texts []string
	for _, f := range facts {
		texts = append(texts, f.text)
	}
	return texts
}

// gainFacts say what a yes opens, the most important first, save what is opened
// one by one.
func gainFacts(r Request, g gain) []fact {
	var facts []fact
	if r.Kind == KindEscalation {
		facts = append(facts, saying("The whole command runs again, from its beginning."))
	}
	switch {
	case r.Terminal:
		facts = append(facts, saying("It gets a TERMINAL: what is typed there is not shown here, and nobody is asked about it."))
	case r.StdinOpen:
		facts = append(facts, saying("More INPUT may follow while it runs: it is not shown here, and nobody is asked about it."))
	}
	switch r.Want.Mode {
	case sandbox.DangerFullAccess:
		return append(facts, saying("No sandbox at all: it can read, change and send whatever you can, and reach every service on localhost."))
	case sandbox.ExternalSandbox:
		return append(facts, saying("No sandbox of confine: only what you run confine in still holds the command."))
	}
	if g.network {
		facts = append(facts, saying("Network: it reaches the internet and every service on localhost."))
	}
	facts = append(facts, listFact("Becomes writable", g.writable)...)
	facts = append(facts, listFact("No longer protected from writing", g.unguarded)...)
	return append(facts, listFact("No longer hidden from reading", g.readable)...)
}

// oddities say what else the person should know: what the command is given,
// how it is written, and what the request warns of.
func oddities(r Request, g gain) []fact {
	facts := envFacts(r.Env)
	for _, root := range slices.Concat(g.write, g.read) {
		facts = append(facts, textFacts("path to open", root.Path)...)
	}
	facts = append(facts, textFacts("command", commandText(r))...)
	facts = append(facts, textFacts("folder", r.Dir)...)
	facts = append(facts, textFacts("input", r.Stdin)...)
	for i, w := range r.Warnings {
		if i == maxWarnings {
			return append(facts, saying(fmt.Sprintf("%d more warnings are not shown.", len(r.Warnings)-i)))
		}
		short, _ := escape(w, style{prose: true, markup: true, closed: true}).fit(maxWarning)
		facts = append(facts, saying("Note: "+openQuote+short+closeQuote))
	}
	return facts
}

// evidenceFacts say what was refused before, and apart from that what only the
// command's own messages say: it can print what it likes.
func evidenceFacts(evidence []sandbox.Denial) []fact {
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

func envFacts(env map[string]string) []fact {
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
func listFact(what string, texts []string) []fact {
	if len(texts) == 0 {
		return nil
	}
	var short, all []string
	for _, s := range texts {
		text := escape(s, style{markup: true, closed: true})
		all = append(all, openQuote+text.String()+closeQuote)
		if len(short) < listed {
			beginning, _ := text.fit(listedLen)
			short = append(short, openQuote+beginning+closeQuote)
		}
	}
	list := strings.Join(short, ", ")
	if more := len(texts) - listed; more > 0 {
		list += fmt.Sprintf(" and %d more", more)
	}
	return []fact{{
		text:  fmt.Sprintf("%s: %s.", what, list),
		whole: fmt.Sprintf("%s: %s.", what, strings.Join(all, ", ")),
	}}
}

// textFacts say what is odd about the characters of a text.
func textFacts(name, s string) []fact {
	var facts []fact
	add := func(format string, args ...any) { facts = append(facts, saying(fmt.Sprintf(format, args...))) }
	t := escape(s, style{})
	if t.omitted > 0 {
		add("Too long to show whole: the %s. %d of its %d bytes are left out.", name, t.omitted, t.bytes)
	}
	if t.unusual > 0 {
		add("Invisible or misleading, shown as escapes: %s of the %s.", characters(t.unusual), name)
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
	add("Not ASCII, may look like others: %s of the %s%s.", characters(f.count), name, which)
	return facts
}

func characters(n int) string {
	if n == 1 {
		return "1 character"
	}
	return fmt.Sprintf("%d characters", n)
}
