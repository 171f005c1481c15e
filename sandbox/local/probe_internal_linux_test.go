package local

import (
	"errors"
	"fmt"
	"syscall"
	"testing"

	"github.com/confine-dev/confine/sandbox"
)

// countingWrapper confines nothing, and counts how often it was to.
type countingWrapper struct{ wrapped int }

func (w *countingWrapper) Name() string                       { return "counting" }
func (w *countingWrapper) Kind() string                       { return "" }
func (w *countingWrapper) Claims(sandbox.Policy, bool) Claims { return Claims{} }
func (w *countingWrapper) Wrap(Request) (*Launch, error) {
	w.wrapped++
	return nil, errors.New("this wrapper confines nothing")
}

// Where namespaces worked once, confining without them is not even tried, and the
// host is not taken for one that has nothing to confine with.
func TestNamespacesAreNotGivenUp(t *testing.T) {
	w := &countingWrapper{}
	e, err := New(w, Options{StateDir: t.TempDir(), NoNamespaces: true})
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	for _, before := range []bool{false, true} {
		w.wrapped = 0
		e.probes.any, e.probes.namespaces = before, before
		_, err := e.verdict(t.Context(), sandbox.Policy{Mode: sandbox.ReadOnly})
		var unavailable *sandbox.UnavailableError
		if !errors.As(err, &unavailable) || len(unavailable.Remedies) == 0 || unavailable.Lacking == before {
			t.Errorf("the error is %v", err)
		}
		if tried := w.wrapped > 0; tried == before {
			t.Errorf("namespaces worked before: %v; confining without them was tried: %v", before, tried)
		}
	}
}

// What is asked of the kernel agrees with its version, which is at least 5.11
// where anything of this package can be tested.
func TestThisKernel(t *testing.T) {
	var major, minor int
	if _, err := fmt.Sscanf(release(), "%d.%d", &major, &minor); err != nil {
		t.Fatalf("%q: %v", release(), err)
	}
	k := thisKernel()
	if k.unfit != "" {
		t.Errorf("Linux %d.%d: %s", major, minor, k.unfit)
	}
	if old := major < 5 || major == 5 && minor < 19; old != (k.unobservable != "") {
		t.Errorf("Linux %d.%d: %q", major, minor, k.unobservable)
	}
}

// On a kernel that can start nothing the cause is told, and nothing is tried.
func TestKernelTooOld(t *testing.T) {
	w := &countingWrapper{}
	e, err := New(w, Options{StateDir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	e.kernel.unfit = "it is too old"
	report := e.Probe(t.Context())
	if report.Usable || report.Reason != "it is too old" || len(report.Remedies) == 0 || w.wrapped != 0 {
		t.Errorf("tried %d times: %+v", w.wrapped, report)
	}
}

func TestPassingFailures(t *testing.T) {
	for errno, want := range map[syscall.Errno]bool{
		syscall.EMFILE: true, syscall.ENOMEM: true, syscall.EAGAIN: true,
		syscall.EPERM: false, syscall.EACCES: false, syscall.ENOSPC: false, syscall.EINVAL: false, syscall.ENOSYS: false,
	} {
		if got := passing(fmt.Errorf("probing: %w", &StepError{"making a user namespace", errno})); got != want {
			t.Errorf("%v passes: %v, want %v", errno, got, want)
		}
	}
	if !passing(errProbeSlow) {
		t.Error("a probe that took too long is a refusal")
	}
	if passing(nil) || passing(errors.New("the probe gave no report")) {
		t.Error("a failure without a cause in the system passes")
	}
}

// What the probe contradicts, or did not try, is no longer claimed.
func TestConfirm(t *testing.T) {
	enforced, partial := sandbox.FacetReport{State: sandbox.Enforced}, sandbox.FacetReport{State: sandbox.Partial, Reason: "some"}
	claims := map[sandbox.Facet]sandbox.FacetReport{
		sandbox.FileWrite: enforced, sandbox.Network: enforced, sandbox.Metadata: enforced, sandbox.Devices: partial, sandbox.Processes: partial,
	}
	got := confirm(claims, []attempt{
		{Title: "fileWrite: a", Outcome: sandbox.Refused},
		{Title: "network: b", Outcome: sandbox.Untried},
		{Title: "metadata: c", Outcome: sandbox.Possible}, {Title: "metadata: d", Outcome: sandbox.Refused},
		{Title: "processes: signal confine", Outcome: sandbox.Possible},
		{Title: "devices: read from a terminal of the host", Outcome: sandbox.Possible}, // an exception
		{Title: "control: e", Outcome: sandbox.Refused},
	})
	for facet, want := range map[sandbox.Facet]sandbox.FacetState{
		sandbox.FileWrite: sandbox.Enforced, sandbox.Network: sandbox.Open, sandbox.Metadata: sandbox.Open,
		sandbox.Processes: sandbox.Open, sandbox.Devices: sandbox.Partial,
	} {
		if got[facet].State != want || want == sandbox.Open && got[facet].Reason == "" {
			t.Errorf("%s is %+v, want %s", facet, got[facet], want)
		}
	}
	if len(got) != len(claims) {
		t.Errorf("the facets are %+v", got)
	}
	if claims[sandbox.Metadata] != enforced {
		t.Error("the wrapper's own claims were changed")
	}
}

// A level is not used where a control fails or a file outside can be changed.
func TestHolds(t *testing.T) {
	for _, row := range []struct {
		title   string
		outcome sandbox.Outcome
		holds   bool
	}{
		{"control: write a temporary file", sandbox.Possible, true},
		{"control: write a temporary file", sandbox.Untried, true},
		{"control: write a temporary file", sandbox.Refused, false},
		{"control: make a user namespace", sandbox.Refused, true},
		{"control: make a user namespace", sandbox.Possible, false},
		{"fileWrite: create a file outside", sandbox.Refused, true},
		{"fileWrite: create a file outside", sandbox.Possible, false},
		{"fileWrite: truncate a file outside", sandbox.Possible, true}, // older kernels
		{"fileWrite: change something else outside", sandbox.Possible, false},
		{"metadata: change the mode of a file outside", sandbox.Possible, true},
	} {
		if err := holds([]attempt{{Title: row.title, Outcome: row.outcome}}); (err == nil) != row.holds {
			t.Errorf("%s, %s: %v", row.title, row.outcome, err)
		}
	}
}
