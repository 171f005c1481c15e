package server_test

import (
	"encoding/json"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/confine-dev/confine/rpc/proto"
	"github.com/confine-dev/confine/rpc/server"
	"github.com/confine-dev/confine/sandbox"
	"github.com/confine-dev/confine/sandbox/sandboxtest"
)

// openRemote is a world whose commands are to run on another machine.
func openRemote(t *testing.T, m sandbox.Mode) *world {
	t.Helper()
	return open(t, func(o *server.Options) {
		o.Settings.Mode, o.Settings.Elsewhere, o.Settings.Provider = m, true, sandbox.ProviderOpenSandbox
	})
}

// TestNothingOfThisMachineGoesElsewhere: a remote command has the variables of its
// request, and no others of the host's.
func TestNothingOfThisMachineGoesElsewhere(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		w := openRemote(t, sandbox.ReadOnly)
		w.confined.Script("make", exit0)
		r := w.run(proto.RunCommandParams{Command: "make", Env: map[string]string{"MINE": "1", "CONFINE_SANDBOX": "x"}})
		env := w.confined.Specs()[0].Env
		if !slices.Contains(env, "MINE=1") || slices.ContainsFunc(env, func(e string) bool { return strings.HasPrefix(e, "PATH=") || strings.HasPrefix(e, "SECRET") }) {
			t.Errorf("the environment is %q", env)
		}
		if !slices.Equal(r.DroppedEnv, []string{"CONFINE_SANDBOX"}) {
			t.Errorf("dropped %q", r.DroppedEnv)
		}
	})
}

// TestNothingRunsHereInstead: what a remote sandbox cannot do is refused before anybody
// is asked, and never done on this machine.
func TestNothingRunsHereInstead(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		w := openRemote(t, sandbox.ReadOnly)
		w.confined.Script("make", func(p *sandboxtest.FakeProcess) { p.Deny(denial) })
		please := proto.RunCommandParams{Command: "make", SandboxPermissions: sandbox.DangerFullAccess, Justification: "it must"}
		if e := w.editor.CallError(proto.MethodRunCommand, please); e.Code != proto.CodeInvalidParams || !strings.Contains(e.Message, "on this machine") {
			t.Errorf("everything is answered with %+v", e)
		}
		w.run(proto.RunCommandParams{Command: "make", RunID: "first"})
		for name, more := range map[string]proto.EscalationParams{
			"everything": {SandboxPermissions: sandbox.DangerFullAccess},
			"a file":     {Additional: &proto.Additional{Write: []string{filepath.Join(w.folder, "f")}}},
		} {
			more.RunID, more.Justification = "first", "it must"
			if e := w.editor.CallError(proto.MethodRequestEscalation, more); e.Code != proto.CodeInvalidParams || !strings.Contains(e.Message, sandbox.ProviderOpenSandbox) {
				t.Errorf("%s is answered with %+v", name, e)
			}
		}
		if n := len(w.unconfined.Specs()); n > 0 {
			t.Errorf("%d commands ran on this machine", n)
		}
	})
}

// TestQuestionsSayWhereACommandRuns: who is asked about a remote command is told so.
func TestQuestionsSayWhereACommandRuns(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		w := openRemote(t, sandbox.ReadOnly)
		w.confined.Script("make", exit0)
		yes := true
		id := w.editor.Request(proto.MethodRunCommand, proto.RunCommandParams{Command: "make", RunID: "first", Network: &yes, SandboxPermissions: sandbox.WorkspaceWrite, Justification: "x"})
		m, q := w.question()
		if !strings.Contains(strings.Join(q.Warnings, "\n"), "not on this machine") {
			t.Errorf("warnings %q", q.Warnings)
		}
		w.choose(m, q, "allow_once")
		w.editor.Response(id, nil)
		if got := w.confined.Specs()[0].Policy; got.Mode != sandbox.WorkspaceWrite || !got.Network {
			t.Errorf("it ran under %v", got)
		}
	})
}

// TestToolOfARemoteSandbox offers no mode that runs commands here.
func TestToolOfARemoteSandbox(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		var c proto.Capabilities
		openRemote(t, sandbox.ReadOnly).editor.Call(proto.MethodCapabilities, nil, &c)
		text, err := json.Marshal(c.Tool.InputSchema)
		if err != nil || !strings.Contains(string(text), `"enum":["workspace-write"]`) {
			t.Errorf("the schema is %s (%v)", text, err)
		}
	})
}

// TestMissingOutputIsTold: to the client and to an agent.
func TestMissingOutputIsTold(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		w := openRemote(t, sandbox.ReadOnly)
		w.confined.Script("make", func(p *sandboxtest.FakeProcess) { p.End(sandbox.Result{ExitCode: 2, Missing: "the line broke"}) })
		r := w.run(proto.RunCommandParams{Command: "make"})
		if r.OutputMissing != "the line broke" || !strings.HasSuffix(r.ModelText, "[part of the output is missing: the line broke]\n[exit code: 2]") {
			t.Errorf("result %+v", r)
		}
	})
}
