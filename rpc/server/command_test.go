package server_test

import (
	"encoding/json"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/confine-dev/confine/rpc/proto"
	"github.com/confine-dev/confine/rpc/rpctest"
	"github.com/confine-dev/confine/rpc/server"
	"github.com/confine-dev/confine/sandbox"
	"github.com/confine-dev/confine/sandbox/sandboxtest"
)

// execute sends workspace/executeCommand and returns the run id of the answer.
func (w *world) execute(command string, arguments ...any) string {
	w.t.Helper()
	var s proto.Started
	w.editor.Call(proto.MethodExecuteCommand, map[string]any{"command": command, "arguments": arguments}, &s)
	if s.RunID == "" {
		w.t.Errorf("%s was answered without a run id", command)
	}
	return s.RunID
}

// TestTheStoryOfAStockEditor: run, be denied, escalate, be asked, hear of it,
// all without anything of ours.
func TestTheStoryOfAStockEditor(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		w := newWorld(t, nil)
		w.editor.Initialize(rpctest.Init{Folders: []string{fileURI(w.folder)}})
		id := w.execute(proto.CommandRun, "make") // answered although it goes on
		p := w.next(w.confined)
		p.Stdout("\x1b[2Jhidden\n")
		p.Deny(denial)
		var log proto.LogMessageParams
		w.editor.AwaitNotification(proto.MethodLogMessage, &log)
		if !strings.Contains(log.Message, `\u{001B}[2Jhidden`) || strings.Contains(log.Message, "\x1b") {
			t.Errorf("log %q", log.Message)
		}
		var told proto.ShowMessageParams
		w.editor.AwaitNotification(proto.MethodShowMessage, &told)
		if !strings.Contains(told.Message, id) || !strings.Contains(told.Message, "exit code 1") || !strings.Contains(told.Message, "confine.server.escalate") || told.Type != proto.MessageWarning || strings.Contains(told.Message, "hidden") {
			t.Errorf("told %+v", told)
		}
		w.unconfined.Script("make", exit0)
		again := w.execute(proto.CommandEscalate, map[string]any{"runId": id, "sandboxPermissions": "danger-full-access", "justification": "x"})
		if again == id {
			t.Error("the second run has the id of the first")
		}
		m := w.editor.AwaitRequest(proto.MethodShowMessageRequest)
		w.editor.Reply(m, map[string]string{"title": "Allow this once"})
		w.editor.AwaitNotification(proto.MethodShowMessage, &told)
		if !strings.Contains(told.Message, again) || !strings.Contains(told.Message, "exit code 0") || told.Type != proto.MessageInfo {
			t.Errorf("told %+v", told)
		}
		if want := "Its output is in the log of the language server."; !strings.HasSuffix(told.Message, want) {
			t.Errorf("told %q, want %q", told.Message, want)
		}
		w.execute(proto.CommandEscalate, map[string]any{"runId": id, "sandboxPermissions": "danger-full-access", "justification": "x"})
		m = w.editor.AwaitRequest(proto.MethodShowMessageRequest)
		w.editor.Reply(m, map[string]string{"title": "Refuse"})
		w.editor.AwaitNotification(proto.MethodShowMessage, &told)
		if want := "was refused and did not run. More is in the log of the language server."; !strings.HasSuffix(told.Message, want) {
			t.Errorf("told %q, want %q: it has no output", told.Message, want)
		}
		for _, m := range w.editor.Received() {
			if strings.HasPrefix(m.Method, "confine/") {
				t.Errorf("a stock editor was sent %s", m.Method)
			}
		}
	})
}

// TestEscalatingInFewWords: without params the last run that can be helped is meant,
// and the narrowest step.
func TestEscalatingInFewWords(t *testing.T) {
	for name, arguments := range map[string][]any{
		"nothing": nil,
		"an id":   {"refused"},
		"params":  {map[string]any{"runId": "refused", "newRunId": "again", "justification": "because"}},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T) {
				w := newWorld(t, nil)
				w.editor.Initialize(rpctest.Init{Folders: []string{fileURI(w.folder)}})
				ended := func(id string, end func(*sandboxtest.FakeProcess)) {
					w.execute(proto.CommandRun, map[string]any{"command": "make " + id, "runId": id})
					end(w.next(w.confined))
					w.editor.AwaitNotification(proto.MethodShowMessage, nil)
				}
				ended("earlier", func(p *sandboxtest.FakeProcess) { p.Deny(denial) })
				ended("refused", func(p *sandboxtest.FakeProcess) { p.Deny(denial) })
				ended("fine", func(p *sandboxtest.FakeProcess) { p.Exit(0) })

				again := w.execute(proto.CommandEscalate, arguments...)
				var asked proto.ShowMessageRequestParams
				m := w.editor.AwaitRequest(proto.MethodShowMessageRequest)
				if err := json.Unmarshal(m.Params, &asked); err != nil {
					t.Fatal(err)
				}
				if !strings.Contains(asked.Message, "«make refused»") {
					t.Errorf("asked about\n%s", asked.Message)
				}
				w.editor.Reply(m, map[string]string{"title": "Refuse"})
				var told proto.ShowMessageParams
				w.editor.AwaitNotification(proto.MethodShowMessage, &told)
				if !strings.Contains(told.Message, again) || !strings.Contains(told.Message, "did not run") {
					t.Errorf("told %q", told.Message)
				}
			})
		})
	}
}

func TestExecuteCommandFailures(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		w := open(t, nil)
		for name, params := range map[string]map[string]any{
			"no argument":   {"command": proto.CommandRun},
			"two arguments": {"command": proto.CommandRun, "arguments": []any{"a", "b"}},
			"bad argument":  {"command": proto.CommandRun, "arguments": []any{5}},
			"bad params":    {"command": proto.CommandRun, "arguments": []any{map[string]any{"command": "x", "mode": "danger-full-access"}}},
			"bad token":     {"command": proto.CommandRun, "arguments": []any{"make"}, "workDoneToken": map[string]any{}},
			"bad token of escalation": {"command": proto.CommandEscalate, "arguments": []any{
				map[string]any{"runId": "none", "sandboxPermissions": "danger-full-access", "justification": "x", "workDoneToken": []int{}}}},
			"unknown command":  {"command": "confine.server.rm"},
			"unknown run":      {"command": proto.CommandKill, "arguments": []any{"none"}},
			"nothing refused":  {"command": proto.CommandEscalate},
			"no run to widen":  {"command": proto.CommandEscalate, "arguments": []any{"none"}},
			"nothing to widen": {"command": proto.CommandEscalate, "arguments": []any{map[string]any{"runId": "none", "sandboxPermissions": "danger-full-access", "justification": "x"}}},
		} {
			if e := w.editor.CallError(proto.MethodExecuteCommand, params); e.Code != -32602 {
				t.Errorf("%s: %v", name, e)
			}
		}
		if e := w.editor.CallError(proto.MethodExecuteCommand, map[string]any{"command": proto.CommandRun, "arguments": []any{nil}}); e.Code != -32602 {
			t.Errorf("null argument: %v", e)
		}
		// What fails after the answer is told in the result.
		w.confined.FailStart(&sandbox.UnavailableError{Mode: sandbox.ReadOnly, Detail: "x"})
		id := w.execute(proto.CommandRun, map[string]any{"command": "make", "runId": "mine"})
		var r proto.RunResult
		w.editor.AwaitNotification(proto.MethodRunExit, &r)
		if id != "mine" || r.RunID != id || !r.Sandbox.RunnerFailed || r.Sandbox.Mode != sandbox.ReadOnly || r.Error == nil || r.Error.Code != -32803 {
			t.Errorf("run %s: %+v", id, r)
		}
		if want := "(no output)\n[sandbox: the sandbox runner itself failed under read-only mode — the command did not run; this is a sandbox problem, not a command failure]"; r.ModelText != want {
			t.Errorf("model text %q", r.ModelText)
		}
		w.confined.FailStart(&sandbox.StartError{Kind: sandbox.ProgramNotFound, Path: "nope"})
		w.execute(proto.CommandRun, map[string]any{"argv": []string{"nope"}})
		w.editor.AwaitNotification(proto.MethodRunExit, &r)
		if r.Sandbox.RunnerFailed || r.Error == nil || r.Error.Data.Code != "PROGRAM_NOT_FOUND" || !strings.HasPrefix(r.ModelText, `Error: program "nope"`) {
			t.Errorf("%+v, error %+v", r, r.Error)
		}
	})
}

// TestKillingByCommand ends a run that still waits for an answer.
func TestKillingByCommand(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		w := open(t, nil)
		p := wider()
		id := w.execute(proto.CommandRun, p)
		w.question()
		if killed := w.execute(proto.CommandKill, id); killed != id {
			t.Errorf("killed %s", killed)
		}
		var r proto.RunResult
		w.editor.AwaitNotification(proto.MethodRunExit, &r)
		w.refused(r, proto.StatusCancelled, "cancelled")
	})
}

func TestDoctorByCommand(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		w := newWorld(t, func(o *server.Options) { o.Hints = []string{"PATH is not set"} })
		release := w.confined.HoldProbe()
		w.editor.Initialize(rpctest.Init{})
		w.confined.SetReport(sandbox.Report{Provider: "landlock", Reason: "no Landlock", Remedies: []string{"boot with lsm=landlock"}})
		w.execute(proto.CommandDoctor) // answered while probing
		release()
		var told proto.ShowMessageParams
		w.editor.AwaitNotification(proto.MethodShowMessage, &told)
		for _, part := range []string{"landlock: not usable; no Landlock", "boot with lsm=landlock", "read-only", "PATH is not set"} {
			if !strings.Contains(told.Message, part) {
				t.Errorf("%q is not in %q", part, told.Message)
			}
		}
	})
}

func TestProgressWithTheEditorsToken(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		w := open(t, nil)
		for _, token := range []string{`"t1"`, `7`} {
			id := w.editor.Request(proto.MethodRunCommand, map[string]any{"command": "make", "workDoneToken": json.RawMessage(token)})
			p := w.next(w.confined)
			w.progress(token, "begin")
			p.Exit(0)
			w.progress(token, "end")
			w.editor.Response(id, nil)
		}
	})
}

func (w *world) progress(token, kind string) {
	w.t.Helper()
	var p struct {
		Token json.RawMessage `json:"token"`
		Value struct {
			Kind  string `json:"kind"`
			Title string `json:"title"`
		} `json:"value"`
	}
	w.editor.AwaitNotification(proto.MethodProgress, &p)
	if string(p.Token) != token || p.Value.Kind != kind || (p.Value.Title != "") != (kind == "begin") {
		w.t.Errorf("progress %s %+v, want %s %s", p.Token, p.Value, token, kind)
	}
}

// TestProgressOfLongRuns: the server creates a token after a second, and the
// person can cancel by it.
func TestProgressOfLongRuns(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		w := newWorld(t, nil)
		init := full(w.folder)
		init.Window = &proto.WindowCapabilities{WorkDoneProgress: true}
		w.editor.Initialize(init)
		w.confined.Script("short", func(p *sandboxtest.FakeProcess) { time.Sleep(990 * time.Millisecond); p.Exit(0) })
		w.run(proto.RunCommandParams{Command: "short"})
		for _, m := range w.editor.Received() {
			if m.Method == proto.MethodProgressCreate || m.Method == proto.MethodProgress {
				t.Errorf("a short run was sent %s", m.Method)
			}
		}
		id := w.editor.Request(proto.MethodRunCommand, proto.RunCommandParams{Command: "long", RunID: "long"})
		w.next(w.confined)
		m := w.editor.AwaitRequest(proto.MethodProgressCreate)
		w.editor.Reply(m, nil)
		w.progress(`"confine-long"`, "begin")
		w.editor.Notify(proto.MethodProgressCancel, map[string]string{"token": "another"})
		w.editor.Notify(proto.MethodProgressCancel, map[string]any{"token": nil})
		w.editor.Notify(proto.MethodProgressCancel, map[string]string{"token": "confine-long"})
		w.progress(`"confine-long"`, "end")
		var r proto.RunResult
		w.editor.Response(id, &r)
		if r.Status != proto.StatusCancelled {
			t.Errorf("status %s", r.Status)
		}
	})
}

// TestAnEditorThatDoesNotAnswerAboutProgress must not hold the run up.
func TestAnEditorThatDoesNotAnswerAboutProgress(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		w := newWorld(t, nil)
		init := full(w.folder)
		init.Window = &proto.WindowCapabilities{WorkDoneProgress: true}
		w.editor.Initialize(init)
		id := w.editor.Request(proto.MethodRunCommand, proto.RunCommandParams{Command: "long"})
		p := w.next(w.confined)
		w.editor.AwaitRequest(proto.MethodProgressCreate)
		p.Exit(0)
		w.editor.Response(id, nil)
		synctest.Wait()
		for _, m := range w.editor.Received() {
			if m.Method == proto.MethodProgress {
				t.Error("progress was sent for a token that was not created")
			}
		}
	})
}

// TestMessagesHoldNoLinks: VS Code makes a link of [text](command:…), and the
// name of a program comes from a model.
func TestMessagesHoldNoLinks(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		w := newWorld(t, nil)
		w.confined.SetReport(sandbox.Report{Provider: "landlock", Reason: "[fix](command:rm)\nnow"})
		w.editor.Initialize(rpctest.Init{Folders: []string{fileURI(w.folder)}})
		const link = "[Allow once](command:evil)"
		w.confined.FailStart(&sandbox.StartError{Kind: sandbox.ProgramNotFound, Path: link})
		w.execute(proto.CommandRun, map[string]any{"argv": []string{link}})
		var told proto.ShowMessageParams
		w.editor.AwaitNotification(proto.MethodShowMessage, &told)
		if strings.Contains(told.Message, "](") || !strings.Contains(told.Message, "PROGRAM_NOT_FOUND") {
			t.Errorf("told %q", told.Message)
		}
		w.execute(proto.CommandDoctor)
		w.editor.AwaitNotification(proto.MethodShowMessage, &told)
		if strings.Contains(told.Message, "](") || !strings.Contains(told.Message, "fix") {
			t.Errorf("told %q", told.Message)
		}
	})
}
