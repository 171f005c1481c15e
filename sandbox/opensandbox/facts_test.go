package opensandbox

import (
	"runtime"
	"testing"

	"github.com/confine-dev/confine/sandbox"
)

// TestNothingIsClaimed: nothing that a service may or may not do is called enforced, in
// any mode, by any interface, and each facet says why.
func TestNothingIsClaimed(t *testing.T) {
	for _, c := range []Config{{}, {Workspace: WorkspaceUpload}, {Workspace: WorkspaceMount, Output: OutputBytes}, {API: APIRun}} {
		if runtime.GOOS == "windows" && c.Workspace != "" {
			continue // it cannot be had there
		}
		c.URL = "https://host.test"
		p, err := New(c)
		if err != nil {
			t.Fatal(err)
		}
		for _, mode := range []sandbox.Mode{sandbox.ReadOnly, sandbox.WorkspaceWrite} {
			for _, network := range []bool{false, true} {
				f := p.facts(sandbox.Policy{Mode: mode, Network: network})
				if f.Provider != sandbox.ProviderOpenSandbox || f.Mode != mode || f.Enforcement != sandbox.EnforcementPartial || len(f.Facets) != len(sandbox.Facets) {
					t.Errorf("%+v: %+v", c, f)
				}
				for facet, report := range f.Facets {
					want := sandbox.Unverified
					if facet == sandbox.Network && network {
						want = sandbox.Open
					}
					if report.State != want || report.Reason == "" {
						t.Errorf("%s %v network %v: %s is %+v", c.Workspace, mode, network, facet, report)
					}
				}
				for _, limit := range f.Limits {
					if limit.State != sandbox.Open || limit.Reason == "" {
						t.Errorf("limit %+v", limit)
					}
				}
				if _, off := sandbox.Markers(f)[sandbox.MarkerNoNetwork]; off {
					t.Error("commands are told that there is no network, which nobody knows")
				}
			}
		}
	}
}
