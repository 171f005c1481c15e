//go:build !linux && !darwin

package local

import (
	"context"
	"fmt"
	"os"

	"github.com/confine-dev/confine/sandbox"
)

// Wrapper confines on other systems only.
type Wrapper interface{ Name() string }

// Child does nothing on this system.
func Child([]string) {}

// confiner refuses every confined command.
type confiner struct{ dir string }

func newConfiner(w Wrapper, state string) (*confiner, error) {
	if w != nil {
		return nil, fmt.Errorf("provider %q does not exist on this system", w.Name())
	}
	dir, err := os.MkdirTemp(state, "spill-")
	if err != nil {
		return nil, fmt.Errorf("making confine's runtime folder: %w", err)
	}
	return &confiner{dir}, nil
}

func (c *confiner) spill() string { return c.dir }
func (*confiner) name() string    { return sandbox.ProviderNone }

func (*confiner) probe(context.Context) sandbox.Report { return unconfinedReport }

// begin is not called, since there is no wrapper.
func (*confiner) begin(_ context.Context, spec sandbox.Spec, _ resolved) (*run, error) {
	return nil, &sandbox.UnavailableError{Mode: spec.Policy.Mode, Lacking: true}
}

// keep does nothing: a job object does it.
func (*confiner) keep(int) error { return nil }
func (*confiner) forget(int)     {}

func (*confiner) closeSession(string) {}

func (c *confiner) close() error { return os.RemoveAll(c.dir) }
