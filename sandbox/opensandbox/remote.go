package opensandbox

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/confine-dev/confine/sandbox"
)

// place is what decides which remote sandbox a command gets.
type place struct {
	session string
	network bool
	volumes string // what is mounted, as text
}

// slot is the remote sandbox of a place, whether it is there yet or not.
type slot struct {
	ctx    context.Context // until the session is closed
	cancel context.CancelFunc
	turn   chan struct{} // full while somebody looks at now or makes a sandbox
	now    *remote       // guarded by turn
}

// remote is one sandbox that was made.
type remote struct {
	provider *Provider
	token    string // by which the journal and the service know it
	id       string
	execd    *execd

	ctx    context.Context // until it is to end
	cancel context.CancelFunc
	once   sync.Once
	gone   chan struct{} // closed when it was deleted, or that was given up
	why    string        // why it ended; set before ctx is cancelled
	closed bool          // because its session was closed; likewise
	left   *failure      // why it may still be there; set before gone is closed
	told   atomic.Bool   // somebody was told that it is gone
	skew   time.Duration // the service's clock minus ours

	keeping sync.WaitGroup
}

// alive reports whether the sandbox is there as far as is known.
func (r *remote) alive() bool { return r.ctx.Err() == nil }

// end deletes the sandbox and with it whatever runs in it. Everybody who calls it
// returns when that is done, or given up; the first cause counts.
func (r *remote) end(why string, closed bool) {
	r.once.Do(func() {
		r.why, r.closed = why, closed
		r.cancel()
		p := r.provider
		ctx, cancel := context.WithTimeout(context.WithoutCancel(r.ctx), p.config.Patience)
		defer cancel()
		if r.left = p.lifecycle.delete(ctx, r.id); r.left == nil {
			p.journal.ended(r.token)
		} else {
			p.config.Log.Warn("a remote sandbox could not be deleted", "sandbox", r.id, "reason", r.left.text, "within", p.config.Lifetime)
		}
		close(r.gone)
	})
	<-r.gone
	r.keeping.Wait()
}

// ending describes what became of the sandbox, behind a cause.
func (r *remote) ending() string {
	if r.left == nil {
		return r.why + "; the remote sandbox is deleted, with what commands left in it"
	}
	return fmt.Sprintf("%s; the remote sandbox could not be deleted (%s) and ends by itself within %v", r.why, r.left.text, r.provider.config.Lifetime)
}

// remote is a sandbox for a place: the one that is there, or a new one.
func (p *Provider) remote(ctx context.Context, spec sandbox.Spec) (*remote, error) {
	volumes, err := p.mounts(spec.Policy)
	if err != nil {
		return nil, err
	}
	at := place{session: spec.Session, network: spec.Policy.Network, volumes: fmt.Sprint(volumes)}
	s := p.slot(at)
	if s == nil {
		return nil, errClosed
	}
	r, err := s.take(ctx, func(ctx context.Context) (*remote, error) { return p.make(ctx, spec, volumes, p.probed) })
	lost, isLost := errors.AsType[*lostError](err)
	switch {
	case err != nil && s.ctx.Err() != nil && ctx.Err() == nil:
		return nil, errClosed
	case isLost:
		return nil, unusable(spec.Policy, lost.how, "run the command again: it gets a new sandbox, without what was in the old one")
	}
	return r, err
}

var errClosed = errors.New("the session was closed")

// lostError says that a session's sandbox ended while nothing ran in it.
type lostError struct{ how string }

func (e *lostError) Error() string { return e.how }

// take waits for its turn.
func (s *slot) take(ctx context.Context, make func(context.Context) (*remote, error)) (*remote, error) {
	select {
	case s.turn <- struct{}{}:
	case <-ctx.Done():
		return nil, ctx.Err()
	case <-s.ctx.Done():
		return nil, errClosed
	}
	defer func() { <-s.turn }()
	if s.ctx.Err() != nil {
		return nil, errClosed // nobody would end what is made now
	}
	if s.now != nil && s.now.alive() {
		return s.now, nil
	}
	if s.now != nil {
		<-s.now.gone
		if !s.now.told.Swap(true) { // what commands left there is not silently replaced by nothing
			return nil, &lostError{s.now.ending()}
		}
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(s.ctx, cancel)()
	r, err := make(ctx)
	if err != nil {
		return nil, err
	}
	s.now = r
	return r, nil
}

// slot is that of a place; nil if the provider is closed.
func (p *Provider) slot(at place) *slot {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.ctx.Err() != nil {
		return nil
	}
	s := p.slots[at]
	if s == nil {
		s = &slot{turn: make(chan struct{}, 1)}
		s.ctx, s.cancel = context.WithCancel(p.ctx)
		p.slots[at] = s
	}
	return s
}

// close ends the sandbox of a slot for good.
func (s *slot) close() {
	s.cancel()
	s.turn <- struct{}{} // who makes one stops
	if s.now != nil {
		s.now.end("the session was closed", true)
	}
	<-s.turn
}

// make makes a sandbox, waits until it runs and puts into it what commands expect.
// What goes wrong leaves none. Where there is no room, again waits until there may be,
// and says whether to ask once more; nil does not.
func (p *Provider) make(ctx context.Context, spec sandbox.Spec, volumes []volume, again func(context.Context) bool) (_ *remote, err error) {
	unavailable := func(f *failure, doing string) error {
		if ctx.Err() != nil && context.Cause(ctx) == context.Canceled {
			return ctx.Err()
		}
		return unusable(spec.Policy, doing+": "+f.text, append(f.remedies(), seeDoctor)...)
	}
	pack, err := p.pack(ctx, spec.Policy)
	if err != nil {
		return nil, err
	}
	p.sweep()
	token := strings.ToLower(rand.Text())
	if err := p.journal.begun(token); err != nil {
		return nil, unusable(spec.Policy, fmt.Sprintf("noting a new sandbox, so that it is deleted whatever happens: %v", err), "make confine's state folder writable")
	}
	asked := time.Now()
	wanted := p.creation(token, spec.Policy, volumes)
	made, f := p.lifecycle.create(ctx, wanted)
	if f != nil && f.status == http.StatusTooManyRequests && again != nil && again(ctx) {
		asked = time.Now()
		made, f = p.lifecycle.create(ctx, wanted)
	}
	if f != nil {
		p.disown(token, f)
		return nil, unavailable(f, "making a sandbox")
	}
	p.journal.known(token, made.ID)
	r := &remote{provider: p, token: token, id: made.ID, gone: make(chan struct{})}
	r.ctx, r.cancel = context.WithCancel(p.ctx)
	if !made.ExpiresAt.IsZero() {
		r.skew = made.ExpiresAt.Add(-p.config.Lifetime).Sub(asked)
	}
	defer func() {
		if err != nil {
			r.end("it could not be prepared", true)
		}
	}()
	if f := p.awaitRunning(ctx, made); f != nil {
		return nil, unavailable(f, "starting the sandbox")
	}
	at, f := p.lifecycle.endpoint(ctx, made.ID)
	if f != nil {
		return nil, unavailable(f, "finding the sandbox's execd")
	}
	r.execd = &execd{p.service, at}
	if f := p.awaitExecd(ctx, r.execd); f != nil {
		return nil, unavailable(f, "reaching the sandbox's execd")
	}
	if f := p.furnish(ctx, r, spec.Policy, pack); f != nil {
		return nil, unavailable(f, "preparing the sandbox")
	}
	r.keeping.Go(r.keep)
	return r, nil
}

const seeDoctor = `run "confine doctor" to see what the service answers`

// creation is the request for a sandbox under a policy.
func (p *Provider) creation(token string, policy sandbox.Policy, volumes []volume) creation {
	action := "deny"
	if policy.Network {
		action = "allow"
	}
	return creation{
		Image: image{p.config.Image}, Entrypoint: []string{"tail", "-f", "/dev/null"},
		Timeout:        int(p.config.Lifetime / time.Second),
		ResourceLimits: map[string]string{"cpu": p.config.CPU, "memory": fmt.Sprintf("%dMi", max(p.config.Memory>>20, 1))},
		Metadata:       map[string]string{label: token},
		NetworkPolicy:  networkPolicy{DefaultAction: action, Egress: []string{}},
		Volumes:        volumes,
	}
}

// disown deletes what a creation may have made although it was not answered so.
func (p *Provider) disown(token string, f *failure) {
	if !f.sent || f.status >= 300 && f.status < 500 && f.status != 408 {
		p.journal.ended(token) // it said no
		return
	}
	p.working.Go(func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(p.ctx), p.config.Patience)
		defer cancel()
		if f := p.lifecycle.deleteLabelled(ctx, token); f != nil {
			p.config.Log.Warn("it could not be found out whether a sandbox was made", "reason", f.text)
		}
		// The note stays: the service may still be at it.
	})
}

// awaitRunning waits for the state of that name. States that are not known may lead
// there.
func (p *Provider) awaitRunning(ctx context.Context, seen view) *failure {
	ctx, cancel := context.WithTimeout(ctx, p.config.Startup)
	defer cancel()
	for {
		switch seen.Status.State {
		case "Running":
			return nil
		case "Failed", "Terminated", "Stopping":
			return &failure{sent: true, text: fmt.Sprintf("it is %s: %s", seen.Status.State, p.shown(seen.Status.Reason+" "+seen.Status.Message))}
		}
		if !p.pause(ctx, p.config.Poll) {
			return &failure{sent: true, text: fmt.Sprintf("it did not run in time, and is %q", p.shown(seen.Status.State))}
		}
		var f *failure
		if seen, f = p.lifecycle.get(ctx, seen.ID); f != nil {
			return f
		}
	}
}

// awaitExecd waits until the execd of a new sandbox answers.
func (p *Provider) awaitExecd(ctx context.Context, e *execd) *failure {
	ctx, cancel := context.WithTimeout(ctx, 2*p.config.Patience)
	defer cancel()
	for {
		f := e.ping(ctx)
		if f == nil || f.status == 401 || f.status == 403 || !p.pause(ctx, p.config.Poll) {
			return f
		}
	}
}

// keep renews the sandbox until it is to end.
func (r *remote) keep() {
	p := r.provider
	ticker := time.NewTicker(p.config.Renew)
	defer ticker.Stop()
	for {
		select {
		case <-r.ctx.Done():
			return
		case now := <-ticker.C:
			f := p.lifecycle.renew(r.ctx, r.id, now.Add(r.skew+p.config.Lifetime))
			switch {
			case f == nil:
				p.journal.renewed()
			case r.ctx.Err() != nil:
				return
			case f.lost():
				go r.end("the service has no such sandbox any more", false) // it waits for this function
				return
			default:
				p.config.Log.Warn("a remote sandbox could not be renewed", "sandbox", r.id, "reason", f.text)
			}
		}
	}
}
