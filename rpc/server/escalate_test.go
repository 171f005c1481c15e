package server_test

import (
	"strings"
	"testing"

	"github.com/confine-dev/confine/rpc/proto"
	"github.com/confine-dev/confine/rpc/rpctest"
	"github.com/confine-dev/confine/sandbox"
	"github.com/confine-dev/confine/sandbox/sandboxtest"
)

var denial = sandbox.Denial{Op: "write", Path: "/etc/hosts", Errno: "EROFS", Evidence: sandbox.Stderr, Count: 1}

// denied runs "make" so that the sandbox refuses something.
func (w *world) denied(p proto.RunCommandParams) proto.RunResult {
	w.t.Helper()
	w.confined.Script("make", func(p *sandboxtest.FakeProcess) {
		p.Stderr("make: /etc/hosts: Read-only file system\n")
		p.Deny(denial)
	})
	p.Command, p.RunID = "make", "first"
	return w.run(p)
}

func TestEscalation(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		w := open(t, nil)
		first := w.denied(proto.RunCommandParams{Cwd: "/usr", Env: map[string]string{"A": "b"}, Stdin: "in"})
		if !first.Sandbox.Denied || len(first.Sandbox.Denials) != 1 || first.Sandbox.Denials[0] != denial {
			t.Fatalf("sandbox %+v", first.Sandbox)
		}
		e := first.Escalation
		if e == nil || len(e.Targets) != 1 || e.Targets[0] != sandbox.DangerFullAccess {
			t.Fatalf("escalation %+v: nothing narrower would do", e)
		}
		w.unconfined.Script("make", func(p *sandboxtest.FakeProcess) { p.Stdout("done\n"); p.Exit(0) })
		id := w.editor.Request(proto.MethodRequestEscalation, proto.EscalationParams{
			RunID: "first", NewRunID: "second", SandboxPermissions: sandbox.DangerFullAccess, Justification: "it must",
		})
		m, q := w.question()
		if q.Kind != "escalation" || q.RunID != "second" || q.Command != "make" || q.Cwd != "/usr" || q.Mode != sandbox.ReadOnly || q.Justification != "it must" {
			t.Errorf("question %+v", q)
		}
		if len(q.Evidence) != 1 || q.Evidence[0].Path != "/etc/hosts" || !strings.Contains(strings.Join(q.Warnings, " "), "runs again") {
			t.Errorf("evidence %+v, warnings %q", q.Evidence, q.Warnings)
		}
		w.choose(m, q, "allow_once")
		var r proto.RunResult
		w.editor.Response(id, &r)
		if r.RunID != "second" || r.Status != proto.StatusCompleted || r.Stdout.Text != "done\n" || r.Approval.Outcome != "allowed-once" {
			t.Errorf("result %+v", r)
		}
		if r.Sandbox.Mode != sandbox.DangerFullAccess || r.Sandbox.Denied || r.Sandbox.Provider != "" || r.Sandbox.Enforcement != "" || r.Sandbox.Facets != nil {
			t.Errorf("sandbox %+v", r.Sandbox)
		}
		if r.PolicyHash != q.PolicyHash {
			t.Error("it ran under another policy than the one that was asked about")
		}
		before, after := w.confined.Specs()[0], w.unconfined.Specs()[0]
		if after.Dir != before.Dir || strings.Join(after.Env, "\n") != strings.Join(before.Env, "\n") || after.Stdin == nil || after.Timeout != before.Timeout || after.Session != before.Session {
			t.Errorf("the command changed between the runs: %+v, then %+v", before, after)
		}
	})
}

func TestEscalationIsForOneRun(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		w := open(t, nil)
		w.denied(proto.RunCommandParams{})
		w.unconfined.Script("make", exit0)
		p := proto.EscalationParams{RunID: "first", SandboxPermissions: sandbox.DangerFullAccess, Justification: "x"}
		for range 2 { // the second is asked again
			id := w.editor.Request(proto.MethodRequestEscalation, p)
			m, q := w.question()
			w.choose(m, q, "allow_once")
			w.editor.Response(id, nil)
		}
		var r proto.RunResult
		w.editor.Call(proto.MethodRunCommand, proto.RunCommandParams{Command: "make"}, &r)
		if r.Sandbox.Mode != sandbox.ReadOnly {
			t.Errorf("the next run is in mode %s", r.Sandbox.Mode)
		}
	})
}

// TestNotWider: models ask for the mode that they have. That costs no question
// and runs nothing again.
func TestNotWider(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		w := open(t, mode(sandbox.WorkspaceWrite))
		first := w.denied(proto.RunCommandParams{})
		var again proto.RunResult
		w.editor.Call(proto.MethodRequestEscalation, proto.EscalationParams{
			RunID: "first", SandboxPermissions: sandbox.WorkspaceWrite, Justification: "x",
		}, &again)
		if again.RunID != first.RunID || again.ModelText != first.ModelText || again.Approval != nil {
			t.Errorf("answered %+v", again)
		}
		if n := len(w.confined.Specs()); n != 1 {
			t.Errorf("the command ran %d times", n)
		}
		if len(first.Escalation.Targets) != 1 || first.Escalation.Targets[0] != sandbox.DangerFullAccess {
			t.Errorf("targets %q", first.Escalation.Targets)
		}
	})
}

func TestWhatRequestEscalationRefuses(t *testing.T) {
	type params = map[string]any
	for name, test := range map[string]struct {
		params params
		says   string
	}{
		"unknown run":      {params{"runId": "other", "sandboxPermissions": "danger-full-access", "justification": "x"}, "no run"},
		"nothing asked":    {params{"runId": "first", "justification": "x"}, "sandboxPermissions"},
		"no justification": {params{"runId": "first", "sandboxPermissions": "danger-full-access"}, "justification"},
		"unknown mode":     {params{"runId": "first", "sandboxPermissions": "root", "justification": "x"}, "sandboxPermissions"},
		"bad new id":       {params{"runId": "first", "newRunId": "a b", "sandboxPermissions": "danger-full-access", "justification": "x"}, "runId"},
		"new id is taken":  {params{"runId": "first", "newRunId": "first", "sandboxPermissions": "danger-full-access", "justification": "x"}, "taken"},
		"still running":    {params{"runId": "server", "sandboxPermissions": "danger-full-access", "justification": "x"}, "not ended"},
		"never ran":        {params{"runId": "refused", "sandboxPermissions": "danger-full-access", "justification": "x"}, "never ran"},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T) {
				w := open(t, nil)
				w.denied(proto.RunCommandParams{})
				w.run(proto.RunCommandParams{Command: "server", RunID: "server", Background: true})
				p := wider()
				p.RunID = "refused"
				id := w.editor.Request(proto.MethodRunCommand, p)
				m, q := w.question()
				w.choose(m, q, "reject_once")
				w.editor.Response(id, nil)
				e := w.editor.CallError(proto.MethodRequestEscalation, test.params)
				if e.Code != -32602 || !strings.Contains(e.Message, test.says) {
					t.Errorf("%v, want -32602 with %q", e, test.says)
				}
				if n := len(w.confined.Specs()) + len(w.unconfined.Specs()); n != 2 {
					t.Errorf("%d commands ran, want 2", n)
				}
			})
		})
	}
}

// TestAnEscalationThatNobodyExpects warns the person.
func TestAnEscalationThatNobodyExpects(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		w := open(t, nil)
		w.confined.Script("make", exit0)
		w.run(proto.RunCommandParams{Command: "make", RunID: "first"})
		w.editor.Request(proto.MethodRequestEscalation, proto.EscalationParams{RunID: "first", SandboxPermissions: sandbox.DangerFullAccess, Justification: "x"})
		if _, q := w.question(); len(q.Evidence) != 0 || !strings.Contains(strings.Join(q.Warnings, " "), "refused nothing") {
			t.Errorf("warnings %q", q.Warnings)
		}
	})
}

// TestARefusalIsRemembered: the same bytes are not asked about again.
func TestARefusalIsRemembered(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		w := open(t, nil)
		w.denied(proto.RunCommandParams{})
		p := proto.EscalationParams{RunID: "first", SandboxPermissions: sandbox.DangerFullAccess, Justification: "x"}
		id := w.editor.Request(proto.MethodRequestEscalation, p)
		m, q := w.question()
		w.choose(m, q, "reject_once")
		var r proto.RunResult
		w.editor.Response(id, &r)
		w.editor.Call(proto.MethodRequestEscalation, p, &r) // no question: the answer would be missing
		if r.Status != proto.StatusRefused || r.Approval.By != "memory" {
			t.Errorf("status %s, approval %+v", r.Status, r.Approval)
		}
	})
}

func TestNoHintWhereAskingCannotHelp(t *testing.T) {
	t.Run("somebody can be asked", func(t *testing.T) {
		inBubble(t, func(t *testing.T) {
			r := open(t, nil).denied(proto.RunCommandParams{})
			if !strings.Contains(r.ModelText, "[sandbox: escalation available") {
				t.Errorf("model text %q", r.ModelText)
			}
		})
	})
	t.Run("the editor cannot ask", func(t *testing.T) {
		inBubble(t, func(t *testing.T) {
			w := open(t, nil)
			id := w.editor.Request(proto.MethodRunCommand, wider())
			m, _ := w.question()
			w.editor.ReplyWith(m, rpctest.Answer{Err: &rpctest.Error{Code: -32601}})
			w.editor.Response(id, nil)
			r := w.denied(proto.RunCommandParams{})
			if r.Escalation != nil || strings.Contains(r.ModelText, "escalation") || !strings.Contains(r.ModelText, "[sandbox: file access denied") {
				t.Errorf("escalation %+v, model text %q", r.Escalation, r.ModelText)
			}
		})
	})
}

// TestARunsOwnNarrowingCounts: the person at the editor chose a narrower mode
// for the run, so even the configured one is asked about.
func TestARunsOwnNarrowingCounts(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		w := open(t, mode(sandbox.WorkspaceWrite))
		w.denied(proto.RunCommandParams{Mode: sandbox.ReadOnly})
		id := w.editor.Request(proto.MethodRequestEscalation, proto.EscalationParams{RunID: "first", NewRunID: "second", SandboxPermissions: sandbox.WorkspaceWrite, Justification: "x"})
		m, q := w.question()
		if q.Mode != sandbox.ReadOnly || q.Wanted.Mode != sandbox.WorkspaceWrite {
			t.Errorf("asked to go from %s to %s", q.Mode, q.Wanted.Mode)
		}
		w.choose(m, q, "allow_once")
		w.editor.Response(id, nil)
		// The second run was wider by a grant; the third is compared with what
		// needs none.
		w.editor.Request(proto.MethodRequestEscalation, proto.EscalationParams{RunID: "second", SandboxPermissions: sandbox.DangerFullAccess, Justification: "x"})
		if _, q := w.question(); q.Mode != sandbox.ReadOnly || q.Wanted.Mode != sandbox.DangerFullAccess {
			t.Errorf("asked to go from %s to %s", q.Mode, q.Wanted.Mode)
		}
	})
}
