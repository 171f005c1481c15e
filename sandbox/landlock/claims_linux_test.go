package landlock

import (
	"strings"
	"testing"

	"github.com/confine-dev/confine/sandbox"
	"github.com/confine-dev/confine/sandbox/local"
	"github.com/confine-dev/confine/sandbox/restrict"
)

func wrapperOf(version int) *Wrapper { return &Wrapper{abi: restrict.ABIOf(version)} }

// versions of Landlock: those that brought something, and one of the future.
var versions = []int{1, 2, 3, 4, 5, 6, 7, 100}

// TestClaimsOfEachVersion: an older kernel never promises more, and whatever
// is less than enforced has a reason.
func TestClaimsOfEachVersion(t *testing.T) {
	strength := map[sandbox.FacetState]int{sandbox.Open: 1, sandbox.Partial: 2, sandbox.Enforced: 3}
	for _, namespaces := range []bool{true, false} {
		for _, network := range []bool{true, false} {
			before := map[sandbox.Facet]int{}
			for _, version := range versions {
				c := wrapperOf(version).Claims(sandbox.Policy{Mode: sandbox.WorkspaceWrite, Network: network}, namespaces)
				if c.Missing != "" {
					t.Fatalf("version %d: %s", version, c.Missing)
				}
				for _, f := range sandbox.Facets {
					report := c.Facets[f]
					if strength[report.State] == 0 || (report.State == sandbox.Enforced) != (report.Reason == "") {
						t.Errorf("version %d, namespaces %v: %s is %q because of %q", version, namespaces, f, report.State, report.Reason)
					}
					if strength[report.State] < before[f] {
						t.Errorf("version %d, namespaces %v: %s is %q, more than an older version", version, namespaces, f, report.State)
					}
					before[f] = strength[report.State]
				}
			}
		}
	}
}

func TestClaimsWithoutNamespaces(t *testing.T) {
	for _, test := range []struct {
		version int
		facet   sandbox.Facet
		want    sandbox.FacetState
	}{
		{1, sandbox.FileWrite, sandbox.Partial}, // truncate
		{2, sandbox.FileWrite, sandbox.Partial},
		{3, sandbox.FileWrite, sandbox.Partial}, // what is protected in a root
		{5, sandbox.Processes, sandbox.Open},    // signals
		{6, sandbox.Processes, sandbox.Partial},
		{7, sandbox.Metadata, sandbox.Open},
		{7, sandbox.UnixSockets, sandbox.Open},
		{7, sandbox.FileRead, sandbox.Open},
		{7, sandbox.Devices, sandbox.Partial},
		{1, sandbox.Network, sandbox.Enforced}, // by the filter alone
	} {
		c := wrapperOf(test.version).Claims(sandbox.Policy{Mode: sandbox.WorkspaceWrite}, false)
		if got := c.Facets[test.facet].State; got != test.want {
			t.Errorf("version %d: %s is %q, want %q", test.version, test.facet, got, test.want)
		}
	}
}

// Both exceptions of an older kernel are told.
func TestReasonsAddUp(t *testing.T) {
	reason := wrapperOf(2).Claims(sandbox.Policy{Mode: sandbox.WorkspaceWrite}, false).Facets[sandbox.FileWrite].Reason
	if !strings.Contains(reason, "truncating") || !strings.Contains(reason, "hooks") {
		t.Errorf("the reason is %q", reason)
	}
}

func TestKernelWithoutLandlock(t *testing.T) {
	w := wrapperOf(0)
	if c := w.Claims(sandbox.Policy{Mode: sandbox.ReadOnly}, true); c.Missing == "" || len(c.Remedies) == 0 || c.Facets != nil {
		t.Errorf("claims are %+v", c)
	}
	if _, err := w.Wrap(local.Request{Policy: sandbox.Policy{Mode: sandbox.ReadOnly}, Namespaces: true}); err == nil {
		t.Error("a launch was made")
	}
}
