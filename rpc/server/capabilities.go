package server

import (
	"context"
	"errors"
	"reflect"
	"slices"
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
	can := c.interaction(s)
	roots := []string{}
	for _, root := range c.roots(s) {
		roots = append(roots, root.Path)
	}
	return proto.Capabilities{
		Record:          c.record(s),
		ProtocolVersion: proto.ProtocolVersion,
		Version:         c.o.Version,
		State:           c.probing.state(),
		Roots:           roots,
		RefusedRoots:    c.folders.refusals(),
		CanAsk:          c.canAsk(),
		StdinOpen:       can.Input,
		Pty:             can.Terminal,
		Tool:            shellTool(s, c.canAsk()),
	}, nil
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
