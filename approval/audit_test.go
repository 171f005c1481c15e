package approval

import (
	"bufio"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/confine-dev/confine/sandbox"
)

func openAudit(t *testing.T, path string, o AuditOptions) *Audit {
	t.Helper()
	a, err := OpenAudit(path, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { a.Close() })
	return a
}

func auditPath(t *testing.T) string { return filepath.Join(t.TempDir(), "state", "audit.jsonl") }

// readLines parses a file of JSON lines.
func readLines(t *testing.T, path string) []map[string]any {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var lines []map[string]any
	scan := bufio.NewScanner(f)
	scan.Buffer(nil, 1<<26)
	for scan.Scan() {
		var line map[string]any
		if err := json.Unmarshal(scan.Bytes(), &line); err != nil {
			t.Fatalf("%s: %v in %q", path, err, scan.Text())
		}
		lines = append(lines, line)
	}
	if err := scan.Err(); err != nil {
		t.Fatal(err)
	}
	return lines
}

// TestQuestionIsRecordedFirst: when the person sees a question it is on disk,
// and when Decide returns the answer is.
func TestQuestionIsRecordedFirst(t *testing.T) {
	path := auditPath(t)
	g := newGate(t, Options{Audit: openAudit(t, path, AuditOptions{})})
	r := request()
	r.Kind, r.Reason, r.Stdin, r.Want.Network = KindEscalation, "refused before", "in", true
	r.Env = map[string]string{"TOKEN": "hunter2", "A": "b"}
	var q Question
	d := decide(t, g, prompterFunc(func(_ context.Context, asked Question) (Answer, error) {
		q = asked
		if lines := readLines(t, path); len(lines) != 1 || lines[0]["event"] != "asked" || lines[0]["id"] != q.ID {
			t.Errorf("at the question the file holds %v", lines)
		}
		return Answer{OptionID: "allow-session"}, nil
	}), r)
	wantDecision(t, d, AllowedSession, ByPerson)
	decide(t, g, silent, r) // by the grant

	lines := readLines(t, path)
	if len(lines) != 3 {
		t.Fatalf("%d lines, want 3: %v", len(lines), lines)
	}
	asked, decided, used := lines[0], lines[1], lines[2]
	for field, want := range map[string]any{
		"runId": "run-1", "session": "s", "kind": "escalation", "command": "npm install", "dir": "/home/me/project", "mode": "read-only",
		"policyHash": r.Want.Hash(), "reason": "refused before", "justification": "Packages must be fetched.",
	} {
		if asked[field] != want {
			t.Errorf("asked: %s is %v, want %v", field, asked[field], want)
		}
	}
	if got := fmt.Sprint(asked["wanted"]); got != "map[mode:workspace-write network:true write:[/home/me/project]]" {
		t.Errorf("wanted is %s", got)
	}
	for field, want := range map[string]any{"event": "decided", "id": q.ID, "outcome": "allowed-session", "by": "person"} {
		if decided[field] != want {
			t.Errorf("decided: %s is %v, want %v", field, decided[field], want)
		}
	}
	for field, want := range map[string]any{"event": "unasked", "id": q.ID, "outcome": "allowed-session", "by": "grant", "runId": "run-1"} {
		if used[field] != want {
			t.Errorf("unasked: %s is %v, want %v", field, used[field], want)
		}
	}
	data, _ := os.ReadFile(path)
	if strings.Contains(string(data), "hunter2") || !strings.Contains(string(data), `"TOKEN"`) {
		t.Errorf("a variable's value is in the file, or its name is not:\n%s", data)
	}
}

func TestRunsWithinTheModeLeaveNoRecord(t *testing.T) {
	path := auditPath(t)
	g := newGate(t, Options{Audit: openAudit(t, path, AuditOptions{})})
	r := request()
	r.Want = r.Have
	decide(t, g, nil, r)
	if lines := readLines(t, path); len(lines) != 0 {
		t.Errorf("got %v", lines)
	}
}

func TestEveryWiderDecisionIsRecorded(t *testing.T) {
	for name, c := range map[string]struct {
		policy Policy
		p      Prompter
		events string
	}{
		"never":     {PolicyNever, silent, "unasked rejected policy"},
		"nobody":    {PolicyAsk, nil, "unasked unavailable default"},
		"refused":   {PolicyAsk, picks("refuse"), "asked decided rejected person unasked rejected memory"},
		"malformed": {PolicyAsk, picks("x"), "asked decided unavailable default"},
	} {
		t.Run(name, func(t *testing.T) {
			path := auditPath(t)
			g := newGate(t, Options{Policy: c.policy, Audit: openAudit(t, path, AuditOptions{})})
			decide(t, g, c.p, request())
			if name == "refused" {
				decide(t, g, c.p, request())
			}
			var got []string
			for _, line := range readLines(t, path) {
				got = append(got, line["event"].(string))
				if line["event"] != "asked" {
					got = append(got, line["outcome"].(string), line["by"].(string))
				}
			}
			if strings.Join(got, " ") != c.events {
				t.Errorf("got %q, want %q", got, c.events)
			}
		})
	}
}

func TestExactBytesAreRecorded(t *testing.T) {
	for _, in := range []string{"", "ls", "a\xff\x00b", "\u2028\ufffd</x>", "\x1b\"\\"} {
		data, err := json.Marshal(exactText(in))
		if err != nil {
			t.Fatal(err)
		}
		var plain string
		var coded struct{ Base64 string }
		if json.Unmarshal(data, &plain) != nil {
			if err := json.Unmarshal(data, &coded); err != nil {
				t.Fatal(err)
			}
			raw, err := base64.StdEncoding.DecodeString(coded.Base64)
			if err != nil {
				t.Fatal(err)
			}
			plain = string(raw)
		}
		if plain != in {
			t.Errorf("%q became %s", in, data)
		}
	}
}

func TestArgumentsAreRecorded(t *testing.T) {
	path := auditPath(t)
	g := newGate(t, Options{Audit: openAudit(t, path, AuditOptions{})})
	r := request()
	r.Command, r.Argv = "", []string{"echo", "a b", "\xff"}
	decide(t, g, picks("refuse"), r)
	line := readLines(t, path)[0]
	if got := fmt.Sprint(line["argv"]); got != "[echo a b map[base64:/w==]]" || line["command"] != nil {
		t.Errorf("argv %s, command %v", got, line["command"])
	}
}

func TestRotation(t *testing.T) {
	path := auditPath(t)
	const size = 8 << 10
	a := openAudit(t, path, AuditOptions{MaxBytes: size})
	const records = 500
	for i := range records {
		if err := a.append(map[string]any{"n": i, "pad": strings.Repeat("x", 100)}); err != nil {
			t.Fatal(err)
		}
	}
	lines := append(readLines(t, path+".1"), readLines(t, path)...)
	for i, line := range lines {
		if want := float64(records - len(lines) + i); line["n"] != want {
			t.Fatalf("line %d has number %v, want %v", i, line["n"], want)
		}
	}
	for _, p := range []string{path, path + ".1"} {
		if info, err := os.Stat(p); err != nil || info.Size() > size || info.Size() == 0 {
			t.Errorf("%s: %v %v", p, info, err)
		}
	}
	if entries, _ := os.ReadDir(filepath.Dir(path)); len(entries) != 2 {
		t.Errorf("the folder holds %v", entries)
	}
}

func TestRecordThatIsTooLarge(t *testing.T) {
	path := auditPath(t)
	g := newGate(t, Options{Audit: openAudit(t, path, AuditOptions{MaxBytes: 64 << 10})})
	r, p := request(), picks("allow-once")
	r.Command = strings.Repeat("x", 9<<10)
	if d, err := g.Decide(t.Context(), p, r); err == nil || d.Outcome != "" || p.asked != 0 {
		t.Errorf("got %v, %v, asked %d times", d, err, p.asked)
	}
	wantDecision(t, decide(t, g, p, request()), AllowedOnce, ByPerson)
}

func TestFileThatVanishes(t *testing.T) {
	for name, vanish := range map[string]func(string) error{
		"file":     os.Remove,
		"folder":   func(path string) error { return os.RemoveAll(filepath.Dir(path)) },
		"replaced": func(path string) error { return os.Rename(path, path+".1") },
	} {
		t.Run(name, func(t *testing.T) {
			path := auditPath(t)
			a := openAudit(t, path, AuditOptions{})
			if err := vanish(path); err != nil {
				t.Skipf("this system removes no open file: %v", err)
			}
			if err := a.append(map[string]int{"n": 1}); err != nil {
				t.Fatal(err)
			}
			if lines := readLines(t, path); len(lines) != 1 {
				t.Errorf("the new file holds %v", lines)
			}
		})
	}
}

func TestServersShareAFile(t *testing.T) {
	path := auditPath(t)
	const servers, each = 4, 50
	var all sync.WaitGroup
	for s := range servers {
		a := openAudit(t, path, AuditOptions{})
		all.Go(func() {
			for i := range each {
				if err := a.append(map[string]int{"s": s, "n": i}); err != nil {
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
	next := map[any]float64{}
	for _, line := range readLines(t, path) {
		if line["n"] != next[line["s"]] {
			t.Fatalf("server %v: %v, want %v", line["s"], line["n"], next[line["s"]])
		}
		next[line["s"]]++
	}
	for s := range servers {
		if next[float64(s)] != each {
			t.Errorf("server %d: %v records, want %d", s, next[float64(s)], each)
		}
	}
}

func TestClosedAudit(t *testing.T) {
	a := openAudit(t, auditPath(t), AuditOptions{})
	if err := a.Close(); err != nil {
		t.Fatal(err)
	}
	if err := a.append(1); !errors.Is(err, fs.ErrClosed) {
		t.Errorf("got %v", err)
	}
	if err := a.Close(); err != nil {
		t.Error(err)
	}
}

func TestOpenAuditRefuses(t *testing.T) {
	if _, err := OpenAudit("audit.jsonl", AuditOptions{}); err == nil {
		t.Error("a relative path is taken")
	}
	if _, err := OpenAudit(auditPath(t), AuditOptions{MaxBytes: 100}); err == nil {
		t.Error("a size for no record is taken")
	}
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if a, err := OpenAudit(filepath.Join(file, "audit.jsonl"), AuditOptions{}); err == nil || a != nil {
		t.Error("a file is taken for a folder")
	}
}

// TestSecretsAreSalted: the same value must not look the same in two records.
func TestSecretsAreSalted(t *testing.T) {
	path := auditPath(t)
	g := newGate(t, Options{Audit: openAudit(t, path, AuditOptions{})})
	r := request()
	r.Env = map[string]string{"TOKEN": "hunter2"}
	r.Want = sandbox.Policy{Mode: sandbox.DangerFullAccess}
	decide(t, g, picks("allow-once"), r)
	decide(t, g, picks("allow-once"), r)
	lines := readLines(t, path)
	first, second := fmt.Sprint(lines[0]["env"]), fmt.Sprint(lines[2]["env"])
	if first == second || !strings.Contains(first, "TOKEN") {
		t.Errorf("%s and %s", first, second)
	}
}
