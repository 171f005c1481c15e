package opensandbox

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/confine-dev/confine/sandbox"
	"github.com/confine-dev/confine/sandbox/protect"
)

// run is a command that began, or may have. It implements sandbox.Process.
type run struct {
	provider *Provider
	spec     sandbox.Spec
	facts    sandbox.Facts
	started  time.Time
	captures map[sandbox.Stream]*sandbox.Capture

	outputMu sync.Mutex // orders chunks of both streams

	mu        sync.Mutex    // guards what follows
	stopping  chan struct{} // closed when it is to end
	timedOut  bool
	cancelled bool
	over      bool

	done   chan struct{} // closed when result and err are set
	result sandbox.Result
	err    error
}

func (p *Provider) newRun(spec sandbox.Spec, facts sandbox.Facts) *run {
	r := &run{provider: p, spec: spec, facts: facts, started: time.Now(), stopping: make(chan struct{}), done: make(chan struct{})}
	r.captures = map[sandbox.Stream]*sandbox.Capture{}
	for _, stream := range []sandbox.Stream{sandbox.StdoutStream, sandbox.StderrStream} {
		r.captures[stream] = sandbox.NewCapture(sandbox.CaptureOptions{Keep: spec.KeepOutput, SpillDir: spec.SpillDir, Name: spec.RunID + "-" + string(stream), Quota: &p.spills})
	}
	return r
}

// emit passes on a piece of output.
func (r *run) emit(stream sandbox.Stream, data []byte) {
	r.outputMu.Lock()
	defer r.outputMu.Unlock()
	offset := r.captures[stream].Total()
	r.captures[stream].Write(data) // a Capture never fails
	if r.spec.Output != nil {
		r.spec.Output(sandbox.Chunk{Stream: stream, Offset: offset, Data: data})
	}
}

// Wait implements sandbox.Process.
func (r *run) Wait() (sandbox.Result, error) {
	<-r.done
	return r.result, r.err
}

// Done implements sandbox.Process.
func (r *run) Done() <-chan struct{} { return r.done }

// Provider implements sandbox.Process.
func (r *run) Provider() string { return sandbox.ProviderOpenSandbox }

// Output implements sandbox.Process.
func (r *run) Output(s sandbox.Stream) *sandbox.Capture { return r.captures[s] }

// Input implements sandbox.Process.
func (r *run) Input() *sandbox.Input { return nil }

// Resize implements sandbox.Process.
func (r *run) Resize(sandbox.TerminalSize) error {
	return errors.New("a command in a remote sandbox has no terminal")
}

// Signal implements sandbox.Process. A service can only end a command.
func (r *run) Signal(sig os.Signal) error {
	if sig != os.Interrupt && sig != os.Kill && sig != syscall.SIGTERM {
		return errors.New("a remote sandbox can be told to end a command, and knows no other signals")
	}
	r.Cancel()
	return nil
}

// Cancel implements sandbox.Process.
func (r *run) Cancel() { r.stop(func() { r.cancelled = true }) }

// stop asks for the end. The first cause is the one that is reported.
func (r *run) stop(cause func()) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.over || r.cancelled || r.timedOut {
		return
	}
	cause()
	close(r.stopping)
}

// limit ends the command when its time is over.
func (r *run) limit() (lift func() bool) {
	if r.spec.Timeout <= 0 {
		return func() bool { return true }
	}
	return time.AfterFunc(r.spec.Timeout, func() { r.stop(func() { r.timedOut = true }) }).Stop
}

// finish sets the result and wakes everybody. missing says why output is.
func (r *run) finish(v verdict, missing string, err error) {
	for _, c := range r.captures {
		c.Finish()
	}
	r.mu.Lock()
	r.over = true
	r.result = sandbox.Result{ExitCode: v.code, Signal: v.signal, TimedOut: r.timedOut, Cancelled: r.cancelled,
		Started: r.started, Duration: time.Since(r.started), Facts: r.facts, Missing: missing,
		Observation: sandbox.Observation{State: sandbox.NotObserved, Reason: unobserved}}
	r.mu.Unlock()
	if err != nil {
		r.err = err
		r.provider.doubt(err)
	}
	close(r.done)
}

// fault is the error for a command that began and of which the end is not known.
func (r *run) fault(format string, args ...any) error {
	return &sandbox.UnavailableError{Mode: r.spec.Policy.Mode, Started: true, Detail: "provider opensandbox: " + fmt.Sprintf(format, args...), Remedies: []string{seeDoctor}}
}

// session is a command of a remote sandbox.
type session struct {
	*run
	remote *remote
	id     string
	last   atomic.Int64 // when something came, in nanoseconds
	told   chan verdict // gets what the stream says of the end, and is closed with the stream
	reader sync.WaitGroup

	before *protect.Snapshot // of a mounted workspace that can be written; else nil
}

// begin starts a command and returns when it is known to have begun.
func (p *Provider) begin(rem *remote, spec sandbox.Spec, text string) (*run, error) {
	facts := p.facts(spec.Policy)
	o := order{Command: text, Cwd: spec.Dir, Envs: variables(spec, facts), Background: p.config.Output == OutputBytes}
	if spec.Timeout > 0 { // confine ends it; this is for when confine cannot
		o.Timeout = (spec.Timeout + 4*sandbox.DefaultGrace).Milliseconds()
	}
	s := &session{run: p.newRun(spec, facts), remote: rem, told: make(chan verdict, 1)}
	if p.config.Workspace == WorkspaceMount && spec.Policy.Mode == sandbox.WorkspaceWrite {
		s.before = protect.Take(spec.Policy, true)
	}
	ctx, leave := context.WithCancel(rem.ctx)
	late := time.AfterFunc(p.config.Patience, leave)
	response, f := rem.execd.start(ctx, o)
	for try := 1; f != nil && !f.sent && try < tries && p.pause(ctx, p.config.Retry<<try); try++ {
		response, f = rem.execd.start(ctx, o)
	}
	if f != nil {
		late.Stop()
		leave()
		return nil, p.notBegun(rem, spec, f)
	}
	first := make(chan string, 1) // the id, or nothing if the stream ended before
	s.reader.Go(func() { s.read(response, first) })
	id, ok := <-first
	late.Stop()
	if !ok || ctx.Err() != nil {
		leave()
		s.reader.Wait()
		return nil, p.unsure(rem, spec, "the service took the command and did not say that it began")
	}
	s.id = id
	lift := s.limit()
	p.working.Go(func() { // Start is among them still
		v, missing, err := s.follow()
		lift()
		leave()
		s.reader.Wait()
		if s.before != nil {
			s.facts.Planted = s.before.Planted(nil)
		}
		s.finish(v, missing, err)
	})
	return s.run, nil
}

// notBegun is the error for a start that was not answered with a stream.
func (p *Provider) notBegun(rem *remote, spec sandbox.Spec, f *failure) error {
	if f.status == http.StatusBadRequest && !p.folderThere(rem, spec.Dir) {
		return &sandbox.StartError{Kind: sandbox.BadWorkingDirectory, Path: spec.Dir, Err: errors.New("there is no such folder in the remote sandbox")}
	}
	if f.sent && f.status != http.StatusBadRequest {
		return p.unsure(rem, spec, f.text)
	}
	detail := "provider opensandbox: starting the command: " + f.text
	if !rem.alive() {
		<-rem.gone
		rem.told.Store(true)
		detail = "provider opensandbox: " + rem.ending()
	} else if _, gone := p.lifecycle.get(rem.ctx, rem.id); gone != nil && gone.lost() {
		rem.told.Store(true)
		rem.end("the service has no such sandbox any more", false)
		detail = "provider opensandbox: " + rem.ending()
	}
	return &sandbox.UnavailableError{Mode: spec.Policy.Mode, Detail: detail, Remedies: append(f.remedies(), seeDoctor)}
}

// unsure is the error for a start of which nobody knows whether it was one. Whatever
// began is ended with its sandbox.
func (p *Provider) unsure(rem *remote, spec sandbox.Spec, why string) error {
	rem.told.Store(true)
	rem.end("what began there could not be told apart", false)
	return &sandbox.UnavailableError{Mode: spec.Policy.Mode, Started: true, Unsure: true, Detail: "provider opensandbox: " + why + "; " + rem.ending(), Remedies: []string{seeDoctor}}
}

// folderThere reports whether a folder is in the sandbox, as far as can be told: a
// command that begins in it can begin.
func (p *Provider) folderThere(rem *remote, dir string) bool {
	ctx, cancel := context.WithTimeout(rem.ctx, p.config.Patience)
	defer cancel()
	v, f := p.helper(ctx, rem.execd, order{Command: "test -d " + quote(dir)})
	return f != nil || v.kind != exited || v.code != 1
}

// helper runs a command of confine's own to its end.
func (p *Provider) helper(ctx context.Context, e *execd, o order) (verdict, *failure) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	response, f := e.start(ctx, o)
	if f != nil {
		return verdict{}, f
	}
	defer response.Body.Close()
	stream := newEvents(response.Body)
	for {
		e, end, ok := stream.next()
		if !ok {
			return verdict{}, &failure{sent: true, text: p.shown(end.text)}
		}
		if v, last := e.final(); last {
			return v, nil
		}
	}
}

// read takes the events of a stream, the id of the command first. It ends with the
// stream or its context.
func (s *session) read(response *http.Response, first chan<- string) {
	defer close(s.told)
	defer response.Body.Close()
	stream := newEvents(response.Body)
	begun := false
	for {
		e, end, ok := stream.next()
		s.last.Store(time.Now().UnixNano())
		if !ok {
			s.tell(end, begun, first)
			return
		}
		switch v, last := e.final(); {
		case last && begun && v.kind == exited && s.background():
			return // the request ended, not the command
		case last:
			s.tell(v, begun, first)
			return
		case e.Type == "init" && !begun:
			if !plainID.MatchString(e.Text) {
				close(first)
				return
			}
			begun = true
			first <- e.Text
		case e.Type == "stdout" && begun:
			s.emit(sandbox.StdoutStream, e.line())
		case e.Type == "stderr" && begun:
			s.emit(sandbox.StderrStream, e.line())
		}
	}
}

// background reports whether execd runs the command in the background.
func (s *session) background() bool { return s.provider.config.Output == OutputBytes }

func (s *session) tell(v verdict, begun bool, first chan<- string) {
	if !begun {
		close(first)
		return
	}
	s.told <- v
}

// follow waits for the end of the command, which confine may have asked for.
func (s *session) follow() (v verdict, missing string, err error) {
	if s.background() {
		return s.followLogs()
	}
	quiet := time.NewTicker(s.provider.config.Patience)
	defer quiet.Stop()
	for {
		select {
		case v := <-s.told:
			return s.check(v)
		case <-s.stopping:
			return s.interrupt()
		case <-s.remote.ctx.Done():
			return s.ended()
		case now := <-quiet.C: // pings come more often
			if now.UnixNano()-s.last.Load() < int64(s.provider.config.Patience) {
				continue
			}
			state, f := s.status()
			if f == nil && !*state.Running || f != nil && f.lost() {
				return s.check(verdict{kind: unknown, text: "the service stopped sending what the command printed"})
			}
		}
	}
}

// status asks how the command is, once.
func (s *session) status() (status, *failure) { return s.remote.execd.status(s.remote.ctx, s.id) }

// check compares what the stream says of the end with the status of the command.
// Where the stream says nothing the status decides.
func (s *session) check(v verdict) (verdict, string, error) {
	p := s.provider
	deadline := time.Now().Add(p.config.Patience)
	for failures := 0; ; {
		state, f := s.status()
		switch {
		case s.remote.ctx.Err() != nil:
			return s.ended()
		case f != nil:
			if failures++; f.lost() || failures >= tries {
				return s.withoutStatus(v, f)
			}
		case *state.Running:
			failures = 0
			if v.kind != unknown && time.Now().After(deadline) {
				return s.giveUp("the service says both that the command ended and that it runs")
			}
		default:
			return s.compare(v, state.verdict())
		}
		select {
		case <-s.stopping:
			if v.kind == unknown {
				return s.interrupt()
			}
		default:
		}
		p.pause(s.remote.ctx, p.config.Poll)
	}
}

// heard is what the stream has said of the end until now.
func (s *session) heard() verdict {
	select {
	case v := <-s.told:
		return v
	default:
		return verdict{}
	}
}

// withoutStatus settles for what the stream says, if it says something.
func (s *session) withoutStatus(v verdict, f *failure) (verdict, string, error) {
	switch {
	case v.kind != unknown:
		return v, "", nil
	case v.over:
		return verdict{}, "", s.fault("how the command ended is not known: %s, and: %s", s.provider.shown(v.text), f.text)
	}
	return s.giveUp("how the command ended is not known: " + strings.TrimPrefix(s.provider.shown(v.text)+", and: "+f.text, ", and: "))
}

// compare puts together what the stream and what the status say.
func (s *session) compare(stream, state verdict) (verdict, string, error) {
	p := s.provider
	switch {
	case state.kind == broken:
		return verdict{}, "", s.fault("the service could not run the command: %s", p.shown(state.text))
	case stream.kind == unknown && state.kind == unknown: // that it is over is known
		return verdict{}, "", s.fault("how the command ended is not known: %s, and: %s", p.shown(stream.text), state.text)
	case stream.kind == unknown && stream.over: // all of the output came before
		return state, "", nil
	case stream.kind == unknown:
		return state, p.shown(stream.text), nil
	case state.kind == unknown:
		return stream, "", nil
	case !stream.agrees(state):
		return verdict{}, "", s.fault("the service gives two accounts of how the command ended")
	}
	return stream, "", nil
}

// interrupt ends the command because confine was asked to, and makes sure that it is
// ended: by its status, or by deleting the sandbox.
func (s *session) interrupt() (verdict, string, error) {
	p := s.provider
	ctx, cancel := context.WithTimeout(s.remote.ctx, p.config.Patience)
	defer cancel()
	for first := true; ; first = false {
		if first || p.pause(ctx, p.config.Poll) {
			_ = s.remote.execd.interrupt(ctx, s.id) // the status says what came of it
		}
		state, f := s.remote.execd.status(ctx, s.id)
		switch {
		case s.remote.ctx.Err() != nil:
			return s.ended()
		case f == nil && !*state.Running:
			return s.interrupted(state.verdict())
		case ctx.Err() != nil, f != nil && f.lost():
			return s.giveUp("the command was to be ended, and the service does not say that it is")
		}
	}
}

// interrupted is the end of a command that confine ended, and that is over.
func (s *session) interrupted(state verdict) (verdict, string, error) {
	var told verdict
	timer := time.NewTimer(s.provider.config.Patience)
	defer timer.Stop()
	select { // what it printed last
	case told = <-s.told:
	case <-timer.C:
	case <-s.remote.ctx.Done():
	}
	for _, v := range []verdict{state, told} {
		if v.kind == exited || v.kind == killed {
			return v, "", nil
		}
	}
	return verdict{}, "", s.fault("the command is over, and the service does not say how it ended")
}

// giveUp deletes the sandbox, since a command in it may still run.
func (s *session) giveUp(why string) (verdict, string, error) {
	s.remote.told.Store(true)
	s.remote.end("nothing else ends a command for sure", false)
	return verdict{}, "", s.fault("%s; %s", why, s.remote.ending())
}

// ended is the end of a command whose sandbox ended.
func (s *session) ended() (verdict, string, error) {
	<-s.remote.gone
	s.remote.told.Store(true)
	if s.remote.closed && s.remote.left == nil {
		s.stop(func() { s.cancelled = true })
		return verdict{kind: killed, signal: "SIGKILL"}, "", nil
	}
	return verdict{}, "", s.fault("%s", s.remote.ending())
}

// followLogs is follow for a command that execd runs in the background, of which it
// keeps what was printed.
func (s *session) followLogs() (verdict, string, error) {
	p := s.provider
	var cursor int64
	take := func(data []byte) { s.emit(sandbox.StdoutStream, data) }
	// step reads what there is; moved reports whether that was anything.
	step := func() (moved bool, f *failure) {
		read, f := s.remote.execd.logs(s.remote.ctx, s.id, cursor, take)
		cursor += read
		return read > 0, f
	}
	// drain reads what is left when the command is over, and says what is missing. One
	// answer has all of it: what comes later is printed by something it left behind.
	drain := func() string {
		for call, try := 1, 0; ; call, try = call+1, try+1 {
			moved, f := step()
			switch {
			case f == nil:
				return ""
			case moved && call < 10*tries:
				try = 0
			case try+1 >= tries || f.lost() || !p.pause(s.remote.ctx, p.config.Retry<<try):
				return f.text
			}
		}
	}
	failures := 0 // to get the status, in a row
	wait := min(10*time.Millisecond, p.config.Poll)
	for {
		_, _ = step() // what fails here is read at the end
		state, f := s.status()
		switch {
		case s.remote.ctx.Err() != nil:
			return s.ended()
		case f == nil && !*state.Running:
			missing := drain()
			if v := state.verdict(); v.kind != unknown {
				out, _, err := s.compare(v, v)
				return out, missing, err
			}
			return s.giveUp("how the command ended is not known: " + state.verdict().text)
		case f != nil:
			if failures++; f.lost() || failures >= 2*tries {
				return s.withoutStatus(s.heard(), f)
			}
		default:
			failures = 0
		}
		timer := time.NewTimer(wait)
		select {
		case <-timer.C:
			wait = min(2*wait, p.config.Poll)
		case <-s.stopping:
			timer.Stop()
			v, _, err := s.interrupt()
			if err != nil {
				return v, "", err
			}
			return v, drain(), nil
		case <-s.remote.ctx.Done():
			timer.Stop()
			return s.ended()
		}
	}
}
