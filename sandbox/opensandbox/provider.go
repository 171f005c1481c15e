package opensandbox

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"sync"

	"github.com/confine-dev/confine/sandbox"
)

// Provider runs commands in one service. It is safe for concurrent use.
type Provider struct {
	config Config
	*service
	base      *url.URL
	lifecycle *lifecycle
	journal   *journal

	ctx     context.Context // until Close
	cancel  context.CancelFunc
	working sync.WaitGroup // runs, and what goes on besides
	swept   sync.Once
	spills  sandbox.SpillQuota

	mu    sync.Mutex // guards what follows
	slots map[place]*slot
	runs  map[*run]string // with their sessions; of the one-call interface only

	probing chan struct{}   // full while the service is tried
	report  *sandbox.Report // guarded by mu: the last, if it was good
}

var _ sandbox.Provider = (*Provider)(nil)

// New checks the configuration. It reaches nothing. Its errors say what to set.
func New(c Config) (*Provider, error) {
	c, base, err := c.complete()
	if err != nil {
		return nil, err
	}
	s := newService(c)
	p := &Provider{config: c, service: s, base: base, lifecycle: newLifecycle(s, base), journal: newJournal(c.StateDir, base.String(), c.Lifetime),
		probing: make(chan struct{}, 1), slots: map[place]*slot{}, runs: map[*run]string{}}
	p.ctx, p.cancel = context.WithCancel(context.Background())
	return p, nil
}

// Name implements sandbox.Provider.
func (p *Provider) Name() string { return sandbox.ProviderOpenSandbox }

// Interaction implements sandbox.Provider: a command gets all of its input at the
// start, and no terminal.
func (p *Provider) Interaction() sandbox.Interaction { return sandbox.Interaction{} }

// Start implements sandbox.Provider. The first command of a session waits until its
// remote sandbox is there. Once a command may have reached the service ctx does not
// stop the start any more: it can be ended only when it is known.
func (p *Provider) Start(ctx context.Context, spec sandbox.Spec) (sandbox.Process, error) {
	if err := checkSpec(ctx, spec); err != nil {
		return nil, err
	}
	if !p.enter() {
		return nil, errClosed
	}
	defer p.working.Done()
	text, err := script(ctx, spec, p.config.Patience)
	if err != nil {
		return nil, err
	}
	if p.config.API == APIRun {
		return p.startCall(ctx, spec, text)
	}
	r, err := p.remote(ctx, spec)
	if err != nil {
		p.doubt(err)
		return nil, err
	}
	process, err := p.begin(r, spec, text)
	if err != nil {
		p.doubt(err)
		return nil, err
	}
	return process, nil
}

// prefix names the provider in each of its errors.
const prefix = "provider " + sandbox.ProviderOpenSandbox + ": "

// unusable is the error for a command that the service did not run. detail is one line.
func unusable(policy sandbox.Policy, detail string, remedies ...string) *sandbox.UnavailableError {
	return &sandbox.UnavailableError{Mode: policy.Mode, Remote: true, Detail: prefix + detail, Remedies: remedies}
}

// enter adds to those that Close waits for; false if it was called.
func (p *Provider) enter() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.ctx.Err() != nil {
		return false
	}
	p.working.Add(1)
	return true
}

// doubt forgets what is known of the service when it fails.
func (p *Provider) doubt(err error) {
	if _, failed := errors.AsType[*sandbox.UnavailableError](err); !failed {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.report = nil
}

// CloseSession implements sandbox.Provider: the remote sandboxes of the session are
// deleted, and what runs in them ends. It takes no longer than a service may.
func (p *Provider) CloseSession(session string) {
	p.end(func(of string) bool { return of == session })
}

func (p *Provider) end(chosen func(session string) bool) {
	p.mu.Lock()
	var ending []*slot
	for at, s := range p.slots {
		if chosen(at.session) {
			ending = append(ending, s)
			delete(p.slots, at)
		}
	}
	var runs []*run
	for r, session := range p.runs {
		if chosen(session) {
			runs = append(runs, r)
		}
	}
	p.mu.Unlock()
	var waiting sync.WaitGroup
	for _, s := range ending {
		waiting.Go(s.close)
	}
	for _, r := range runs {
		r.Cancel()
		waiting.Go(func() { <-r.done })
	}
	waiting.Wait()
}

// Close implements sandbox.Provider. The error says that a remote sandbox may be left,
// which then ends by itself, or is deleted by the next server.
func (p *Provider) Close() error {
	p.mu.Lock()
	p.cancel() // no slot is made any more
	p.mu.Unlock()
	p.end(func(string) bool { return true })
	p.working.Wait()
	p.settle()
	p.service.close()
	if left := p.journal.close(); left > 0 {
		return fmt.Errorf("%d remote sandboxes at %s may be left; they end within %v, or are deleted when confine uses the service next", left, p.base.Host, p.config.Lifetime)
	}
	return nil
}
