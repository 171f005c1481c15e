package approval

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/confine-dev/confine/sandbox"
)

var project = &sandbox.Root{Path: "/home/me/project", Dev: 1, Ino: 2}

func readOnly() sandbox.Policy { return sandbox.Policy{Mode: sandbox.ReadOnly} }

func workspace() sandbox.Policy {
	return sandbox.Policy{Mode: sandbox.WorkspaceWrite, Roots: []*sandbox.Root{project}}
}

// request is an ordinary one, to be changed by tests.
func request() Request {
	return Request{
		RunID: "run-1", Session: "s", Kind: KindCommand, Command: "npm install", Dir: "/home/me/project",
		Have: readOnly(), Want: workspace(), Justification: "Packages must be fetched.",
	}
}

const testID = "3fa9c1d2e4b5a697"

var testTime = time.Unix(1000, 0)

func questionAbout(change func(*Request)) Question {
	r := request()
	if change != nil {
		change(&r)
	}
	return newQuestion(r, testID, testTime)
}

func TestText(t *testing.T) {
	for _, c := range []struct {
		name   string
		change func(*Request)
		want   []string
	}{
		{"mode", nil, []string{
			"confine 3fa9: run a command in workspace-write?",
			"Configured: read-only.",
			"Justification given: «Packages must be fetched.»",
			"Becomes writable: «/home/me/project».",
			"Command, 11 bytes: «npm install»",
			"Folder: «/home/me/project»",
		}},
		{"network", func(r *Request) {
			r.Have, r.Want = workspace(), workspace()
			r.Want.Network = true
		}, []string{
			"confine 3fa9: run a command in workspace-write with NETWORK?",
			"Configured: workspace-write.",
			"Justification given: «Packages must be fetched.»",
			"Network: it reaches the internet and every service on localhost.",
			"Command, 11 bytes: «npm install»",
			"Folder: «/home/me/project»",
		}},
		{"escalation to full access", func(r *Request) {
			r.Kind, r.Justification = KindEscalation, ""
			r.Have.Network = true
			r.Want = sandbox.Policy{Mode: sandbox.DangerFullAccess}
			r.Command = "cd /x\nrm -rf y\n"
			r.Evidence = []sandbox.Denial{
				{Op: "write", Path: "/x/y", Errno: "EROFS", Evidence: sandbox.Stderr, Count: 1},
				{Op: "write", Path: "/x/z", Errno: "EROFS", Evidence: sandbox.Observed, Count: 1},
			}
			r.Reason = "it was refused"
		}, []string{
			"confine 3fa9: run a command again with NO SANDBOX (danger-full-access)?",
			"Configured: read-only with network.",
			"The sandbox refused: «write /x/z».",
			"Refused, as its messages say: «write /x/y».",
			"Reason: «it was refused»",
			"The whole command runs again, from its beginning.",
			"No sandbox at all: it can read, change and send whatever you can, and reach every service on localhost.",
			`Command, 2 LINES, 15 bytes: «cd /x\nrm -rf y\n»`,
			"Folder: «/home/me/project»",
		}},
		{"program, input, variables", func(r *Request) {
			r.Command, r.Argv = "", []string{"git", "commit", "-m", "it's", ""}
			r.Stdin, r.Justification = "a\nb", ""
			r.Env = map[string]string{"B": "2", "A": "1\x1b"}
			r.Warnings = []string{"no denial came before"}
		}, []string{
			"confine 3fa9: run a command in workspace-write?",
			"Configured: read-only.",
			"Becomes writable: «/home/me/project».",
			`Program and arguments, 15 bytes: «git commit -m 'it'\''s' ''»`,
			"Folder: «/home/me/project»",
			`Input, 3 bytes: «a\nb»`,
			`Sets environment variables: «A=1\u{1B}», «B=2».`,
			"Note: «no denial came before»",
		}},
		{"odd characters", func(r *Request) {
			r.Command, r.Justification = "r\u0430m \u202ex\u200b", ""
		}, []string{
			"confine 3fa9: run a command in workspace-write?",
			"Configured: read-only.",
			"Becomes writable: «/home/me/project».",
			`Command, 12 bytes: «rаm \u{202E}x\u{200B}»`,
			"Folder: «/home/me/project»",
			"Invisible or misleading, shown as escapes: 2 characters of the command.",
			"Not ASCII, may look like others: 1 character of the command (Cyrillic MIXED IN ONE WORD).",
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := questionAbout(c.change).Text
			if want := strings.Join(c.want, "\n"); got != want {
				t.Errorf("got\n%s\nwant\n%s", got, want)
			}
		})
	}
}

func TestLongTextSaysSoFirst(t *testing.T) {
	q := questionAbout(func(r *Request) {
		r.Command = "ls " + strings.Repeat("ab", 2000) + " 2>/dev/null; touch pwned"
		r.Dir, r.Justification = "/"+strings.Repeat("cd", 500), strings.Repeat("ef", 500)
	})
	line := lineWith(t, q.Text, "Command")
	if !regexp.MustCompile(`^Command, 4028 bytes, \d+ bytes NOT SHOWN: «ls abab.*⟨\d+ bytes not shown⟩.*; touch pwned»$`).MatchString(line) {
		t.Errorf("got %s", line)
	}
	if n := utf16Len(q.Text); n < MaxText-60 || n > MaxText {
		t.Errorf("%d of %d units are used for a command that is cut", n, MaxText)
	}
	if parts, hidden := decode(t, q.Command); hidden != 0 || len(parts[0]) != 4028 {
		t.Errorf("Command is cut too")
	}
}

func TestTooLongCommand(t *testing.T) {
	q := questionAbout(func(r *Request) { r.Command = strings.Repeat("ab", 40<<10) })
	want := "Too long to show whole: the command. 16384 of its 81920 bytes are left out."
	if !slices.Contains(q.Warnings, want) {
		t.Errorf("warnings %q lack %q", q.Warnings, want)
	}
	if !strings.Contains(q.Command, "⟨16384 bytes not shown⟩") || q.Bytes != 80<<10 {
		t.Errorf("the command does not say what is left out of its %d bytes", q.Bytes)
	}
}

func TestWhatDoesNotFitIsCounted(t *testing.T) {
	q := questionAbout(func(r *Request) {
		r.Command, r.Stdin, r.Dir = strings.Repeat("ab", 500), strings.Repeat("cd", 500), "/"+strings.Repeat("ef", 500)
		for i := range 50 {
			r.Warnings = append(r.Warnings, fmt.Sprint(i, strings.Repeat(" word", 20)))
		}
	})
	lines := strings.Split(q.Text, "\n")
	const all = 6 + 20 + 1 + 1 // up to the input, warnings, their count, justification
	want := fmt.Sprintf("%d more facts DO NOT FIT HERE.", all-(len(lines)-1))
	if lines[1] != want {
		t.Errorf("second line is %q, want %q", lines[1], want)
	}
	if n := utf16Len(q.Text); n > MaxText {
		t.Errorf("%d units", n)
	}
	if got := q.Warnings[len(q.Warnings)-1]; got != "30 more warnings are not shown." {
		t.Errorf("last warning is %q", got)
	}
}

// TestTagAcrossTexts: what one text opens another must not close.
func TestTagAcrossTexts(t *testing.T) {
	for name, change := range map[string]func(*Request){
		"justification": func(r *Request) { r.Justification = "x -->" },
		"variable":      func(r *Request) { r.Env = map[string]string{"A": "-->"} },
		"warning":       func(r *Request) { r.Warnings = []string{"-->"} },
		"denial":        func(r *Request) { r.Evidence = []sandbox.Denial{{Op: "write", Path: "/-->"}} },
		"same text":     func(r *Request) { r.Command, r.Justification = "> <!-- rm", "> <!-- rm" },
	} {
		q := questionAbout(func(r *Request) {
			r.Command = "a <!-- rm"
			change(r)
		})
		if line := lineWith(t, q.Text, "Command"); strings.Contains(line, "<") {
			t.Errorf("%s: %s", name, line)
		}
	}
}

func TestQuestionFields(t *testing.T) {
	q := questionAbout(func(r *Request) {
		r.Command, r.Dir, r.Reason = "a\x1b", "/d\n", "why\t"
		r.Env = map[string]string{"X": "\r", "A": "b"}
		r.Stdin = "in\u202e"
		r.Evidence = slices.Repeat([]sandbox.Denial{{Op: "write", Path: "/e\x07", Exe: "x\n", Count: 2, Evidence: sandbox.Observed}}, 30)
	})
	for _, c := range []struct{ name, got, want string }{
		{"id", q.ID, testID}, {"run", q.RunID, "run-1"}, {"kind", string(q.Kind), "command"},
		{"command", q.Command, `a\u{1B}`}, {"folder", q.Dir, `/d\n`}, {"reason", q.Reason, `why\t`}, {"input", q.Stdin, `in\u{202E}`},
		{"variables", strings.Join(q.Env, " "), `A=b X=\r`}, {"denied path", q.Evidence[0].Path, `/e\u{7}`}, {"denied program", q.Evidence[0].Exe, `x\n`},
		{"mode", string(q.Mode), "read-only"}, {"wanted", string(q.Wanted.Mode), "workspace-write"},
		{"writable", strings.Join(q.Wanted.Write, " "), "/home/me/project"}, {"policy", q.PolicyHash, workspace().Hash()},
		{"default", q.DefaultOptionID, q.Options[0].ID},
	} {
		if c.got != c.want {
			t.Errorf("%s is %q, want %q", c.name, c.got, c.want)
		}
	}
	if len(q.Evidence) != MaxEvidence || q.Evidence[0].Count != 2 || !q.ExpiresAt.Equal(testTime) {
		t.Errorf("evidence %d, expiry %v", len(q.Evidence), q.ExpiresAt)
	}
}

func TestOptions(t *testing.T) {
	all := questionAbout(nil).Options
	want := []Option{
		{"refuse", "Refuse", "reject_once", "once"},
		{"allow-once", "Allow this once", "allow_once", "once"},
		{"allow-session", "Allow for this session", "allow_always", "session"},
	}
	if !slices.Equal(all, want) {
		t.Errorf("options are %v, want %v", all, want)
	}
	alone := questionAbout(func(r *Request) { r.Session = "" }).Options
	if !slices.Equal(alone, want[:2]) {
		t.Errorf("without a session the options are %v, want %v", alone, want[:2])
	}
}

func lineWith(t *testing.T, text, label string) string {
	t.Helper()
	for line := range strings.Lines(text) {
		if strings.HasPrefix(line, label) {
			return strings.TrimSuffix(line, "\n")
		}
	}
	t.Fatalf("no line %q in\n%s", label, text)
	return ""
}

// ourLines are all the ways a line may begin, so that a text that fakes one is
// found.
var ourLines = regexp.MustCompile(`^(confine 3fa9: run a command( again)? (in|with|unconfined) [^«»]*\?|` +
	`1 more fact DOES NOT FIT HERE\.|([2-9]|\d\d+) more facts DO NOT FIT HERE\.|Configured: [a-z -]+\.|The whole command runs again, from its beginning\.|(No sandbox|Network:) [^«»]*\.|` +
	`(Becomes writable|Sets environment variables|The sandbox refused|Refused, as its messages say): «[^«»]*»(, «[^«»]*»)*( and \d+ more)?\.|` +
	`Becomes (writable|readable): the (file «[^«»]+»|FOLDER «[^«»]+» and everything in it(, because «[^«»]+» does not exist there yet(, nor \d+ more)?)?)\.( [^«»]*\.)?|` +
	`(Command|Program and arguments|Input)(, \d+ LINES)?, \d+ bytes(, \d+ bytes NOT SHOWN)?: «[^«»]*»|` +
	`(Folder|Justification given|Reason)(, \d+ bytes NOT SHOWN)?: «[^«»]*»|Note: «[^«»]*»|` +
	`(Too long to show whole|Invisible or misleading|Not ASCII)[^«»]*\.)$`)

// Run it with -fuzzminimizetime=10x: shortening long inputs takes most of the
// time otherwise.
func FuzzQuestionText(f *testing.F) {
	for i, seed := range hostile {
		f.Add(seed, hostile[(i+3)%len(hostile)], hostile[(i+7)%len(hostile)], i)
		f.Add(seed, hostile[(i+3)%len(hostile)], hostile[(i+7)%len(hostile)], i|16)
	}
	f.Fuzz(func(t *testing.T, command, words, dir string, shape int) {
		r := request()
		r.Command, r.Justification, r.Dir = command, words, dir
		if shape&1 != 0 {
			r.Kind, r.Reason, r.Warnings = KindEscalation, words, []string{command, dir, words}
			r.Evidence = []sandbox.Denial{{Op: "write", Path: dir}, {Op: "connect", Address: words}}
		}
		if shape&2 != 0 {
			r.Stdin, r.Env = words, map[string]string{"A": command, dir: words}
		}
		if shape&4 != 0 {
			r.Want = sandbox.Policy{Mode: sandbox.DangerFullAccess}
		}
		if shape&8 != 0 {
			r.Want.Network, r.Want.Roots = true, []*sandbox.Root{{Path: dir}, {Path: words}, {Path: command}, project}
		}
		if shape&16 != 0 {
			r.Want.Writable, r.Want.Readable = []*sandbox.Root{{Path: "/" + dir, File: shape&1 != 0}, {Path: "/" + words}}, []*sandbox.Root{{Path: "/" + command}}
			r.Grants = []Grant{{Path: "/" + dir, Kind: sandbox.GrantWrite, Missing: []string{"/" + words, command}, Perils: []sandbox.Peril{sandbox.PerilRuns}, NotRefused: true}}
		}
		q := newQuestion(r, testID, time.Time{})
		if n := utf16Len(q.Text); n > MaxText {
			t.Fatalf("%d units:\n%s", n, q.Text)
		}
		for line := range strings.SplitSeq(q.Text, "\n") {
			checkVisible(t, line)
			if !ourLines.MatchString(line) {
				t.Fatalf("this is no line of ours: %q", line)
			}
		}
		if shown := strings.Count(q.Text, "\nBecomes writable: the ") + strings.Count(q.Text, "\nBecomes readable: the "); shape&16 != 0 && r.Want.Mode.Confined() && shown+q.Unshown < 3 {
			t.Fatalf("3 paths are opened, %d things are not shown, and the text is\n%s", q.Unshown, q.Text)
		}
		if q.Unshown == 0 {
			checkWhole(t, r, q)
		}
		for _, text := range slices.Concat([]string{q.Title, q.Command, q.Dir, q.Reason, q.Justification, q.Stdin}, q.Warnings, q.Env, q.Wanted.Write, q.Wanted.Read) {
			checkVisible(t, text)
		}
		checkEnds(t, command, lineWith(t, q.Text, "Command, "))
		checkEnds(t, dir, lineWith(t, q.Text, "Folder"))
		if parts, hidden := decode(t, q.Command); hidden == 0 && parts[0] != command {
			t.Fatalf("command %q is shown as %s", command, q.Command)
		}
	})
}

// checkWhole fails if the text lacks anything of what would run, or a warning.
func checkWhole(t *testing.T, r Request, q Question) {
	t.Helper()
	lines := strings.Split(q.Text, "\n")
	read := func(quoted string) string {
		parts, hidden := decode(t, quoted)
		if hidden > 0 || len(parts) != 1 {
			t.Fatalf("not whole: %s", quoted)
		}
		return parts[0]
	}
	has := func(label, want string) {
		for _, line := range lines {
			if head, quoted, ok := strings.Cut(line, ": «"); ok && strings.HasPrefix(head, label) && read(strings.TrimSuffix(quoted, "»")) == want {
				return
			}
		}
		t.Fatalf("%s %q is not in\n%s", label, want, q.Text)
	}
	has("Command", r.Command)
	has("Folder", r.Dir)
	if r.Stdin != "" {
		has("Input", r.Stdin)
	}
	listed := func(label string, want []string) {
		if len(want) == 0 {
			return
		}
		_, list, _ := strings.Cut(lineWith(t, q.Text, label+": «"), "«")
		var got []string
		for _, item := range strings.Split(strings.TrimSuffix(list, "»."), "», «") {
			got = append(got, read(item))
		}
		if !slices.Equal(got, want) {
			t.Fatalf("%s is %q, want %q, in\n%s", label, got, want, q.Text)
		}
	}
	var env []string
	for _, name := range slices.Sorted(maps.Keys(r.Env)) {
		env = append(env, name+"="+r.Env[name])
	}
	listed("Sets environment variables", env)
	if r.Want.Mode.Confined() {
		listed("Becomes writable", gained(r.Have, r.Want).writable)
	}
	for _, w := range q.Warnings {
		if !strings.Contains(w, "«") && !slices.Contains(lines, w) {
			t.Fatalf("the warning %q is not in\n%s", w, q.Text)
		}
	}
}

// TestTextOfALongCommand: words about a command give way to it, and a text that
// does not show it whole says so.
func TestTextOfALongCommand(t *testing.T) {
	about := func(size int, change func(*Request)) Question {
		return questionAbout(func(r *Request) {
			r.Command = "touch a; " + strings.Repeat("xy", (size-18)/2) + "; rm -r b"
			r.Justification, r.Reason = strings.Repeat("why ", 100), strings.Repeat("so ", 100)
			if change != nil {
				change(r)
			}
		})
	}
	for _, size := range []int{100, 540, 600} {
		q := about(size, nil)
		if whole := "Command, " + fmt.Sprint(q.Bytes) + " bytes: «" + q.Command + "»"; q.Unshown != 0 || !strings.Contains(q.Text, "\n"+whole+"\n") {
			t.Errorf("%d unshown, though %d bytes have room:\n%s", q.Unshown, size, q.Text)
		}
	}
	for _, size := range []int{MaxText, 5000} {
		if q := about(size, nil); q.Unshown != 1 {
			t.Errorf("%d unshown of a command of %d bytes:\n%s", q.Unshown, size, q.Text)
		}
	}
	long := strings.Repeat("xy", 300)
	for name, change := range map[string]func(*Request){
		"folder":    func(r *Request) { r.Dir = "/" + long },
		"input":     func(r *Request) { r.Stdin = long },
		"variables": func(r *Request) { r.Env = map[string]string{"A": long} },
		"many": func(r *Request) {
			r.Env = map[string]string{"A": long[:150], "B": long[:150], "C": long[:150], "D": long[:150]}
		},
		"root":    func(r *Request) { r.Want.Roots = []*sandbox.Root{{Path: "/" + long}} },
		"warning": func(r *Request) { r.Warnings = []string{long[:300], long[:300]} },
	} {
		if q := about(300, change); q.Unshown == 0 {
			t.Errorf("%s: the text says that it is whole:\n%s", name, q.Text)
		}
	}
	// What a list leaves out of a warning is in the text all the same.
	q := questionAbout(func(r *Request) { r.Env = map[string]string{"A": "1", "B": "2", "C": "3", "D": long[:100]} })
	if want := "Sets environment variables: «A=1», «B=2», «C=3», «D=" + long[:100] + "»."; q.Unshown != 0 || !strings.Contains(q.Text, want) {
		t.Errorf("%d unshown, and %q is not in\n%s", q.Unshown, want, q.Text)
	}
	if want := "Sets environment variables: «A=1», «B=2», «C=3» and 1 more."; !slices.Contains(q.Warnings, want) {
		t.Errorf("%q lacks %q", q.Warnings, want)
	}
}

// TestWordsLeaveRoom: in a small terminal some editors cut the end of a text and
// some its beginning, and a yes depends on what would be cut.
func TestWordsLeaveRoom(t *testing.T) {
	words := func(command int) (text string, shown int) {
		q := questionAbout(func(r *Request) {
			r.Command, r.Justification, r.Reason = strings.Repeat("xy", command/2), strings.Repeat("why ", 20), strings.Repeat("so ", 20)
		})
		if q.Unshown != 0 {
			t.Fatalf("%d unshown", q.Unshown)
		}
		return q.Text, strings.Count(q.Text, "\nJustification") + strings.Count(q.Text, "\nReason")
	}
	for _, c := range []struct{ command, words int }{{20, 2}, {360, 2}, {500, 1}, {640, 0}} {
		text, shown := words(c.command)
		if shown != c.words {
			t.Errorf("%d of 2 words beside a command of %d bytes, want %d:\n%s", shown, c.command, c.words, text)
		}
		if dropped := strings.Contains(text, "NOT FIT HERE"); dropped != (c.words < 2) {
			t.Errorf("that words are left out is said: %v\n%s", dropped, text)
		}
	}
}

func TestOneFactMore(t *testing.T) {
	q := questionAbout(func(r *Request) { r.Command = strings.Repeat("ab", 340) })
	if want := "1 more fact DOES NOT FIT HERE."; q.Unshown != 0 || strings.Split(q.Text, "\n")[1] != want {
		t.Errorf("%d unshown, %q is not the second line of\n%s", q.Unshown, want, q.Text)
	}
}

// checkEnds fails unless the quoted text in line is want, or its two ends with
// the right count between them.
func checkEnds(t *testing.T, want, line string) {
	t.Helper()
	_, quoted, _ := strings.Cut(line, "«")
	parts, hidden := decode(t, strings.TrimSuffix(quoted, "»"))
	if hidden == 0 {
		if len(parts) != 1 || parts[0] != want {
			t.Fatalf("%q is shown as %s", want, line)
		}
		return
	}
	head, tail := parts[0], parts[len(parts)-1]
	if !strings.HasPrefix(want, head) || !strings.HasSuffix(want, tail) || head == "" || tail == "" || len(head)+hidden+len(tail) != len(want) {
		t.Fatalf("%q is shown as %s", want, line)
	}
	if !strings.Contains(line, fmt.Sprintf(", %d bytes NOT SHOWN: «", hidden)) {
		t.Fatalf("that %d bytes are missing is not said first: %s", hidden, line)
	}
}
