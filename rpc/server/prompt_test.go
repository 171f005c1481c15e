package server_test

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/confine-dev/confine/approval"
	"github.com/confine-dev/confine/rpc/proto"
	"github.com/confine-dev/confine/rpc/rpctest"
	"github.com/confine-dev/confine/rpc/server"
	"github.com/confine-dev/confine/sandbox"
)

// wider is a request that must be asked about.
func wider() proto.RunCommandParams {
	return proto.RunCommandParams{
		Command: "make install", RunID: "asks", SandboxPermissions: sandbox.DangerFullAccess, Justification: "it installs",
	}
}

// refused checks that a run did not happen.
func (w *world) refused(r proto.RunResult, status proto.Status, outcome string) {
	w.t.Helper()
	if r.Status != status || r.Approval == nil || r.Approval.Outcome != outcome {
		w.t.Errorf("status %s, approval %+v; want %s, %s", r.Status, r.Approval, status, outcome)
	}
	if r.ExitCode != nil || r.Signal != "" || r.DurationMs != 0 {
		w.t.Errorf("a command that did not run ended somehow: %+v", r)
	}
	if s := r.Sandbox; s == nil || s.Mode != sandbox.ReadOnly || s.Enforcement != "" || s.Facets != nil || s.Provider != "" {
		w.t.Errorf("sandbox facts of a command that did not run: %+v", s)
	}
	if !strings.HasPrefix(r.ModelText, "Error: ") {
		w.t.Errorf("model text %q", r.ModelText)
	}
	if n := len(w.confined.Specs()) + len(w.unconfined.Specs()); n != 0 {
		w.t.Errorf("%d commands ran", n)
	}
}

func TestTheFullQuestion(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		w := open(t, nil)
		p := wider()
		p.Env, p.Stdin = map[string]string{"A": "b"}, "in"
		id := w.editor.Request(proto.MethodRunCommand, p)
		m, q := w.question()
		if q.ID == "" || q.RunID != "asks" || q.Kind != "command" || q.Title == "" || q.Command != "make install" || q.Cwd != w.folder {
			t.Errorf("question %+v", q)
		}
		if q.Mode != sandbox.ReadOnly || q.Wanted.Mode != sandbox.DangerFullAccess || q.Justification != "it installs" || q.Reason == "" {
			t.Errorf("question %+v", q)
		}
		if q.Stdin != "in" || len(q.Env) != 1 || q.Env[0] != "A=b" || len(q.PolicyHash) != 64 || !strings.Contains(q.Text, "make install") {
			t.Errorf("question %+v", q)
		}
		expires, err := time.Parse(time.RFC3339, q.ExpiresAt)
		if err != nil || time.Until(expires).Round(time.Minute) != 10*time.Minute {
			t.Errorf("expires at %q", q.ExpiresAt)
		}
		if len(q.Options) < 2 || !strings.HasPrefix(q.Options[0].Kind, "reject") || q.DefaultOptionID != q.Options[0].OptionID {
			t.Errorf("the first option and the default must refuse: %+v, default %q", q.Options, q.DefaultOptionID)
		}
		for _, list := range []string{`"evidence":[]`, `"warnings":[`, `"options":[`} {
			if !strings.Contains(string(m.Params), list) {
				t.Errorf("%s is not in %s", list, m.Params)
			}
		}
		w.choose(m, q, "reject_once")
		var r proto.RunResult
		w.editor.Response(id, &r)
		w.refused(r, proto.StatusRefused, "rejected")
		if r.PolicyHash != q.PolicyHash {
			t.Error("the result is not about the policy that was asked for")
		}
	})
}

// TestNoAnswerIsAYes sends every bad answer that an editor can give, in both
// forms.
func TestNoAnswerIsAYes(t *testing.T) {
	type answer struct {
		result  string
		code    int64
		outcome string
	}
	selected := func(id string) string { return `{"outcome":{"outcome":"selected","optionId":"` + id + `"}}` }
	full := map[string]answer{
		"null":                      {`null`, 0, "unavailable"},
		"error":                     {"", -32603, "unavailable"},
		"error like cancelled":      {"", -32800, "unavailable"},
		"unknown method":            {"", -32601, "unavailable"},
		"error without code":        {"", 0, "unavailable"},
		"cancelled":                 {`{"outcome":{"outcome":"cancelled"}}`, 0, "cancelled"},
		"cancelled with option":     {`{"outcome":{"outcome":"cancelled","optionId":"allow-once"}}`, 0, "unavailable"},
		"unknown option":            {selected("yes"), 0, "unavailable"},
		"no option":                 {`{"outcome":{"outcome":"selected"}}`, 0, "unavailable"},
		"name instead of id":        {selected("Allow this once"), 0, "unavailable"},
		"option in other case":      {selected("ALLOW-ONCE"), 0, "unavailable"},
		"option in the wrong place": {`{"optionId":"allow-once"}`, 0, "unavailable"},
		"unknown outcome":           {`{"outcome":{"outcome":"allowed","optionId":"allow-once"}}`, 0, "unavailable"},
		"flat outcome":              {`{"outcome":"selected","optionId":"allow-once"}`, 0, "unavailable"},
		"a string":                  {`"allow-once"`, 0, "unavailable"},
		"true":                      {`true`, 0, "unavailable"},
		"a list":                    {`[` + selected("allow-once") + `]`, 0, "unavailable"},
		"a number as option":        {`{"outcome":{"outcome":"selected","optionId":1}}`, 0, "unavailable"},
	}
	stock := map[string]answer{
		"null":           {`null`, 0, "cancelled"},
		"error":          {"", -32603, "unavailable"},
		"unknown method": {"", -32601, "unavailable"},
		"refuse":         {`{"title":"Refuse"}`, 0, "rejected"},
		"unknown title":  {`{"title":"Yes"}`, 0, "unavailable"},
		"empty title":    {`{"title":""}`, 0, "unavailable"},
		"id as title":    {`{"title":"allow-once"}`, 0, "unavailable"},
		"other case":     {`{"title":"allow this once"}`, 0, "unavailable"},
		"empty object":   {`{}`, 0, "unavailable"},
		"a string":       {`"Allow this once"`, 0, "unavailable"},
		"a number":       {`1`, 0, "unavailable"},
		"a list":         {`[{"title":"Allow this once"}]`, 0, "unavailable"},
	}
	check := func(t *testing.T, init rpctest.Init, method string, a answer) {
		w := newWorld(t, nil)
		init.Folders = []string{fileURI(w.folder)}
		w.editor.Initialize(init)
		id := w.editor.Request(proto.MethodRunCommand, wider())
		m := w.editor.AwaitRequest(method)
		if a.result == "" {
			w.editor.ReplyError(m, a.code, "no")
		} else {
			w.editor.Reply(m, json.RawMessage(a.result))
		}
		var r proto.RunResult
		w.editor.Response(id, &r)
		w.refused(r, proto.StatusRefused, a.outcome)
	}
	for name, a := range full {
		t.Run("full/"+name, func(t *testing.T) {
			inBubble(t, func(t *testing.T) {
				check(t, rpctest.Init{Confine: &proto.ClientConfine{ProtocolVersion: 1, Approval: true}}, proto.MethodRequestApproval, a)
			})
		})
	}
	for name, a := range stock {
		t.Run("stock/"+name, func(t *testing.T) {
			inBubble(t, func(t *testing.T) { check(t, rpctest.Init{}, proto.MethodShowMessageRequest, a) })
		})
	}
}

// TestAStockEditorIsAsked uses an editor that announces nothing at all, not
// even that it can show messages.
func TestAStockEditorIsAsked(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		w := newWorld(t, nil)
		w.editor.Initialize(rpctest.Init{Folders: []string{fileURI(w.folder)}})
		w.unconfined.Script("make install", exit0)
		id := w.editor.Request(proto.MethodRunCommand, wider())
		m := w.editor.AwaitRequest(proto.MethodShowMessageRequest)
		var p proto.ShowMessageRequestParams
		if err := json.Unmarshal(m.Params, &p); err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(p.Message, "make install") || p.Type != proto.MessageWarning {
			t.Errorf("asked %+v", p)
		}
		if len(p.Actions) < 2 || p.Actions[0].Title != "Refuse" || p.Actions[1].Title != "Allow this once" {
			t.Errorf("the first action must refuse: %+v", p.Actions)
		}
		titles := map[string]bool{}
		for _, a := range p.Actions {
			if titles[a.Title] {
				t.Errorf("two actions are called %q", a.Title)
			}
			titles[a.Title] = true
		}
		w.editor.Reply(m, map[string]any{"title": "Allow this once"})
		var r proto.RunResult
		w.editor.Response(id, &r)
		if r.Status != proto.StatusCompleted || r.Approval == nil || r.Approval.Outcome != "allowed-once" || r.Sandbox.Mode != sandbox.DangerFullAccess {
			t.Errorf("result %+v", r)
		}
	})
}

// TestAnEditorThatCannotAskIsNotAskedTwice: -32601 says that it never can, so
// nothing is offered that needs an answer.
func TestAnEditorThatCannotAskIsNotAskedTwice(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		w := newWorld(t, nil)
		w.editor.Initialize(rpctest.Init{Folders: []string{fileURI(w.folder)}})
		asked := 0
		w.editor.Answer(proto.MethodShowMessageRequest, func(json.RawMessage) rpctest.Answer {
			asked++
			return rpctest.Answer{Err: &rpctest.Error{Code: -32601, Message: "unknown"}}
		})
		var c proto.Capabilities
		w.editor.Call(proto.MethodCapabilities, nil, &c)
		if !c.CanAsk {
			t.Error("before it was tried nobody knows that it cannot")
		}
		for range 2 {
			p := wider()
			p.RunID = ""
			w.refused(w.run(p), proto.StatusRefused, "unavailable")
		}
		if asked != 1 {
			t.Errorf("asked %d times", asked)
		}
		w.editor.Call(proto.MethodCapabilities, nil, &c)
		if c.CanAsk || strings.Contains(c.Tool.Description, "sandbox_permissions") {
			t.Error("escalation is still offered")
		}
	})
}

func TestPolicyNeverAsksNobody(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		w := open(t, func(o *server.Options) {
			gate, err := approval.New(approval.Options{Policy: approval.PolicyNever, Audit: approval.NoAudit()})
			if err != nil {
				t.Fatal(err)
			}
			o.Gate, o.Settings.ApprovalPolicy = gate, "never"
		})
		r := w.run(wider())
		w.refused(r, proto.StatusRefused, "rejected")
		if r.Approval.By != "policy" || !strings.Contains(r.ModelText, "prompts are switched off") {
			t.Errorf("by %q: %q", r.Approval.By, r.ModelText)
		}
		for _, m := range w.editor.Received() {
			if m.IsRequest() {
				t.Errorf("the editor was sent %s", m.Method)
			}
		}
	})
}

// TestWithdrawal: the editor is told, owes a reply, and that reply does nothing.
func TestWithdrawal(t *testing.T) {
	for name, test := range map[string]struct {
		withdraw        func(*world, int64)
		reason, outcome string
		status          proto.Status
	}{
		"the request is cancelled": {func(w *world, id int64) { w.editor.Cancel(id) }, "cancelled", "cancelled", proto.StatusCancelled},
		"the run is killed": {func(w *world, _ int64) {
			var k proto.KillResult
			w.editor.Call(proto.MethodRunsKill, proto.RunParams{RunID: "asks"}, &k)
			if !k.Killed {
				w.t.Error("kill says that the run was not going")
			}
		}, "cancelled", "cancelled", proto.StatusCancelled},
		"nobody answers": {func(w *world, _ int64) { time.Sleep(11 * time.Minute) }, "expired", "timed-out", proto.StatusRefused},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T) {
				w := open(t, nil)
				id := w.editor.Request(proto.MethodRunCommand, wider())
				m, q := w.question()
				test.withdraw(w, id)
				var gone proto.ApprovalWithdrawn
				w.editor.AwaitNotification(proto.MethodApprovalWithdrawn, &gone)
				if gone.ID != q.ID || gone.Reason != test.reason {
					t.Errorf("withdrawn %+v, want %q", gone, test.reason)
				}
				var cancelled struct {
					ID json.RawMessage `json:"id"`
				}
				w.editor.AwaitNotification(proto.MethodCancelRequest, &cancelled)
				if string(cancelled.ID) != string(m.ID) {
					t.Errorf("cancelled %s, want %s", cancelled.ID, m.ID)
				}
				var r proto.RunResult
				w.editor.Response(id, &r)
				w.refused(r, test.status, test.outcome)
				w.choose(m, q, "allow_once")
				synctest.Wait()
				w.editor.Call(proto.MethodRunsWait, proto.WaitParams{RunID: "asks"}, &r)
				w.refused(r, test.status, test.outcome)
			})
		})
	}
}

// TestOneYesIsForOneRun: the answer to one question starts nothing else.
func TestOneYesIsForOneRun(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		w := open(t, nil)
		w.unconfined.Script("make install", exit0)
		first := w.editor.Request(proto.MethodRunCommand, wider())
		m1, q1 := w.question()
		again := wider()
		again.RunID = "asks-too"
		second := w.editor.Request(proto.MethodRunCommand, again)
		m2, q2 := w.question()
		if q1.ID == q2.ID {
			t.Error("two questions have one id")
		}
		w.choose(m1, q1, "allow_once")
		var r proto.RunResult
		w.editor.Response(first, &r)
		synctest.Wait()
		if n := len(w.unconfined.Specs()); n != 1 {
			t.Errorf("%d commands ran after one yes", n)
		}
		w.choose(m2, q2, "reject_once")
		w.editor.Response(second, &r)
		if r.Status != proto.StatusRefused || len(w.unconfined.Specs()) != 1 {
			t.Errorf("second run: %s", r.Status)
		}
	})
}

// TestRemovingAFolderEndsItsGrants also shows that a session grant is one.
// TestTheFolderOfAQuestion: links are resolved before it is shown, and what is
// swapped afterwards is not run in.
func TestTheFolderOfAQuestion(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		w := open(t, nil)
		at := func(name string) string { return filepath.Join(w.folder, name) }
		if err := errors.Join(os.Mkdir(at("shown"), 0o700), os.Mkdir(at("other"), 0o700), os.Symlink("shown", at("link"))); err != nil {
			t.Fatal(err)
		}
		p := wider()
		p.Cwd = at("link")
		w.unconfined.Script(p.Command, exit0)
		id := w.editor.Request(proto.MethodRunCommand, p)
		m, q := w.question()
		if q.Cwd != at("shown") {
			t.Errorf("shown %q, want the folder behind the link", q.Cwd)
		}
		if err := errors.Join(os.Remove(at("link")), os.Symlink("other", at("link"))); err != nil {
			t.Fatal(err)
		}
		w.choose(m, q, "allow_always")
		w.editor.Response(id, nil)
		if got := w.unconfined.Specs()[0].Dir; got != at("shown") {
			t.Errorf("ran in %q", got)
		}
		// The link leads elsewhere now: that was not allowed for the session.
		p.RunID = "again"
		id = w.editor.Request(proto.MethodRunCommand, p)
		m, q = w.question()
		if err := errors.Join(os.Rename(at("other"), at("gone")), os.Symlink("shown", at("other"))); err != nil {
			t.Fatal(err)
		}
		w.choose(m, q, "allow_once")
		if e := w.editor.ResponseError(id); e.Code != -32803 || !strings.Contains(string(e.Data), "BAD_WORKING_DIRECTORY") {
			t.Errorf("%v", e)
		}
		if n := len(w.unconfined.Specs()); n != 1 {
			t.Errorf("%d commands ran", n)
		}
	})
}

func TestRemovingAFolderEndsItsGrants(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		w := open(t, nil)
		w.confined.Script("make", exit0)
		request := func() int64 {
			return w.editor.Request(proto.MethodRunCommand, proto.RunCommandParams{
				Command: "make", Cwd: w.folder, SandboxPermissions: sandbox.WorkspaceWrite, Justification: "x",
			})
		}
		var r proto.RunResult
		id := request()
		m, q := w.question()
		w.choose(m, q, "allow_always")
		w.editor.Response(id, &r)
		if r.Approval.Outcome != "allowed-session" {
			t.Fatalf("approval %+v", r.Approval)
		}
		w.editor.Response(request(), &r)
		if r.Status != proto.StatusCompleted || r.Approval.By != "grant" {
			t.Fatalf("the grant does not hold: %s %+v", r.Status, r.Approval)
		}
		folder := []proto.WorkspaceFolder{{URI: fileURI(w.folder), Name: "x"}}
		w.editor.Notify(proto.MethodDidChangeWorkspaceFolders, proto.DidChangeWorkspaceFoldersParams{Event: proto.WorkspaceFoldersChangeEvent{Removed: folder}})
		w.editor.Notify(proto.MethodDidChangeWorkspaceFolders, proto.DidChangeWorkspaceFoldersParams{Event: proto.WorkspaceFoldersChangeEvent{Added: folder}})
		id = request()
		m, q = w.question()
		w.choose(m, q, "reject_once")
		w.editor.Response(id, &r)
		if r.Status != proto.StatusRefused {
			t.Errorf("status %s", r.Status)
		}
	})
}
