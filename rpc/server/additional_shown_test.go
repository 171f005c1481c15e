package server_test

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/confine-dev/confine/rpc/proto"
	"github.com/confine-dev/confine/rpc/rpctest"
	"github.com/confine-dev/confine/sandbox"
	"github.com/confine-dev/confine/sandbox/sandboxtest"
)

// TestNothingOpensUnseenInAMessage: an editor that shows messages only gets no
// question that it could not show whole.
func TestNothingOpensUnseenInAMessage(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		at := outside(t)
		w := newWorld(t, forbidding(at, sandbox.WorkspaceWrite))
		w.editor.Initialize(rpctest.Init{Folders: []string{fileURI(w.folder)}})
		w.deniedOf(refused("write", at("out/file")))
		var paths []string
		for i := range 16 {
			path := at(fmt.Sprintf("out/%d%s", i, strings.Repeat("ab", 60)))
			if err := os.WriteFile(path, nil, 0o600); err != nil {
				t.Fatal(err)
			}
			paths = append(paths, path)
		}
		var r proto.RunResult
		w.editor.Response(w.ask(proto.Additional{Write: paths}), &r)
		if r.Status != proto.StatusRefused || r.Approval.Outcome != "unavailable" || !strings.Contains(r.ModelText, "does not fit whole into a message") {
			t.Errorf("status %s, approval %+v, %q", r.Status, r.Approval, r.ModelText)
		}
		w.confined.Script("make", exit0)
		var started proto.Started
		w.editor.Call(proto.MethodExecuteCommand, map[string]any{"command": proto.CommandEscalate, "arguments": []any{
			proto.EscalationParams{RunID: "first", NewRunID: "third", Additional: &proto.Additional{Write: paths[:1]}, Justification: "x"},
		}}, &started)
		m := w.editor.AwaitRequest(proto.MethodShowMessageRequest)
		if !strings.Contains(string(m.Params), paths[0]) || started.RunID != "third" {
			t.Errorf("asked %s for run %s", m.Params, started.RunID)
		}
		w.editor.Reply(m, proto.MessageActionItem{Title: "Allow this once"})
		w.editor.Call(proto.MethodRunsWait, proto.WaitParams{RunID: "third"}, &r)
		if r.Status != proto.StatusCompleted || len(w.confined.Specs()) != 2 {
			t.Errorf("result %+v", r)
		}
	})
}

// TestNothingRunsUnseenInAMessage: nor one about a command, of which the middle
// would be missing.
func TestNothingRunsUnseenInAMessage(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		w := newWorld(t, nil)
		w.editor.Initialize(rpctest.Init{Folders: []string{fileURI(w.folder)}})
		p := wider()
		p.Command = "make " + strings.Repeat("all ", 300)
		r := w.run(p)
		w.refused(r, proto.StatusRefused, "unavailable")
		if !strings.Contains(r.ModelText, "does not fit whole into a message") {
			t.Errorf("model text %q", r.ModelText)
		}
		for _, m := range w.editor.Received() {
			if m.Method == proto.MethodShowMessageRequest {
				t.Errorf("asked %s", m.Params)
			}
		}
		// It fits without the words of whoever asks.
		p.RunID, p.Command, p.Justification = "fits", "make "+strings.Repeat("all ", 100), strings.Repeat("please ", 100)
		w.unconfined.Script(p.Command, exit0)
		id := w.editor.Request(proto.MethodRunCommand, p)
		m := w.editor.AwaitRequest(proto.MethodShowMessageRequest)
		if !strings.Contains(string(m.Params), strings.TrimSpace(p.Command)) {
			t.Errorf("asked %s", m.Params)
		}
		w.editor.Reply(m, proto.MessageActionItem{Title: "Allow this once"})
		w.editor.Response(id, &r)
		if r.Status != proto.StatusCompleted {
			t.Errorf("result %+v", r)
		}
	})
}

// TestUnshownIsTold to an editor that shows questions in its own way.
func TestUnshownIsTold(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		at := outside(t)
		w := open(t, forbidding(at, sandbox.WorkspaceWrite))
		w.deniedOf(refused("write", at("out/file")))
		var paths []string
		for i := range 16 {
			paths = append(paths, at(fmt.Sprintf("out/%d%s", i, strings.Repeat("ab", 60))))
			if err := os.WriteFile(paths[i], nil, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		w.ask(proto.Additional{Write: paths})
		_, q := w.question()
		in := 0
		for _, path := range paths {
			if strings.Contains(q.Text, path) {
				in++
			}
			if !strings.Contains(strings.Join(q.Warnings, "\n"), path) {
				t.Errorf("no warning names %q", path)
			}
		}
		if in == 0 || q.Unshown < 16-in {
			t.Errorf("%d of 16 are in the text, and %d are said to be missing", in, q.Unshown)
		}
	})
}

func TestObservationIsTold(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		w := open(t, nil)
		w.confined.Script("seen", func(p *sandboxtest.FakeProcess) {
			p.End(sandbox.Result{Observation: sandbox.Observation{State: sandbox.ObservedPartly, Reason: "too many", Omitted: 3}})
		})
		w.confined.Script("unseen", exit0)
		if o := w.run(proto.RunCommandParams{Command: "seen"}).Sandbox.Observation; o == nil || *o != (sandbox.Observation{State: "partial", Reason: "too many", Omitted: 3}) {
			t.Errorf("observation %+v", o)
		}
		if o := w.run(proto.RunCommandParams{Command: "unseen"}).Sandbox.Observation; o != nil {
			t.Errorf("observation %+v", o)
		}
	})
}
