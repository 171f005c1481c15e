package approval

import (
	"fmt"
	"slices"
	"strings"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"
)

// maxShown is how many bytes of an untrusted text are shown at most. Of a
// longer one the first and the last half of that are shown, and between them
// the number of bytes that are not.
const maxShown = 64 << 10

// maxRun is the longest run of one character that is written out. A longer one
// is counted: padding must not push anything out of sight.
const maxRun = 16

// maxMarks is how many combining marks a letter carries before they are
// escaped.
const maxMarks = 3

// style says where a text is going to be shown.
type style struct {
	prose  bool // letters of right-to-left scripts stay letters: nothing of this text is executed
	markup bool // the client may take the text for HTML
	closed bool // with markup: another text beside this one holds a ">"
}

// shown is an untrusted text as one visible line, by the rules that Question
// states, in pieces that must not be cut.
type shown struct {
	pieces  []piece
	bytes   int // of the text
	omitted int // of them, the bytes that no piece stands for
	gap     int // where in pieces those are left out
	unusual int // characters shown as \u{…} or \xff
}

type piece struct {
	text  string
	bytes int // of the original that it stands for
}

// escape makes an untrusted text visible.
func escape(s string, st style) shown {
	out := shown{bytes: len(s)}
	if len(s) <= maxShown {
		out.add(s, st)
		out.gap = len(out.pieces)
		return out
	}
	head, tail := maxShown/2, len(s)-maxShown/2
	for i := 1; i < utf8.UTFMax && !utf8.RuneStart(s[head]); i++ {
		head--
	}
	for i := 1; i < utf8.UTFMax && !utf8.RuneStart(s[tail]); i++ {
		tail++
	}
	out.add(s[:head], st)
	out.gap, out.omitted = len(out.pieces), tail-head
	out.add(s[tail:], st)
	return out
}

// show is the whole text as one line.
func show(s string, st style) string { return escape(s, st).String() }

// Visible is an untrusted text as a Question shows it.
func Visible(s string) string { return show(s, style{}) }

func (t shown) String() string {
	var b strings.Builder
	for i, p := range t.pieces {
		if i == t.gap && t.omitted > 0 {
			b.WriteString(notShown(t.omitted))
		}
		b.WriteString(p.text)
	}
	return b.String()
}

func notShown(bytes int) string {
	return fmt.Sprintf("%s%d bytes not shown%s", openNote, bytes, closeNote)
}

// add appends the pieces of s.
func (t *shown) add(s string, st style) {
	first := len(t.pieces)
	marks := -1 // combining marks since the last letter; -1 after anything else
	for i := 0; i < len(s); {
		c := charAt(s[i:])
		n := c.runLength(s[i:])
		spaces := c.r == ' ' && (n > 1 || i == 0 || i+n == len(s))
		if n <= maxRun && !spaces {
			n = 1
		}
		ok := !c.bad && plain(c.r, st)
		mark := ok && unicode.IsMark(c.r)
		text := c.code()
		switch {
		case n > maxRun && spaces:
			text = fmt.Sprintf("%s%d spaces%s", openNote, n, closeNote)
		case n > maxRun:
			if ok && !mark {
				text = string(c.r)
			}
			text = fmt.Sprintf("%s%d × %s%s", openNote, n, text, closeNote)
		case spaces:
			text = strings.Repeat(openSpace, n)
		case mark && 0 <= marks && marks < maxMarks:
			last := &t.pieces[len(t.pieces)-1] // its letter: never to be cut apart
			last.text += string(c.r)
			last.bytes += c.size
			marks++
			i += c.size
			continue
		case ok && !mark && !breaks(s[i:], st):
			text = string(c.r)
		}
		if (!ok || mark) && c.r != '\n' && c.r != '\t' {
			t.unusual += n
		}
		marks = -1
		if ok && n == 1 && unicode.IsLetter(c.r) {
			marks = 0
		}
		t.pieces = append(t.pieces, piece{text, n * c.size})
		i += n * c.size
	}
	doubleBackslashes(t.pieces[first:])
}

// doubleBackslashes goes from the end, since whether a backslash is doubled
// depends on what is shown behind it.
func doubleBackslashes(pieces []piece) {
	behind := ""
	for i := len(pieces) - 1; i >= 0; i-- {
		p := &pieces[i]
		if p.text == `\` && behind != "" && strings.Contains(`nrtxu\`, behind[:1]) {
			p.text = `\\`
		}
		behind = p.text
	}
}

// char is one character of a text, or one byte that is none.
type char struct {
	r    rune
	raw  byte
	size int
	bad  bool // not UTF-8: only raw counts
}

func charAt(s string) char {
	r, size := utf8.DecodeRuneInString(s)
	return char{r, s[0], size, r == utf8.RuneError && size == 1}
}

// runLength counts how often s begins with c.
func (c char) runLength(s string) int {
	n := 1
	for i := c.size; i < len(s) && charAt(s[i:]) == c; i += c.size {
		n++
	}
	return n
}

// code is the character as an escape.
func (c char) code() string {
	switch {
	case c.bad:
		return fmt.Sprintf(`\x%02x`, c.raw)
	case c.r == '\n':
		return `\n`
	case c.r == '\r':
		return `\r`
	case c.r == '\t':
		return `\t`
	}
	return fmt.Sprintf(`\u{%X}`, c.r)
}

// breaks reports whether the first character of s begins something that a
// client would draw as other than it is: a link, which in VS Code can run a
// command, or with markup an HTML tag, comment or entity, which would vanish.
func breaks(s string, st style) bool {
	switch {
	case strings.HasPrefix(s, "]("):
		return true
	case !st.markup || len(s) < 2:
		return false
	case s[0] == '<':
		opens := isAlpha(s[1]) || strings.IndexByte("/!?", s[1]) >= 0
		return opens && (st.closed || strings.IndexByte(s, '>') > 0)
	case s[0] == '&':
		return s[1] == '#' || entity(s[1:])
	}
	return false
}

// entity reports whether s begins with a name, as HTML has them, and a
// semicolon.
func entity(s string) bool {
	name := strings.IndexFunc(s[:min(len(s), 40)], func(r rune) bool { return r > 'z' || !isAlpha(byte(r)) && (r < '0' || r > '9') })
	return name > 0 && isAlpha(s[0]) && s[name] == ';'
}

func isAlpha(c byte) bool { return 'a' <= c|0x20 && c|0x20 <= 'z' }

// units is the length of a text as VS Code counts it when it cuts messages.
func units(s string) int {
	n := 0
	for _, r := range s {
		n += max(1, utf16.RuneLen(r))
	}
	return n
}

// fit returns the text within limit units, leaving out its middle if it must,
// and how many bytes are left out. Pieces stay whole.
func (t shown) fit(limit int) (text string, hidden int) {
	if whole := t.String(); units(whole) <= limit {
		return whole, t.omitted
	}
	room := limit - units(notShown(t.bytes))
	hidden = t.bytes
	var head, tail []string
	for i, used := 0, 0; i < t.gap; i++ {
		if used += units(t.pieces[i].text); used > room/2 {
			break
		}
		head = append(head, t.pieces[i].text)
		hidden -= t.pieces[i].bytes
	}
	from := len(head)
	if t.omitted > 0 {
		from = t.gap
	}
	for i, used := len(t.pieces)-1, 0; i >= from; i-- {
		if used += units(t.pieces[i].text); used > room-room/2 {
			break
		}
		tail = append(tail, t.pieces[i].text)
		hidden -= t.pieces[i].bytes
	}
	slices.Reverse(tail)
	return strings.Join(head, "") + notShown(hidden) + strings.Join(tail, ""), hidden
}
