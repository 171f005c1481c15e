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

// Where namespaces worked once, confining without them is not even tried.
func TestNamespacesAreNotGivenUp(t *testing.T) {
	w := &countingWrapper{}
	e, err := New(w, Options{StateDir: t.TempDir(), NoNamespaces: true})
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	for _, before := range []bool{false, true} {
		w.wrapped = 0
		e.probes.namespaces = before
		_, err := e.verdict(t.Context(), sandbox.Policy{Mode: sandbox.ReadOnly})
		var unavailable *sandbox.UnavailableError
		if !errors.As(err, &unavailable) || len(unavailable.Remedies) == 0 {
			t.Errorf("the error is %v", err)
		}
		if tried := w.wrapped > 0; tried == before {
			t.Errorf("namespaces worked before: %v; confining without them was tried: %v", before, tried)
		}
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

// What the probe contradicts is no longer claimed.
func TestConfirm(t *testing.T) {
	claims := map[sandbox.Facet]sandbox.FacetReport{
		sandbox.Network:   {State: sandbox.Enforced},
		sandbox.Metadata:  {State: sandbox.Enforced},
		sandbox.Processes: {State: sandbox.Partial, Reason: "some"},
	}
	got := confirm(claims, []sandbox.Check{
		{Name: "network: a", OK: true}, {Name: "metadata: b", OK: false, Detail: "it was possible"},
		{Name: "processes: c", OK: false, Detail: "it was possible"}, {Name: "control: d", OK: false},
	})
	if got[sandbox.Network].State != sandbox.Enforced || got[sandbox.Metadata].State != sandbox.Open || got[sandbox.Metadata].Reason == "" {
		t.Errorf("the facets are %+v", got)
	}
	if claims[sandbox.Metadata].State != sandbox.Enforced {
		t.Error("the wrapper's own claims were changed")
	}
}
