package approval

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/confine-dev/confine/approval/rules"
	"github.com/confine-dev/confine/sandbox"
)

// Gate decides about commands. Its methods may be called from several
// goroutines at once.
type Gate struct {
	policy     Policy
	audit      *Audit
	ttl        time.Duration
	maxWaiting int
	now        func() time.Time

	mu       sync.Mutex // guards what follows
	sessions map[string]*memory
	waiting  map[string]*waiting // by question ID
	closed   bool
	idle     chan struct{} // closed by the last one waiting after Close, or by Close
}

// Options of a Gate. Only Audit must be set.
type Options struct {
	Policy      Policy           // empty means PolicyAsk
	Audit       *Audit           // where questions are recorded before anything runs; NoAudit() for none
	QuestionTTL time.Duration    // how long a question may wait; 0 means 10 minutes
	MaxWaiting  int              // questions that wait at once, withdrawn ones that the Prompter holds on to included; 0 means 16
	Now         func() time.Time // nil means time.Now
}

// Defaults of Options.
const (
	DefaultQuestionTTL = 10 * time.Minute
	DefaultMaxWaiting  = 16
)

// New returns a gate. Whoever calls it closes gate and audit, in that order.
func New(o Options) (*Gate, error) {
	if o.Policy == "" {
		o.Policy = PolicyAsk
	}
	if _, err := ParsePolicy(string(o.Policy)); err != nil {
		return nil, err
	}
	if o.Audit == nil {
		return nil, errors.New("setting up approvals: no audit file; pass NoAudit() if questions shall leave no record")
	}
	if o.QuestionTTL < 0 || o.MaxWaiting < 0 {
		return nil, errors.New("setting up approvals: time and number of questions cannot be negative")
	}
	if o.QuestionTTL == 0 {
		o.QuestionTTL = DefaultQuestionTTL
	}
	if o.MaxWaiting == 0 {
		o.MaxWaiting = DefaultMaxWaiting
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	return &Gate{
		policy: o.Policy, audit: o.Audit, ttl: o.QuestionTTL, maxWaiting: o.MaxWaiting, now: o.Now,
		sessions: map[string]*memory{}, waiting: map[string]*waiting{}, idle: make(chan struct{}),
	}, nil
}

// Decide says whether r may run under r.Want, asking p if nothing else
// answers. A nil p means that there is nobody to ask. It returns when there is
// an answer, when the question expires, and soon after ctx ends.
//
// The error is set only if the decision could not be recorded; then the
// decision allows nothing and the command must not run.
func (g *Gate) Decide(ctx context.Context, p Prompter, r Request) (Decision, error) {
	if fault := limits(r); fault != "" {
		return g.unasked(r, Decision{Rejected, ByLimits, "", fault})
	}
	if r.Verdict.Decision == rules.Deny {
		return g.unasked(r, Decision{Rejected, ByPolicy, "", r.Verdict.Why})
	}
	policy := cmp.Or(r.Policy, g.policy)
	if gained(r.Have, r.Want).none() && !policy.Asks(r.Verdict) {
		return Decision{AllowedOnce, ByMode, "", "the configured policy already allows it"}, nil
	}
	r = ruled(r, policy)
	switch {
	case ctx.Err() != nil:
		return g.unasked(r, Decision{Cancelled, ByDefault, "", errRequestEnded.reason})
	case policy == PolicyNever:
		return g.unasked(r, Decision{Rejected, ByPolicy, "", never(r)})
	}
	k := keyOf(r)
	w, d := g.admit(ctx, k, p, r)
	if w == nil {
		return g.unasked(r, d)
	}
	return g.ask(p, r, k, w)
}

// ruled is r, which is asked about, with what the rules have to do with that.
func ruled(r Request, policy Policy) Request {
	why := ""
	switch r.everyTime = r.Verdict.Decision == rules.Ask; {
	case r.everyTime:
		why = r.Verdict.Why
	case policy.Asks(r.Verdict) && gained(r.Have, r.Want).none():
		why = fmt.Sprintf("the approval policy is %q, and %s", string(policy), cmp.Or(r.Verdict.Why, "no rule allows it"))
	default:
		return r
	}
	r.Reason = strings.TrimSpace(r.Reason + " It is asked because " + why + ".")
	return r
}

// ReasonNever is the reason of what is refused because nobody is asked.
const ReasonNever = `the approval policy is "never": nobody is asked, and nothing beyond the configured mode is allowed`

func never(r Request) string {
	if r.everyTime {
		return `the approval policy is "never", so nobody is asked, and ` + r.Verdict.Why
	}
	return ReasonNever
}

// limits says why a request can never be allowed, or nothing.
func limits(r Request) string {
	for _, p := range []sandbox.Policy{r.Have, r.Want} {
		if _, err := sandbox.ParseMode(string(p.Mode)); err != nil {
			return err.Error()
		}
	}
	if (r.Command == "") == (len(r.Argv) == 0) {
		return "a request needs either a command or arguments"
	}
	if r.Policy != "" {
		if _, err := ParsePolicy(string(r.Policy)); err != nil {
			return err.Error()
		}
	}
	if r.Kind != KindCommand && r.Kind != KindEscalation {
		return fmt.Sprintf("unknown kind of request %q", string(r.Kind))
	}
	return ""
}

// unasked records a decision that took no question. Runs that stay within the
// configured policy never come here, so that they cost no disk access.
func (g *Gate) unasked(r Request, d Decision) (Decision, error) {
	if err := g.audit.unasked(g.now(), r, d); err != nil {
		return Decision{}, err
	}
	return d, nil
}

// admit finds an earlier answer or makes room for a question: with w nil the
// decision stands.
func (g *Gate) admit(ctx context.Context, k key, p Prompter, r Request) (w *waiting, d Decision) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if d, ok := g.sessions[r.Session].recall(k, r); ok {
		return nil, d
	}
	unavailable := func(why string) Decision { return Decision{Unavailable, ByDefault, "", why} }
	switch {
	case g.closed:
		return nil, unavailable(errClosed.reason)
	case p == nil:
		return nil, unavailable("nobody can be asked: no editor or terminal that shows questions is connected")
	case len(g.waiting) >= g.maxWaiting:
		return nil, unavailable(fmt.Sprintf("%d questions wait for the person already: wait for their answers, then try again", len(g.waiting)))
	}
	w = newWaiting(ctx, r)
	g.waiting[w.id] = w
	return w, Decision{}
}

// EndSession withdraws the questions of a session and forgets its answers.
// Ending an unknown session does nothing.
func (g *Gate) EndSession(session string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	delete(g.sessions, session)
	for _, w := range g.waiting {
		if w.session == session {
			w.end(errSessionEnded)
		}
	}
}

// EndRoot withdraws the questions that depend on a root that was removed, and
// ends the grants that do, in every session. Refusals stay. path is the
// canonical path of the root.
func (g *Gate) EndRoot(path string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, m := range g.sessions {
		m.forgetRoot(path)
	}
	for _, w := range g.waiting {
		if dependsOn(w.folders, path) {
			w.end(errRootRemoved)
		}
	}
}

// Close withdraws every question and refuses new ones, then waits until no
// Prompter is at work any more or ctx ends.
func (g *Gate) Close(ctx context.Context) error {
	g.mu.Lock()
	if !g.closed {
		g.closed = true
		for _, w := range g.waiting {
			w.end(errClosed)
		}
		g.closeIfIdle()
	}
	g.mu.Unlock()
	select {
	case <-g.idle:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("closing approvals: some questions are still being shown: %w", ctx.Err())
	}
}

// closeIfIdle is called with mu held.
func (g *Gate) closeIfIdle() {
	if g.closed && len(g.waiting) == 0 {
		close(g.idle)
	}
}
