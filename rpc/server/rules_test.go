package server_test

import (
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
