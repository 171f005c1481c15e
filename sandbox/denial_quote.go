package sandbox

import (
	"strconv"
	"strings"
)

// quoted is a name in quotes within a line.
type quoted struct {
	begin, end int // of the whole, quotes included
	text       string
}

// quotes maps what opens a quotation to what closes it. GNU programs use the
// round ones when the character set has them, old ones open with a backquote.
var quotes = []struct{ open, close string }{
	{"'", "'"}, {`"`, `"`}, {"‘", "’"}, {"“", "”"}, {"`", "`"}, {"$'", "'"},
}

// findQuoted lists the quotations of a line from left to right. A quote mark
// after a letter (can't) opens nothing.
func findQuoted(line string) []quoted {
	var found []quoted
	for i := 0; i < len(line); {
		if line[i] == '\\' || i > 0 && isWordByte(line[i-1]) {
			i++
			continue
		}
		text, end := quotedAt(line, i)
		if end < 0 {
			i++
			continue
		}
		// A shell needs several kinds of quotes for some names and prints them
		// side by side: 'a'$'\n''b'.
		for {
			more, next := quotedAt(line, end)
			if next < 0 {
				break
			}
			text, end = text+more, next
		}
		found = append(found, quoted{i, end, text})
		i = end
	}
	return found
}

// quotedAt reads the quotation that opens at i; end is -1 if there is none.
func quotedAt(line string, i int) (text string, end int) {
	for _, q := range quotes {
		if !strings.HasPrefix(line[i:], q.open) {
			continue
		}
		rest := line[i+len(q.open):]
		n := strings.Index(rest, q.close)
		if q.open == "`" {
			n = strings.IndexAny(rest, "`'")
		}
		if n < 0 {
			return "", -1
		}
		text = rest[:n]
		if q.open == "$'" {
			text = unescape(text)
		}
		return text, i + len(q.open) + n + len(q.close)
	}
	if strings.HasPrefix(line[i:], `\'`) {
		return "'", i + 2
	}
	return "", -1
}

// unescape undoes backslashes as C, Python and shells write them; what is not
// an escape stays.
func unescape(s string) string {
	if !strings.Contains(s, `\`) {
		return s
	}
	var b strings.Builder
	for s != "" {
		if s[0] != '\\' {
			b.WriteByte(s[0])
			s = s[1:]
			continue
		}
		if len(s) > 1 && (s[1] == '\'' || s[1] == '"') {
			b.WriteByte(s[1])
			s = s[2:]
			continue
		}
		r, multibyte, tail, err := strconv.UnquoteChar(s, 0)
		switch {
		case err != nil:
			b.WriteByte(s[0])
			s = s[1:]
			continue
		case multibyte:
			b.WriteRune(r)
		default:
			b.WriteByte(byte(r))
		}
		s = tail
	}
	return b.String()
}

func isWordByte(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c >= 0x80
}
