package server_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/confine-dev/confine/approval"
	"github.com/confine-dev/confine/rpc/proto"
	"github.com/confine-dev/confine/rpc/rpctest"
	"github.com/confine-dev/confine/rpc/server"
	"github.com/confine-dev/confine/sandbox"
)

// dial is a configuration that a test turns.
type dial struct {
	mu      sync.Mutex
	now     *server.Settings
	changed func()

	options json.RawMessage
	folders []string
	closed  bool
}

func (d *dial) SetOptions(options json.RawMessage) { d.options = options }
func (d *dial) SetFolders(folders []string)        { d.folders = folders }
func (d *dial) Close()                             { d.closed = true }

func (d *dial) Current() *server.Settings {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.now
}

// turn puts changed settings in force.
func (d *dial) turn(change func(*server.Settings)) {
	d.mu.Lock()
	next := *d.now
	change(&next)
	d.now = &next
	d.mu.Unlock()
	d.changed()
}

// onDial starts a server with a dial, and an editor.
func onDial(t *testing.T, settings server.Settings) (*world, *dial) {
	t.Helper()
	d := &dial{now: &settings}
	w := newWorld(t, func(o *server.Options) {
		if settings.Confined == nil {
			settings.Confined = o.Settings.Confined
		}
		o.Configure = func(changed func()) server.Configuration {
			d.changed = changed
			return d
		}
	})
	return w, d
}

func asking(s server.Settings) server.Settings {
	s.ApprovalPolicy = approval.PolicyAsk
	return s
}

// changed waits until the editor was told of a change.
func (w *world) changed() {
	w.t.Helper()
	w.editor.AwaitNotification(proto.MethodCapabilitiesChanged, nil)
}

// TestAChangeCountsFromTheNextRun: what runs goes on under the policy that it began
// under, and each result has the hash of its own.
func TestAChangeCountsFromTheNextRun(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		w, d := onDial(t, asking(server.Settings{Mode: sandbox.WorkspaceWrite, Network: true}))
		w.editor.Initialize(full(w.folder))
		w.changed() // probed
		first := w.editor.Request(proto.MethodRunCommand, proto.RunCommandParams{Command: "first", RunID: "first"})
		running := w.next(w.confined)
		d.turn(func(s *server.Settings) {
			s.Mode, s.Network, s.Limits = sandbox.ReadOnly, false, sandbox.Limits{Processes: 7}
			s.Problems = []proto.SettingsProblem{{Severity: proto.SeverityWarning, Message: "a line is ignored"}}
		})
		var log proto.LogMessageParams
		w.editor.AwaitNotification(proto.MethodLogMessage, &log)
		if log.Type != proto.MessageWarning || !strings.Contains(log.Message, "a line is ignored") {
			t.Errorf("the log says %+v", log)
		}
		w.changed()
		second := w.editor.Request(proto.MethodRunCommand, proto.RunCommandParams{Command: "second", RunID: "second"})
		w.next(w.confined).Exit(0)
		select {
		case <-running.Cancelled():
			t.Error("the first run was cancelled")
		default:
		}
		running.Exit(0)
		var before, after proto.RunResult
		w.editor.Response(first, &before)
		w.editor.Response(second, &after)
		if before.Sandbox.Mode != sandbox.WorkspaceWrite || after.Sandbox.Mode != sandbox.ReadOnly {
			t.Errorf("modes %s and %s", before.Sandbox.Mode, after.Sandbox.Mode)
		}
		specs := w.confined.Specs()
		if p := specs[1].Policy; p.Network || p.Limits.Processes != 7 {
			t.Errorf("the second ran under %v", p)
		}
		for i, result := range []proto.RunResult{before, after} {
			if want := specs[i].Policy.Hash(); result.PolicyHash != want {
				t.Errorf("%s: hash %s, want %s", result.RunID, result.PolicyHash, want)
			}
		}
		var c proto.Capabilities
		w.editor.Call(proto.MethodCapabilities, nil, &c)
		if len(c.SettingsProblems) != 1 || c.SettingsProblems[0].Message != "a line is ignored" {
			t.Errorf("problems %+v", c.SettingsProblems)
		}
	})
}

// TestNoEscalationAcrossAChange: what an earlier run had without a question may not be
// what is configured now.
func TestNoEscalationAcrossAChange(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		w, d := onDial(t, asking(server.Settings{Mode: sandbox.WorkspaceWrite, Network: true}))
		w.editor.Initialize(full(w.folder))
		w.denied(proto.RunCommandParams{})
		d.turn(func(s *server.Settings) { s.Network = false })
		e := w.editor.CallError(proto.MethodRequestEscalation, proto.EscalationParams{
			RunID: "first", Additional: &proto.Additional{Read: []string{w.folder}}, Justification: "it must",
		})
		if e.Code != proto.CodeInvalidParams || !strings.Contains(e.Message, "settings have changed") {
			t.Errorf("got %v", e)
		}
	})
}

// TestNoAnswerAcrossAChange: what was shown under settings that hold no more does not run.
func TestNoAnswerAcrossAChange(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		w, d := onDial(t, asking(server.Settings{Mode: sandbox.ReadOnly}))
		w.editor.Initialize(full(w.folder))
		id := w.editor.Request(proto.MethodRunCommand, wider())
		m, q := w.question()
		d.turn(func(s *server.Settings) { s.ApprovalPolicy = approval.PolicyNever })
		w.choose(m, q, "allow_once")
		e := w.editor.ResponseError(id)
		if e.Code != proto.CodeRequestFailed || !strings.Contains(e.Message, "settings changed while") {
			t.Errorf("got %v", e)
		}
		if specs := w.confined.Specs(); len(specs) != 0 {
			t.Errorf("%d commands ran", len(specs))
		}
	})
}

// TestNothingRunsUnderSettingsThatCannotBeTrusted until they are mended.
func TestNothingRunsUnderSettingsThatCannotBeTrusted(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		w, d := onDial(t, asking(server.Settings{Mode: sandbox.ReadOnly}))
		w.editor.Initialize(full(w.folder))
		w.denied(proto.RunCommandParams{})
		d.turn(func(s *server.Settings) { s.Refusal = "/w/.confine/config.toml:3: why" })
		for _, p := range []proto.RunCommandParams{
			{Command: "x"}, {Command: "x", Background: true}, {Command: "x", Mode: sandbox.ReadOnly}, wider(),
		} {
			e := w.editor.CallError(proto.MethodRunCommand, p)
			if e.Code != proto.CodeRequestFailed || !strings.Contains(string(e.Data), `"SETTINGS_INVALID"`) || !strings.Contains(e.Message, "config.toml:3") {
				t.Errorf("got %v %s", e, e.Data)
			}
		}
		e := w.editor.CallError(proto.MethodRequestEscalation, proto.EscalationParams{RunID: "first", SandboxPermissions: sandbox.DangerFullAccess, Justification: "it must"})
		if !strings.Contains(string(e.Data), `"SETTINGS_INVALID"`) {
			t.Errorf("an escalation: %v %s", e, e.Data)
		}
		if n := len(w.confined.Specs()) + len(w.unconfined.Specs()); n != 1 {
			t.Errorf("%d commands ran", n)
		}
		d.turn(func(s *server.Settings) { s.Refusal = "" })
		w.confined.Script("x", exit0)
		if r := w.run(proto.RunCommandParams{Command: "x"}); r.Status != proto.StatusCompleted {
			t.Errorf("mended: %+v", r)
		}
	})
}

// TestThePolicyOfApprovalsFollows the settings.
func TestThePolicyOfApprovalsFollows(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		w, d := onDial(t, asking(server.Settings{Mode: sandbox.ReadOnly}))
		w.editor.Initialize(full(w.folder))
		d.turn(func(s *server.Settings) { s.ApprovalPolicy = approval.PolicyNever })
		r := w.run(wider())
		if r.Status != proto.StatusRefused || r.Approval.By != string(approval.ByPolicy) {
			t.Errorf("got %+v, %+v", r, r.Approval)
		}
	})
}

// TestAConfigurationIsToldOfTheConnection: the options, the folders as they change,
// and the end.
func TestAConfigurationIsToldOfTheConnection(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		w, d := onDial(t, asking(server.Settings{Mode: sandbox.ReadOnly}))
		params := full(w.folder).Params()
		params["initializationOptions"] = map[string]any{"sandbox_mode": "read-only"}
		w.editor.Call(proto.MethodInitialize, params, nil)
		w.editor.Notify(proto.MethodInitialized, nil)
		if string(d.options) != `{"sandbox_mode":"read-only"}` || !slices.Equal(d.folders, []string{w.folder}) {
			t.Errorf("options %s, folders %q", d.options, d.folders)
		}
		other := realTempDir(t)
		w.editor.Notify(proto.MethodDidChangeWorkspaceFolders, map[string]any{"event": map[string]any{
			"added": []any{map[string]any{"uri": fileURI(other), "name": "o"}}, "removed": []any{map[string]any{"uri": fileURI(w.folder), "name": "w"}},
		}})
		w.editor.Call(proto.MethodCapabilities, nil, nil)
		if !slices.Equal(d.folders, []string{other}) {
			t.Errorf("folders %q", d.folders)
		}
		w.editor.Shutdown()
		<-w.served
		if !d.closed {
			t.Error("it was not closed")
		}
	})
}

// TestWritableRoots of the settings are roots like those of the workspace.
func TestWritableRoots(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		extra, outside := realTempDir(t), realTempDir(t)
		w, d := onDial(t, asking(server.Settings{Mode: sandbox.WorkspaceWrite}))
		later, planted := filepath.Join(extra, "later"), filepath.Join(w.folder, "planted")
		if err := os.Symlink(outside, planted); err != nil {
			t.Skip(err)
		}
		w.editor.Initialize(full(w.folder))
		d.turn(func(s *server.Settings) { s.WritableRoots = []string{extra, later + ".missing", planted, "/"} })
		w.confined.Script("x", exit0)
		r := w.run(proto.RunCommandParams{Command: "x"})
		if got, want := w.confined.Specs()[0].Policy.RootPaths(), []string{w.folder, extra}; !slices.Equal(got, want) {
			t.Errorf("roots %q, want %q", got, want)
		}
		if want := []string{later + ".missing", planted, "/"}; !slices.Equal(r.Sandbox.SkippedRoots, want) {
			t.Errorf("skipped %q, want %q", r.Sandbox.SkippedRoots, want)
		}
		var c proto.Capabilities
		w.editor.Call(proto.MethodCapabilities, nil, &c)
		if !slices.Equal(c.Roots, []string{w.folder, extra}) || len(c.SettingsProblems) != 3 || !strings.Contains(c.SettingsProblems[1].Message, "is a link") {
			t.Errorf("roots %q, problems %+v", c.Roots, c.SettingsProblems)
		}

		// One that is made, one that is named no more.
		if err := os.Mkdir(later, 0o700); err != nil {
			t.Fatal(err)
		}
		d.turn(func(s *server.Settings) { s.WritableRoots = []string{later} })
		w.run(proto.RunCommandParams{Command: "x"})
		if got, want := w.confined.Specs()[1].Policy.RootPaths(), []string{w.folder, later}; !slices.Equal(got, want) {
			t.Errorf("roots %q, want %q", got, want)
		}
	})
}

// TestWritableRootsWithoutAWorkspace are enough for workspace-write.
func TestWritableRootsWithoutAWorkspace(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		extra := realTempDir(t)
		w, _ := onDial(t, asking(server.Settings{Mode: sandbox.WorkspaceWrite, WritableRoots: []string{extra}}))
		w.editor.Initialize(rpctest.Init{})
		w.confined.Script("x", exit0)
		w.run(proto.RunCommandParams{Command: "x"})
		if p := w.confined.Specs()[0].Policy; p.Mode != sandbox.WorkspaceWrite || !slices.Equal(p.RootPaths(), []string{extra}) {
			t.Errorf("it ran under %v", p)
		}
	})
}
