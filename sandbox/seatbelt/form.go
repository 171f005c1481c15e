package seatbelt

import "strings"

// form is an expression of the profile language as it is written: a list, or one
// of the constructors below.
type form string

// list is an expression in parentheses.
func list(head string, rest ...form) form {
	var b strings.Builder
	b.WriteString("(" + head)
	for _, f := range rest {
		b.WriteString(" " + string(f))
	}
	b.WriteString(")")
	return form(b.String())
}

// text is a string of ours. Nothing that comes from outside is ever one: paths are
// parameters.
func text(s string) form {
	if strings.ContainsFunc(s, func(r rune) bool { return r < ' ' || r > '~' || r == '"' || r == '\\' }) {
		panic("seatbelt: a string of the profile needs no escapes: " + s)
	}
	return form(`"` + s + `"`)
}

// pattern is a regular expression of ours, in which backslashes stand for themselves.
func pattern(expression string) form { return form(`#"` + expression + `"`) }

// rule decides about operations on what one of its filters matches; without filters
// on everything.
type rule struct {
	allow   bool
	ops     []string
	filters []form
}

func (r rule) String() string {
	verdict := "deny"
	if r.allow {
		verdict = "allow"
	}
	head := verdict + " " + strings.Join(r.ops, " ")
	if len(r.filters) < 2 {
		return string(list(head, r.filters...))
	}
	// One line each, so that a person can read a profile of many places.
	var b strings.Builder
	b.WriteString("(" + head)
	for _, f := range r.filters {
		b.WriteString("\n  " + string(f))
	}
	b.WriteString(")")
	return b.String()
}

func allow(op string, filters ...form) rule { return rule{true, strings.Fields(op), filters} }
func deny(op string, filters ...form) rule  { return rule{false, strings.Fields(op), filters} }

// each makes one filter of each text.
func each(filter string, texts ...string) []form {
	forms := make([]form, 0, len(texts))
	for _, t := range texts {
		forms = append(forms, list(filter, text(t)))
	}
	return forms
}
