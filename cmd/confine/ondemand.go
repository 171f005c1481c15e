package main

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/confine-dev/confine/sandbox"
)

// onDemand is a provider that is made when the first command needs it. What is
// asked of it before is asked of one that is made for the question and closed
// again: a provider has folders and a guardian, and most servers use only one.
type onDemand struct {
	name string
	open func() (sandbox.Provider, error)

	interaction sandbox.Interaction // of what open returns

	mu      sync.Mutex
	made    sandbox.Provider // guarded by mu; nil until a command came
	closed  bool             // guarded by mu
	retired func()           // guarded by mu; if set, it closes when nothing of it runs any more, and then calls this
	running int              // guarded by mu: commands, and those being started
	asking  sync.WaitGroup   // questions to providers made for them; not added to once closed
}

var errProviderClosed = errors.New("confine is shutting down")

func (p *onDemand) Name() string { return p.name }

func (p *onDemand) Interaction() sandbox.Interaction { return p.interaction }

func (p *onDemand) Start(ctx context.Context, spec sandbox.Spec) (sandbox.Process, error) {
	provider, err := p.make()
	if err != nil {
		return nil, &sandbox.UnavailableError{Mode: spec.Policy.Mode, Detail: err.Error(), Remedies: []string{"try again"}}
	}
	process, err := provider.Start(ctx, spec)
	if err != nil {
		p.ended()
		return nil, err
	}
	go func() { // as long as the command, which ends before the provider does
		<-process.Done()
		p.ended()
	}()
	return process, nil
}

// ended notes that a command has, or was not started.
func (p *onDemand) ended() {
	p.mu.Lock()
	p.running--
	p.mu.Unlock()
	p.closeIfIdle()
}

// retire closes the provider when the last of its commands has ended, and calls
// closed then. None is started any more once it is closed.
func (p *onDemand) retire(closed func()) {
	p.mu.Lock()
	p.retired = closed
	p.mu.Unlock()
	p.closeIfIdle()
}

func (p *onDemand) closeIfIdle() {
	p.mu.Lock()
	closed := p.retired
	if p.running > 0 {
		closed = nil
	}
	p.mu.Unlock()
	if closed != nil {
		p.Close()
		closed()
	}
}

// make is for a command that is about to start: ended must follow.
func (p *onDemand) make() (sandbox.Provider, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return nil, errProviderClosed
	}
	if p.made == nil {
		provider, err := p.open()
		if err != nil {
			return nil, fmt.Errorf("preparing provider %s: %w", p.name, err)
		}
		p.made = provider
	}
	p.running++
	return p.made, nil
}

// ask calls a question with the provider, or with one that ends with it.
func (p *onDemand) ask(question func(sandbox.Provider)) error {
	p.mu.Lock()
	provider := p.made
	if p.closed {
		p.mu.Unlock()
		return errProviderClosed
	}
	p.asking.Add(1)
	p.mu.Unlock()
	defer p.asking.Done()
	if provider != nil {
		question(provider)
		return nil
	}
	provider, err := p.open()
	if err != nil {
		return fmt.Errorf("preparing provider %s: %w", p.name, err)
	}
	question(provider)
	return provider.Close()
}

func (p *onDemand) Probe(ctx context.Context) (report sandbox.Report) {
	err := p.ask(func(provider sandbox.Provider) { report = provider.Probe(ctx) })
	if err != nil && report.Provider == "" {
		report = sandbox.Report{Provider: p.name, Reason: err.Error()}
	}
	return report
}

// Verify implements sandbox.Verifier, if the provider does.
func (p *onDemand) Verify(ctx context.Context) (verified []sandbox.Verification) {
	err := p.ask(func(provider sandbox.Provider) {
		if verifier, ok := provider.(sandbox.Verifier); ok {
			verified = verifier.Verify(ctx)
		}
	})
	if err != nil && verified == nil {
		verified = []sandbox.Verification{{Provider: p.name, Reason: err.Error()}}
	}
	return verified
}

// CloseSession does nothing for a provider that was never needed.
func (p *onDemand) CloseSession(session string) {
	p.mu.Lock()
	provider := p.made
	p.mu.Unlock()
	if provider != nil {
		provider.CloseSession(session)
	}
}

// Close waits for questions that are being answered.
func (p *onDemand) Close() error {
	p.mu.Lock()
	provider := p.made
	p.closed = true
	p.mu.Unlock()
	p.asking.Wait()
	if provider == nil {
		return nil
	}
	return provider.Close()
}
