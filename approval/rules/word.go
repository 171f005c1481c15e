package rules

import (
	"path"
	"strconv"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// word is one word of a command.
type word struct {
	text   string // after unquoting; if it is not known, what it begins with
	known  bool   // text is all of it
	single bool   // it stays one word, whatever it becomes
	plain  bool   // it is spelled so that no shell reads more into it
}

// base is the name of the program that a first word means.
func (w word) base() string { return strings.ToLower(path.Base(w.text)) }

func (w word) option() bool { return len(w.text) > 1 && w.text[0] == '-' }

// readWord takes the quotes off a word.
func readWord(w *syntax.Word) word {
	if w == nil {
		return word{}
	}
	r := &unquoter{word: word{known: true, single: true, plain: true}}
	for _, part := range w.Parts {
		r.part(part, false)
	}
	if r.brace && strings.ContainsAny(r.all, ",.") {
		r.expands()
		r.text = ""
	}
	return r.word
}

// unquoter puts a word together, part by part.
type unquoter struct {
	word
	brace bool   // there is a { outside of quotes
	all   string // every literal of it, also behind what is not known
}

// expands notes that the word becomes what is not known here, or several words.
func (r *unquoter) expands() { r.known, r.single, r.plain = false, false, false }

func (r *unquoter) add(text string) {
	r.all += text
	if r.known {
		r.text += text
	}
}

func (r *unquoter) part(part syntax.WordPart, quotes bool) {
	switch p := part.(type) {
	case *syntax.Lit:
		if quotes {
			r.add(unescape(p.Value, "$`\"\\\n"))
			return
		}
		r.bare(p.Value)
	case *syntax.SglQuoted:
		text, ok := p.Value, true
		if p.Dollar {
			r.plain = false
			text, ok = ansi(p.Value)
		}
		r.add(text)
		r.known = r.known && ok
	case *syntax.DblQuoted:
		r.plain = r.plain && !p.Dollar // "…" with a dollar is translated
		for _, inner := range p.Parts {
			r.part(inner, true)
		}
	default:
		r.known, r.plain = false, false
		r.single = r.single && quotes && oneWord(part)
	}
}

// oneWord reports whether an expansion stays one word if it is quoted: "$@" and
// "${a[@]}" do not.
func oneWord(part syntax.WordPart) bool {
	switch p := part.(type) {
	case *syntax.CmdSubst, *syntax.ArithmExp:
		return true
	case *syntax.ParamExp:
		return p.Param != nil && p.Param.Value != "@" && p.Index == nil && !p.Excl
	}
	return false
}

// bare reads a literal outside of quotes, where some characters mean something.
func (r *unquoter) bare(text string) {
	for i := 0; i < len(text); i++ {
		switch c := text[i]; {
		case c == '\\':
			i++ // what follows means itself
		case strings.IndexByte("*?[", c) >= 0:
			r.add(unescape(text[:i], ""))
			r.expands()
			r.all += text[i:]
			return
		case c == '{':
			r.brace = true
		case c == '~' && (r.all == "" && i == 0 || i > 0 && strings.IndexByte("=:", text[i-1]) >= 0):
			r.add(unescape(text[:i], ""))
			r.known, r.plain = false, false
			r.all += text[i:]
			return
		}
	}
	r.add(unescape(text, ""))
}

// unescape takes away backslashes: before the bytes of special, or before any if
// special is empty. One before a line break takes the break with it.
func unescape(text, special string) string {
	var b strings.Builder
	for i := 0; i < len(text); i++ {
		if text[i] != '\\' || i+1 == len(text) || special != "" && strings.IndexByte(special, text[i+1]) < 0 {
			b.WriteByte(text[i])
			continue
		}
		if i++; text[i] != '\n' {
			b.WriteByte(text[i])
		}
	}
	return b.String()
}

// ansi decodes what stands in $'…'; ok is false for escapes that it does not know.
func ansi(text string) (decoded string, ok bool) {
	var b strings.Builder
	for len(text) > 0 {
		if text[0] != '\\' {
			b.WriteByte(text[0])
			text = text[1:]
			continue
		}
		n, value, isRune := ansiEscape(text)
		switch {
		case n == 0 || value == 0:
			return b.String(), false
		case isRune:
			b.WriteRune(value)
		default:
			b.WriteByte(byte(value))
		}
		text = text[n:]
	}
	return b.String(), true
}

// ansiEscape reads the escape that text begins with: how long it is, 0 if it is
// none, and what it means.
func ansiEscape(text string) (n int, value rune, isRune bool) {
	if len(text) < 2 {
		return 0, 0, false
	}
	const names, meanings = `abeEfnrtv\'"?`, "\a\b\x1b\x1b\f\n\r\t\v\\'\"?"
	if at := strings.IndexByte(names, text[1]); at >= 0 {
		return 2, rune(meanings[at]), false
	}
	from, most, base := 2, 0, 16
	switch c := text[1]; {
	case c == 'x':
		most = 2
	case c == 'u':
		most, isRune = 4, true
	case c == 'U':
		most, isRune = 8, true
	case c >= '0' && c <= '7':
		from, most, base = 1, 3, 8
	}
	digits := "0123456789abcdefABCDEF"
	if base == 8 {
		digits = digits[:8]
	}
	end := from
	for end < len(text) && end-from < most && strings.IndexByte(digits, text[end]) >= 0 {
		end++
	}
	code, err := strconv.ParseInt(text[from:end], base, 32)
	if err != nil {
		return 0, 0, false
	}
	return end, rune(code), isRune
}
