package approval

import (
	"strconv"
	"strings"
	"testing"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"
)

func TestEscape(t *testing.T) {
	for _, c := range []struct{ name, in, want string }{
		{"plain", `go test ./... && echo "ok"`, `go test ./... && echo "ok"`},
		{"empty", "", ""},
		{"line breaks", "a\nb\r\nc\td", `a\nb\r\nc\td`},
		{"terminal escape", "x\x1b[2K\x1b[1Gls", `x\u{1B}[2K\u{1B}[1Gls`},
		{"eight-bit control", "x\u009b2K", `x\u{9B}2K`},
		{"backspace", "rm\b\bls", `rm\u{8}\u{8}ls`},
		{"delete and nul", "a\x7fb\x00", `a\u{7F}b\u{0}`},
		{"bidi override", "a\u202eb\u2066c\u200fd", `a\u{202E}b\u{2066}c\u{200F}d`},
		{"zero width", "to\u200bu\u2060ch\ufeff", `to\u{200B}u\u{2060}ch\u{FEFF}`},
		{"line separators", "a\u2028b\u2029c\u0085d", `a\u{2028}b\u{2029}c\u{85}d`},
		{"odd spaces", "a\u00a0b\u3000c\u2003d", `a\u{A0}b\u{3000}c\u{2003}d`},
		{"blank letters", "a\u3164b\u115fc\uffa0d\u2800e", `a\u{3164}b\u{115F}c\u{FFA0}d\u{2800}e`},
		{"soft hyphen, joiner", "a\u00adb\u034fc\u200dd", `a\u{AD}b\u{34F}c\u{200D}d`},
		{"tags", "a\U000E0041b", `a\u{E0041}b`},
		{"variation selectors", "a\ufe0fb\U000E0100c", `a\u{FE0F}b\u{E0100}c`},
		{"private use, unassigned", "a\ue000b\u0378c", `a\u{E000}b\u{378}c`},
		{"replacement character", "a\ufffdb", `a\u{FFFD}b`},
		{"bytes", "a\xff\xc3b\xed\xa0\x80", `a\xff\xc3b\xed\xa0\x80`},
		{"byte beside the letter of its number", "\xff\u00ff", "\\xff\u00ff"},
		{"right to left letters", "rm \u05d0/1/\u05d1", `rm \u{5D0}/1/\u{5D1}`},
		{"ordinary foreign letters", "grüße/文件/файл", "grüße/文件/файл"},
		{"combined letters", "e\u0301a\u0308", "e\u0301a\u0308"},
		{"mark without letter", "/\u0301 \u0301", `/\u{301} \u{301}`},
		{"pile of marks", "a\u0301\u0302\u0303\u0304\u0305", "a\u0301\u0302\u0303" + `\u{304}\u{305}`},
		{"struck out", "a\u0336b\u20dd", `a\u{336}b\u{20DD}`},

		{"backslash before other letters", `find . -exec rm {} \; \. C:\Users`, `find . -exec rm {} \; \. C:\Users`},
		{"backslash before ours", `printf 'a\nb\t\x41\u00e9\r'`, `printf 'a\\nb\\t\\x41\\u00e9\\r'`},
		{"backslash before line break", "a \\\nb", `a \\\nb`},
		{"backslashes", `\\ \\\ \`, `\\\ \\\\\ \`},

		{"spaces at ends", " ls  ", `␣ls␣␣`},
		{"one space at each end", " ls ", `␣ls␣`},
		{"spaces within", "a b  c", `a b␣␣c`},
		{"only a space", " ", `␣`},
		{"many spaces", "ls" + strings.Repeat(" ", 2000) + "x", `ls⟨2000 spaces⟩x`},
		{"sixteen are written out", strings.Repeat("a", 16), strings.Repeat("a", 16)},
		{"seventeen are counted", strings.Repeat("a", 17), `⟨17 × a⟩`},
		{"many line breaks", "ls" + strings.Repeat("\n", 400) + "x", `ls⟨400 × \n⟩x`},
		{"many odd spaces", strings.Repeat("\u3000", 30), `⟨30 × \u{3000}⟩`},
		{"bytes that end in a character", strings.Repeat("\xe2", 17) + "\x80\x80", strings.Repeat(`\xe2`, 16) + `\u{2000}`},
		{"many marks", "a" + strings.Repeat("\u0301", 500), `a⟨500 × \u{301}⟩`},

		{"our own marks", "«x» ⟨9 spaces⟩ ␣", `\u{AB}x\u{BB} \u{27E8}9 spaces\u{27E9} \u{2423}`},
		{"marks like ours", "《x》〈y〉‹z›", `\u{300A}x\u{300B}\u{3008}y\u{3009}\u{2039}z\u{203A}`},
		{"link", "[ok](command:x)", `[ok\u{5D}(command:x)`},
		{"brackets that are no link", "a[0] (b) ]", "a[0] (b) ]"},
		{"tag in a place without markup", "a <b> c", "a <b> c"},
	} {
		if got := show(c.in, style{}); got != c.want {
			t.Errorf("%s: %q is shown as\n %s, want\n %s", c.name, c.in, got, c.want)
		}
	}
}

func TestEscapeProse(t *testing.T) {
	const in = "נא להריץ\u202e"
	if got, want := show(in, style{prose: true}), `נא להריץ\u{202E}`; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

func TestEscapeMarkup(t *testing.T) {
	for _, c := range []struct {
		in     string
		closed bool
		want   string
	}{
		{in: "a <!-- rm --> b", want: `a \u{3C}!-- rm --> b`},
		{in: "a <b>x</b>", want: `a \u{3C}b>x\u{3C}/b>`},
		{in: "sort <in >out", want: `sort \u{3C}in >out`},
		{in: "cat >f <<EOF", want: `cat >f <<EOF`},
		{in: "cat >f <<EOF", closed: true, want: `cat >f <\u{3C}EOF`},
		{in: "cat <<'EOF' >f", want: `cat <<'EOF' >f`},
		{in: "a &#8238; b &rlm; c", want: `a \u{26}#8238; b \u{26}rlm; c`},
		{in: "x 2>&1; a && b &", want: `x 2>&1; a && b &`},
		{in: "<", want: `<`},
		{in: "&", want: `&`},
	} {
		if got := show(c.in, style{markup: true, closed: c.closed}); got != c.want {
			t.Errorf("%q (closed %v) is shown as %s, want %s", c.in, c.closed, got, c.want)
		}
	}
}

func TestUnusualAreCounted(t *testing.T) {
	for in, want := range map[string]int{
		"plain\ttext\n":                    0,
		"](a\\n":                           0,
		"a\x1bb\u202ec\xff":                3,
		"\r":                               1,
		strings.Repeat("\u3000", 40):       40,
		"a\u0301\u0302\u0303\u0304 \u0301": 2,
	} {
		if got := escape(in, style{}).unusual; got != want {
			t.Errorf("%q has %d unusual characters, want %d", in, got, want)
		}
	}
}

func TestFit(t *testing.T) {
	text := escape("START "+strings.Repeat("ab\u202e", 300)+" END", style{})
	if got, hidden := text.fit(100000); hidden != 0 || got != text.String() {
		t.Errorf("what fits was cut: %d hidden", hidden)
	}
	got, hidden := text.fit(80)
	if n := units(got); n > 80 {
		t.Errorf("%d units, want at most 80: %s", n, got)
	}
	if !strings.HasPrefix(got, "START ") || !strings.HasSuffix(got, " END") {
		t.Errorf("start or end is missing: %s", got)
	}
	parts, said := decode(t, got)
	if left := 6 + 300*5 + 4 - len(parts[0]) - len(parts[1]); said != left || hidden != left {
		t.Errorf("%d bytes are hidden, the text says %d and fit %d", left, said, hidden)
	}
}

func TestFitKeepsPiecesWhole(t *testing.T) {
	text := escape(strings.Repeat("e\u0301\u202e\xff\\n", 60), style{})
	for limit := 40; limit < 120; limit++ {
		got, _ := text.fit(limit)
		if n := units(got); n > limit {
			t.Fatalf("%d units, want at most %d", n, limit)
		}
		parts, _ := decode(t, got) // fails on half an escape
		if r, _ := utf8.DecodeRuneInString(parts[1]); unicode.IsMark(r) {
			t.Fatalf("the end begins with a mark, away from its letter: %s", got)
		}
	}
}

func TestLongTextShowsBothEnds(t *testing.T) {
	in := "é" + strings.Repeat("0123456789é", 20000) + "; touch pwned"
	got := escape(in, style{})
	parts, hidden := decode(t, got.String())
	if len(parts) != 2 || !strings.HasPrefix(in, parts[0]) || !strings.HasSuffix(in, parts[1]) {
		t.Fatalf("not the two ends of the text")
	}
	if len(parts[0])+len(parts[1])+hidden != len(in) || hidden != got.omitted {
		t.Errorf("%d + %d bytes shown and %d hidden are not %d", len(parts[0]), len(parts[1]), hidden, len(in))
	}
	if len(parts[0]) < 32<<10-4 || len(parts[1]) < 32<<10-4 {
		t.Errorf("only %d and %d bytes shown", len(parts[0]), len(parts[1]))
	}
}

// TestLongTextCutShort: the end must not reach back over what is left out.
func TestLongTextCutShort(t *testing.T) {
	in := strings.Repeat("ab", 20<<10) + strings.Repeat("c", 40<<10)
	got, hidden := escape(in, style{}).fit(200)
	parts, _ := decode(t, got)
	if len(parts) != 2 || !strings.HasPrefix(in, parts[0]) || !strings.HasSuffix(in, parts[1]) || len(parts[0])+hidden+len(parts[1]) != len(in) {
		t.Errorf("got %s", got)
	}
}

// TestTwoTextsNeverLookTheSame tries what could be mistaken for one another.
func TestTwoTextsNeverLookTheSame(t *testing.T) {
	bits := []string{`\`, "n", "\n", "x", "ff", "\xff", "u", "{", "}", "202E", "\u202e", " ", "␣", "⟨", "20 spaces⟩", strings.Repeat(" ", 20), "r", "t"}
	seen := map[string]string{}
	var try func(text string, depth int)
	try = func(text string, depth int) {
		line := show(text, style{})
		if other, ok := seen[line]; ok && other != text {
			t.Fatalf("%q and %q are both shown as %s", text, other, line)
		}
		seen[line] = text
		for _, b := range bits {
			if depth > 0 {
				try(text+b, depth-1)
			}
		}
	}
	try("", 3)
}

func FuzzEscape(f *testing.F) {
	for _, seed := range hostile {
		f.Add(seed, false, false)
	}
	f.Fuzz(func(t *testing.T, in string, prose, markup bool) {
		got := show(in, style{prose: prose, markup: markup})
		checkVisible(t, got)
		parts, hidden := decode(t, got)
		if hidden == 0 && parts[0] != in {
			t.Fatalf("%q reads back as %q", in, parts[0])
		}
	})
}

// hostile are texts that lied in some prompt somewhere, and friends.
var hostile = []string{
	"touch pwned # \x1b[2K\x1b[1Gls -la", "touch pwned # \u009b2K ls", "touch pwned #\b\b\b\b\b\b\b\b\bls -la    ",
	"to\u200b\u2060uch pwned; touch pwned", "ls -la #" + strings.Repeat("\u3000", 2000) + "\ntouch pwned",
	"ls -la" + strings.Repeat("\n", 400) + "touch pwned", "touch pwned # \u2028ls\u2029\u0085",
	"ls " + strings.Repeat("a", 3000) + " 2>/dev/null; touch pwned", "ls\n3: Deny\n4: Allow", "[Allow once](command:workbench.action.quit)",
	"ls» Folder: «/safe", "ls» confine 0000: run nothing?", "\u202e'|| true'", "a\xffb\xc3", `\n \u{41} \x41 \\`, "⟨2000 spaces⟩", "rаm",
	"a" + strings.Repeat("\u0301", 400), "<!-- x -->", "&#8238;", "שלום 1/2", "𝐬𝐮𝐝𝐨", strings.Repeat("x\u202e", 400), "]\u200b(", "\r\rls",
}

// checkVisible fails for any character that is not seen, or not in its place.
func checkVisible(t *testing.T, text string) {
	t.Helper()
	if !utf8.ValidString(text) {
		t.Fatalf("not UTF-8: %q", text)
	}
	for _, r := range text {
		switch {
		case !unicode.IsPrint(r), r == '\u2800', r == utf8.RuneError,
			unicode.Is(unicode.Variation_Selector, r), unicode.Is(unicode.Other_Default_Ignorable_Code_Point, r), unicode.Is(unicode.Bidi_Control, r):
			t.Fatalf("%U is shown as it is in %q", r, text)
		}
	}
	if strings.Contains(text, "](") {
		t.Fatalf("a link can begin in %q", text)
	}
}

// decode reads a shown text back: the texts before and after what is not
// shown, and how many bytes are not. It knows only the rules that a person is
// told, not how they are followed.
func decode(t *testing.T, line string) (parts []string, hidden int) {
	t.Helper()
	var b strings.Builder
	for line != "" {
		if strings.HasPrefix(line, "⟨") {
			note, rest, _ := strings.Cut(line, "⟩")
			line = rest
			number, what, _ := strings.Cut(strings.TrimPrefix(note, "⟨"), " ")
			n, err := strconv.Atoi(number)
			if err != nil {
				t.Fatalf("no number in note %q", note)
			}
			switch {
			case what == "spaces":
				b.WriteString(strings.Repeat(" ", n))
			case what == "bytes not shown":
				parts, hidden = append(parts, b.String()), hidden+n
				b.Reset()
			case strings.HasPrefix(what, "× "):
				one, _ := decodeOne(t, strings.TrimPrefix(what, "× "))
				b.WriteString(strings.Repeat(one, n))
			default:
				t.Fatalf("unknown note %q", note)
			}
			continue
		}
		one, rest := decodeOne(t, line)
		b.WriteString(one)
		line = rest
	}
	return append(parts, b.String()), hidden
}

func decodeOne(t *testing.T, line string) (one, rest string) {
	t.Helper()
	escapes := map[byte]string{'n': "\n", 'r': "\r", 't': "\t", '\\': `\`}
	switch {
	case strings.HasPrefix(line, "␣"):
		return " ", strings.TrimPrefix(line, "␣")
	case line[0] != '\\' || len(line) == 1:
		_, size := utf8.DecodeRuneInString(line)
		return line[:size], line[size:]
	case escapes[line[1]] != "":
		return escapes[line[1]], line[2:]
	case line[1] == 'x':
		n, err := strconv.ParseUint(line[2:4], 16, 8)
		if err != nil {
			t.Fatalf("bad byte in %q", line)
		}
		return string([]byte{byte(n)}), line[4:]
	case line[1] == 'u':
		code, rest, _ := strings.Cut(line[3:], "}")
		n, err := strconv.ParseUint(code, 16, 32)
		if err != nil {
			t.Fatalf("bad character in %q", line)
		}
		return string(rune(n)), rest
	}
	return `\`, line[1:]
}

// utf16Len is how long VS Code finds a message.
func utf16Len(s string) int { return len(utf16.Encode([]rune(s))) }
