package server_test

import (
	"testing"
	"time"

	"github.com/confine-dev/confine/rpc/proto"
	"github.com/confine-dev/confine/sandbox"
	"github.com/confine-dev/confine/sandbox/sandboxtest"
)

func TestRunReportsEverything(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		w := open(t, mode(sandbox.WorkspaceWrite))
		w.confined.Script("make", func(p *sandboxtest.FakeProcess) {
			p.Stdout("built\n")
			p.Stderr("warned\n")
			time.Sleep(3 * time.Second)
			p.Exit(3)
		})
		r := w.run(proto.RunCommandParams{Command: "make", RunID: "my-run_1"})
		if r.RunID != "my-run_1" || r.Status != proto.StatusCompleted || r.ExitCode == nil || *r.ExitCode != 3 || r.Signal != "" || r.TimedOut {
			t.Errorf("wrong end: %+v", r)
		}
		if r.DurationMs != 3000 || r.EffectiveTimeoutMs != 120000 {
			t.Errorf("duration %d, timeout %d", r.DurationMs, r.EffectiveTimeoutMs)
		}
		if r.Stdout.Text != "built\n" || r.Stdout.Bytes != 6 || r.Stderr.Text != "warned\n" {
			t.Errorf("wrong output: %+v %+v", r.Stdout, r.Stderr)
		}
		s := r.Sandbox
		if s == nil || s.Mode != sandbox.WorkspaceWrite || s.Provider != "landlock" || s.Kind != "linux-landlock" || s.Enforcement != sandbox.EnforcementFull || s.Denied || len(s.Facets) != len(sandbox.Facets) {
			t.Errorf("wrong sandbox facts: %+v", s)
		}
		if r.Approval != nil || r.Escalation != nil || r.Error != nil {
			t.Errorf("nothing was asked, denied or broken: %+v", r)
		}
		if len(r.DroppedEnv) != 1 || r.DroppedEnv[0] != "SECRET_TOKEN" {
			t.Errorf("dropped %q", r.DroppedEnv)
		}
		if want := "built\n[stderr]\nwarned\n[exit code: 3]"; r.ModelText != want {
			t.Errorf("model text %q, want %q", r.ModelText, want)
		}
		spec := w.confined.Specs()[0]
		if spec.Dir != w.folder || spec.Policy.Mode != sandbox.WorkspaceWrite || len(spec.Policy.Roots) != 1 || spec.Policy.Roots[0].Path != w.folder || spec.Policy.Network {
			t.Errorf("wrong spec: %+v", spec)
		}
		if spec.Policy.Hash() != r.PolicyHash {
			t.Error("the policy hash is not that of the policy that ran")
		}
	})
}
