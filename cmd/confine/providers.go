package main

import (
	"context"
	"fmt"
	"log/slog"
	"slices"

	"github.com/confine-dev/confine/sandbox"
	"github.com/confine-dev/confine/sandbox/local"
)

// providers are what runs commands.
type providers struct {
	confined, unconfined sandbox.Provider
	report               func(context.Context) []sandbox.Report // nil: confined reports
	skipped              func() []string                        // paths of the settings that commands do not get; nil for none
	spill                string                                 // folder for long output; empty for none
}

func (w *wiring) openProviders(o wiringOptions) (providers, error) {
	bwrap, skipped := bubblewrap(w.settings)
	first, second := embedded(), bwrap
	if w.settings.Provider == sandbox.ProviderBwrap {
		first, second = second, first
	}
	open := func(wrapper local.Wrapper) (*local.Engine, error) {
		return local.New(wrapper, observed(local.Options{StateDir: w.paths.StateDir, Log: o.log, OwnsChildren: true}))
	}
	engine, err := open(first)
	if err != nil {
		return providers{}, fmt.Errorf("preparing to run commands: %w", err)
	}
	w.closers = append(w.closers, engine.Close)
	w.known = slices.Clone(notBuilt)
	if first != nil {
		w.know(engine)
	}
	if second != nil {
		later := &onDemand{name: second.Name(), open: func() (sandbox.Provider, error) { return open(second) }}
		w.closers = append(w.closers, later.Close)
		w.know(later)
	}

	p := providers{confined: w.choose(), unconfined: engine.Unconfined()}
	if !o.brief {
		p.report = w.reports(p.confined)
	}
	p.skipped = w.skips(p.confined, skipped, o.log)
	if o.spill {
		p.spill = engine.SpillDir()
	}
	if o.stdin != nil || o.output != nil {
		p.confined, p.unconfined = attached{p.confined, o.stdin, o.output}, attached{p.unconfined, o.stdin, o.output}
	}
	return p, nil
}

// know puts a provider in the place of the absent one of its name.
func (w *wiring) know(p sandbox.Provider) {
	w.known[slices.IndexFunc(w.known, func(k sandbox.Provider) bool { return k.Name() == p.Name() })] = p
}

// provider is the known one of a name.
func (w *wiring) provider(name string) sandbox.Provider {
	return w.known[slices.IndexFunc(w.known, func(k sandbox.Provider) bool { return k.Name() == name })]
}

// choose is what the settings want commands to be confined by.
func (w *wiring) choose() sandbox.Provider {
	if w.settings.Provider != sandbox.ProviderAuto {
		return w.provider(w.settings.Provider)
	}
	return &auto{embedded: w.provider(sandbox.ProviderLandlock), bwrap: w.provider(sandbox.ProviderBwrap), preferBwrap: w.settings.PreferBwrap}
}

// reports asks every provider. A choice that is still to be made is made by what
// they answer.
func (w *wiring) reports(confined sandbox.Provider) func(context.Context) []sandbox.Report {
	return func(ctx context.Context) []sandbox.Report {
		reports := make([]sandbox.Report, len(w.known))
		by := map[string]sandbox.Report{}
		for i, provider := range w.known {
			reports[i] = provider.Probe(ctx)
			by[provider.Name()] = reports[i]
		}
		if a, ok := confined.(*auto); ok && ctx.Err() == nil {
			a.settle(by[sandbox.ProviderLandlock], by[sandbox.ProviderBwrap])
		}
		return reports
	}
}

// skip is a path of the settings that commands do not get.
type skip struct{ path, reason string }

// skips says which paths are skipped while bubblewrap confines, and logs what is
// skipped now, whatever confines.
func (w *wiring) skips(confined sandbox.Provider, skipped func() []skip, log *slog.Logger) func() []string {
	if skipped == nil {
		return nil
	}
	if log != nil {
		for _, s := range skipped() {
			log.Warn("a path of the settings is left out", "path", s.path, "reason", s.reason)
		}
	}
	return func() []string {
		if confined.Name() != sandbox.ProviderBwrap {
			return nil
		}
		var paths []string
		for _, s := range skipped() {
			paths = append(paths, s.path)
		}
		return paths
	}
}

// absent stands for a provider that this version or system does not have. It
// refuses every command, so that choosing it can never mean no sandbox.
type absent struct{ name, reason string }

// notBuilt has every provider that there is a name for, in the order of reports,
// as if this version and system had none.
var notBuilt = []sandbox.Provider{
	absent{sandbox.ProviderLandlock, "it needs Linux"},
	absent{sandbox.ProviderBwrap, "it needs Linux"},
	absent{sandbox.ProviderSeatbelt, "this version of confine does not have it yet"},
	absent{sandbox.ProviderOpenSandbox, "this version of confine does not have it yet"},
}

func (a absent) Name() string { return a.name }

func (a absent) Probe(context.Context) sandbox.Report {
	return sandbox.Report{Provider: a.name, Reason: a.reason}
}

func (a absent) Start(_ context.Context, spec sandbox.Spec) (sandbox.Process, error) {
	return nil, &sandbox.UnavailableError{
		Mode:     spec.Policy.Mode,
		Detail:   fmt.Sprintf("provider %s: %s", a.name, a.reason),
		Remedies: []string{`set provider = "auto" in the settings and name no --provider`, "run \"confine doctor\" to see what this machine can enforce"},
	}
}

func (absent) CloseSession(string) {}
func (absent) Close() error        { return nil }
