package sandboxtest

import (
	"slices"
	"strings"
	"testing"

	"github.com/confine-dev/confine/sandbox"
	"golang.org/x/sys/unix"
)

func factsOf(state sandbox.FacetState, layers ...string) sandbox.Facts {
	return sandbox.Facts{Layers: layers, Facets: map[sandbox.Facet]sandbox.FacetReport{sandbox.FileWrite: {State: state}}}
}

// TestFault: the suite complains exactly when row, outcome and facts do not
// fit.
func TestFault(t *testing.T) {
	possible, refused := outcome{}, outcome{Errno: unix.EROFS}
	row := refusal{facet: sandbox.FileWrite}
	gap := refusal{facet: sandbox.FileWrite, gap: withoutNamespaces}
	privilege := refusal{}
	for _, test := range []struct {
		name  string
		row   refusal
		out   outcome
		seen  string
		facts sandbox.Facts
		want  string // part of the complaint; empty: none
	}{
		{"enforced and refused", row, refused, "", factsOf(sandbox.Enforced), ""},
		{"enforced but possible", row, possible, "", factsOf(sandbox.Enforced), "called enforced"},
		{"refused, but the host changed", row, refused, "a file", factsOf(sandbox.Enforced), "called enforced"},
		{"broken, but the host changed", row, outcome{Broken: "x"}, "a file", factsOf(sandbox.Enforced), "called enforced"},
		{"broken", row, outcome{Broken: "x"}, "", factsOf(sandbox.Enforced), "could not be tried"},
		{"partial and refused", row, refused, "", factsOf(sandbox.Partial), ""},
		{"partial, and not a known gap", row, possible, "", factsOf(sandbox.Partial), "was possible"},
		{"open and possible", row, possible, "", factsOf(sandbox.Open), ""},
		{"open and refused", row, refused, "", factsOf(sandbox.Open), ""},
		{"no statement", row, possible, "", sandbox.Facts{}, "was possible"},
		{"a known gap", gap, possible, "", factsOf(sandbox.Partial), ""},
		{"a known gap that is called enforced", gap, possible, "", factsOf(sandbox.Enforced), "called enforced"},
		{"a known gap that is closed", gap, refused, "", factsOf(sandbox.Partial), "tighten"},
		{"a gap of another level", gap, possible, "", factsOf(sandbox.Partial, LayerNamespaces), "was possible"},
		{"another errno", row, outcome{Errno: unix.EINVAL}, "", factsOf(sandbox.Enforced), "no refusal"},
		{"a privilege refused", privilege, refused, "", factsOf(sandbox.Open), ""},
		{"a privilege gained", privilege, possible, "", factsOf(sandbox.Open), "was possible"},
	} {
		fault := test.row.fault(test.out, test.seen, test.facts)
		if (fault == "") != (test.want == "") || !strings.Contains(fault, test.want) {
			t.Errorf("%s: got %q, want %q in it", test.name, fault, test.want)
		}
	}
}

func TestTally(t *testing.T) {
	y := &tally{through: map[sandbox.Facet][]string{}, facts: map[sandbox.Facet]sandbox.FacetReport{}}
	for _, facet := range sandbox.Facets {
		y.facts[facet] = sandbox.FacetReport{State: sandbox.Enforced}
	}
	if faults := y.faults(); len(faults) != 0 {
		t.Errorf("everything enforced: %q", faults)
	}
	y.facts[sandbox.Network] = sandbox.FacetReport{State: sandbox.Open, Reason: "x"}
	if faults := y.faults(); len(faults) != 1 || !strings.Contains(faults[0], "no row got through") {
		t.Errorf("an open facet through which nothing got: %q", faults)
	}
	y.noteThrough(sandbox.Network, "row")
	if faults := y.faults(); len(faults) != 0 {
		t.Errorf("an open facet through which something got: %q", faults)
	}
	y.facts[sandbox.Network] = sandbox.FacetReport{State: sandbox.Open}
	delete(y.facts, sandbox.Devices)
	if faults := y.faults(); len(faults) != 2 {
		t.Errorf("a facet without a reason and one without a state: %q", faults)
	}
}

// TestRows: a child finds its row by name, and each facet has rows.
func TestRows(t *testing.T) {
	names, facets := map[string]bool{}, map[sandbox.Facet]int{}
	add := func(name string, try bool) {
		if names[name] || !try {
			t.Errorf("the row %q is there twice or does nothing", name)
		}
		names[name] = true
	}
	for _, r := range refusals {
		add(r.name, r.try != nil)
		facets[r.facet]++
		if r.control.none != "" && (r.control.root || r.control.alone || r.control.errno != 0) {
			t.Errorf("the row %q has no control and one", r.name)
		}
	}
	for _, r := range allowances {
		add(r.name, r.try != nil)
	}
	for _, f := range append(slices.Clone(sandbox.Facets), "") {
		if facets[f] == 0 {
			t.Errorf("no row tests %q", f)
		}
	}
}

func TestLookSeesEveryKindOfChange(t *testing.T) {
	for name, change := range map[string]func(dir string) error{
		"content": func(dir string) error { return openAndWrite(unix.AT_FDCWD, dir+"/file", 0) },
		"mode":    func(dir string) error { return unix.Chmod(dir+"/file", 0o600) },
		"name":    func(dir string) error { return unix.Rename(dir+"/file", dir+"/new") },
		"absence": func(dir string) error { return unix.Unlink(dir + "/link") },
		"times": func(dir string) error {
			return unix.UtimesNanoAt(unix.AT_FDCWD, dir+"/file", make([]unix.Timespec, 2), 0)
		},
		"links": func(dir string) error { return unix.Link(dir+"/file", dir+"/../other") },
	} {
		dir := t.TempDir() + "/outside"
		furnish(t, dir)
		before := look(dir)
		if !slices.Equal(before, look(dir)) {
			t.Error("two looks differ")
		}
		if err := change(dir); err != nil {
			t.Fatal(err)
		}
		if slices.Equal(before, look(dir)) {
			t.Errorf("a change of %s is not seen", name)
		}
	}
}
