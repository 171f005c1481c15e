package approval

import (
	"errors"
	"os"
	"strings"
	"syscall"
	"testing"
)

// brokenFile fails as told.
type brokenFile struct {
	auditFile
	write, sync error
	half        bool   // writes half of the line before it fails
	after       int    // calls that work first
	hook        func() // called before a write that may fail
}

func (f *brokenFile) Write(p []byte) (int, error) {
	if f.after <= 0 && f.hook != nil {
		f.hook()
	}
	if f.after > 0 || f.write == nil {
		return f.auditFile.Write(p)
	}
	if f.half {
		n, _ := f.auditFile.Write(p[:len(p)/2])
		return n, f.write
	}
	return 0, f.write
}

func (f *brokenFile) Sync() error {
	if f.after--; f.after < 0 && f.sync != nil {
		return f.sync
	}
	return f.auditFile.Sync()
}

func breakAudit(t *testing.T, path string, b brokenFile) *Audit {
	a := openAudit(t, path, AuditOptions{})
	b.auditFile = a.file
	a.file = &b
	return a
}

// TestWithoutRecordNothingRuns: a disk that is full at the question, at the
// answer, or that loses what was written.
func TestWithoutRecordNothingRuns(t *testing.T) {
	for name, c := range map[string]struct {
		file  brokenFile
		asked int
	}{
		"full at the question":         {brokenFile{write: syscall.ENOSPC}, 0},
		"full in mid-question":         {brokenFile{write: syscall.ENOSPC, half: true}, 0},
		"question not on disk":         {brokenFile{sync: syscall.EIO}, 0},
		"full at the answer":           {brokenFile{write: syscall.ENOSPC, after: 1}, 1},
		"full in mid-answer":           {brokenFile{write: syscall.ENOSPC, half: true, after: 1}, 1},
		"answer not on disk":           {brokenFile{sync: syscall.EIO, after: 1}, 1},
		"short write without an error": {brokenFile{write: errShort, half: true}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			path := auditPath(t)
			g := newGate(t, Options{Audit: breakAudit(t, path, c.file)})
			p := picks("allow-session")
			d, err := g.Decide(t.Context(), p, request())
			if err == nil || d.Outcome.Allowed() || d.Outcome != "" {
				t.Fatalf("got %v, %v", d, err)
			}
			if p.asked != c.asked {
				t.Errorf("asked %d times, want %d", p.asked, c.asked)
			}
			if !strings.Contains(err.Error(), path) || !strings.Contains(err.Error(), "try again") {
				t.Errorf("the error does not help: %v", err)
			}
			// The fault is gone: nothing was granted, and every line is whole.
			d = decide(t, g, p, request())
			wantDecision(t, d, AllowedSession, ByPerson)
			if p.asked != c.asked+1 {
				t.Error("an answer without a record was kept")
			}
			readLines(t, path)
		})
	}
}

// TestSessionEndsWhileTheAnswerIsRecorded: the answer still covers its own
// request, and nothing more.
func TestSessionEndsWhileTheAnswerIsRecorded(t *testing.T) {
	var g *Gate
	g = newGate(t, Options{Audit: breakAudit(t, auditPath(t), brokenFile{after: 1, hook: func() { g.EndSession("s") }})})
	wantDecision(t, decide(t, g, picks("allow-session"), request()), AllowedSession, ByPerson)
	if len(g.sessions) != 0 {
		t.Error("the ended session has a grant")
	}
}

var errShort = errors.New("short")

func TestHalfLineOfADeadServer(t *testing.T) {
	path := auditPath(t)
	a := openAudit(t, path, AuditOptions{})
	if err := a.append(map[string]int{"n": 1}); err != nil {
		t.Fatal(err)
	}
	appendTo(t, path, `{"n":`)
	if err := a.append(map[string]int{"n": 2}); err != nil {
		t.Fatal(err)
	}
	data, _ := os.ReadFile(path)
	if string(data) != "{\"n\":1}\n{\"n\":\n{\"n\":2}\n" {
		t.Errorf("got %q", data)
	}
}

func appendTo(t *testing.T, path, text string) {
	t.Helper()
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_APPEND, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if _, err := f.WriteString(text); err != nil {
		t.Fatal(err)
	}
}
