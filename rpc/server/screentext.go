package server

import (
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Bounds of one control sequence, in bytes. What is longer, or has no end, is none:
// then only its beginning is left out, so that no text can be made to vanish.
const (
	maxControl = 256      // CSI
	maxString  = 64 << 10 // what ends with a terminator: titles, links, pictures
)

// screenText is what a terminal showed, as text for whoever sees no screen. Control
// sequences are left out. Within a line what was overwritten or erased is gone, as on
// the screen; a line that was left stays as it was, and going to another one, up or
// down, begins a new line of text. columns is how wide the terminal is.
func screenText(output string, columns int) string {
	s := screenLine{columns: columns}
	for len(output) > 0 {
		r, size := utf8.DecodeRuneInString(output)
		output = output[size:]
		switch {
		case r == '\x1b' && output != "":
			if length, ok := s.sequence(output[0], output[1:]); ok {
				output = output[1+length:]
			}
		case isC1(r): // the same as ESC and a letter
			length, _ := s.sequence(byte(r-0x40), output)
			output = output[length:]
		case r == '\n', r == '\v', r == '\f':
			s.newLine()
		case r == '\r':
			s.to(s.row())
		case r == '\b':
			s.to(s.cursor() - 1)
		case r == '\t' || r >= ' ' && r != 0x7f:
			s.write(r)
		}
	}
	s.flush()
	return s.text.String()
}

// maxBlanks bounds how many blanks stand for places that nothing was written to: a few
// bytes move the cursor far.
const maxBlanks = 64 << 10

func isC1(r rune) bool { return 0x80 <= r && r <= 0x9f }

// screenLine is the line that a terminal's cursor is in. A long one takes several rows
// of the screen; the cursor is in the last of them.
type screenLine struct {
	columns int
	text    strings.Builder // of the lines before
	line    []rune
	at      int  // where the next character goes: a place in the line, or behind it
	full    bool // that is the next row, and the cursor still in the one before
	blanks  int  // how many were put where the cursor passed over nothing
	edited  bool // blanks at the end may be what erased something
}

func (s *screenLine) cursor() int {
	if s.full {
		return s.at - 1
	}
	return s.at
}

// row is where the cursor's row begins.
func (s *screenLine) row() int { return s.cursor() / s.columns * s.columns }

// to moves the cursor within its row.
func (s *screenLine) to(place int) {
	row := s.row()
	place = min(max(place, row), row+s.columns-1)
	s.at, s.full = place, false
}

func (s *screenLine) write(r rune) {
	for ; len(s.line) < s.at && s.blanks < maxBlanks; s.blanks++ {
		s.line = append(s.line, ' ')
	}
	if s.at = min(s.at, len(s.line)); s.at == len(s.line) {
		s.line = append(s.line, r)
	} else {
		s.line[s.at] = r
		s.edited = true
	}
	s.at++
	s.full = s.at%s.columns == 0
}

func (s *screenLine) newLine() {
	s.flush()
	s.text.WriteByte('\n')
}

// flush ends the line.
func (s *screenLine) flush() {
	line := string(s.line)
	if s.edited {
		line = strings.TrimRight(line, " ")
	}
	s.text.WriteString(line)
	s.line, s.at, s.full, s.edited = s.line[:0], 0, false, false
}

// sequence does what a sequence says that begins with ESC and first, and returns how
// much of rest belongs to it. It is not ok if there is no such sequence.
func (s *screenLine) sequence(first byte, rest string) (length int, ok bool) {
	switch {
	case first == '[':
		if length, ok = controlLength(rest); ok {
			s.control(rest[:length-1], rest[length-1])
		}
		return length, ok
	case strings.IndexByte("]PX^_", first) >= 0:
		return stringLength(rest)
	case '0' <= first && first <= '~':
		return 0, true
	}
	n := span(rest, ' ', '/')
	if isIntermediate := ' ' <= first && first <= '/'; isIntermediate && n < min(len(rest), maxControl) && '0' <= rest[n] && rest[n] <= '~' {
		return n + 1, true
	}
	return 0, false
}

// control does what a CSI sequence says to the line.
func (s *screenLine) control(params string, final byte) {
	n, err := strconv.Atoi(params)
	if params != "" && err != nil && final != 'H' && final != 'f' {
		return // of several parameters, or a private one: colours and modes
	}
	times := max(n, 1)
	switch final {
	case 'C':
		s.to(s.cursor() + min(times, s.columns))
	case 'D':
		s.to(s.cursor() - min(times, s.columns))
	case 'G', '`':
		s.to(s.row() + min(times, s.columns) - 1)
	case 'K', 'J':
		s.erase(n)
	case 'P':
		if s.at < len(s.line) {
			s.line = append(s.line[:s.at], s.line[min(s.at+min(times, s.columns), len(s.line)):]...)
		}
	case 'A', 'B', 'E', 'F', 'H', 'd', 'f':
		if len(s.line) > 0 {
			s.newLine()
		}
	}
}

// erase takes out what is behind the cursor in its row (0), before it (1), or both (2).
func (s *screenLine) erase(what int) {
	s.edited = true
	row, end := min(s.row(), len(s.line)), min(s.at, len(s.line))
	switch what {
	case 0:
		s.line = s.line[:end]
	case 1:
		for i := row; i < end; i++ {
			s.line[i] = ' '
		}
	case 2:
		s.line = s.line[:row]
	}
}

// controlLength is the length of a CSI sequence, without its introducer.
func controlLength(rest string) (length int, ok bool) {
	n := span(rest, '0', '?')
	n += span(rest[n:], ' ', '/')
	if n < min(len(rest), maxControl) && '@' <= rest[n] && rest[n] <= '~' {
		return n + 1, true
	}
	return 0, false
}

// stringLength is the same of a sequence that ends with BEL or ST. Any other control
// character in it, the end of a line above all, says that its end was lost.
func stringLength(rest string) (length int, ok bool) {
	within := rest[:min(len(rest), maxString)]
	end := strings.IndexFunc(within, unicode.IsControl)
	if end < 0 {
		return 0, false
	}
	for _, terminator := range []string{"\a", "\x1b\\", "\u009c"} {
		if strings.HasPrefix(rest[end:], terminator) {
			return end + len(terminator), true
		}
	}
	return 0, false
}

// span is how many bytes at the beginning of text are in a range.
func span(text string, from, to byte) int {
	n := 0
	for n < len(text) && from <= text[n] && text[n] <= to {
		n++
	}
	return n
}
