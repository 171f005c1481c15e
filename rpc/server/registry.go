package server

import (
	"cmp"
	"context"
	"io"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/confine-dev/confine/approval"
	"github.com/confine-dev/confine/rpc"
	"github.com/confine-dev/confine/rpc/proto"
	"github.com/confine-dev/confine/sandbox"
)

// Limits of what a connection holds.
const (
	keepFinished  = 128       // ended runs that can be read
	keepFor       = time.Hour // after their end
	keepBytes     = 32 << 20  // of their commands and inputs together
	maxBackground = 64        // runs at once that were answered before their end
)

// run is one run of a command, from the request until it is forgotten.
type run struct {
	plan  plan
	asked time.Time // when it was requested

	ctx    context.Context // ends when the run shall end
	cancel context.CancelFunc
	done   chan struct{} // closed when the run has ended and the editor was told

	mu       sync.Mutex // guards what follows
	began    time.Time  // zero if it did not
	dropped  []string
	process  sandbox.Process // nil if it did not begin
	decision approval.Decision
	ending   *ending               // nil while it goes on
	size     *sandbox.TerminalSize // of its terminal; nil as planned
}

// ending is how a run ended.
type ending struct {
	status proto.Status
	ran    bool // result holds
	result sandbox.Result
	advice sandbox.Advice // if something was denied
	err    error          // why it could not begin, or its sandbox broke
	at     time.Time
}

// answered reports whether the request for the run has its answer already, so
// that an error can only be told in the result.
func (r *run) answered() bool { return r.plan.background || r.plan.detached }

// env makes the environment and notes what it leaves out.
func (r *run) env(host []string) []string {
	environment := sandbox.Environment
	if r.plan.terminal != nil {
		environment = sandbox.TerminalEnvironment
	}
	if r.plan.settings.Elsewhere {
		host = nil // paths, names and secrets of this machine mean nothing there
	}
	env, dropped := environment(host, r.plan.env)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.dropped = dropped
	return env
}

// decided notes what became of the question, or that there was none.
func (r *run) decided(d approval.Decision) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.decision = d
}

// started notes that the command runs.
func (r *run) started(p sandbox.Process) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.began, r.process = time.Now(), p
	if r.size == nil {
		return nil
	}
	return p.Resize(*r.size) // it may have come while the command was being started
}

// terminal is what the command begins with; nil for pipes.
func (r *run) terminal() *sandbox.TerminalSize {
	r.mu.Lock()
	defer r.mu.Unlock()
	return cmp.Or(r.size, r.plan.terminal)
}

// resize changes the size of the terminal, now or for the beginning.
func (r *run) resize(size sandbox.TerminalSize) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.size = &size
	if r.process != nil {
		return r.process.Resize(size)
	}
	return nil
}

// discard removes what the disk holds of an ended run's output.
func (r *run) discard() {
	process := r.facts().process
	if process == nil {
		return
	}
	for _, stream := range []sandbox.Stream{sandbox.StdoutStream, sandbox.StderrStream} {
		process.Output(stream).Discard()
	}
}

// reader is what the command reads; nil for nothing.
func (p plan) reader() io.Reader {
	if p.stdin == "" {
		return nil
	}
	return strings.NewReader(p.stdin)
}

// facts is a consistent copy of what changes.
type facts struct {
	began    time.Time
	dropped  []string
	process  sandbox.Process
	decision approval.Decision
	ending   *ending
	terminal *sandbox.TerminalSize // nil for pipes
}

func (r *run) facts() facts {
	r.mu.Lock()
	defer r.mu.Unlock()
	return facts{r.began, r.dropped, r.process, r.decision, r.ending, cmp.Or(r.size, r.plan.terminal)}
}

func (f facts) status() proto.Status {
	if f.ending != nil {
		return f.ending.status
	}
	return proto.StatusRunning
}

// takesInput reports whether the command can be given input now.
func (f facts) takesInput(p plan) bool { return p.open && f.process != nil && f.process.Input().Open() }

func (r *run) running() bool { return r.facts().ending == nil }

// registry holds the runs of a connection.
type registry struct {
	mu     sync.Mutex // guards what follows
	byID   map[string]*run
	ended  []*run // in the order that they ended
	bytes  int    // of the plans of those
	closed bool
}

func newRegistry() *registry { return &registry{byID: map[string]*run{}} }

// add lists a run under a fresh id. The error is fit for the editor.
func (g *registry) add(ctx context.Context, p plan) (*run, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.forget()
	if g.closed {
		return nil, rpc.Errorf(proto.CodeInvalidRequest, "the server is shutting down")
	}
	if g.byID[p.id] != nil {
		return nil, invalid("runId %q is taken: choose a fresh one", p.id)
	}
	r := &run{plan: p, asked: time.Now(), done: make(chan struct{})}
	if r.answered() && g.countAnswered() >= maxBackground {
		return nil, limitReached(proto.FailureTooManyRuns, "too many background runs: wait for one to end, or kill one")
	}
	r.ctx, r.cancel = context.WithCancel(ctx)
	g.byID[p.id] = r
	return r, nil
}

func (g *registry) countAnswered() int {
	n := 0
	for _, r := range g.byID {
		if r.answered() && r.running() {
			n++
		}
	}
	return n
}

// finish notes how a run ended. It is called once per run.
func (g *registry) finish(r *run, e ending) {
	e.at = time.Now()
	r.mu.Lock()
	r.ending = &e
	r.mu.Unlock()
	r.cancel() // lets go of the context
	r.plan.release()
	g.mu.Lock()
	defer g.mu.Unlock()
	g.ended = append(g.ended, r)
	g.bytes += r.plan.size()
	g.forget()
}

// remove takes a run out that never became one.
func (g *registry) remove(r *run) {
	r.cancel()
	r.plan.release()
	g.mu.Lock()
	defer g.mu.Unlock()
	delete(g.byID, r.plan.id)
	close(r.done)
}

// forget drops the oldest ended runs. The caller holds mu.
func (g *registry) forget() {
	tooMany := func() bool { return len(g.ended) > keepFinished || len(g.ended) > 1 && g.bytes > keepBytes }
	for len(g.ended) > 0 && (tooMany() || time.Since(g.ended[0].facts().ending.at) >= keepFor) {
		g.bytes -= g.ended[0].plan.size()
		delete(g.byID, g.ended[0].plan.id)
		g.ended[0].discard()
		g.ended[0] = nil // free it
		g.ended = g.ended[1:]
	}
}

// find returns a run. The error is fit for the editor.
func (g *registry) find(id string) (*run, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.forget()
	if r := g.byID[id]; r != nil {
		return r, nil
	}
	return nil, invalid("there is no run %q on this connection; ended runs are kept for an hour, and the last %d of them", id, keepFinished)
}

// all lists the runs, running ones first, newest first in both parts.
func (g *registry) all() []*run {
	g.mu.Lock()
	g.forget()
	var runs []*run
	for _, r := range g.byID {
		runs = append(runs, r)
	}
	g.mu.Unlock()
	running := map[*run]bool{}
	for _, r := range runs {
		running[r] = r.running()
	}
	slices.SortFunc(runs, func(a, b *run) int {
		if running[a] != running[b] {
			if running[a] {
				return -1
			}
			return 1
		}
		return cmp.Or(b.asked.Compare(a.asked), cmp.Compare(a.plan.id, b.plan.id))
	})
	return runs
}

// lastEnded lists the runs that ended, the one that ended last first.
func (g *registry) lastEnded() []*run {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.forget()
	runs := slices.Clone(g.ended)
	slices.Reverse(runs)
	return runs
}

// close lets no run in any more and cancels those that go on. It returns them.
func (g *registry) close() []*run {
	g.mu.Lock()
	g.closed = true
	g.mu.Unlock()
	var going []*run
	for _, r := range g.all() {
		if r.running() {
			r.cancel()
			going = append(going, r)
		}
	}
	return going
}
