package main

import (
	"context"
	"strings"
	"testing"

	"github.com/confine-dev/confine/rpc/proto"
	"github.com/confine-dev/confine/sandbox"
)

// claimant is a provider that says what its verification came to.
type claimant struct {
	absent
	verified []sandbox.Verification
}

func (c claimant) Verify(context.Context) []sandbox.Verification { return c.verified }

// combination is one in which a facet that is called enforced fared so.
func combination(mode sandbox.Mode, outcome sandbox.Outcome) sandbox.Verification {
	claim, trials := sandbox.FacetReport{State: sandbox.Enforced}, []sandbox.Trial{{Name: "shout", Outcome: outcome, Detail: "a \x1bcause"}}
	return sandbox.Verification{Provider: "hearsay", Mode: mode, Namespaces: true, InUse: true, Controls: []sandbox.Check{{Name: "control: whisper", OK: true}},
		Facets: []sandbox.VerifiedFacet{{Facet: sandbox.Network, Claimed: claim, Finding: sandbox.Judge(claim, trials), Trials: trials}}}
}

func TestDoctorVerifies(t *testing.T) {
	const mode = sandbox.ReadOnly
	holds, lie := combination(mode, sandbox.Refused), combination(mode, sandbox.Possible)
	broken := holds
	broken.Controls = []sandbox.Check{{Name: "control: whisper", Detail: "no voice"}}
	unusable := sandbox.Verification{Provider: "hearsay", Mode: mode, Reason: "nobody listens"}
	elsewhere := combination(sandbox.WorkspaceWrite, sandbox.Refused)
	elsewhere.InUse = false
	for name, row := range map[string]struct {
		configured bool // the configured mode can be enforced
		verified   []sandbox.Verification
		status     int
		says       string
	}{
		"all is as claimed":         {true, []sandbox.Verification{holds, unusable}, 0, "What was tried is as it is claimed."},
		"nobody could tell":         {true, []sandbox.Verification{combination(mode, sandbox.Untried)}, 0, "not told      not tried: shout (a \\u{1B}cause)"},
		"a lie":                     {true, []sandbox.Verification{holds, lie}, exitContradicted, "network is called enforced, but it was possible to shout"},
		"a lie, and a mode refused": {false, []sandbox.Verification{lie}, exitContradicted, "NOT TRUE      possible: shout"},
		"work is refused":           {true, []sandbox.Verification{broken}, exitContradicted, "control: whisper: failed: no voice"},
		"one kind is refused":       {true, []sandbox.Verification{holds, elsewhere}, exitContradicted, "hearsay, workspace-write, no network: commands are refused"},
		"a mode refused":            {false, []sandbox.Verification{holds}, exitUnenforceable, "confirmed     1 refused"},
		"nothing was tried":         {true, []sandbox.Verification{unusable}, exitUnenforceable, "not tried: nobody listens"},
		"nobody can verify":         {true, nil, exitUnenforceable, "nothing could be verified"},
	} {
		t.Run(name, func(t *testing.T) {
			v := verify(t.Context(), []sandbox.Provider{absent{}, claimant{verified: row.verified}})
			d := diagnosis{Record: proto.Record{OK: row.configured}, Verification: v}
			if got := d.status(); got != row.status {
				t.Errorf("the status is %d, want %d", got, row.status)
			}
			if ok := row.status == 0 || row.status == exitUnenforceable && len(row.verified) > 0 && row.verified[0].Reason == ""; v.OK != ok {
				t.Errorf("ok is %v: %q", v.OK, v.Problems)
			}
			var b strings.Builder
			d.print(&b)
			if !strings.Contains(b.String(), row.says) {
				t.Errorf("it does not say %q:\n%s", row.says, b.String())
			}
		})
	}
}
