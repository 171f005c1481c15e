package approval

import (
	"errors"
	"fmt"
	"strings"
	"testing"
)

func TestRevokedGrantIsAskedAgain(t *testing.T) {
	path := auditPath(t)
	g, p := newGate(t, Options{Audit: openAudit(t, path, AuditOptions{})}), picks("allow-session")
	first := decide(t, g, p, request())
	list := g.Standing([]string{"other", "s"})
	if len(list) != 1 || list[0].ID != first.QuestionID || list[0].Session != "s" || list[0].Outcome != AllowedSession || !strings.Contains(list[0].Text, "in workspace-write") {
		t.Fatalf("standing: %+v", list)
	}
	for name, err := range map[string]error{
		"another session": g.Revoke([]string{"other"}, first.QuestionID),
		"another answer":  g.Revoke([]string{"s"}, "x"),
	} {
		if !errors.Is(err, ErrNotStanding) {
			t.Errorf("%s: %v", name, err)
		}
	}
	wantDecision(t, decide(t, g, p, request()), AllowedSession, ByGrant)
	if err := g.Revoke([]string{"other", "s"}, first.QuestionID); err != nil {
		t.Fatal(err)
	}
	p.answer.OptionID = "refuse"
	wantDecision(t, decide(t, g, p, request()), Rejected, ByPerson)
	var events []string
	for _, line := range readLines(t, path) {
		events = append(events, fmt.Sprint(line["event"]))
		if line["event"] == "revoked" && (line["id"] != first.QuestionID || line["session"] != "s" || line["outcome"] != "allowed-session") {
			t.Errorf("recorded %v", line)
		}
	}
	if got := strings.Join(events, " "); got != "asked decided unasked revoked asked decided" {
		t.Errorf("recorded: %s", got)
	}
}

// TestRevokedRefusalIsAskedAgain: all that a refusal did is undone, how often it was
// given too.
func TestRevokedRefusalIsAskedAgain(t *testing.T) {
	g, p := newGate(t, Options{}), picks("refuse")
	var last Decision
	for i := range maxRefusals {
		r := request()
		r.Justification = fmt.Sprint(i)
		last = decide(t, g, p, r)
	}
	r := request()
	r.Justification = "yet another"
	wantDecision(t, decide(t, g, p, r), Rejected, ByMemory)
	list := g.Standing([]string{"s"})
	if len(list) != 1 || list[0].ID != last.QuestionID || !strings.Contains(list[0].Text, "refused without a question.") {
		t.Fatalf("standing: %+v", list)
	}
	if err := g.Revoke([]string{"s"}, last.QuestionID); err != nil {
		t.Fatal(err)
	}
	p.answer.OptionID = "allow-once"
	wantDecision(t, decide(t, g, p, r), AllowedOnce, ByPerson)
	if m := g.sessions["s"]; len(m.refusals)+len(m.refused) != 0 {
		t.Errorf("left: %+v", m)
	}
}

// TestRevokingThatIsNotRecorded errs on the side of asking and refusing.
func TestRevokingThatIsNotRecorded(t *testing.T) {
	for option, want := range map[string]By{"allow-session": ByPerson, "refuse": ByMemory} {
		audit := openAudit(t, auditPath(t), AuditOptions{})
		g, p := newGate(t, Options{Audit: audit}), picks(option)
		first := decide(t, g, p, request())
		g.audit = brokenAudit(t)
		if err := g.Revoke([]string{"s"}, first.QuestionID); err == nil || errors.Is(err, ErrNotStanding) {
			t.Errorf("%s: revoking without a record: %v", option, err)
		}
		g.audit = audit
		if d := decide(t, g, p, request()); d.By != want {
			t.Errorf("%s: then decided by %s, want %s", option, d.By, want)
		}
	}
}

// brokenAudit cannot record anything.
func brokenAudit(t *testing.T) *Audit {
	t.Helper()
	a := openAudit(t, auditPath(t), AuditOptions{})
	if err := a.Close(); err != nil {
		t.Fatal(err)
	}
	return a
}
