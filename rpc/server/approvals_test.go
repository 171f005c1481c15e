package server_test

import (
	"strings"
	"testing"

	"github.com/confine-dev/confine/approval/rules"
	"github.com/confine-dev/confine/rpc/proto"
	"github.com/confine-dev/confine/rpc/server"
	"github.com/confine-dev/confine/sandbox"
)

// approvals calls confine/approvals/list.
func (w *world) approvals(session string) []proto.Approval {
	w.t.Helper()
	var list proto.ApprovalsResult
	w.editor.Call(proto.MethodApprovalsList, proto.ApprovalsParams{Session: session}, &list)
	return list.Approvals
}

// answer runs a command that asks for a wider mode and answers with a kind of option.
func (w *world) answer(session, command, kind string) proto.Question {
	w.t.Helper()
	id := w.editor.Request(proto.MethodRunCommand, proto.RunCommandParams{Command: command, Session: session,
		SandboxPermissions: sandbox.WorkspaceWrite, Justification: "it writes"})
	m, q := w.question()
	w.choose(m, q, kind)
	if kind != "reject_once" {
		w.next(w.confined).Exit(0)
	}
	w.editor.Response(id, nil)
	return q
}

func TestApprovalsAreListedAndRevoked(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		w := open(t, func(o *server.Options) {
			o.Settings.Rules = rules.Rules{{Decision: rules.Deny, Command: []string{"rm", "-rf"}, Reason: "no\u202eway", Origin: "/etc/confine/managed.toml:3"}}
		})
		if got := w.approvals(""); len(got) != 1 {
			t.Fatalf("before any question: %+v", got)
		}
		yes := w.answer("s", "make \u202e", "allow_always")
		no := w.answer("", "make test", "reject_once")
		w.answer("", "make once", "allow_once")
		list := w.approvals("")
		if len(list) != 3 || list[2].Source != "rule" {
			t.Fatalf("listed: %+v", list)
		}
		for _, a := range list {
			switch a.ID {
			case yes.ID:
				if a.Decision != "allow" || a.Session != "s" || a.Outcome != "allowed-session" || a.Wanted == nil || a.Wanted.Mode != sandbox.WorkspaceWrite ||
					a.Command != `make \u{202E}` || a.PolicyHash != yes.PolicyHash || !strings.Contains(a.Text, "in workspace-write without a question") || a.At == "" {
					t.Errorf("the yes is %+v", a)
				}
			case no.ID:
				if a.Decision != "deny" || a.Session != "" || a.Outcome != "rejected" || !a.Revocable {
					t.Errorf("the no is %+v", a)
				}
			default:
				if a.Decision != "deny" || a.Command != "rm -rf" || a.Reason != `no\u{202E}way` || a.Origin != "/etc/confine/managed.toml:3" || a.Revocable || a.Scope != "settings" {
					t.Errorf("the rule is %+v", a)
				}
			}
		}
		if got := w.approvals("s"); len(got) != 2 || got[0].ID != yes.ID {
			t.Errorf("of the session: %+v", got)
		}
		if e := w.editor.CallError(proto.MethodApprovalsRevoke, proto.RevokeParams{ID: list[2].ID}); e.Code != -32602 || !strings.Contains(e.Message, "managed.toml:3") {
			t.Errorf("revoking a rule: %+v", e)
		}
		for _, q := range []proto.Question{yes, no} {
			w.editor.Call(proto.MethodApprovalsRevoke, proto.RevokeParams{ID: q.ID}, nil)
			if e := w.editor.CallError(proto.MethodApprovalsRevoke, proto.RevokeParams{ID: q.ID}); e.Code != -32602 {
				t.Errorf("revoking again: %+v", e)
			}
		}
		if got := w.approvals(""); len(got) != 1 {
			t.Errorf("left: %+v", got)
		}
		w.answer("s", "make \u202e", "allow_once") // it is asked again
		w.answer("", "make test", "allow_once")
	})
}

// TestRunningCommandsKeepWhatTheyHave: revoking is about later requests.
func TestRunningCommandsKeepWhatTheyHave(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		w := open(t, nil)
		q := w.answer("", "make", "allow_always")
		id := w.editor.Request(proto.MethodRunCommand, proto.RunCommandParams{Command: "make", SandboxPermissions: sandbox.WorkspaceWrite, Justification: "again"})
		p := w.next(w.confined)
		w.editor.Call(proto.MethodApprovalsRevoke, proto.RevokeParams{ID: q.ID}, nil)
		select {
		case <-p.Done():
			t.Error("the command was ended")
		default:
		}
		p.Exit(0)
		var r proto.RunResult
		w.editor.Response(id, &r)
		if r.Status != proto.StatusCompleted || r.Approval == nil || r.Approval.By != "grant" {
			t.Errorf("it ended as %+v", r)
		}
	})
}
