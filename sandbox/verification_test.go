package sandbox_test

import (
	"strings"
	"testing"

	"github.com/confine-dev/confine/sandbox"
)

func TestJudge(t *testing.T) {
	const (
		refused, possible, untried = sandbox.Refused, sandbox.Possible, sandbox.Untried
		holds, fails               = sandbox.ClaimHolds, sandbox.ClaimFails
		modest, untold             = sandbox.ClaimModest, sandbox.ClaimUntold
	)
	for _, row := range []struct {
		trials                  []sandbox.Outcome // the last is an exception
		enforced, partial, open sandbox.Finding
	}{
		{nil, untold, untold, untold},
		{[]sandbox.Outcome{untried, untried}, untold, untold, untold},
		{[]sandbox.Outcome{refused, refused}, holds, modest, modest},
		{[]sandbox.Outcome{refused, untried}, holds, holds, untold},
		{[]sandbox.Outcome{refused, possible}, fails, holds, holds},
		{[]sandbox.Outcome{possible, refused}, fails, fails, holds},
		{[]sandbox.Outcome{untried, possible}, fails, holds, holds},
	} {
		var trials []sandbox.Trial
		for i, outcome := range row.trials {
			trials = append(trials, sandbox.Trial{Name: "do that", Outcome: outcome, Exception: i == len(row.trials)-1})
		}
		for state, want := range map[sandbox.FacetState]sandbox.Finding{
			sandbox.Enforced: row.enforced, sandbox.Partial: row.partial, sandbox.Open: row.open, sandbox.Unverified: row.open,
		} {
			claim := sandbox.FacetReport{State: state, Reason: "the claim's"}
			if got := sandbox.Judge(claim, trials); got != want {
				t.Errorf("%s and %v: %s, want %s", state, row.trials, got, want)
			}
			confirmed := sandbox.Confirm(claim, trials)
			lowered := state != sandbox.Open && state != sandbox.Unverified && (want == fails || want == untold)
			if (confirmed != claim) != lowered || lowered && (confirmed.State != sandbox.Open || confirmed.Reason == "") {
				t.Errorf("%s and %v: confirmed is %+v", state, row.trials, confirmed)
			}
		}
	}
}

func TestVerificationProblems(t *testing.T) {
	v := sandbox.Verification{Provider: "landlock", Mode: sandbox.ReadOnly, Namespaces: true, InUse: true,
		Facets: []sandbox.VerifiedFacet{
			{Facet: sandbox.FileRead, Claimed: sandbox.FacetReport{State: sandbox.Open}, Finding: sandbox.ClaimModest},
			{Facet: sandbox.Network, Claimed: sandbox.FacetReport{State: sandbox.Partial}, Finding: sandbox.ClaimFails, Trials: []sandbox.Trial{
				{Name: "talk", Outcome: sandbox.Possible}, {Name: "hum", Outcome: sandbox.Possible, Exception: true}, {Name: "shout", Outcome: sandbox.Refused}}},
		},
		Controls: []sandbox.Check{{Name: "works", OK: true}, {Name: "write", Detail: "read-only file system"}}}
	want := []string{
		"landlock, read-only, no network, namespaces: network is called partial, but it was possible to talk",
		"landlock, read-only, no network, namespaces: write: read-only file system",
	}
	if got := v.Problems(); strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("the problems are %q", got)
	}
	unused := sandbox.Verification{Reason: "there are none"}
	if got := unused.Problems(); len(got) != 0 {
		t.Errorf("a level that is not in use and not there: %q", got)
	}
	unused.InUse = true
	if got := unused.Problems(); len(got) != 1 || !strings.Contains(got[0], "there are none") {
		t.Errorf("a level that is in use and could not be tried: %q", got)
	}
}
