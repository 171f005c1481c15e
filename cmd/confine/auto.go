package main

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"

	"github.com/confine-dev/confine/sandbox"
)

// auto chooses between the embedded provider and bubblewrap: it takes the
// embedded one unless bubblewrap was seen to enforce more, or is preferred and
// usable. Bubblewrap is tried only if that can make a difference. The choice
// holds until the chosen one fails.
type auto struct {
	embedded, bwrap sandbox.Provider
	preferBwrap     bool

	choosing sync.Mutex // held while providers are being tried, so that all who wait share the result
	chosen   atomic.Pointer[sandbox.Provider]
}

// Name is that of the provider that would confine the next command, as far as is
// known yet.
func (a *auto) Name() string {
	if p := a.chosen.Load(); p != nil {
		return (*p).Name()
	}
	if a.preferBwrap {
		return a.bwrap.Name()
	}
	return a.embedded.Name()
}

// Interaction is that of the embedded provider: both run commands in the same way.
func (a *auto) Interaction() sandbox.Interaction { return a.embedded.Interaction() }

// Probe reports on the chosen provider.
func (a *auto) Probe(ctx context.Context) sandbox.Report {
	return a.choose(ctx).Probe(ctx)
}

// Start starts the command with the chosen provider. If that fails the choice is
// made anew, and if it is another one the command, which did not begin, is started
// with that. Where one is lacking the other is tried in any case: that both are is
// shown by trying both.
func (a *auto) Start(ctx context.Context, spec sandbox.Spec) (sandbox.Process, error) {
	first := a.choose(ctx)
	process, err := first.Start(ctx, spec)
	unavailable, ok := errors.AsType[*sandbox.UnavailableError](err)
	if !ok || unavailable.Started {
		return process, err
	}
	a.chosen.Store(nil)
	if second := a.choose(ctx); second == first && !unavailable.Lacking {
		return nil, err
	}
	process, second := a.other(first).Start(ctx, spec)
	if unavailable, ok := errors.AsType[*sandbox.UnavailableError](second); ok && unavailable.Lacking {
		return nil, err
	}
	return process, second
}

func (a *auto) other(p sandbox.Provider) sandbox.Provider {
	if p == a.embedded {
		return a.bwrap
	}
	return a.embedded
}

// choose returns the provider for the next command. When none is usable it is
// the embedded one, which then says why.
func (a *auto) choose(ctx context.Context) sandbox.Provider {
	if p := a.chosen.Load(); p != nil {
		return *p
	}
	a.choosing.Lock()
	defer a.choosing.Unlock()
	if p := a.chosen.Load(); p != nil {
		return *p
	}
	var embedded, bwrap sandbox.Report
	if a.preferBwrap {
		bwrap = a.bwrap.Probe(ctx)
	}
	if !bwrap.Usable {
		embedded = a.embedded.Probe(ctx)
	}
	if !a.preferBwrap && !enforcesAll(embedded) {
		bwrap = a.bwrap.Probe(ctx)
	}
	if ctx.Err() != nil {
		return a.embedded // nothing was found out; starting fails for the same reason
	}
	return a.settle(embedded, bwrap)
}

// settle makes the choice by what both providers were seen to do. A report that is
// not there counts as unusable.
func (a *auto) settle(embedded, bwrap sandbox.Report) sandbox.Provider {
	choice := a.embedded
	if bwrap.Usable && (a.preferBwrap || !embedded.Usable || enforced(bwrap) > enforced(embedded)) {
		choice = a.bwrap
	}
	if embedded.Usable || bwrap.Usable {
		a.chosen.Store(&choice)
	}
	return choice
}

// enforcesAll reports whether nothing that a mode promises is left to enforce.
func enforcesAll(r sandbox.Report) bool {
	return r.Usable && sandbox.Sum(sandbox.Policy{Mode: sandbox.WorkspaceWrite}, r.Facets) == sandbox.EnforcementFull
}

// enforced counts the facets that a provider was seen to enforce.
func enforced(r sandbox.Report) (n int) {
	for _, facet := range r.Facets {
		if facet.State == sandbox.Enforced {
			n++
		}
	}
	return n
}

func (a *auto) CloseSession(session string) {
	a.embedded.CloseSession(session)
	a.bwrap.CloseSession(session)
}

func (a *auto) Close() error { return errors.Join(a.embedded.Close(), a.bwrap.Close()) }
