package server

import (
	"strings"
	"testing"
	"time"
	"unicode"

	"github.com/confine-dev/confine/rpc/proto"
	"github.com/confine-dev/confine/sandbox"
)

func TestScreenText(t *testing.T) {
	const esc = "\x1b"
	for _, test := range []struct{ name, output, want string }{
		{"text", "a\tb  \r\nç 漢\r\n", "a\tb  \nç 漢\n"},
		{"colours", esc + "[1;31mred" + esc + "[0m" + esc + "[38;5;9;48:2::1:2:3mx" + esc + "[K" + esc + "[m", "redx"},
		{"modes and character sets", esc + "[?25l" + esc + "[?1049h" + esc + "(B" + esc + ")0" + esc + "=" + esc + "7" + esc + "M" + esc + "[!p" + esc + "[4 q" + esc + "#8x", "x"},
		{"title by BEL", esc + "]0;title\a" + "x", "x"},
		{"link by ST", esc + "]8;;https://example.org" + esc + "\\text" + esc + "]8;;" + esc + "\\", "text"},
		{"other strings", esc + "Pq#1~~" + esc + "\\a" + esc + "_x" + esc + "\\b" + esc + "^x" + esc + "\\c" + esc + "Xx" + esc + "\\d", "abcd"},
		{"one character", "\u009b1mred\u009b0m\u009d0;t\u009cx\u009d0;t\ay\u0085z\u0090", "redxyz"},

		{"progress", "  1%\r 50%\r100%\r\ndone\r\n", "100%\ndone\n"},
		{"a shorter line over a longer one", "downloading\rdone\r\n", "doneloading\n"},
		{"erased first", "downloading\r" + esc + "[Kdone\r\n", "done\n"},
		{"erased by blanks", "spinning |\r          \rdone\r\n", "done\n"},
		{"a bar that is only erased", "50%\r" + esc + "[2K" + esc + "[1Gnext\r\n", "next\n"},
		{"two returns", "ab\r\r\nc", "ab\nc"},
		{"typed and erased", "$ lss\b \b -l\r\n", "$ ls -l\n"},
		{"overstruck", "N\bNA\bA", "NA"},
		{"backspaces end at the row", "ab\b\b\b\b\bc", "cb"},
		{"columns", "abc" + esc + "[2Dx" + esc + "[6Gy" + esc + "[Cz", "axc  y z"},
		{"deleted", "abcdef\r" + esc + "[2P", "cdef"},
		{"erased before", "abcdef" + esc + "[3D" + esc + "[1K", "   def"},
		{"places on the screen", esc + "[2J" + esc + "[1;1Hone" + esc + "[5;3Htwo" + esc + "[Athree", "one\ntwo\nthree"},

		{"a long line wraps", "0123456789abc\rx", "0123456789xbc"},
		{"just full", "0123456789\rx", "x123456789"},
		{"full, then typed on", "0123456789 \rab", "0123456789ab"},
		{"beyond the row", "ab" + esc + "[99999999999999999999Cx" + esc + "[500Cy", "abx      y"},
		{"beyond the row, in numbers", "ab" + esc + "[500Cx", "ab       x"},

		{"CSI without end", "a" + esc + "[12", "a[12"},
		{"CSI broken by a line", "a" + esc + "[12\nb", "a[12\nb"},
		{"a very long CSI", "a" + esc + "[" + strings.Repeat("1", 300) + "mb", "a[" + strings.Repeat("1", 300) + "mb"},
		{"title without end", "a" + esc + "]0;title\r\nnext\r\n", "a]0;title\nnext\n"},
		{"title broken by another", esc + "]0;one" + esc + "[1mtwo\a", "]0;onetwo"},
		{"a very long title", esc + "]0;" + strings.Repeat("t", maxString) + "\ax", "]0;" + strings.Repeat("t", maxString) + "x"},
		{"ESC at the end", "a" + esc, "a"},
		{"ESC before what is no sequence", "a" + esc + "\tb" + esc + "çc", "a\tbçc"},
		{"other controls", "a\x00\a\x0e\x0f\x7fb\fc\vd", "ab\nc\nd"},
	} {
		columns := 80
		if strings.Contains(test.name, "row") || strings.Contains(test.name, "wraps") || strings.Contains(test.name, "full") {
			columns = 10
		}
		if got := screenText(test.output, columns); got != test.want {
			t.Errorf("%s: got %q, want %q", test.name, got, test.want)
		}
	}
}

// FuzzScreenText: nothing is left that could move or hide text, text without controls
// stays as it is, and no input takes long or much.
func FuzzScreenText(f *testing.F) {
	for _, seed := range []string{"a\r\nb\x1b[31mc\x1b]0;t\ad\be\u009b5Gx", strings.Repeat("\x1b[9999C\r", 20), strings.Repeat("\u009d", 50) + "x", "\x1b[2K\x1b[1K\x1b[P\x1b[3Px\x1b[H\x1b[J"} {
		f.Add(seed, uint16(80))
	}
	f.Fuzz(func(t *testing.T, output string, columns uint16) {
		output = strings.ToValidUTF8(output, "?")
		width := int(columns)%maxTerminal + 1
		got := screenText(output, width)
		for _, r := range got {
			if unicode.IsControl(r) && r != '\n' && r != '\t' {
				t.Fatalf("%q is in %q", r, got)
			}
		}
		if strings.IndexFunc(output, unicode.IsControl) < 0 && got != output {
			t.Fatalf("%q became %q", output, got)
		}
		if len(got) > len(output)+maxBlanks {
			t.Fatalf("%d bytes became %d", len(output), len(got))
		}
	})
}

// TestScreenTextOfHostileOutput: each of these is as long as a result's text.
func TestScreenTextOfHostileOutput(t *testing.T) {
	for _, unit := range []string{"\x1b]", "\u009d", "\u009b1", "\x1bP\u0090", "\x1b[1", "x\x1b[9999C", "\x1b[9999Gx\x1b[H", "\x1b[9999Gx\r", "\r", "\x1b[2K"} {
		output := strings.Repeat(unit, sandbox.DefaultKeep/len(unit))
		if got := screenText(output, maxTerminal); len(got) > len(output)+maxBlanks {
			t.Errorf("%q: %d bytes became %d", unit, len(output), len(got))
		}
	}
}

func TestModelTextOfATerminal(t *testing.T) {
	code := 1
	f := facts{began: time.Now(), process: struct{ sandbox.Process }{}, terminal: &sandbox.TerminalSize{Columns: 80, Rows: 24}}
	const raw = "\x1b[31m10%\r100%\x1b[0m\r\n"
	r := &proto.RunResult{Status: proto.StatusCompleted, ExitCode: &code, Stdout: proto.StreamText{Text: raw, Bytes: 99999, Truncated: true}}
	const want = "100%\n[stdout truncated: only the last 19 of 99999 bytes are shown; all of it: (unavailable)]\n[exit code: 1]"
	if got := modelText(plan{}, f, r); got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if r.Stdout.Text != raw {
		t.Error("the stream's own text is changed")
	}
	f.terminal = nil
	if got := modelText(plan{}, f, r); !strings.HasPrefix(got, raw) {
		t.Errorf("without a terminal: got %q", got)
	}
}
