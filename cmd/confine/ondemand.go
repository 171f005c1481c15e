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

	mu     sync.Mutex
	made   sandbox.Provider // guarded by mu; nil until a command came
	closed bool             // guarded by mu
	asking sync.WaitGroup   // questions to providers made for them; not added to once closed
}

var errProviderClosed = errors.New("confine is shutting down")

func (p *onDemand) Name() string { return p.name }

func (p *onDemand) Start(ctx context.Context, spec sandbox.Spec) (sandbox.Process, error) {
	provider, err := p.make()
	if err != nil {
		return nil, &sandbox.UnavailableError{Mode: spec.Policy.Mode, Detail: err.Error(), Remedies: []string{"try again"}}
	}
	return provider.Start(ctx, spec)
}

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
