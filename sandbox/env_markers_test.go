package sandbox

import (
	"maps"
	"testing"
)

// TestMarkers: only what is confined is marked, and only what was shown is said.
func TestMarkers(t *testing.T) {
	state := func(s FacetState) map[Facet]FacetReport { return map[Facet]FacetReport{Network: {State: s}} }
	for name, test := range map[string]struct {
		facts Facts
		want  map[string]string
	}{
		"confined":         {Facts{Mode: ReadOnly, Provider: "bwrap", Facets: state(Enforced)}, map[string]string{"CONFINE_SANDBOX": "bwrap", "CONFINE_SANDBOX_NETWORK_DISABLED": "1"}},
		"granted network":  {Facts{Mode: WorkspaceWrite, Provider: "landlock", Facets: state(Open)}, map[string]string{"CONFINE_SANDBOX": "landlock"}},
		"partial network":  {Facts{Mode: ReadOnly, Provider: "seatbelt", Facets: state(Partial)}, map[string]string{"CONFINE_SANDBOX": "seatbelt"}},
		"nothing known":    {Facts{Mode: ReadOnly, Provider: "landlock"}, map[string]string{"CONFINE_SANDBOX": "landlock"}},
		"no provider":      {Facts{Mode: ReadOnly, Provider: "none", Facets: state(Enforced)}, nil},
		"full access":      {Facts{Mode: DangerFullAccess, Provider: "none"}, nil},
		"external sandbox": {Facts{Mode: ExternalSandbox, Provider: "landlock", Facets: state(Enforced)}, nil},
		"nameless":         {Facts{Mode: ReadOnly}, nil},
	} {
		if got := Markers(test.facts); !maps.Equal(got, test.want) {
			t.Errorf("%s: %v, want %v", name, got, test.want)
		}
	}
}
