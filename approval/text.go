package approval

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/confine-dev/confine/sandbox"
)

// part is one line of a question's text: a sentence of ours, or a label and
// the untrusted text behind it.
type part struct {
	label  string // ours
	quoted bool   // body follows in quotes
	body   shown
	floor  int  // units of the body that are shown in any case
	keep   bool // never left out

	// decides means that a yes depends on it, so that it counts if it is not
	// shown whole; complete is the label then, if label leaves something out.
	decides  bool
	complete string
}

// content is what a question says in sentences of ours.
type content struct {
	title  string
	opens  []fact // what a yes opens
	grants []fact // each file and folder that it opens one by one
	odd    []fact // what else the person should know
}

func layoutOf(r Request, g gain, id string) content {
	return content{title: title(r, g, id), opens: gainFacts(r, g), grants: grantFacts(r, g), odd: oddities(r, g)}
}

// text lays a question out for clients that show nothing but a message: why it is
// asked and the words of whoever asks, then what a yes opens, the command, and what
// is odd. What a yes depends on stands together at the end: some editors show the end
// of a message that is longer than their room for it, and a title stands at its top
// for those that show the beginning. All that a yes depends on is shown whole if there is room for it without those
// words. Otherwise each line gets some room, and unshown counts what suffers.
func (c content) text(r Request) (text string, unshown int) {
	parts := c.parts(r)
	if all, fits := uncut(parts, MaxText); fits {
		return layout(all, MaxText)
	}
	text, unshown = layout(parts, MaxText)
	return text, max(1, unshown)
}

func (c content) parts(r Request) []part {
	exact, prose := style{}, style{prose: true}
	parts := []part{
		{label: c.title, keep: true},
		{label: "Configured: " + configured(r.Have) + ".", keep: true},
	}
	if r.Justification != "" {
		parts = append(parts, part{label: "Justification given", quoted: true, body: field(r, r.Justification, prose), floor: 60})
	}
	for _, f := range evidenceFacts(r.Evidence) {
		parts = append(parts, part{label: f.text})
	}
	if r.Reason != "" {
		parts = append(parts, part{label: "Reason", quoted: true, body: field(r, r.Reason, prose), floor: 60})
	}
	for _, f := range c.opens {
		list := f.whole != "" // can be long, and the title tells the mode
		parts = append(parts, part{label: f.text, complete: f.complete(), decides: true, keep: !list})
	}
	for _, f := range c.grants {
		parts = append(parts, part{label: f.text, complete: f.complete(), decides: true})
	}
	parts = append(parts,
		part{label: commandLabel(r), quoted: true, body: field(r, commandText(r), exact), floor: 140, keep: true, decides: true},
		part{label: "Folder", quoted: true, body: field(r, r.Dir, exact), floor: 60, keep: true, decides: true})
	if r.Stdin != "" {
		label := fmt.Sprintf("Input, %d bytes", len(r.Stdin))
		parts = append(parts, part{label: label, quoted: true, body: field(r, r.Stdin, exact), floor: 60, keep: true, decides: true})
	}
	for _, f := range c.odd {
		parts = append(parts, part{label: f.text, complete: f.complete(), decides: true})
	}
	return parts
}

// uncut is the parts with all that a yes depends on complete and not to be left
// out. fits is false if that takes more than limit units.
func uncut(parts []part, limit int) (all []part, fits bool) {
	used, omitted := dropRoom, 0
	for _, p := range parts {
		if p.decides {
			p.label, p.keep = cmp.Or(p.complete, p.label), true
			p.floor = units(p.body.String())
			omitted += p.body.omitted
		}
		if p.keep {
			used += p.least()
		}
		all = append(all, p)
	}
	return all, omitted == 0 && used <= limit
}

// field is an untrusted text of r for a client that may take it for HTML.
func field(r Request, s string, st style) shown {
	st.markup, st.closed = true, others(r, s)
	return escape(s, st)
}

// others reports whether an untrusted text of r beside s could end an HTML tag
// that s begins.
func others(r Request, s string) bool {
	texts := append([]string{commandText(r), r.Dir, r.Stdin, r.Justification, r.Reason}, r.Warnings...)
	texts = append(texts, denials(r.Evidence)...)
	for _, p := range []sandbox.Policy{r.Have, r.Want} {
		texts = slices.Concat(texts, p.RootPaths(), paths(p.Writable), paths(p.Readable))
	}
	for _, g := range r.Grants {
		texts = append(texts, g.Missing...)
	}
	for name, value := range r.Env {
		texts = append(texts, name+value)
	}
	enders := 0
	for _, t := range texts {
		enders += min(1, strings.Count(t, ">"))
	}
	return enders > min(1, strings.Count(s, ">"))
}

func configured(p sandbox.Policy) string {
	if p.Mode.Confined() && p.Network {
		return string(p.Mode) + " with network"
	}
	return string(p.Mode)
}

func commandLabel(r Request) string {
	what, n := "Command", lines(r.Command)
	if len(r.Argv) > 0 {
		what = "Program and arguments"
	}
	if n > 1 {
		return fmt.Sprintf("%s, %d LINES, %d bytes", what, n, commandBytes(r))
	}
	return fmt.Sprintf("%s, %d bytes", what, commandBytes(r))
}

func denials(evidence []sandbox.Denial) []string {
	var out []string
	for _, d := range evidence {
		out = append(out, strings.TrimSpace(d.Op+" "+d.Path+d.Address))
	}
	return out
}

// Room in a terminal of 80 columns and 24 rows, of which an editor has its own
// share: what a yes depends on may need more, words that decide nothing may not.
const (
	rowUnits = 60
	textRows = 15
)

// rows is the room that a line of n units takes, roughly.
func rows(n int) int { return (n + rowUnits - 1) / rowUnits }

// Room that layout sets aside, in units.
const (
	noteRoom = len(", 67108864 bytes NOT SHOWN")
	dropRoom = len("99 more facts DO NOT FIT HERE.") + 1
)

func notFitting(facts int) string {
	if facts == 1 {
		return "1 more fact DOES NOT FIT HERE."
	}
	return fmt.Sprintf("%d more facts DO NOT FIT HERE.", facts)
}

// layout joins the parts within limit units: first those to keep, then the
// others as far as they fit, all with their bodies at the floors. What is left of
// the room goes to the bodies. What a yes depends on has the room before the rest,
// in order. unshown counts what a yes depends on and is not shown whole.
func layout(parts []part, limit int) (text string, unshown int) {
	limit -= dropRoom
	used, dropped := 0, 0
	for _, p := range parts {
		if p.keep {
			used += p.least()
		}
	}
	spare := textRows
	ranked := ranks(parts)
	kept := make([]bool, len(parts))
	for _, i := range ranked {
		p := parts[i]
		switch {
		case p.keep:
			kept[i] = true
			spare -= p.rows()
		case used+p.least() <= limit && (p.decides || p.rows() <= spare):
			kept[i] = true
			used += p.least()
			spare -= p.rows()
		default:
			dropped++
			if p.decides {
				unshown++
			}
		}
	}
	lines := make([]string, len(parts))
	for _, i := range ranked {
		p := parts[i]
		if !kept[i] {
			continue
		}
		line, cut := p.label, p.complete != "" && p.complete != p.label
		if p.quoted {
			base := p.base()
			body, hidden := p.body.fit(base + max(0, limit-used))
			used += max(0, units(body)-base)
			if cut = hidden > 0; cut {
				line += fmt.Sprintf(", %d bytes NOT SHOWN", hidden)
			}
			line += ": " + openQuote + body + closeQuote
		}
		lines[i] = line
		if p.decides && cut {
			unshown++
		}
	}
	if dropped > 0 {
		lines[0] += "\n" + notFitting(dropped)
	}
	return strings.Join(slices.DeleteFunc(lines, func(line string) bool { return line == "" }), "\n"), unshown
}

// ranks is the order in which parts get room: their indexes, those first that a yes
// depends on.
func ranks(parts []part) []int {
	var deciding, others []int
	for i, p := range parts {
		if p.decides {
			deciding = append(deciding, i)
		} else {
			others = append(others, i)
		}
	}
	return append(deciding, others...)
}

// rows is the room that the part takes when nothing of it is cut.
func (p part) rows() int {
	n := units(p.label)
	if p.quoted {
		n += len(": ") + 2 + units(p.body.String())
	}
	return rows(n)
}

// base is the room for the body that a part gets in any case.
func (p part) base() int { return min(p.floor, units(p.body.String())) }

// least is the room that the whole part needs, with its line break.
func (p part) least() int {
	n := units(p.label) + 1
	if p.quoted {
		n += len(": ") + 2 + p.base()
		if units(p.body.String()) > p.floor || p.body.omitted > 0 {
			n += noteRoom
		}
	}
	return n
}
