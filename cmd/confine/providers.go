package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"

	"github.com/confine-dev/confine/cmd/confine/config"
	"github.com/confine-dev/confine/sandbox"
	"github.com/confine-dev/confine/sandbox/local"
)

// providers are what runs commands. Which of them confines follows the settings.
type providers struct {
	o          wiringOptions
	state      string        // confine's own folder
	engine     *local.Engine // the one that is open from the start
	unconfined sandbox.Provider
	embedded   sandbox.Provider
	secrets    func(config.Settings) []string // what never leaves this machine

	mu     sync.Mutex // guards what follows
	choice choice     // the last
	made   []*onDemand

	retiring sync.WaitGroup
}

// choice is what confines commands under some settings.
type choice struct {
	key      string             // what it depends on
	bwrapKey string             // what its bubblewrap depends on
	remote   config.Remote      // what its OpenSandbox depends on, if there is one
	known    []sandbox.Provider // every one, usable or not
	confined sandbox.Provider
	report   func(context.Context) []sandbox.Report // nil: confined reports
	skipped  func() []string                        // paths of the settings that commands do not get; nil for none
}

// openProviders opens the engine that these settings need, and only that.
func openProviders(s config.Settings, state string, secrets func(config.Settings) []string, o wiringOptions) (*providers, error) {
	p := &providers{o: o, state: state, secrets: secrets}
	wrapper := embedded()
	bwrap, skipped := bubblewrap(s)
	if s.Provider == sandbox.ProviderBwrap {
		wrapper = bwrap
	}
	engine, err := p.open(wrapper)
	if err != nil {
		return nil, fmt.Errorf("preparing to run commands: %w", err)
	}
	p.engine, p.unconfined = engine, engine.Unconfined()
	switch inner := embedded(); {
	case inner == nil:
	case wrapper != nil && wrapper.Name() == inner.Name():
		p.embedded = engine
	default:
		p.embedded = p.later(inner)
	}
	var first sandbox.Provider
	if s.Provider == sandbox.ProviderBwrap && bwrap != nil {
		first = engine
	}
	p.choose(s, first, bwrap, skipped)
	return p, nil
}

func (p *providers) open(wrapper local.Wrapper) (*local.Engine, error) {
	return local.New(wrapper, observed(local.Options{StateDir: p.state, Log: p.o.log, OwnsChildren: true}))
}

// later is a provider that is opened when it is needed. It is called with mu held,
// or before anybody else has p.
func (p *providers) later(wrapper local.Wrapper) *onDemand {
	provider := &onDemand{name: wrapper.Name(), open: func() (sandbox.Provider, error) { return p.open(wrapper) }, interaction: local.Interaction()}
	p.made = append(p.made, provider)
	return provider
}

// under is what confines commands under these settings: the same as long as they say
// the same about it.
func (p *providers) under(s config.Settings) choice {
	p.mu.Lock()
	defer p.mu.Unlock()
	if choiceKey(s) == p.choice.key {
		return p.choice
	}
	before := p.choice
	wrapper, skipped := bubblewrap(s)
	if bwrapKey(s) == before.bwrapKey {
		p.choose(s, known(before.known, sandbox.ProviderBwrap), nil, skipped)
	} else {
		p.choose(s, nil, wrapper, skipped)
	}
	for _, old := range before.known {
		if made, ok := old.(*onDemand); ok && !slices.Contains(p.choice.known, old) {
			p.retiring.Go(func() { made.retire(func() { p.forget(made) }) }) // it may be being tried
		}
	}
	return p.choice
}

func (p *providers) forget(old *onDemand) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.made = slices.DeleteFunc(p.made, func(made *onDemand) bool { return made == old })
}

// choose makes the choice for settings: with the provider bwrap, or one that is made
// of the wrapper, or without if both are nil.
func (p *providers) choose(s config.Settings, bwrap sandbox.Provider, wrapper local.Wrapper, skipped func() []skip) {
	c := choice{key: choiceKey(s), bwrapKey: bwrapKey(s), remote: s.Remote, known: slices.Clone(notBuilt)}
	if p.embedded != nil {
		know(c.known, p.embedded)
	}
	if bwrap == nil && wrapper != nil {
		bwrap = p.later(wrapper)
	}
	if bwrap != nil {
		know(c.known, bwrap)
	}
	if remotely(s) {
		know(c.known, p.opensandbox(s))
	}
	if by := s.ConfinedBy(); by != sandbox.ProviderAuto {
		c.confined = known(c.known, by)
	} else {
		c.confined = &auto{embedded: known(c.known, embeddedName()), bwrap: known(c.known, sandbox.ProviderBwrap), preferBwrap: s.PreferBwrap}
	}
	switch {
	case !p.o.brief:
		c.report = reports(c.known, c.confined)
	case remotely(s): // to try it costs a sandbox, and the one command shows as much
		c.report = func(context.Context) []sandbox.Report { return nil }
	}
	c.skipped = skips(c.confined, skipped, p.o.log)
	if s.RunUnconfined && !remotely(s) { // what is to run elsewhere does not run here instead
		c.confined = &fallback{Provider: c.confined, unconfined: p.unconfined, log: p.o.log}
	}
	if p.o.input != nil || p.o.output != nil {
		c.confined = &attached{c.confined, p.o.input, p.o.output}
	}
	p.choice = c
}

// choiceKey has everything that a choice depends on.
func choiceKey(s config.Settings) string {
	return fmt.Sprintf("%q %q %v %v %s %q", s.Backend, s.Provider, s.PreferBwrap, s.RunUnconfined, bwrapKey(s), fmt.Sprint(s.Remote))
}

func bwrapKey(s config.Settings) string {
	return fmt.Sprintf("%q %q %q", s.BwrapPath, s.BwrapReadOnly, s.BwrapDevices)
}

// bare is what runs commands that nothing shall confine.
func (p *providers) bare() sandbox.Provider {
	if p.o.input != nil || p.o.output != nil {
		return &attached{p.unconfined, p.o.input, p.o.output}
	}
	return p.unconfined
}

// close ends every command.
func (p *providers) close() error {
	p.mu.Lock()
	made := slices.Clone(p.made)
	p.mu.Unlock()
	var errs []error
	for _, provider := range slices.Backward(made) {
		errs = append(errs, provider.Close())
	}
	p.retiring.Wait()
	return errors.Join(append(errs, p.engine.Close())...)
}

// embeddedName is that of the provider that needs nothing installed, or would if this
// system had one.
func embeddedName() string {
	if wrapper := embedded(); wrapper != nil {
		return wrapper.Name()
	}
	return sandbox.ProviderLandlock
}

// know puts a provider in the place of the absent one of its name.
func know(all []sandbox.Provider, p sandbox.Provider) {
	all[slices.IndexFunc(all, func(k sandbox.Provider) bool { return k.Name() == p.Name() })] = p
}

// known is the one of a name.
func known(all []sandbox.Provider, name string) sandbox.Provider {
	return all[slices.IndexFunc(all, func(k sandbox.Provider) bool { return k.Name() == name })]
}

// reports asks every provider. A choice that is still to be made is made by what
// they answer.
func reports(all []sandbox.Provider, confined sandbox.Provider) func(context.Context) []sandbox.Report {
	return func(ctx context.Context) []sandbox.Report {
		reports := make([]sandbox.Report, len(all))
		by := map[string]sandbox.Report{}
		for i, provider := range all {
			reports[i] = provider.Probe(ctx)
			by[provider.Name()] = reports[i]
		}
		if a, ok := confined.(*auto); ok && ctx.Err() == nil {
			a.settle(by[embeddedName()], by[sandbox.ProviderBwrap])
		}
		return reports
	}
}

// skip is a path of the settings that commands do not get.
type skip struct{ path, reason string }

// skips says which paths are skipped while bubblewrap confines, and logs what is
// skipped now, whatever confines.
func skips(confined sandbox.Provider, skipped func() []skip, log *slog.Logger) func() []string {
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
type absent struct{ name, reason, remedy string }

// notBuilt has every provider that there is a name for, in the order of reports,
// as if this version and system had none.
var notBuilt = []sandbox.Provider{
	absent{sandbox.ProviderLandlock, "it needs Linux", nameNone},
	absent{sandbox.ProviderBwrap, "it needs Linux", nameNone},
	absent{sandbox.ProviderSeatbelt, "it needs macOS", nameNone},
	absent{sandbox.ProviderOpenSandbox, `it is not set: sandbox_backend is "none"`, `set sandbox_backend = "opensandbox"`},
}

const nameNone = `set provider = "auto" in the settings and name no --provider`

func (a absent) Name() string { return a.name }

func (a absent) Probe(context.Context) sandbox.Report {
	return sandbox.Report{Provider: a.name, Reason: a.reason}
}

func (a absent) Start(_ context.Context, spec sandbox.Spec) (sandbox.Process, error) {
	return nil, &sandbox.UnavailableError{
		Mode:     spec.Policy.Mode,
		Lacking:  a.name != sandbox.ProviderOpenSandbox, // what is to run elsewhere does not run here instead
		Remote:   a.name == sandbox.ProviderOpenSandbox,
		Detail:   fmt.Sprintf("provider %s: %s", a.name, a.reason),
		Remedies: []string{a.remedy, "run \"confine doctor\" to see what this machine can enforce"},
	}
}

// Interaction is everything: that nothing runs is what is wrong, not what was asked for.
func (absent) Interaction() sandbox.Interaction {
	return sandbox.Interaction{Input: true, Terminal: true}
}

func (absent) CloseSession(string) {}
func (absent) Close() error        { return nil }
