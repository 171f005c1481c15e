package view

import (
	"strings"
	"testing"

	"github.com/confine-dev/confine/sandbox"
	"github.com/confine-dev/confine/sandbox/restrict"
)

// What only Landlock refuses is not promised where it cannot.
func TestSocketsOfOlderKernels(t *testing.T) {
	for _, test := range []struct {
		version        int
		network        bool
		want           sandbox.FacetState
		abstract, fifo bool // the reason names them
	}{
		{0, false, sandbox.Open, false, true},
		{0, true, sandbox.Open, true, true},
		{1, false, sandbox.Partial, false, false},
		{5, true, sandbox.Partial, true, false},
		{6, true, sandbox.Partial, false, false},
	} {
		got := Facets(sandbox.Policy{Mode: sandbox.WorkspaceWrite, Network: test.network}, restrict.ABIOf(test.version))[sandbox.UnixSockets]
		if got.State != test.want || strings.Contains(got.Reason, "abstract") != test.abstract || strings.Contains(got.Reason, "FIFO") != test.fifo {
			t.Errorf("version %d, network %v: %+v", test.version, test.network, got)
		}
	}
}
