package server_test

import (
	"io"
	"strings"
	"testing"

	"github.com/confine-dev/confine/rpc/proto"
	"github.com/confine-dev/confine/rpc/rpctest"
	"github.com/confine-dev/confine/rpc/server"
	"github.com/confine-dev/confine/sandbox"
	"github.com/confine-dev/confine/sandbox/sandboxtest"
)

// TestWhatRunCommandRefuses sends each request to a server that is configured
// for read-only, without network, with one folder open.
func TestWhatRunCommandRefuses(t *testing.T) {
	type params = map[string]any
	for name, test := range map[string]struct {
		params params
		says   string // part of the message
	}{
		"nothing":                      {params{}, "command or argv"},
		"blank command":                {params{"command": " \n"}, "blank"},
		"both forms":                   {params{"command": "ls", "argv": []string{"ls"}}, "exclude"},
		"NUL in the command":           {params{"command": "ls\x00"}, "NUL"},
		"NUL in an argument":           {params{"argv": []string{"ls", "a\x00b"}}, "NUL"},
		"NUL in cwd":                   {params{"command": "ls", "cwd": "/a\x00"}, "NUL"},
		"no program":                   {params{"argv": []string{"", "x"}}, "no program"},
		"relative cwd":                 {params{"command": "ls", "cwd": "src"}, "absolute"},
		"pty that is no size":          {params{"command": "ls", "pty": true}, "pty"},
		"pty without columns":          {params{"command": "ls", "pty": params{"columns": -1}}, "columns"},
		"pty of too many rows":         {params{"command": "ls", "pty": params{"rows": 10001}}, "rows"},
		"stdinOpen in words":           {params{"command": "ls", "stdinOpen": "yes"}, "stdinOpen"},
		"zero timeout":                 {params{"command": "ls", "timeoutMs": 0}, "timeoutMs"},
		"negative timeout":             {params{"command": "ls", "timeoutMs": -1}, "timeoutMs"},
		"timeout in words":             {params{"command": "ls", "timeoutMs": "soon"}, "timeoutMs"},
		"runId with a slash":           {params{"command": "ls", "runId": "a/b"}, "runId"},
		"long runId":                   {params{"command": "ls", "runId": strings.Repeat("a", 65)}, "runId"},
		"runId with a newline":         {params{"command": "ls", "runId": "a\n"}, "runId"},
		"long session":                 {params{"command": "ls", "session": strings.Repeat("s", 257)}, "session"},
		"nameless variable":            {params{"command": "ls", "env": params{"": "x"}}, "env"},
		"variable with =":              {params{"command": "ls", "env": params{"A=B": "x"}}, "env"},
		"NUL in a variable":            {params{"command": "ls", "env": params{"A": "\x00"}}, "env"},
		"a token that is an object":    {params{"command": "ls", "workDoneToken": params{}}, "workDoneToken"},
		"a token that is a list":       {params{"command": "ls", "workDoneToken": []int{1}}, "workDoneToken"},
		"a token that is true":         {params{"command": "ls", "workDoneToken": true}, "workDoneToken"},
		"a token that is a fraction":   {params{"command": "ls", "workDoneToken": 1.5}, "workDoneToken"},
		"unknown mode":                 {params{"command": "ls", "mode": "readonly"}, "readonly"},
		"wider mode":                   {params{"command": "ls", "mode": "workspace-write"}, "wider"},
		"no sandbox":                   {params{"command": "ls", "mode": "danger-full-access"}, "wider"},
		"somebody else's sandbox":      {params{"command": "ls", "mode": "external-sandbox"}, "wider"},
		"network":                      {params{"command": "ls", "network": true}, "network"},
		"no justification":             {params{"command": "ls", "sandboxPermissions": "workspace-write"}, "justification"},
		"blank justification":          {params{"command": "ls", "sandboxPermissions": "workspace-write", "justification": " "}, "justification"},
		"justification alone":          {params{"command": "ls", "justification": "please"}, "sandboxPermissions"},
		"read-only as permission":      {params{"command": "ls", "sandboxPermissions": "read-only", "justification": "please"}, "sandboxPermissions"},
		"unknown permission":           {params{"command": "ls", "sandboxPermissions": "all", "justification": "please"}, "sandboxPermissions"},
		"external as permission":       {params{"command": "ls", "sandboxPermissions": "external-sandbox", "justification": "please"}, "sandboxPermissions"},
		"mode beyond the permission":   {params{"command": "ls", "mode": "danger-full-access", "sandboxPermissions": "workspace-write", "justification": "please"}, "wider"},
		"external with a permission":   {params{"command": "ls", "mode": "external-sandbox", "sandboxPermissions": "danger-full-access", "justification": "please"}, "wider"},
		"no network without a sandbox": {params{"command": "ls", "network": false, "sandboxPermissions": "danger-full-access", "justification": "please"}, "withheld"},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T) {
				w := open(t, nil)
				e := w.editor.CallError(proto.MethodRunCommand, test.params)
				if e.Code != -32602 || !strings.Contains(e.Message, test.says) {
					t.Errorf("%v, want -32602 with %q", e, test.says)
				}
				if len(w.confined.Specs())+len(w.unconfined.Specs()) != 0 {
					t.Error("something ran")
				}
			})
		})
	}
}

// TestScopes says for settings and request what runs, and whether somebody is
// asked first.
func TestScopes(t *testing.T) {
	const ro, ws, all, external = sandbox.ReadOnly, sandbox.WorkspaceWrite, sandbox.DangerFullAccess, sandbox.ExternalSandbox
	yes, no := true, false
	please := func(target sandbox.Mode) proto.RunCommandParams {
		return proto.RunCommandParams{SandboxPermissions: target, Justification: "it needs that"}
	}
	for name, test := range map[string]struct {
		mode    sandbox.Mode
		network bool
		params  proto.RunCommandParams
		asked   bool
		runs    sandbox.Mode
		online  bool
	}{
		"default":                             {mode: ws, runs: ws},
		"default with network":                {mode: ro, network: true, runs: ro, online: true},
		"same mode":                           {mode: ws, params: proto.RunCommandParams{Mode: ws}, runs: ws},
		"narrower mode":                       {mode: ws, params: proto.RunCommandParams{Mode: ro}, runs: ro},
		"narrower than everything":            {mode: all, params: proto.RunCommandParams{Mode: ro}, runs: ro},
		"no network":                          {mode: ws, network: true, params: proto.RunCommandParams{Network: &no}, runs: ws},
		"network that is configured":          {mode: ws, network: true, params: proto.RunCommandParams{Network: &yes}, runs: ws, online: true},
		"everything":                          {mode: all, runs: all, online: true},
		"confined with network by everything": {mode: all, params: proto.RunCommandParams{Mode: ro, Network: &yes}, runs: ro, online: true},
		"confined in an external sandbox":     {mode: external, params: proto.RunCommandParams{Mode: ws}, runs: ws},
		"external sandbox":                    {mode: external, runs: external, online: true},
		"asks for the same":                   {mode: ws, params: please(ws), runs: ws},
		"asks for less":                       {mode: all, params: please(ws), runs: all, online: true},
		"asks for more":                       {mode: ro, params: please(ws), asked: true, runs: ws},
		"asks for everything":                 {mode: ro, params: please(all), asked: true, runs: all, online: true},
		"asks out of an external sandbox":     {mode: external, params: please(all), asked: true, runs: all, online: true},
		"asks beyond its own narrowing": {mode: ws, asked: true, runs: ws, params: proto.RunCommandParams{
			Mode: ro, SandboxPermissions: ws, Justification: "x"}},
		"asks for the network": {mode: ws, asked: true, runs: ws, online: true, params: proto.RunCommandParams{
			Network: &yes, SandboxPermissions: ws, Justification: "x"}},
		"asks for mode and network": {mode: ro, asked: true, runs: ws, online: true, params: proto.RunCommandParams{
			Mode: ws, Network: &yes, SandboxPermissions: ws, Justification: "x"}},
		"keeps the network when it asks": {mode: ro, network: true, asked: true, runs: ws, online: true, params: please(ws)},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T) {
				w := open(t, func(o *server.Options) { o.Settings.Mode, o.Settings.Network = test.mode, test.network })
				w.confined.Script("make", exit0)
				w.unconfined.Script("make", exit0)
				test.params.Command = "make"
				id := w.editor.Request(proto.MethodRunCommand, test.params)
				if test.asked {
					m, q := w.question()
					if q.Kind != "command" || q.Justification == "" || q.Wanted.Mode != test.runs {
						t.Errorf("asked %+v", q)
					}
					if n := len(w.confined.Specs()) + len(w.unconfined.Specs()); n != 0 {
						t.Error("it ran before there was an answer")
					}
					w.choose(m, q, "allow_once")
				}
				var r proto.RunResult
				w.editor.Response(id, &r)
				if r.Status != proto.StatusCompleted {
					t.Fatalf("status %s: %s", r.Status, r.ModelText)
				}
				ran := append(w.confined.Specs(), w.unconfined.Specs()...)
				if len(ran) != 1 || ran[0].Policy.Mode != test.runs || ran[0].Policy.Network != test.online {
					t.Errorf("ran %+v, want %s, network %v", ran, test.runs, test.online)
				}
				if confined := len(w.confined.Specs()) == 1; confined != test.runs.Confined() {
					t.Errorf("ran confined: %v", confined)
				}
				if (r.Approval != nil) != test.asked {
					t.Errorf("approval %+v, asked %v", r.Approval, test.asked)
				}
				if test.asked && (r.Approval.Outcome != "allowed-once" || r.Approval.By != "person") {
					t.Errorf("approval %+v", r.Approval)
				}
			})
		})
	}
}

func TestTimeoutsAreClamped(t *testing.T) {
	ms := func(n int64) *int64 { return &n }
	for name, test := range map[string]struct {
		params proto.RunCommandParams
		want   int64
	}{
		"default":              {proto.RunCommandParams{}, 120_000},
		"own":                  {proto.RunCommandParams{TimeoutMs: ms(1500)}, 1500},
		"too long":             {proto.RunCommandParams{TimeoutMs: ms(1 << 50)}, 600_000},
		"background":           {proto.RunCommandParams{Background: true}, 0},
		"background, own":      {proto.RunCommandParams{Background: true, TimeoutMs: ms(2000)}, 2000},
		"background, too long": {proto.RunCommandParams{Background: true, TimeoutMs: ms(700_000)}, 600_000},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T) {
				w := open(t, nil)
				test.params.Command, test.params.RunID = "sleep", "r"
				id := w.editor.Request(proto.MethodRunCommand, test.params)
				p := w.next(w.confined)
				if got := p.Spec.Timeout.Milliseconds(); got != test.want {
					t.Errorf("the provider was told %d ms, want %d", got, test.want)
				}
				if test.want == 0 {
					p.Exit(0)
				} // else the fake ends it when the time is over
				w.editor.Response(id, nil)
				<-p.Done()
				var r proto.RunResult
				w.editor.Call(proto.MethodRunsWait, proto.WaitParams{RunID: "r"}, &r)
				if r.EffectiveTimeoutMs != test.want || r.TimedOut != (test.want > 0) {
					t.Errorf("reported %d ms, timed out %v; want %d", r.EffectiveTimeoutMs, r.TimedOut, test.want)
				}
			})
		})
	}
}

func TestRunIDsAreFresh(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		w := open(t, nil)
		w.confined.Script("true", exit0)
		w.run(proto.RunCommandParams{Command: "true", RunID: "one"})
		if e := w.editor.CallError(proto.MethodRunCommand, proto.RunCommandParams{Command: "true", RunID: "one"}); e.Code != -32602 {
			t.Errorf("%v, want -32602", e)
		}
		a, b := w.run(proto.RunCommandParams{Command: "true"}), w.run(proto.RunCommandParams{Command: "true"})
		if a.RunID == b.RunID || a.RunID == "" {
			t.Errorf("ids %q and %q", a.RunID, b.RunID)
		}
	})
}

func TestWhatTheCommandGets(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		w := open(t, nil)
		got := make(chan string, 1)
		w.confined.Script("", func(p *sandboxtest.FakeProcess) {
			data, err := io.ReadAll(p.Spec.Stdin)
			if err != nil {
				t.Error(err)
			}
			got <- string(data)
			p.Exit(0)
		})
		w.run(proto.RunCommandParams{
			Argv: []string{"cat", "-n"}, Cwd: "/tmp/../usr", Stdin: "in\x00put", Env: map[string]string{"A": "b"}, Session: "s",
		})
		spec := w.confined.Specs()[0]
		if len(spec.Argv) != 2 || spec.Argv[0] != "cat" || spec.Argv[1] != "-n" || spec.Command != "" {
			t.Errorf("argv %q, command %q", spec.Argv, spec.Command)
		}
		if spec.Dir != "/tmp/../usr" {
			t.Errorf("dir %q: it must not be cleaned", spec.Dir)
		}
		if data := <-got; data != "in\x00put" {
			t.Errorf("stdin %q", data)
		}
		env := strings.Join(spec.Env, "\n")
		if !strings.Contains(env, "A=b") || !strings.Contains(env, "PATH=/usr/bin") || strings.Contains(env, "SECRET") {
			t.Errorf("env %q", spec.Env)
		}
		w.confined.Script("true", exit0)
		w.run(proto.RunCommandParams{Command: "true"})
		w.run(proto.RunCommandParams{Command: "true", Session: "s"})
		specs := w.confined.Specs()
		if specs[1].Stdin != nil {
			t.Error("without stdin there must be none")
		}
		if specs[0].Session == specs[1].Session || specs[0].Session != specs[2].Session || specs[1].Session == "" {
			t.Errorf("sessions %q %q %q", specs[0].Session, specs[1].Session, specs[2].Session)
		}
	})
}

func TestFoldersAndDirectories(t *testing.T) {
	home, a, b := realTempDir(t), realTempDir(t), realTempDir(t)
	started := func(t *testing.T, init rpctest.Init) *world {
		w := newWorld(t, func(o *server.Options) { o.Forbidden.Home, o.Settings.Mode = home, sandbox.WorkspaceWrite })
		init.Confine = &proto.ClientConfine{ProtocolVersion: 1, Approval: true}
		w.editor.Initialize(init)
		w.confined.Script("true", exit0)
		return w
	}
	last := func(w *world) sandbox.Spec { s := w.confined.Specs(); return s[len(s)-1] }
	const ws = sandbox.WorkspaceWrite
	for name, test := range map[string]func(*testing.T){

		"no folder": func(t *testing.T) {
			w := started(t, rpctest.Init{})
			r := w.run(proto.RunCommandParams{Command: "true"})
			if r.Sandbox.Mode != sandbox.ReadOnly || last(w).Dir != home {
				t.Errorf("ran in %s under %s", last(w).Dir, r.Sandbox.Mode)
			}
			for _, p := range []proto.RunCommandParams{
				{Command: "true", Mode: ws},
				{Command: "true", SandboxPermissions: ws, Justification: "x"},
			} {
				if e := w.editor.CallError(proto.MethodRunCommand, p); e.Code != -32602 || !strings.Contains(e.Message, "folder") {
					t.Errorf("%+v: %v", p, e)
				}
			}
		},
		"several folders": func(t *testing.T) {
			w := started(t, rpctest.Init{Folders: []string{fileURI(a), fileURI(b), fileURI(a)}})
			if e := w.editor.CallError(proto.MethodRunCommand, proto.RunCommandParams{Command: "true"}); e.Code != -32602 || !strings.Contains(e.Message, "cwd") {
				t.Errorf("no cwd: %v", e)
			}
			w.run(proto.RunCommandParams{Command: "true", Cwd: b})
			if got := last(w); got.Dir != b || len(got.Policy.Roots) != 2 {
				t.Errorf("ran in %s with %d roots", got.Dir, len(got.Policy.Roots))
			}
		},
		"rootUri": func(t *testing.T) {
			w := started(t, rpctest.Init{RootURI: fileURI(a)})
			w.run(proto.RunCommandParams{Command: "true"})
			if got := last(w); got.Dir != a || len(got.Policy.Roots) != 1 {
				t.Errorf("ran in %s with %d roots", got.Dir, len(got.Policy.Roots))
			}
		},
		"changes": func(t *testing.T) {
			w := started(t, rpctest.Init{Folders: []string{fileURI(a)}})
			w.editor.Notify(proto.MethodDidChangeWorkspaceFolders, proto.DidChangeWorkspaceFoldersParams{Event: proto.WorkspaceFoldersChangeEvent{
				Added:   []proto.WorkspaceFolder{{URI: fileURI(b), Name: "b"}},
				Removed: []proto.WorkspaceFolder{{URI: fileURI(a), Name: "a"}},
			}})
			w.run(proto.RunCommandParams{Command: "true"})
			if got := last(w); got.Dir != b || len(got.Policy.Roots) != 1 || got.Policy.Roots[0].Path != b {
				t.Errorf("ran in %s with %v", got.Dir, got.Policy.RootPaths())
			}
		},
		"another spelling is removed, too": func(t *testing.T) {
			w := started(t, rpctest.Init{Folders: []string{fileURI(a)}})
			w.editor.Notify(proto.MethodDidChangeWorkspaceFolders, proto.DidChangeWorkspaceFoldersParams{Event: proto.WorkspaceFoldersChangeEvent{
				Removed: []proto.WorkspaceFolder{{URI: "file://localhost" + strings.ReplaceAll(a, "a", "%61") + "/", Name: "a"}},
			}})
			w.run(proto.RunCommandParams{Command: "true", Cwd: a})
			if got := last(w); len(got.Policy.Roots) != 0 {
				t.Errorf("%v is still a root", got.Policy.RootPaths())
			}
		},
		"refused folders": func(t *testing.T) {
			missing := a + "/missing"
			uris := []string{fileURI(home), "untitled:x", "file://elsewhere/x", "file:///", fileURI(missing), fileURI(a) + "?x"}
			w := started(t, rpctest.Init{Folders: uris})
			var c proto.Capabilities
			w.editor.Call(proto.MethodCapabilities, nil, &c)
			if len(c.RefusedRoots) != len(uris) || len(c.Roots) != 0 {
				t.Fatalf("refused %+v, roots %q", c.RefusedRoots, c.Roots)
			}
			for i, refused := range c.RefusedRoots {
				if refused.URI != uris[i] || refused.Reason == "" {
					t.Errorf("refused %+v, want %s", refused, uris[i])
				}
			}
			var warning proto.LogMessageParams
			w.editor.AwaitNotification(proto.MethodLogMessage, &warning)
			if !strings.Contains(warning.Message, home) {
				t.Errorf("warned %q", warning.Message)
			}
			r := w.run(proto.RunCommandParams{Command: "true", Cwd: a})
			skipped := strings.Join(r.Sandbox.SkippedRoots, " ")
			if r.Sandbox.Mode != sandbox.ReadOnly || !strings.Contains(skipped, missing) || !strings.Contains(skipped, home) {
				t.Errorf("mode %s, skipped %q", r.Sandbox.Mode, skipped)
			}
		},
	} {
		t.Run(name, func(t *testing.T) { inBubble(t, test) })
	}
}
