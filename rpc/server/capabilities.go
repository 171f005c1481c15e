package server

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"sync"

	"github.com/confine-dev/confine/rpc"
	"github.com/confine-dev/confine/rpc/proto"
	"github.com/confine-dev/confine/sandbox"
)

// capabilities says what can be enforced here. While providers are being tried
// it answers without them, or waits if the editor wants that.
func (c *client) capabilities(ctx context.Context, req *rpc.Request) (any, error) {
	var params proto.CapabilitiesParams
	if err := req.Decode(&params); err != nil {
		return nil, err
	}
	if params.Wait {
		select {
		case <-c.probing.done:
		case <-ctx.Done():
		}
	}
	s := c.settings()
	roots := []string{}
	for _, root := range c.roots(s) {
		roots = append(roots, root.Path)
	}
	return proto.Capabilities{
		ProtocolVersion: proto.ProtocolVersion,
		Version:         c.o.Version,
		State:           c.probing.state(),
		Provider:        c.confiner(s),
		Providers:       orEmpty(c.probing.all()),
		Settings:        s.shown(),
		Problems:        orEmpty(c.problems(s)),
		Roots:           roots,
		RefusedRoots:    c.folders.refusals(),
		CanAsk:          c.canAsk(),
		Limits:          c.limits(),
		Tool:            shellTool(s.Mode.Confined() && c.canAsk()),
	}, nil
}

// confiner names the provider that confines commands, as far as is known yet.
func (c *client) confiner(s *Settings) string {
	if s.Confined == nil {
		return sandbox.ProviderNone
	}
	name := s.Confined.Name()
	if report, tried := c.probing.of(name); tried && !report.Usable {
		return sandbox.ProviderNone
	}
	return name
}

func (c *client) limits() proto.Limits {
	textBytes := sandbox.DefaultKeep
	if c.o.KeepOutput > 0 {
		textBytes = c.o.KeepOutput
	}
	return proto.Limits{
		DefaultTimeoutMs: sandbox.DefaultTimeout.Milliseconds(),
		MaxTimeoutMs:     sandbox.MaxTimeout.Milliseconds(),
		TextBytes:        textBytes,
		ChunkBytes:       chunkBytes,
		UnsentBytes:      unsentBytes,
		FinishedRuns:     keepFinished,
		FinishedRunMs:    keepFor.Milliseconds(),
		Background:       maxBackground,
		Sessions:         maxSessions,
	}
}

// probing is what the providers have answered so far.
type probing struct {
	done chan struct{} // closed when they have answered for the first time

	mu      sync.Mutex // guards what follows
	ready   bool
	reports []sandbox.Report
	again   bool // a probe is going on
}

func newProbing() *probing { return &probing{done: make(chan struct{})} }

func (p *probing) state() proto.ProbeState {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.ready {
		return proto.StateReady
	}
	return proto.StateProbing
}

func (p *probing) all() []sandbox.Report {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.reports)
}

// of returns the last report of a provider; tried is false if there is none.
func (p *probing) of(provider string) (report sandbox.Report, tried bool) {
	for _, report := range p.all() {
		if report.Provider == provider {
			return report, true
		}
	}
	return sandbox.Report{}, false
}

// remedies lists what the providers say would make them usable.
func (p *probing) remedies() []string {
	var remedies []string
	for _, report := range p.all() {
		remedies = append(remedies, report.Remedies...)
	}
	return remedies
}

// begin reports whether the caller shall probe.
func (p *probing) begin() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	was := p.again
	p.again = true
	return !was
}

// store keeps what was found and reports whether that is news.
func (p *probing) store(reports []sandbox.Report) (changed bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.again = false
	changed = !p.ready || !reflect.DeepEqual(p.reports, reports)
	if !p.ready {
		p.ready = true
		close(p.done)
	}
	p.reports = reports
	return changed
}

// probe tries the providers in the background and tells the editor of news.
func (c *client) probe() {
	if !c.probing.begin() {
		return
	}
	c.working.Go(func() {
		changed := c.probing.store(c.reports())
		if !changed || !c.announced() {
			return
		}
		select { // nothing may be sent before the editor is ready for it
		case <-c.life.ready:
			c.notify(proto.MethodCapabilitiesChanged, proto.CapabilitiesChanged{State: proto.StateReady})
		case <-c.ctx.Done():
		}
	})
}

func (c *client) reports() []sandbox.Report {
	switch s := c.settings(); {
	case s.ConfinedReport != nil:
		return s.ConfinedReport(c.ctx)
	case s.Confined != nil:
		return []sandbox.Report{s.Confined.Probe(c.ctx)}
	}
	return nil
}

func isUnavailable(err error) bool {
	var unavailable *sandbox.UnavailableError
	return errors.As(err, &unavailable)
}

// noteFailure tries the providers again when one has failed.
func (c *client) noteFailure(err error) {
	if isUnavailable(err) {
		c.probe()
	}
}

// commandDoctor tells the person what can be enforced, when that is known.
func (c *client) commandDoctor() (any, error) {
	id, err := newRunID("")
	if err != nil {
		return nil, err
	}
	c.working.Go(func() {
		select {
		case <-c.probing.done:
			c.notify(proto.MethodShowMessage, proto.ShowMessageParams{Type: proto.MessageInfo, Message: c.diagnosis()})
		case <-c.ctx.Done():
		}
	})
	return proto.Started{RunID: id}, nil
}

func (c *client) diagnosis() string {
	var b strings.Builder
	fmt.Fprintf(&b, "confine %s: sandbox_mode is %s.", sayable(c.o.Version), c.settings().Mode)
	reports := c.probing.all()
	if len(reports) == 0 {
		b.WriteString("\nNo sandbox provider is known on this system.")
	}
	for _, r := range reports {
		state := "usable"
		if !r.Usable {
			state = "not usable"
		}
		fmt.Fprintf(&b, "\n%s: %s", r.Provider, state)
		if r.Reason != "" {
			b.WriteString("; " + sayable(r.Reason))
		}
		for _, remedy := range r.Remedies {
			b.WriteString("\n  " + sayable(remedy))
		}
	}
	return b.String()
}
