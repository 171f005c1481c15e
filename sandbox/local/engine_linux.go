package local

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/confine-dev/confine/sandbox"
	"golang.org/x/sys/unix"
)

// Options configures an Engine.
type Options struct {
	// StateDir is confine's private folder (0700, ours). Required.
	StateDir string

	// Log gets what nobody else is told; nil discards it.
	Log *slog.Logger

	// Observer, if set, sees what confined commands are refused.
	Observer Observer

	// NoNamespaces behaves as on a host that refuses user namespaces to confine.
	NoNamespaces bool

	// OwnsChildren says that this process starts no children but the engine's,
	// so that orphans it adopts from a killed init may be ended.
	OwnsChildren bool
}

// Engine starts commands on this machine. It implements sandbox.Provider.
type Engine struct {
	wrapper Wrapper // nil: nothing is confined
	options Options
	log     *slog.Logger
	home    *home
	self    *os.File // this program
	init    *os.File // the init's program
	life    *os.File // our end of a socket pair, held by nobody else
	peer    *os.File // the other end, by which a child sees that we live
	spawner *spawner
	guard   *guardian
	covers  *covers

	inherited inheritance

	mu       sync.Mutex
	sessions map[string]*sessionSlot // guarded by mu
	made     atomic.Int64            // sessions, ever
	closed   bool                    // guarded by mu
	closing  sync.Once
	closeErr error          // set by closing
	sweeping sync.WaitGroup // the look for what dead servers left
	starting sync.WaitGroup // commands being started; not added to once closed

	kernel kernel

	probes probes
	quota  sandbox.SpillQuota // of the output of all runs on the disk
}

// sessionSlot makes concurrent first runs of a session wait for one maker.
type sessionSlot struct {
	ready   chan struct{} // closed when session and err are set
	session *session
	err     error
}

// New returns an engine that confines with wrapper, or not at all with nil.
func New(wrapper Wrapper, o Options) (*Engine, error) {
	if !filepath.IsAbs(o.StateDir) {
		return nil, fmt.Errorf("the state folder %q is not an absolute path", o.StateDir)
	}
	e := &Engine{wrapper: wrapper, options: o, log: o.Log, sessions: map[string]*sessionSlot{}, kernel: thisKernel()}
	if e.log == nil {
		e.log = slog.New(slog.DiscardHandler)
	}
	openBadness()
	if err := e.open(); err != nil {
		e.Close()
		return nil, err
	}
	return e, nil
}

func (e *Engine) open() (err error) {
	if e.home, err = newHome(e.options.StateDir); err != nil {
		return err
	}
	e.covers = newCovers(e.options.StateDir)
	if err = e.home.makeCoverFolder(); err != nil {
		return fmt.Errorf("making confine's runtime folder: %w", err)
	}
	if e.self, err = openSelf(); err != nil {
		return err
	}
	if e.init, err = openInit(orders{}); err != nil {
		return err
	}
	e.inherited.init = e.init
	if e.life, e.peer, err = socketPair(unix.SOCK_STREAM); err != nil {
		return err
	}
	if e.options.OwnsChildren {
		// Orphans of an init that was killed come to us instead of being lost.
		if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
			return fmt.Errorf("becoming a subreaper: %w", err)
		}
	}
	e.sweeping.Go(func() { sweep(e.options.StateDir) })
	e.spawner = newSpawner()
	e.guard = &guardian{home: e.home, log: e.log, held: map[int]*os.File{}, told: map[int]bool{}}
	e.guard.table, err = newProgressTable()
	return err
}

// Name implements sandbox.Provider.
func (e *Engine) Name() string {
	if e.wrapper == nil {
		return sandbox.ProviderNone
	}
	return e.wrapper.Name()
}

// SpillDir is a private folder for Spec.SpillDir that commands can read and
// that is removed with the engine.
func (e *Engine) SpillDir() string { return e.home.spill() }

// Start implements sandbox.Provider.
func (e *Engine) Start(ctx context.Context, spec sandbox.Spec) (sandbox.Process, error) {
	if e.wrapper == nil {
		return unconfined{e}.Start(ctx, spec)
	}
	if !spec.Policy.Mode.Confined() {
		return nil, fmt.Errorf("provider %q does not run commands in mode %q", e.Name(), spec.Policy.Mode)
	}
	return e.start(ctx, spec)
}

// start checks a command and begins it; every error is of a kind that
// sandbox.Provider documents.
func (e *Engine) start(ctx context.Context, spec sandbox.Spec) (sandbox.Process, error) {
	if err := spec.Check(ctx); err != nil {
		return nil, err
	}
	if !e.enter() {
		return nil, errClosed
	}
	defer e.starting.Done()
	if err := checkDir(spec.Dir); err != nil {
		return nil, err
	}
	program, err := resolve(spec)
	if err != nil {
		return nil, err
	}
	defer program.close()
	r, err := e.begin(ctx, spec, program)
	if err != nil {
		return nil, e.explain(err, spec, program)
	}
	return r, nil
}

var errClosed = errors.New("confine is shutting down")

// enter says that a command is being started, unless the engine is closed.
func (e *Engine) enter() bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.closed {
		return false
	}
	e.starting.Add(1)
	return true
}

// begin finds what this host allows and begins the command so.
func (e *Engine) begin(ctx context.Context, spec sandbox.Spec, program resolved) (*run, error) {
	if err := e.guard.start(); err != nil {
		return nil, fmt.Errorf("starting the guardian: %w", err)
	}
	if !spec.Policy.Mode.Confined() {
		s, err := e.session(spec.Session, false, sandbox.Policy{})
		if err != nil {
			return nil, err
		}
		defer s.starting.Done()
		return e.launch(spec, program, &Launch{Facts: sandbox.Facts{Mode: spec.Policy.Mode}}, s)
	}
	v, err := e.verdict(ctx, spec.Policy)
	if err != nil {
		return nil, err
	}
	return e.confine(spec, program, v)
}

// confine begins a confined command on the level of a verdict.
func (e *Engine) confine(spec sandbox.Spec, program resolved, v verdict) (*run, error) {
	for tries := 1; ; tries++ {
		r, again, err := e.confineOnce(spec, program, v)
		if _, failed := errors.AsType[*RunnerError](err); !failed || !again || tries == fleetingTries {
			return r, err
		}
	}
}

// fleetingTries bounds how often a launch is compiled anew because of what may
// have vanished meanwhile. On a machine whose programs make and remove sockets all
// the time that happens more than once.
const fleetingTries = 5

// confineOnce also says whether to try again is any use.
func (e *Engine) confineOnce(spec sandbox.Spec, program resolved, v verdict) (_ *run, again bool, _ error) {
	s, err := e.session(spec.Session, v.namespaces, spec.Policy)
	if err != nil {
		return nil, false, err
	}
	defer s.starting.Done()
	tmp, remove, err := s.temporary(spec.Policy.Mode, v.namespaces)
	if err != nil {
		return nil, false, err
	}
	var caches []Cache
	if spec.Policy.Mode == sandbox.WorkspaceWrite {
		caches = usable(s.caches, spec.Policy.Roots) // in read-only mode nothing is kept
	}
	guarded, err := e.guardPaths(spec.Policy, v.mounts())
	if err != nil {
		remove()
		return nil, false, err
	}
	guarded.alsoRelease(remove)
	launch, err := e.wrapper.Wrap(Request{Policy: spec.Policy, Dir: spec.Dir, Namespaces: v.namespaces,
		Tmp: tmp, Caches: caches, State: e.options.StateDir, Cover: e.home.coverFolder(), Visible: e.visible(spec), Program: program.named()})
	if err != nil {
		guarded.release()
		return nil, false, err
	}
	launch.guarded = guarded
	launch.Defaults = cacheVariables(os.Getenv, within(launch.Caches), launch.Env["TMPDIR"])
	launch.Facts = v.facts(spec.Policy)
	launch.set(sandbox.Markers(launch.Facts))
	launch.bounds = e.bound(spec.Policy.Limits, launch, s)
	launch.Facts.Limits = launch.bounds.reports(v.limits)
	r, err := e.launch(spec, program, launch, s)
	if err != nil {
		guarded.release()
		return nil, launch.Fleeting, err
	}
	return r, false, nil
}

// visible lists the paths that a command must see whatever hides them. Folders
// that a request can choose, the working directory and the command's PATH, are
// not among them: it would choose which services of the host it finds there. A
// root is visible in any case.
func (e *Engine) visible(spec sandbox.Spec) []string {
	paths := append([]string{e.home.spill()}, filepath.SplitList(os.Getenv("PATH"))...)
	if spec.SpillDir != "" && spec.SpillDir != e.home.spill() {
		paths = append(paths, spec.SpillDir)
	}
	return slices.DeleteFunc(paths, func(p string) bool { return !filepath.IsAbs(p) })
}

// launch executes a launch and returns once the command began.
func (e *Engine) launch(spec sandbox.Spec, program resolved, l *Launch, s *session) (*run, error) {
	var filter []unix.SockFilter
	if e.options.Observer != nil && e.kernel.unobservable == "" && l.Facts.Mode.Confined() {
		filter = e.options.Observer.Filter(l.isolated())
	}
	l.terminal = spec.Terminal
	p, err := openPipes(takesInput(spec), l.terminal != nil)
	if err != nil {
		return nil, err
	}
	defer p.close()
	if filter != nil || l.Runner != nil || l.terminal != nil {
		if err := p.openControl(); err != nil {
			return nil, err
		}
	}
	leader, got, err := e.spawn(spec, program, l, s, p, filter)
	if err != nil {
		return nil, err
	}
	if got.terminal != nil && l.TerminalRights != 0 {
		l.Writable = append(l.Writable, got.terminal.name())
	}
	r := newRun(spec, l.Facts, sandbox.CaptureOptions{Quota: &e.quota})
	r.leader = leader
	r.writable, r.namespaces = l.Writable, l.Namespaces
	r.unobserved = e.kernel.unobservable
	if l.guarded != nil {
		r.guarded = l.guarded
	}
	if l.bounds != nil {
		r.bounds = l.bounds
	}
	if got.listener != nil {
		// Before anything else: the command may wait for its first answer.
		r.observed = e.watch(got.listener, spec.Policy, l)
		got.listener = nil
	}
	if err := leader.begin(); err != nil {
		r.endWatch()
		got.close()
		return nil, l.bounds.crowded(err)
	}
	if !s.add(r) {
		r.kill() // the session is being closed
	}
	if got.terminal != nil {
		r.terminal = got.terminal
		r.follow(r.terminal.master, nil, r.terminal.master)
	} else {
		r.follow(p.takeStreams())
	}
	go func() { <-r.done; s.drop(r) }()
	return r, nil
}

// spawn makes the child of a launch and takes what it hands over.
func (e *Engine) spawn(spec sandbox.Spec, program resolved, l *Launch, s *session, p *pipes, filter []unix.SockFilter) (_ *initLeader, _ handed, _ error) {
	if l.Runner != nil {
		return e.spawnRunner(spec, program, l, s, p, filter)
	}
	compiled, err := e.compile(spec, program, l, s, p, filter)
	if err != nil {
		return nil, handed{}, err
	}
	pid, err := e.spawner.spawn(compiled)
	if err != nil {
		return nil, handed{}, err
	}
	p.closeChildEnds() // else the end of the init would not be seen
	leader := &initLeader{pid: pid, status: p.takeStatus(), tree: !l.Namespaces, engine: e}
	if leader.pidfd, err = unix.PidfdOpen(pid, 0); err != nil {
		unix.Kill(pid, unix.SIGKILL) // our child, not reaped: the number is its own
		children.reap(pid)
		leader.status.Close()
		return nil, handed{}, fmt.Errorf("opening the init: %w", err)
	}
	got, err := receiveHanded(p, l, filter != nil)
	if err != nil {
		leader.giveUp()
		return nil, handed{}, err
	}
	return leader, got, nil
}

// spawnRunner makes the child that becomes a runner and waits for its init.
func (e *Engine) spawnRunner(spec sandbox.Spec, program resolved, l *Launch, s *session, p *pipes, filter []unix.SockFilter) (_ *initLeader, _ handed, _ error) {
	if err := p.openRunner(); err != nil {
		return nil, handed{}, err
	}
	compiled, image, names, err := e.compileRunner(spec, program, l, s, p, filter)
	if err != nil {
		return nil, handed{}, err
	}
	pid, err := e.spawner.spawn(compiled)
	image.Close()
	if err != nil {
		return nil, handed{}, err
	}
	p.closeChildEnds()
	leader := &initLeader{pid: pid, pidfd: -1, status: p.takeStatus(), engine: e, orders: names}
	got, err := receiveHanded(p, l, filter != nil)
	if err != nil {
		return nil, handed{}, leader.runnerFailed(l.Runner, p, err)
	}
	leader.pidfd, err = unix.FcntlInt(got.init.Fd(), unix.F_DUPFD_CLOEXEC, 0)
	closeFiles(&got.init)
	if err != nil {
		got.close()
		return nil, handed{}, leader.runnerFailed(l.Runner, p, fmt.Errorf("keeping the init: %w", err))
	}
	return leader, got, nil
}

// session returns the session of a key, making it on first use. It is not taken
// apart before the caller says Done to its starting group.
func (e *Engine) session(key string, namespaces bool, policy sandbox.Policy) (*session, error) {
	name := fmt.Sprintf("%t %s", namespaces, key)
	e.mu.Lock()
	if e.closed {
		e.mu.Unlock()
		return nil, errClosed
	}
	slot, exists := e.sessions[name]
	if !exists {
		slot = &sessionSlot{ready: make(chan struct{})}
		e.sessions[name] = slot
	}
	e.mu.Unlock()
	if !exists {
		slot.session, slot.err = e.makeSession(namespaces, policy)
		if slot.err != nil {
			e.mu.Lock()
			delete(e.sessions, name)
			e.mu.Unlock()
		}
		close(slot.ready)
	}
	<-slot.ready
	if slot.err != nil {
		return nil, slot.err
	}
	if !slot.session.enter() {
		return nil, errSessionClosed
	}
	return slot.session, nil
}

// CloseSession implements sandbox.Provider.
func (e *Engine) CloseSession(key string) {
	for _, namespaces := range []bool{true, false} {
		name := fmt.Sprintf("%t %s", namespaces, key)
		e.mu.Lock()
		slot := e.sessions[name]
		delete(e.sessions, name)
		e.mu.Unlock()
		if slot == nil {
			continue
		}
		<-slot.ready
		if slot.session != nil {
			slot.session.close()
		}
	}
}

// Close implements sandbox.Provider. Closing again waits for the first.
func (e *Engine) Close() error {
	e.closing.Do(func() { e.closeErr = e.close() })
	return e.closeErr
}

func (e *Engine) close() error {
	e.mu.Lock()
	e.closed = true
	slots := e.sessions
	e.sessions = map[string]*sessionSlot{}
	e.mu.Unlock()
	for _, slot := range slots {
		<-slot.ready
		if slot.session != nil {
			slot.session.close()
		}
	}
	e.sweeping.Wait()
	e.starting.Wait() // what began meanwhile found its session closed and was killed
	if e.spawner != nil {
		e.spawner.close()
	}
	if e.covers != nil {
		e.covers.close()
	}
	var err error
	if e.guard != nil {
		e.guard.close()
		if e.guard.table != nil {
			e.guard.table.file.Close()
		}
	}
	if e.home != nil {
		err = e.home.remove() // nothing is left to do, unless the guardian failed
	}
	for _, f := range []io.Closer{e.self, e.init, e.life, e.peer} {
		if f != (*os.File)(nil) {
			f.Close()
		}
	}
	return err
}
