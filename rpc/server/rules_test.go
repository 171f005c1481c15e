package server_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/confine-dev/confine/approval"
	"github.com/confine-dev/confine/approval/rules"
	"github.com/confine-dev/confine/rpc/proto"
	"github.com/confine-dev/confine/rpc/server"
)

func ruled(policy approval.Policy) func(*server.Options) {
	return func(o *server.Options) {
		o.Settings.ApprovalPolicy = policy
		o.Settings.Rules = rules.Rules{
			{Decision: rules.Deny, Command: []string{"git", "push"}, Reason: "releases go through CI", Origin: "here:1"},
			{Decision: rules.Ask, Command: []string{"npm", "publish"}, Origin: "here:2"},
			{Decision: rules.Allow, Command: []string{"make"}, Origin: "here:3"},
		}
	}
}

func TestDeniedByRule(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		w := open(t, ruled(approval.PolicyAsk))
		r := w.run(proto.RunCommandParams{Command: "env git push"})
		w.refused(r, proto.StatusRefused, "rejected")
		if r.Approval.By != "policy" || !strings.Contains(r.ModelText, "releases go through CI") {
			t.Errorf("by %q: %q", r.Approval.By, r.ModelText)
		}
	})
}

// TestWhatUntrustedAsks: nothing but what is allowed runs without an answer.
func TestWhatUntrustedAsks(t *testing.T) {
	for command, asked := range map[string]map[approval.Policy]bool{
		"ls":             {},
		"make test":      {},
		"cc x.c":         {approval.PolicyUntrusted: true},
		"make > x":       {approval.PolicyUntrusted: true},
		"npm publish":    {approval.PolicyUntrusted: true, approval.PolicyAsk: true},
		"$X publish":     {approval.PolicyUntrusted: true, approval.PolicyAsk: true},
		"echo 'oh":       {approval.PolicyUntrusted: true, approval.PolicyAsk: true},
		"echo \"$HOME\"": {approval.PolicyUntrusted: true},
	} {
		for _, policy := range []approval.Policy{approval.PolicyAsk, approval.PolicyUntrusted} {
			inBubble(t, func(t *testing.T) {
				w := open(t, ruled(policy))
				id := w.editor.Request(proto.MethodRunCommand, proto.RunCommandParams{Command: command})
				var r proto.RunResult
				if asked[policy] {
					m, q := w.question()
					if q.Kind != "command" || q.Wanted.Mode != q.Mode || q.Reason == "" {
						t.Errorf("%s under %s: the question is %+v", command, policy, q)
					}
					w.choose(m, q, "reject_once")
					w.editor.Response(id, &r)
					w.refused(r, proto.StatusRefused, "rejected")
					return
				}
				w.next(w.confined).Exit(0)
				if w.editor.Response(id, &r); r.Status != proto.StatusCompleted || r.Approval != nil {
					t.Errorf("%s under %s: %s, %+v", command, policy, r.Status, r.Approval)
				}
			})
		}
	}
}

func TestExplain(t *testing.T) {
	for _, test := range []struct {
		policy   approval.Policy
		params   proto.RunCommandParams
		auto     bool
		now      proto.Outlook
		decision rules.Decision
		origin   string // of the rule
	}{
		{"ask", proto.RunCommandParams{Command: "ls"}, true, "runs", "allow", ""},
		{"ask", proto.RunCommandParams{Command: "make x"}, true, "runs", "allow", "here:3"},
		{"ask", proto.RunCommandParams{Command: "touch x"}, false, "runs", "", ""},
		{"ask", proto.RunCommandParams{Argv: []string{"git", "push"}}, false, "refused", "deny", "here:1"},
		{"ask", proto.RunCommandParams{Command: "npm publish"}, false, "asks", "ask", "here:2"},
		{"ask", proto.RunCommandParams{Command: "make x", SandboxPermissions: "danger-full-access", Justification: "y"}, false, "asks", "allow", "here:3"},
		{"untrusted", proto.RunCommandParams{Command: "touch x"}, false, "asks", "", ""},
		{"untrusted", proto.RunCommandParams{Command: "ls"}, true, "runs", "allow", ""},
		{"untrusted", proto.RunCommandParams{Command: "ls", Env: map[string]string{"A": "b"}}, false, "asks", "", ""},
		{"never", proto.RunCommandParams{Command: "npm publish"}, false, "refused", "ask", "here:2"},
		{"never", proto.RunCommandParams{Command: "touch x"}, false, "runs", "", ""},
	} {
		inBubble(t, func(t *testing.T) {
			w := open(t, ruled(test.policy))
			var e proto.Explanation
			w.editor.Call(proto.MethodExplain, test.params, &e)
			if e.Auto != test.auto || e.Now != test.now || e.Decision != test.decision || e.Why == "" {
				t.Errorf("%+v under %s: %+v", test.params, test.policy, e)
			}
			if (e.Rule == nil) != (test.origin == "") || e.Rule != nil && e.Rule.Origin != test.origin {
				t.Errorf("%+v: the rule is %+v", test.params, e.Rule)
			}
			if words := test.params.Command + strings.Join(test.params.Argv, " "); !strings.Contains(e.Prompt, "«"+words+"»") {
				t.Errorf("%q is not in the question\n%s", words, e.Prompt)
			}
			if n := len(w.confined.Specs()) + len(w.unconfined.Specs()); n != 0 || asksSomething(w) {
				t.Errorf("%+v was run or asked about", test.params)
			}
		})
	}
}

// asksSomething reports whether the editor was sent a question.
func asksSomething(w *world) bool {
	for _, m := range w.editor.Received() {
		if m.Method == proto.MethodRequestApproval || m.Method == proto.MethodShowMessageRequest {
			return true
		}
	}
	return false
}

// TestGitInAnotherRepository: what git runs there the configuration of that one says.
func TestGitInAnotherRepository(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		w := open(t, ruled(approval.PolicyUntrusted))
		for _, folder := range []string{".git", "src/deep", "nested/.git", "nested/src", "bare/HEAD", "bare/refs"} {
			if err := os.MkdirAll(filepath.Join(w.folder, folder), 0o700); err != nil {
				t.Fatal(err)
			}
		}
		if err := os.Symlink(filepath.Join(w.folder, "nested"), filepath.Join(w.folder, "src/link")); err != nil {
			t.Skip("this system makes no links: ", err)
		}
		for dir, own := range map[string]bool{
			"": true, "src": true, "src/deep": true, "nested": false, "nested/src": false, "src/link": false, "bare": false, "bare/refs": false, "..": false,
		} {
			for command, want := range map[string]bool{"git status": own, "make; git log": own, "ls": true} {
				var e proto.Explanation
				w.editor.Call(proto.MethodExplain, proto.RunCommandParams{Command: command, Cwd: filepath.Join(w.folder, dir)}, &e)
				if e.Auto != want {
					t.Errorf("%s in %q: %+v", command, dir, e)
				}
			}
		}
		// Above all there is nothing to find, and no command makes anything there.
		var e proto.Explanation
		top := filepath.VolumeName(w.folder) + string(filepath.Separator)
		w.editor.Call(proto.MethodExplain, proto.RunCommandParams{Command: "git status", Cwd: top}, &e)
		if !e.Auto {
			t.Errorf("git status in %q: %+v", top, e)
		}
	})
}
