package server_test

import (
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/confine-dev/confine/rpc/proto"
	"github.com/confine-dev/confine/rpc/server"
	"github.com/confine-dev/confine/sandbox"
	"github.com/confine-dev/confine/sandbox/sandboxtest"
)

// outside is a folder beside the workspace with a few files in it.
func outside(t *testing.T) (at func(string) string) {
	t.Helper()
	base := realTempDir(t)
	at = func(name string) string { return filepath.Join(base, name) }
	for _, dir := range []string{"home/me/.ssh", "home/me/.confine", "out"} {
		if err := os.MkdirAll(at(dir), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for _, file := range []string{"home/me/.ssh/authorized_keys", "home/me/.confine/settings", "out/file", "out/other"} {
		if err := os.WriteFile(at(file), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return at
}

func forbidding(at func(string) string, m sandbox.Mode) func(*server.Options) {
	return func(o *server.Options) {
		o.Settings.Mode = m
		o.Forbidden = sandbox.Forbidden{Home: at("home/me"), Own: []string{at("home/me/.confine")}}
	}
}

// deniedOf runs "make" so that these denials come of it.
func (w *world) deniedOf(denials ...sandbox.Denial) proto.RunResult {
	w.t.Helper()
	w.confined.Script("make", func(p *sandboxtest.FakeProcess) { p.Deny(denials...) })
	return w.run(proto.RunCommandParams{Command: "make", RunID: "first"})
}

func refused(op, path string) sandbox.Denial {
	return sandbox.Denial{Op: op, Path: path, Errno: "EROFS", Evidence: sandbox.Observed, Count: 1}
}

// ask sends requestEscalation with additional for the run "first".
func (w *world) ask(a proto.Additional) int64 {
	w.t.Helper()
	return w.editor.Request(proto.MethodRequestEscalation, proto.EscalationParams{
		RunID: "first", NewRunID: "second", Additional: &a, Justification: "x",
	})
}

func pathsOf(roots []*sandbox.Root) []string {
	paths := []string{}
	for _, r := range roots {
		paths = append(paths, r.Path)
	}
	return paths
}

// TestAdviceIsEnough: what the result advises can be sent as it is, and the
// command gets exactly that, in the same mode.
func TestAdviceIsEnough(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		at := outside(t)
		w := open(t, forbidding(at, sandbox.WorkspaceWrite))
		first := w.deniedOf(refused("write", at("out/file")), sandbox.Denial{Op: "connect", Address: "192.0.2.1:443", Evidence: sandbox.Observed, Count: 1})
		want := &proto.EscalationHint{Targets: []sandbox.Mode{sandbox.DangerFullAccess}, Additional: &proto.Additional{Write: []string{at("out/file")}, Network: true}}
		if !reflect.DeepEqual(first.Escalation, want) {
			t.Fatalf("escalation %+v, want %+v", first.Escalation, want)
		}
		w.confined.Script("make", exit0)
		id := w.ask(*first.Escalation.Additional)
		m, q := w.question()
		if q.Mode != sandbox.WorkspaceWrite || q.Wanted.Mode != sandbox.WorkspaceWrite || !reflect.DeepEqual(q.Wanted.Additional, want.Additional) {
			t.Errorf("asked to go from %s to %+v, %+v", q.Mode, q.Wanted, q.Wanted.Additional)
		}
		warnings := strings.Join(q.Warnings, "\n")
		for _, says := range []string{"runs again", "every service on localhost", "Becomes writable: the file «" + at("out/file") + "»."} {
			if !strings.Contains(warnings, says) {
				t.Errorf("the warnings do not say %q:\n%s", says, warnings)
			}
		}
		if len(q.Evidence) != 2 {
			t.Errorf("evidence %+v", q.Evidence)
		}
		w.choose(m, q, "allow_once")
		var r proto.RunResult
		w.editor.Response(id, &r)
		specs := w.confined.Specs()
		before, after := specs[0].Policy, specs[1].Policy
		if after.Mode != before.Mode || !after.Network || !slices.Equal(after.Roots, before.Roots) || !slices.Equal(pathsOf(after.Writable), []string{at("out/file")}) || !after.Writable[0].File || len(after.Readable) != 0 {
			t.Errorf("it ran under %s", after)
		}
		if r.Status != proto.StatusCompleted || r.Sandbox.Mode != sandbox.WorkspaceWrite || r.PolicyHash != q.PolicyHash || r.Approval.Outcome != "allowed-once" {
			t.Errorf("result %+v", r)
		}
		// Once is once.
		if r := w.run(proto.RunCommandParams{Command: "make"}); r.PolicyHash != first.PolicyHash {
			t.Errorf("the next run is under another policy")
		}
	})
}

// TestNoAdvice: nothing is offered that would not help.
func TestNoAdvice(t *testing.T) {
	for _, test := range []struct {
		name   string
		mode   sandbox.Mode
		denial func(w *world, at func(string) string) sandbox.Denial
		want   *proto.EscalationHint
	}{
		{"in the workspace", sandbox.ReadOnly, func(w *world, _ func(string) string) sandbox.Denial {
			return refused("create", filepath.Join(w.folder, "new"))
		}, &proto.EscalationHint{Targets: []sandbox.Mode{sandbox.WorkspaceWrite, sandbox.DangerFullAccess}}},
		{"right in the home folder", sandbox.ReadOnly, func(_ *world, at func(string) string) sandbox.Denial {
			return refused("create", at("home/me/new"))
		}, &proto.EscalationHint{Targets: []sandbox.Mode{sandbox.DangerFullAccess}}},
		{"confine's own", sandbox.ReadOnly, func(_ *world, at func(string) string) sandbox.Denial {
			return refused("write", at("home/me/.confine/settings"))
		}, &proto.EscalationHint{Targets: []sandbox.Mode{sandbox.DangerFullAccess}}},
	} {
		t.Run(test.name, func(t *testing.T) {
			inBubble(t, func(t *testing.T) {
				at := outside(t)
				w := open(t, forbidding(at, test.mode))
				if r := w.deniedOf(test.denial(w, at)); !reflect.DeepEqual(r.Escalation, test.want) {
					t.Errorf("escalation %+v, want %+v", r.Escalation, test.want)
				}
			})
		})
	}
}

// TestQuestionShowsWhereLinksLead: a command can make a link in the workspace
// with a harmless name.
func TestQuestionShowsWhereLinksLead(t *testing.T) {
	t.Setenv("TMPDIR", "/tmp") // elsewhere a folder may be the system's, which would be shown too
	inBubble(t, func(t *testing.T) {
		at := outside(t)
		w := open(t, forbidding(at, sandbox.WorkspaceWrite))
		w.deniedOf(refused("write", at("out/file")))
		link := filepath.Join(w.folder, "build\u202e\n.log")
		if err := os.Symlink(at("home/me/.ssh"), link); err != nil {
			t.Skip(err)
		}
		w.confined.Script("make", exit0)
		id := w.ask(proto.Additional{Write: []string{link + "/authorized_keys", link + "/new", link + "/new2", at("out/file")}})
		m, q := w.question()
		if want := []string{at("home/me/.ssh"), at("out/file")}; !slices.Equal(q.Wanted.Additional.Write, want) {
			t.Errorf("wanted %q, want %q", q.Wanted.Additional.Write, want)
		}
		fact := "Becomes writable: the FOLDER «" + at("home/me/.ssh") + "» and everything in it, because «new» does not exist there yet, nor 1 more. Programs RUN or obey what stands there, as you. PASSWORDS OR KEYS are often kept there. NOTHING was refused there."
		if !slices.Contains(q.Warnings, fact) {
			t.Errorf("the warnings %q lack %q", q.Warnings, fact)
		}
		w.choose(m, q, "allow_once")
		w.editor.Response(id, nil)
		if got := pathsOf(w.confined.Specs()[1].Policy.Writable); !slices.Equal(got, q.Wanted.Additional.Write) {
			t.Errorf("it ran with %q", got)
		}
	})
}

// TestSwappedDuringTheQuestion: what was shown is what runs, or nothing runs.
func TestSwappedDuringTheQuestion(t *testing.T) {
	for name, swap := range map[string]func(path, target string) error{
		"for a link":       func(path, target string) error { return os.Symlink(target, path) },
		"for another file": func(path, _ string) error { return os.WriteFile(path, nil, 0o600) },
		"for nothing":      func(string, string) error { return nil },
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T) {
				at := outside(t)
				w := open(t, forbidding(at, sandbox.WorkspaceWrite))
				w.deniedOf(refused("write", at("out/file")))
				id := w.ask(proto.Additional{Write: []string{at("out/file")}})
				m, q := w.question()
				if err := os.Rename(at("out/file"), at("out/aside")); err != nil {
					t.Fatal(err)
				}
				if err := swap(at("out/file"), at("home/me/.ssh/authorized_keys")); err != nil {
					t.Skip(err)
				}
				w.choose(m, q, "allow_once")
				e := w.editor.ResponseError(id)
				if e.Code != -32803 || !strings.Contains(string(e.Data), `"code":"GRANT_CHANGED"`) || !strings.Contains(string(e.Data), "out/file") || !strings.Contains(e.Message, "did not run") {
					t.Errorf("answered %+v, data %s", e, e.Data)
				}
				if n := len(w.confined.Specs()); n != 1 {
					t.Errorf("the command ran %d times", n)
				}
			})
		})
	}
}

// TestNothingNewIsNotAsked: nor is anything run again.
func TestNothingNewIsNotAsked(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		at := outside(t)
		w := open(t, forbidding(at, sandbox.WorkspaceWrite))
		first := w.deniedOf(refused("write", at("out/file")))
		w.unconfined.Script("make", exit0)
		for _, a := range []proto.Additional{
			{Write: []string{w.folder, filepath.Join(w.folder, "new")}}, {Read: []string{"/etc"}}, {Read: []string{w.folder}},
		} {
			var r proto.RunResult
			w.editor.Response(w.ask(a), &r)
			if r.RunID != "first" || r.ModelText != first.ModelText || r.Approval != nil {
				t.Errorf("%+v: answered %+v", a, r)
			}
		}
		id := w.editor.Request(proto.MethodRequestEscalation, proto.EscalationParams{RunID: "first", NewRunID: "free", SandboxPermissions: sandbox.DangerFullAccess, Justification: "x"})
		m, q := w.question()
		if !strings.Contains(strings.Join(q.Warnings, "\n"), "Less than this mode was refused and can be asked for by itself: writing "+at("out/file")) {
			t.Errorf("warnings %q", q.Warnings)
		}
		w.choose(m, q, "allow_once")
		w.editor.Response(id, nil)
		var r proto.RunResult
		w.editor.Call(proto.MethodRequestEscalation, proto.EscalationParams{
			RunID: "free", Additional: &proto.Additional{Write: []string{at("out/file")}, Network: true}, Justification: "x",
		}, &r)
		if r.RunID != "free" {
			t.Errorf("without a sandbox there is nothing to add, but %+v", r)
		}
	})
}

// TestGrantsAddUp: what was granted to a run stays granted to the one that is
// asked for from it, in a wider mode, too.
func TestGrantsAddUp(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		at := outside(t)
		w := open(t, forbidding(at, sandbox.ReadOnly))
		w.deniedOf(refused("write", at("out/file")))
		grant := func(p proto.EscalationParams) proto.Question {
			p.Justification = "x"
			id := w.editor.Request(proto.MethodRequestEscalation, p)
			m, q := w.question()
			w.choose(m, q, "allow_once")
			w.editor.Response(id, nil)
			return q
		}
		grant(proto.EscalationParams{RunID: "first", NewRunID: "2", Additional: &proto.Additional{Write: []string{at("out/file")}}})
		q := grant(proto.EscalationParams{RunID: "2", NewRunID: "3", Additional: &proto.Additional{Write: []string{at("out/other")}, Network: true}})
		if want := []string{at("out/file"), at("out/other")}; !slices.Equal(q.Wanted.Additional.Write, want) {
			t.Errorf("asked for %q, want %q", q.Wanted.Additional.Write, want)
		}
		q = grant(proto.EscalationParams{RunID: "3", NewRunID: "4", SandboxPermissions: sandbox.WorkspaceWrite})
		if want := []string{at("out/file"), at("out/other"), w.folder}; q.Wanted.Mode != sandbox.WorkspaceWrite || !slices.Equal(q.Wanted.Additional.Write, want) || !q.Wanted.Additional.Network {
			t.Errorf("asked for %+v, %+v", q.Wanted, q.Wanted.Additional)
		}
		q = grant(proto.EscalationParams{RunID: "4", NewRunID: "5", Additional: &proto.Additional{Write: []string{at("out")}}})
		if want := []string{at("out"), w.folder}; !slices.Equal(q.Wanted.Additional.Write, want) {
			t.Errorf("asked for %q, want the folder in place of what is in it: %q", q.Wanted.Additional.Write, want)
		}
		// What was granted is gone: a run with it cannot be had any more.
		if err := os.Remove(at("out/other")); err != nil {
			t.Fatal(err)
		}
		e := w.editor.CallError(proto.MethodRequestEscalation, proto.EscalationParams{RunID: "3", SandboxPermissions: sandbox.WorkspaceWrite, Justification: "x"})
		if e.Code != -32602 || !strings.Contains(e.Message, "granted again") {
			t.Errorf("answered %+v", e)
		}
	})
}

// TestClosedFolderStaysClosed: a workspace folder that was removed comes back by
// no grant.
func TestClosedFolderStaysClosed(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		at := outside(t)
		w := open(t, forbidding(at, sandbox.WorkspaceWrite))
		w.editor.Notify(proto.MethodDidChangeWorkspaceFolders, folderChange(nil, []string{at("home/me/.ssh")}))
		w.confined.Script("make", func(p *sandboxtest.FakeProcess) { p.Deny(refused("write", at("out/file"))) })
		w.run(proto.RunCommandParams{Command: "make", RunID: "first", Cwd: w.folder})
		w.editor.Notify(proto.MethodDidChangeWorkspaceFolders, folderChange([]string{at("home/me/.ssh")}, nil))
		id := w.ask(proto.Additional{Write: []string{at("out/file")}})
		m, q := w.question()
		w.choose(m, q, "allow_once")
		w.editor.Response(id, nil)
		if got := w.confined.Specs()[1].Policy.RootPaths(); !slices.Equal(got, []string{w.folder}) {
			t.Errorf("it ran with the roots %q", got)
		}
	})
}

func folderChange(removed, added []string) proto.DidChangeWorkspaceFoldersParams {
	var p proto.DidChangeWorkspaceFoldersParams
	for _, path := range removed {
		p.Event.Removed = append(p.Event.Removed, proto.WorkspaceFolder{URI: fileURI(path)})
	}
	for _, path := range added {
		p.Event.Added = append(p.Event.Added, proto.WorkspaceFolder{URI: fileURI(path)})
	}
	return p
}

func TestWhatAdditionalRefuses(t *testing.T) {
	at := outside(t)
	many := make([]string, 17)
	for i := range many {
		many[i] = fmt.Sprintf("/srv/%d", i)
	}
	type params = map[string]any
	with := func(a any) params { return params{"runId": "first", "justification": "x", "additional": a} }
	for name, test := range map[string]struct {
		params params
		says   string
	}{
		"nothing":            {with(params{}), "asks for nothing"},
		"empty lists":        {with(params{"write": []string{}, "read": []string{}, "network": false}), "asks for nothing"},
		"both":               {params{"runId": "first", "justification": "x", "additional": params{"network": true}, "sandboxPermissions": "danger-full-access"}, "exclude each other"},
		"no justification":   {params{"runId": "first", "justification": " ", "additional": params{"network": true}}, "justification"},
		"too many":           {with(params{"write": many[:9], "read": many[9:]}), "at most 16"},
		"relative":           {with(params{"write": []string{"/etc", "out/file"}}), "additional.write[1] must be an absolute path"},
		"empty path":         {with(params{"read": []string{""}}), "additional.read[0] must be an absolute path"},
		"tilde":              {with(params{"write": []string{"~/.ssh"}}), "absolute"},
		"NUL":                {with(params{"write": []string{"/a\x00b"}}), "NUL"},
		"long":               {with(params{"read": []string{"/" + strings.Repeat("a", 4096)}}), "longer than 4096"},
		"no list":            {with(params{"write": "/etc"}), ""},
		"home":               {with(params{"write": []string{at("home/me")}}), "home folder"},
		"above home":         {with(params{"read": []string{at("home")}}), "home folder"},
		"new in home":        {with(params{"write": []string{at("home/me/new")}}), "home folder"},
		"the root":           {with(params{"write": []string{"/"}}), "root of the file system"},
		"confine's own":      {with(params{"write": []string{at("home/me/.confine/settings")}}), "its own files"},
		"reading them":       {with(params{"read": []string{at("home/me/.confine")}}), "its own files"},
		"reading the absent": {with(params{"read": []string{at("out/none")}}), "does not exist"},
		"a device":           {with(params{"write": []string{"/dev/null"}}), "neither a file nor a folder"},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T) {
				w := open(t, forbidding(at, sandbox.WorkspaceWrite))
				w.deniedOf(refused("write", at("out/file")))
				e := w.editor.CallError(proto.MethodRequestEscalation, test.params)
				if e.Code != -32602 || !strings.Contains(e.Message, test.says) {
					t.Errorf("%v, want -32602 with %q", e, test.says)
				}
			})
		})
	}
}
