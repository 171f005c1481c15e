package main

import (
	"context"
	"errors"
	"log/slog"

	"github.com/confine-dev/confine/sandbox"
)

// fallback runs a command with nothing that confines it where the host lacks what its
// provider needs, as on_unavailable = "run-unconfined" wants it. What fails for now is
// refused as ever: commands can bring that about, by taking up all processes of their
// session or by exchanging what the next one is to be shown. The result says so: its provider is
// none, it has no enforcement, every facet is open, and nothing in it is a denial.
type fallback struct {
	sandbox.Provider
	unconfined sandbox.Provider
	log        *slog.Logger // nil for none
}

func (f *fallback) Start(ctx context.Context, spec sandbox.Spec) (sandbox.Process, error) {
	process, err := f.Provider.Start(ctx, spec)
	unavailable, ok := errors.AsType[*sandbox.UnavailableError](err)
	if !ok || !unavailable.Lacking || unavailable.Started || ctx.Err() != nil {
		return process, err
	}
	if f.log != nil {
		f.log.Warn("running a command with nothing that confines it", "run", spec.RunID, "reason", err)
	}
	mode := spec.Policy.Mode
	spec.Policy = sandbox.Policy{Mode: sandbox.DangerFullAccess, Network: true}
	process, err = f.unconfined.Start(ctx, spec)
	if err != nil {
		return nil, err
	}
	return unconfinedProcess{process, mode}, nil
}

// CloseSession ends what the session has in either.
func (f *fallback) CloseSession(session string) {
	f.Provider.CloseSession(session)
	f.unconfined.CloseSession(session)
}

// unconfinedProcess is a command that was to be confined and is not.
type unconfinedProcess struct {
	sandbox.Process
	mode sandbox.Mode // that was to be enforced
}

func (p unconfinedProcess) Wait() (sandbox.Result, error) {
	result, err := p.Process.Wait()
	result.Denied, result.Denials = false, nil
	result.Facts = sandbox.Facts{Mode: p.mode, Provider: sandbox.ProviderNone, Facets: map[sandbox.Facet]sandbox.FacetReport{}}
	for _, facet := range sandbox.Facets {
		result.Facts.Facets[facet] = sandbox.FacetReport{State: sandbox.Open, Reason: "no provider could be used, and on_unavailable is \"run-unconfined\""}
	}
	return result, err
}
