package main

import (
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/confine-dev/confine/sandbox"
	"github.com/confine-dev/confine/sandbox/bwrap"
	"github.com/confine-dev/confine/sandbox/landlock"
	"github.com/confine-dev/confine/sandbox/local"
	"github.com/confine-dev/confine/sandbox/restrict"
)

// TestSecurityTable tries what each cell of the table in docs/security.md says,
// as whoever runs the test. A quick run tries one column of each kind; the story
// of `confine doctor --verify` holds the others to what they claim.
func TestSecurityTable(t *testing.T) {
	if restrict.Version() < 6 {
		t.Skip("the table is for Landlock ABI 6 or newer")
	}
	table := facetTable(t, "../../docs/security.md")
	for _, column := range []struct {
		name       string
		wrapper    local.Wrapper
		namespaces bool
		always     bool
	}{
		{"landlock", landlock.New(), true, true},
		{"landlock, no namespaces", landlock.New(), false, false},
		{"bwrap", bwrap.New(bwrap.Options{}), true, false},
		{"bwrap alone", bwrap.New(bwrap.Options{}), false, true},
	} {
		if !column.always && !slow() {
			continue
		}
		t.Run(column.name, func(t *testing.T) {
			t.Parallel()
			if len(table[column.name]) != len(sandbox.Facets) {
				t.Fatalf("the document has no such column, or not every facet: %v", table[column.name])
			}
			e, err := local.New(column.wrapper, observed(local.Options{StateDir: newWorld(t).home, NoNamespaces: !column.namespaces}))
			if err != nil {
				t.Fatal(err)
			}
			defer e.Close()
			for _, v := range e.Verify(t.Context()) {
				if v.Mode != sandbox.WorkspaceWrite || v.Network || v.Namespaces != column.namespaces {
					continue
				}
				if v.Reason != "" {
					unavailable(t, v.Reason)
				}
				for _, f := range v.Facets {
					if want := table[column.name][f.Facet]; f.Confirmed.State != want || f.Finding == sandbox.ClaimFails {
						t.Errorf("%s is %s (%s), and the document says %s: %+v", f.Facet, f.Confirmed.State, f.Finding, want, f.Trials)
					}
				}
			}
		})
	}
}

// unavailable skips what this machine cannot do, except where it must be able to.
func unavailable(t *testing.T, reason string) {
	t.Helper()
	if os.Getenv("CI") != "" {
		t.Fatal(reason)
	}
	t.Skip(reason)
}

// facetTable reads the table of facets, by column.
func facetTable(t *testing.T, path string) map[string]map[sandbox.Facet]sandbox.FacetState {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	table := map[string]map[sandbox.Facet]sandbox.FacetState{}
	var columns []string
	for line := range strings.Lines(string(data)) {
		cells := strings.Split(strings.Trim(strings.TrimSpace(line), "|"), "|")
		for i := range cells {
			cells[i] = strings.TrimSpace(cells[i])
		}
		switch facet := sandbox.Facet(strings.Trim(cells[0], "`")); {
		case cells[0] == "Facet":
			columns = cells[1:]
		case len(columns) > 0 && len(cells) == len(columns)+1 && slices.Contains(sandbox.Facets, facet):
			for i, column := range columns {
				if table[column] == nil {
					table[column] = map[sandbox.Facet]sandbox.FacetState{}
				}
				table[column][facet] = sandbox.FacetState(cells[i+1])
			}
		}
	}
	return table
}
