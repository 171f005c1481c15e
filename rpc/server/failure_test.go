package server_test

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"

	"github.com/confine-dev/confine/approval"
	"github.com/confine-dev/confine/rpc/proto"
	"github.com/confine-dev/confine/rpc/server"
	"github.com/confine-dev/confine/sandbox"
	"github.com/confine-dev/confine/sandbox/sandboxtest"
)

const unavailable = `sandbox mode "read-only" is requested but no sandbox backend is usable on this host; refusing to run the command unconfined. Install bubblewrap or run a Landlock-enforcing kernel (Linux), ensure sandbox-exec is usable (macOS) — Windows has no confinement backend yet — or switch the consumer to danger-full-access.`

// TestFailures is about what is no fault of the command.
func TestFailures(t *testing.T) {
	broken := &sandbox.UnavailableError{Mode: sandbox.ReadOnly, Detail: "mounting: EPERM", Remedies: []string{"allow user namespaces"}}
	for name, test := range map[string]struct {
		err     error
		code    int64
		message string
		data    string
	}{
		"sandbox":       {broken, -32803, unavailable + " Runner failure: mounting: EPERM", `{"code":"SANDBOX_UNAVAILABLE","name":"SandboxUnavailableError","mode":"read-only","detail":"mounting: EPERM","remedies":["allow user namespaces"]}`},
		"program":       {&sandbox.StartError{Kind: sandbox.ProgramNotFound, Path: "nope"}, -32803, `program "nope" was not found: check its spelling and the PATH of the command`, `{"code":"PROGRAM_NOT_FOUND","path":"nope"}`},
		"permission":    {&sandbox.StartError{Kind: sandbox.ProgramNotExecutable, Path: "/a", Err: syscall.EACCES}, -32803, `program "/a" cannot be executed (permission denied): check its permissions and its first line`, `{"code":"PROGRAM_NOT_EXECUTABLE","path":"/a"}`},
		"folder":        {&sandbox.StartError{Kind: sandbox.BadWorkingDirectory, Path: "/a", Err: syscall.ENOENT}, -32803, `working directory "/a" cannot be used (no such file or directory): give an existing folder`, `{"code":"BAD_WORKING_DIRECTORY","path":"/a"}`},
		"anything else": {errors.New("out of luck"), -32603, "out of luck", ``},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T) {
				w := open(t, nil)
				w.confined.FailStart(test.err)
				e := w.editor.CallError(proto.MethodRunCommand, proto.RunCommandParams{Command: "x", RunID: "r"})
				if e.Code != test.code || e.Message != test.message || string(e.Data) != test.data {
					t.Errorf("%v %s", e, e.Data)
				}
				w.confined.FailStart(test.err)
				if e := w.editor.CallError(proto.MethodRunCommand, proto.RunCommandParams{Command: "x", RunID: "r", Background: true}); e.Code != test.code {
					t.Errorf("in the background: %v", e)
				}
				// The id is free, and nothing is left of the run.
				w.confined.Script("x", exit0)
				w.run(proto.RunCommandParams{Command: "x", RunID: "r"})
				if n := len(w.unconfined.Specs()); n != 0 {
					t.Error("it ran unconfined instead")
				}
			})
		})
	}
}

func TestWithoutAnyProviderNothingRuns(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		w := open(t, func(o *server.Options) {
			o.Settings.Confined = nil
		})
		e := w.editor.CallError(proto.MethodRunCommand, proto.RunCommandParams{Command: "x"})
		if e.Code != -32803 || e.Message != unavailable || string(e.Data) != `{"code":"SANDBOX_UNAVAILABLE","name":"SandboxUnavailableError","mode":"read-only"}` {
			t.Errorf("%v %s", e, e.Data)
		}
		// Nobody is asked for what cannot be had.
		e = w.editor.CallError(proto.MethodRunCommand, proto.RunCommandParams{Command: "x", SandboxPermissions: sandbox.WorkspaceWrite, Justification: "x"})
		if e.Code != -32803 {
			t.Errorf("%v", e)
		}
		if n := len(w.unconfined.Specs()); n != 0 {
			t.Errorf("%d commands ran", n)
		}
		w.unconfined.Script("make install", exit0)
		id := w.editor.Request(proto.MethodRunCommand, wider())
		m, q := w.question()
		w.choose(m, q, "allow_once")
		var r proto.RunResult
		w.editor.Response(id, &r)
		if r.Status != proto.StatusCompleted {
			t.Error("what needs no provider runs when the person allows it")
		}
	})
}

func TestASandboxThatBreaksDuringTheRun(t *testing.T) {
	broken := &sandbox.UnavailableError{Mode: sandbox.ReadOnly, Detail: "the init died", Started: true}
	inBubble(t, func(t *testing.T) {
		w := open(t, nil)
		id := w.editor.Request(proto.MethodRunCommand, proto.RunCommandParams{Command: "x"})
		w.next(w.confined).Break(broken)
		if e := w.editor.ResponseError(id); e.Code != -32803 || !strings.HasSuffix(e.Message, "had begun, and what it did until then stays done: the init died") || !strings.Contains(string(e.Data), `"started":true`) {
			t.Errorf("%v", e)
		}
		w.run(proto.RunCommandParams{Command: "y", RunID: "bg", Background: true})
		p := w.next(w.confined)
		p.Stdout("so far\n")
		p.Break(broken)
		var r proto.RunResult
		w.editor.Call(proto.MethodRunsWait, proto.WaitParams{RunID: "bg"}, &r)
		if r.Status != proto.StatusCompleted || !r.Sandbox.RunnerFailed || r.Sandbox.Denied || r.ExitCode != nil || r.Error == nil || r.Error.Data == nil || r.Error.Data.Code != "SANDBOX_UNAVAILABLE" {
			t.Errorf("result %+v, error %+v", r, r.Error)
		}
		if !strings.HasPrefix(r.ModelText, "so far\n[sandbox: the sandbox runner itself failed under read-only mode") {
			t.Errorf("model text %q", r.ModelText)
		}
		synctest.Wait()
		if n := w.confined.Probes(); n < 2 {
			t.Errorf("the provider was probed %d times: a failure asks for another", n)
		}
	})
}

func TestUnconfinedRunsHaveNoSandboxFacts(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		w := newWorld(t, mode(sandbox.DangerFullAccess))
		init := full(w.folder)
		w.editor.Initialize(init)
		w.unconfined.Script("make", func(p *sandboxtest.FakeProcess) { p.Stderr("x: Permission denied\n"); p.Deny(denial) })
		var raw struct {
			Sandbox   json.RawMessage `json:"sandbox"`
			ModelText string          `json:"modelText"`
		}
		w.editor.Call(proto.MethodRunCommand, proto.RunCommandParams{Command: "make"}, &raw)
		if string(raw.Sandbox) != `{"mode":"danger-full-access","denied":false}` {
			t.Errorf("sandbox %s", raw.Sandbox)
		}
		if raw.ModelText != "[stderr]\nx: Permission denied\n[exit code: 1]" {
			t.Errorf("model text %q", raw.ModelText)
		}
		raw.Sandbox = nil
		w.editor.Call(proto.MethodRunCommand, proto.RunCommandParams{Command: "make", RunID: "bg", Background: true}, &raw)
		w.editor.Call(proto.MethodRunsWait, proto.WaitParams{RunID: "bg"}, &raw)
		if raw.Sandbox != nil {
			t.Errorf("sandbox of a background run: %s", raw.Sandbox)
		}
		if n := len(w.confined.Specs()); n != 0 {
			t.Error("the provider was consulted")
		}
	})
}

// TestWhatIsNotRecordedDoesNotRun uses an audit that is closed.
func TestWhatIsNotRecordedDoesNotRun(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		w := open(t, func(o *server.Options) {
			folder := t.TempDir()
			if err := os.Chmod(folder, 0o700); err != nil {
				t.Fatal(err)
			}
			audit, err := approval.OpenAudit(folder+"/audit.jsonl", approval.AuditOptions{})
			if err != nil {
				t.Fatal(err)
			}
			gate, err := approval.New(approval.Options{Audit: audit})
			if err != nil {
				t.Fatal(err)
			}
			if err := audit.Close(); err != nil {
				t.Fatal(err)
			}
			o.Gate = gate
		})
		e := w.editor.CallError(proto.MethodRunCommand, wider())
		if e.Code != -32803 || !strings.Contains(string(e.Data), `"NOT_RECORDED"`) {
			t.Errorf("%v %s", e, e.Data)
		}
		if n := len(w.confined.Specs()) + len(w.unconfined.Specs()); n != 0 {
			t.Errorf("%d commands ran", n)
		}
	})
}

// TestARunNamesWhatConfinesIt: a provider may leave a command to another one, or
// to nothing, and a run that goes on says so before its result does.
func TestARunNamesWhatConfinesIt(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		w := open(t, func(o *server.Options) { o.Settings.Confined = renamed{sandboxtest.NewFake(sandbox.ProviderNone)} })
		r := w.run(proto.RunCommandParams{Command: "server", Background: true})
		if r.Status != proto.StatusRunning || r.Sandbox == nil || r.Sandbox.Provider != sandbox.ProviderNone {
			t.Errorf("status %s, sandbox %+v", r.Status, r.Sandbox)
		}
	})
}

// renamed is a provider with another's name.
type renamed struct{ *sandboxtest.Fake }

func (renamed) Name() string { return sandbox.ProviderLandlock }

// faulty is a provider with a mistake in it.
type faulty struct{ sandbox.Provider }

func (*faulty) Start(context.Context, sandbox.Spec) (sandbox.Process, error) { panic("a mistake") }

func TestAMistakeInsideLeavesNoRunBehind(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		w := open(t, func(o *server.Options) {
			o.Settings.Confined = &faulty{o.Settings.Confined}
		})
		for range 2 { // the id is free again
			if e := w.editor.CallError(proto.MethodRunCommand, proto.RunCommandParams{Command: "x", RunID: "r"}); e.Code != proto.CodeInternalError {
				t.Errorf("%v", e)
			}
		}
		w.editor.Call(proto.MethodShutdown, nil, nil) // it waits for the runs that there are
	})
}
