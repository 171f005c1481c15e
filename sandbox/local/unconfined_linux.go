package local

import (
	"context"

	"github.com/confine-dev/confine/sandbox"
)

// Unconfined is the same engine for commands that nothing confines
// (danger-full-access). Closing either closes both.
func (e *Engine) Unconfined() sandbox.Provider { return unconfined{e} }

type unconfined struct{ *Engine }

// Name implements sandbox.Provider.
func (unconfined) Name() string { return sandbox.ProviderNone }

// Probe implements sandbox.Provider.
func (unconfined) Probe(context.Context) sandbox.Report {
	return sandbox.Report{Provider: sandbox.ProviderNone, Usable: true, Reason: "nothing is confined"}
}

// Start implements sandbox.Provider.
func (u unconfined) Start(ctx context.Context, spec sandbox.Spec) (sandbox.Process, error) {
	if spec.Policy.Mode.Confined() {
		return nil, &sandbox.UnavailableError{Mode: spec.Policy.Mode, Detail: "the provider \"none\" confines nothing"}
	}
	return u.start(ctx, spec)
}

var _ sandbox.Provider = unconfined{}
