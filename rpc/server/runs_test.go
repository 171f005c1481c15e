package server_test

import (
	"encoding/base64"
	"fmt"
	"os"
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

func TestBackgroundRuns(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		w := open(t, nil)
		r := w.run(proto.RunCommandParams{Command: "server", RunID: "bg", Background: true})
		if r.Status != proto.StatusRunning || r.ExitCode != nil || r.Sandbox == nil || r.Sandbox.Provider != "landlock" || r.Sandbox.Enforcement != "" {
			t.Errorf("answered %+v", r)
		}
		p := w.next(w.confined)
		waiting := w.editor.Request(proto.MethodRunsWait, proto.WaitParams{RunID: "bg"})
		p.Stdout("ready\n")
		time.Sleep(2 * time.Second)
		p.Deny(denial)
		w.editor.Response(waiting, &r)
		if r.Status != proto.StatusCompleted || r.ExitCode == nil || *r.ExitCode != 1 || r.DurationMs != 2000 || r.Stdout.Text != "ready\n" {
			t.Errorf("waited for %+v", r)
		}
		want := "ready\n[sandbox: file access denied under read-only mode]\n[sandbox: escalation available — retry this exact command once with sandbox_permissions (the narrowest wider mode that suffices) + justification; the approval prompt asks the user]\n[exit code: 1]"
		if r.ModelText != want {
			t.Errorf("model text %q", r.ModelText)
		}
		var exit proto.RunResult
		w.editor.AwaitNotification(proto.MethodRunExit, &exit)
		if exit.RunID != "bg" || exit.ModelText != r.ModelText {
			t.Errorf("exit %+v", exit)
		}
	})
}

func TestWaitGivesUp(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		w := open(t, nil)
		w.run(proto.RunCommandParams{Command: "server", RunID: "bg", Background: true})
		for _, test := range []struct {
			asked *int64
			takes time.Duration
		}{{nil, 30 * time.Second}, {millis(1500), 1500 * time.Millisecond}, {millis(0), 0}, {millis(1 << 40), 600 * time.Second}} {
			began := time.Now()
			var r proto.RunResult
			w.editor.Call(proto.MethodRunsWait, proto.WaitParams{RunID: "bg", TimeoutMs: test.asked}, &r)
			if r.Status != proto.StatusRunning || time.Since(began) != test.takes {
				t.Errorf("%s after %v, want running after %v", r.Status, time.Since(began), test.takes)
			}
		}
		id := w.editor.Request(proto.MethodRunsWait, proto.WaitParams{RunID: "bg"})
		synctest.Wait()
		w.editor.Cancel(id)
		var r proto.RunResult
		w.editor.Response(id, &r)
		if r.Status != proto.StatusRunning {
			t.Errorf("a cancelled wait says %s", r.Status)
		}
	})
}

// TestWaitingForWhatNeverBegan: a run that waits for an answer is not said to
// run, and one whose request fails does not leave who waits in the dark.
func TestWaitingForWhatNeverBegan(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		w := open(t, nil)
		w.editor.Request(proto.MethodRunCommand, wider())
		m, q := w.question()
		var r proto.RunResult
		w.editor.Call(proto.MethodRunsWait, proto.WaitParams{RunID: "asks", TimeoutMs: millis(0)}, &r)
		if r.Status != proto.StatusRunning || r.ModelText != "[not begun yet: asks waits for an answer or its start]" {
			t.Errorf("%s: %q", r.Status, r.ModelText)
		}
		waiting := w.editor.Request(proto.MethodRunsWait, proto.WaitParams{RunID: "asks"})
		synctest.Wait()
		w.unconfined.FailStart(&sandbox.StartError{Kind: sandbox.BadWorkingDirectory, Path: "/gone"})
		w.choose(m, q, "allow_once")
		if e := w.editor.ResponseError(waiting); e.Code != -32602 || !strings.Contains(e.Message, "did not begin") {
			t.Errorf("%v", e)
		}
	})
}

func millis(n int64) *int64 { return &n }

func TestKill(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		w := open(t, nil)
		w.run(proto.RunCommandParams{Command: "server", RunID: "bg", Background: true})
		p := w.next(w.confined)
		var k proto.KillResult
		w.editor.Call(proto.MethodRunsKill, proto.RunParams{RunID: "bg"}, &k)
		if !k.Killed {
			t.Error("killed = false")
		}
		<-p.Done()
		var r proto.RunResult
		w.editor.Call(proto.MethodRunsWait, proto.WaitParams{RunID: "bg"}, &r)
		if r.Status != proto.StatusCancelled || r.Signal != "SIGTERM" || r.ExitCode != nil || r.ModelText != "(no output)\n[cancelled]\n[killed by signal: SIGTERM]" {
			t.Errorf("result %+v", r)
		}
		w.editor.Call(proto.MethodRunsKill, proto.RunParams{RunID: "bg"}, &k)
		if k.Killed {
			t.Error("killed an ended run")
		}
	})
}

// TestCancellingTheRequestIsAResult: Neovim drops answers with -32800.
func TestCancellingTheRequestIsAResult(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		w := open(t, nil)
		id := w.editor.Request(proto.MethodRunCommand, proto.RunCommandParams{Command: "sleep"})
		p := w.next(w.confined)
		p.Stdout("zzz")
		w.editor.Cancel(id)
		var r proto.RunResult
		w.editor.Response(id, &r)
		if r.Status != proto.StatusCancelled || r.Signal != "SIGTERM" || r.Stdout.Text != "zzz" {
			t.Errorf("result %+v", r)
		}
	})
}

// TestACancelledRequestMayStillComplete: the facts decide, not the wish.
func TestACancelledRequestMayStillComplete(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		w := open(t, nil)
		id := w.editor.Request(proto.MethodRunCommand, proto.RunCommandParams{Command: "sleep"})
		p := w.next(w.confined)
		p.Trap()
		w.editor.Cancel(id)
		<-p.Cancelled()
		p.Exit(0)
		var r proto.RunResult
		w.editor.Response(id, &r)
		if r.Status != proto.StatusCompleted || r.ExitCode == nil {
			t.Errorf("result %+v", r)
		}
	})
}

// TestABackgroundRunOutlivesItsRequest: a late cancellation of the request
// that started it means nothing any more.
func TestABackgroundRunOutlivesItsRequest(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		w := open(t, nil)
		id := w.editor.Request(proto.MethodRunCommand, proto.RunCommandParams{Command: "server", Background: true})
		p := w.next(w.confined)
		w.editor.Response(id, nil)
		w.editor.Cancel(id)
		synctest.Wait()
		select {
		case <-p.Cancelled():
			t.Error("the run was cancelled")
		default:
		}
	})
}

func TestList(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		w := open(t, nil)
		w.confined.Script("true", exit0)
		start := func(p proto.RunCommandParams) {
			w.run(p)
			time.Sleep(time.Second)
		}
		start(proto.RunCommandParams{Argv: []string{"server", "-v"}, RunID: "a", Background: true})
		start(proto.RunCommandParams{Command: "true", RunID: "b", Session: "s"})
		start(proto.RunCommandParams{Command: "server", RunID: "c", Background: true, Session: "s"})
		start(proto.RunCommandParams{Command: "true", RunID: "d"})
		list := func(session string) (ids string, runs []proto.RunInfo) {
			var l proto.ListResult
			w.editor.Call(proto.MethodRunsList, proto.ListParams{Session: session}, &l)
			for _, r := range l.Runs {
				ids += r.RunID
			}
			return ids, l.Runs
		}
		ids, runs := list("")
		if ids != "cadb" {
			t.Errorf("listed %q, want running ones first, newest first", ids)
		}
		if ids, _ := list("s"); ids != "cb" {
			t.Errorf("session s has %q", ids)
		}
		if ids, _ := list("none"); ids != "" {
			t.Errorf("an unknown session has %q", ids)
		}
		server := runs[1]
		if len(server.Argv) != 2 || server.Cwd != w.folder || server.Status != proto.StatusRunning || !server.Background || server.Mode != sandbox.ReadOnly || server.DurationMs != 4000 {
			t.Errorf("listed %+v", server)
		}
		if ended := runs[3]; ended.ExitCode == nil || ended.Session != "s" || ended.Status != proto.StatusCompleted || ended.Command != "true" {
			t.Errorf("listed %+v", ended)
		}
	})
}

func TestReadIsByteExact(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		w := open(t, nil)
		w.run(proto.RunCommandParams{Command: "server", RunID: "bg", Background: true})
		p := w.next(w.confined)
		read := func(params proto.ReadParams) proto.ReadResult {
			params.RunID = "bg"
			var r proto.ReadResult
			w.editor.Call(proto.MethodRunsRead, params, &r)
			return r
		}
		if r := read(proto.ReadParams{}); r.TotalBytes != 0 || r.NextOffset != 0 || r.EOF || r.Data != "" || r.Stream != sandbox.StdoutStream {
			t.Errorf("read %+v of nothing", r)
		}
		p.Stdout("one\ntwo\n")
		p.Stderr("\xff\xfe")
		if r := read(proto.ReadParams{MaxBytes: 5}); r.Data != "one\nt" || r.NextOffset != 5 || r.TotalBytes != 8 || r.EOF {
			t.Errorf("read %+v", r)
		}
		if r := read(proto.ReadParams{Offset: 5}); r.Data != "wo\n" || r.Offset != 5 || r.NextOffset != 8 || r.EOF || r.Status != proto.StatusRunning {
			t.Errorf("read %+v", r)
		}
		if r := read(proto.ReadParams{Offset: 100}); r.Data != "" || r.Skipped != 0 {
			t.Errorf("read %+v behind the end", r)
		}
		r := read(proto.ReadParams{Stream: sandbox.StderrStream})
		if data, err := base64.StdEncoding.DecodeString(r.Base64); err != nil || string(data) != "\xff\xfe" || r.Data != "" {
			t.Errorf("read %+v", r)
		}
		p.Stdout("three\n")
		p.Exit(0)
		synctest.Wait()
		if r := read(proto.ReadParams{Offset: 8}); r.Data != "three\n" || r.NextOffset != 14 || !r.EOF || r.Status != proto.StatusCompleted {
			t.Errorf("read %+v", r)
		}
	})
}

func TestReadSaysWhatIsNotHeldAnyMore(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		w := open(t, nil)
		text := strings.Repeat("0123456789", 20_000)
		w.confined.Script("print", func(p *sandboxtest.FakeProcess) { p.Stdout(text); p.Exit(0) })
		w.run(proto.RunCommandParams{Command: "print", RunID: "r"})
		var r proto.ReadResult
		w.editor.Call(proto.MethodRunsRead, proto.ReadParams{RunID: "r", Offset: 10, MaxBytes: 100}, &r)
		if r.Skipped == 0 || r.Offset != 10+r.Skipped || r.NextOffset != r.Offset+100 || r.Data != text[r.Offset:r.NextOffset] {
			t.Errorf("read %+v", r)
		}
	})
}

func TestOtherRunsOfRuns(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		w := open(t, nil)
		for _, method := range []string{proto.MethodRunsRead, proto.MethodRunsWait, proto.MethodRunsKill} {
			if e := w.editor.CallError(method, proto.RunParams{RunID: "other"}); e.Code != -32602 {
				t.Errorf("%s of an unknown run: %v", method, e)
			}
		}
		w.confined.Script("true", exit0)
		w.run(proto.RunCommandParams{Command: "true", RunID: "r"})
		for method, params := range map[string]any{
			proto.MethodRunsRead: proto.ReadParams{RunID: "r", Offset: -1},
			proto.MethodRunsWait: proto.WaitParams{RunID: "r", TimeoutMs: millis(-1)},
		} {
			if e := w.editor.CallError(method, params); e.Code != -32602 {
				t.Errorf("%s: %v", method, e)
			}
		}
		if e := w.editor.CallError(proto.MethodRunsRead, proto.ReadParams{RunID: "r", Stream: "stdlog"}); e.Code != -32602 {
			t.Errorf("unknown stream: %v", e)
		}
	})
}

func TestEndedRunsAreForgotten(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		w := open(t, nil)
		w.confined.Script("true", exit0)
		w.run(proto.RunCommandParams{Command: "server", RunID: "bg", Background: true})
		for i := range 130 {
			w.run(proto.RunCommandParams{Command: "true", RunID: fmt.Sprintf("r%d", i)})
		}
		var l proto.ListResult
		w.editor.Call(proto.MethodRunsList, nil, &l)
		if len(l.Runs) != 129 || l.Runs[0].RunID != "bg" {
			t.Errorf("%d runs are listed, the first is %s; want 128 ended ones and the running one", len(l.Runs), l.Runs[0].RunID)
		}
		w.editor.CallError(proto.MethodRunsWait, proto.RunParams{RunID: "r1"})
		w.editor.Call(proto.MethodRunsWait, proto.RunParams{RunID: "r2"}, nil)
		time.Sleep(time.Hour)
		w.editor.CallError(proto.MethodRunsWait, proto.RunParams{RunID: "r129"})
		w.editor.Call(proto.MethodRunsWait, proto.WaitParams{RunID: "bg", TimeoutMs: millis(0)}, nil)
	})
}

// TestListAndResultAgreeOnTheMode of runs that were refused, allowed, or wait.
func TestListAndResultAgreeOnTheMode(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		w := open(t, nil)
		w.unconfined.Script("make install", exit0)
		ask := func(runID string) (m rpctest.Message, q proto.Question, id int64) {
			p := wider()
			p.RunID = runID
			id = w.editor.Request(proto.MethodRunCommand, p)
			m, q = w.question()
			return m, q, id
		}
		m, q, id := ask("allowed")
		w.choose(m, q, "allow_once")
		w.editor.Response(id, nil)
		m, q, id = ask("refused")
		w.choose(m, q, "reject_once")
		w.editor.Response(id, nil)
		p := wider()
		p.RunID, p.Command = "waits", "make other"
		w.editor.Request(proto.MethodRunCommand, p)
		w.question()
		var l proto.ListResult
		w.editor.Call(proto.MethodRunsList, nil, &l)
		want := map[string]sandbox.Mode{"allowed": sandbox.DangerFullAccess, "refused": sandbox.ReadOnly, "waits": sandbox.ReadOnly}
		for _, listed := range l.Runs {
			var r proto.RunResult
			w.editor.Call(proto.MethodRunsWait, proto.WaitParams{RunID: listed.RunID, TimeoutMs: millis(0)}, &r)
			if listed.Mode != want[listed.RunID] || r.Sandbox.Mode != listed.Mode {
				t.Errorf("%s: the list says %s, the result %s, want %s", listed.RunID, listed.Mode, r.Sandbox.Mode, want[listed.RunID])
			}
		}
		if len(l.Runs) != len(want) {
			t.Errorf("%d runs are listed", len(l.Runs))
		}
	})
}

func TestListShowsTheBeginningOfACommand(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		w := open(t, nil)
		command := "echo " + strings.Repeat("€", 10_000)
		w.confined.Script(command, exit0)
		w.confined.Script("", exit0)
		w.run(proto.RunCommandParams{Command: command})
		time.Sleep(time.Second)
		w.run(proto.RunCommandParams{Argv: []string{"echo", "a", command}})
		var l proto.ListResult
		w.editor.Call(proto.MethodRunsList, nil, &l)
		if r := l.Runs[0]; strings.Join(r.Argv, " ") != "echo a" || r.Bytes != 5+len(command) {
			t.Errorf("listed %q of %d", r.Argv, r.Bytes)
		}
		if r := l.Runs[1]; len(r.Command) > 4096 || len(r.Command) < 4094 || !strings.HasPrefix(command, r.Command) || r.Bytes != len(command) {
			t.Errorf("listed %d bytes of %d", len(r.Command), r.Bytes)
		}
	})
}

func TestTooManySessions(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		w := open(t, nil)
		w.confined.Script("true", exit0)
		for i := range 1024 {
			w.run(proto.RunCommandParams{Command: "true", Session: fmt.Sprint(i)})
		}
		e := w.editor.CallError(proto.MethodRunCommand, proto.RunCommandParams{Command: "true", Session: "one more"})
		if e.Code != -32803 || !strings.Contains(string(e.Data), `"TOO_MANY_SESSIONS"`) {
			t.Errorf("%v %s", e, e.Data)
		}
		w.run(proto.RunCommandParams{Command: "true", Session: "7"})
	})
}

func TestTooManyBackgroundRuns(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		w := open(t, nil)
		for range 64 {
			w.run(proto.RunCommandParams{Command: "server", Background: true})
		}
		e := w.editor.CallError(proto.MethodRunCommand, proto.RunCommandParams{Command: "server", Background: true})
		if e.Code != -32803 || !strings.Contains(string(e.Data), `"TOO_MANY_RUNS"`) {
			t.Errorf("%v %s", e, e.Data)
		}
		w.next(w.confined).Exit(0)
		synctest.Wait()
		w.run(proto.RunCommandParams{Command: "server", Background: true})
	})
}

func TestAForgottenRunLeavesNothingOnTheDisk(t *testing.T) {
	spills := realTempDir(t)
	if err := os.Chmod(spills, 0o700); err != nil {
		t.Fatal(err)
	}
	inBubble(t, func(t *testing.T) {
		w := open(t, func(o *server.Options) { o.SpillDir = spills })
		w.confined.Script("long", func(p *sandboxtest.FakeProcess) {
			p.Stdout(strings.Repeat("x", 2*sandbox.DefaultKeep))
			p.Exit(0)
		})
		result := w.run(proto.RunCommandParams{Command: "long", RunID: "long"})
		if data, err := os.ReadFile(result.Stdout.SpillPath); err != nil || len(data) != 2*sandbox.DefaultKeep {
			t.Fatalf("the file of the run's output: %d bytes, %v", len(data), err)
		}
		time.Sleep(time.Hour)
		w.editor.CallError(proto.MethodRunsWait, proto.RunParams{RunID: "long"})
		if left, err := os.ReadDir(spills); err != nil || len(left) > 0 {
			t.Errorf("left behind: %v, %v", left, err)
		}
	})
}
