package local

import (
	"errors"
	"io"
	"os"
	"sync"
	"syscall"
	"time"

	"github.com/confine-dev/confine/sandbox"
)

// leader is the process that stands for a whole run. Its methods may be called
// from several goroutines.
type leader interface {
	// wait blocks until the command ended and nothing of the run is left that
	// could be ended, and says how the command ended. It calls over as soon as
	// the command ended. The error means that the sandbox broke. It is called
	// once.
	wait(over func()) (ending, error)

	// signal sends a signal to the command's process group.
	signal(sig syscall.Signal) error

	// kill ends everything at once.
	kill()
}

// ending is how a command ended.
type ending struct {
	code   int
	signal syscall.Signal // 0 if it exited
}

// run is a command that began. It implements sandbox.Process.
type run struct {
	spec    sandbox.Spec
	facts   sandbox.Facts
	leader  leader
	started time.Time

	input    *sandbox.Input // nil unless it is open
	terminal *terminal      // nil if the command has pipes

	captures   map[sandbox.Stream]*sandbox.Capture
	scanner    *sandbox.DenialScanner // nil if nothing is confined
	writable   []string               // for the scanner
	namespaces bool                   // for the scanner, too
	refusal    string                 // error of what is refused; empty: see sandbox.DenialContext
	observed   watched                // nil if nobody watches
	unobserved string                 // why nobody can
	guarded    overseer               // nil if nothing is protected
	bounds     bounded                // nil if nothing is limited

	outputMu sync.Mutex // orders chunks of both streams

	mu        sync.Mutex
	ended     bool        // guarded by mu: the command is over, signals are useless
	timedOut  bool        // guarded by mu
	cancelled bool        // guarded by mu
	ladder    *time.Timer // guarded by mu: sends KILL after the grace time

	done   chan struct{} // closed when result and err are set
	result sandbox.Result
	err    error
}

// watched is what sees a run's refusals.
type watched interface {
	// end is called once, when nothing of the run is left. made are paths of
	// notable names that were seen being made.
	end() (denials []sandbox.Denial, made []string, state sandbox.Observation)
}

// overseer is what knows whether a run changed what it must not.
type overseer interface {
	// end is called once, when nothing of the run is left, and says what is
	// known of how the run was confined.
	end(facts sandbox.Facts, made []string) sandbox.Facts
}

// bounded is what knows whether a run reached its limits.
type bounded interface {
	// end is called once, when nothing of the run is left. signal is what ended
	// the command.
	end(limits []sandbox.LimitReport, signal string) []sandbox.LimitReport
}

// drainTime bounds how long output is awaited after the last process of a run
// was ended: only something that escaped every count can hold a pipe so long.
const drainTime = 2 * time.Second

func newRun(spec sandbox.Spec, facts sandbox.Facts, spills sandbox.CaptureOptions) *run {
	r := &run{spec: spec, facts: facts, started: time.Now(), done: make(chan struct{})}
	r.captures = map[sandbox.Stream]*sandbox.Capture{}
	for _, stream := range []sandbox.Stream{sandbox.StdoutStream, sandbox.StderrStream} {
		options := spills
		options.Keep, options.SpillDir, options.Name = spec.KeepOutput, spec.SpillDir, spec.RunID+"-"+string(stream)
		r.captures[stream] = sandbox.NewCapture(options)
	}
	if spec.StdinOpen || spec.Terminal != nil {
		r.input = sandbox.NewInput()
	}
	if facts.Mode.Confined() {
		r.scanner = sandbox.NewDenialScanner()
	}
	return r
}

// follow starts what a begun run needs: the pumps, the deadline, the waiting.
// It takes over the pipes; without stderr all output comes from the first one.
func (r *run) follow(stdout, stderr *os.File, stdin *os.File) {
	var pumps sync.WaitGroup
	pumps.Go(func() { r.pump(sandbox.StdoutStream, stdout) })
	if stderr != nil {
		pumps.Go(func() { r.pump(sandbox.StderrStream, stderr) })
	}
	if stdin != nil {
		// Not waited for: a Read of the caller's stdin cannot be interrupted.
		go r.feed(stdin)
	}
	stopDeadline := func() bool { return true }
	if r.spec.Timeout > 0 {
		stopDeadline = time.AfterFunc(r.spec.Timeout, r.expire).Stop
	}
	go func() {
		var duration time.Duration
		end, err := r.leader.wait(func() {
			// What is still to be ended did not make the command late.
			duration = time.Since(r.started)
			stopDeadline()
			r.settle()
		})
		switch {
		case r.terminal != nil:
			r.terminal.release()
		case stdin != nil:
			stdin.Close()
		}
		if r.input != nil {
			r.input.Stop()
		}
		r.drain(&pumps, stdout, stderr)
		r.finish(end, err, duration)
	}()
}

// buffers are what pumps read into.
var buffers = sync.Pool{New: func() any { b := make([]byte, 64<<10); return &b }}

// pump moves one stream from its pipe to the capture and the listener.
func (r *run) pump(stream sandbox.Stream, pipe *os.File) {
	defer pipe.Close()
	capture := r.captures[stream]
	pooled := buffers.Get().(*[]byte)
	defer buffers.Put(pooled)
	buffer := *pooled
	reader := lateReader{pipe: pipe}
	var offset int64
	for {
		n, err := reader.Read(buffer)
		if n > 0 {
			r.outputMu.Lock()
			capture.Write(buffer[:n])
			if (stream == sandbox.StderrStream || r.terminal != nil) && r.scanner != nil {
				r.scanner.Write(buffer[:n])
			}
			if r.spec.Output != nil {
				r.spec.Output(sandbox.Chunk{Stream: stream, Offset: offset, Data: buffer[:n]})
			}
			r.outputMu.Unlock()
			offset += int64(n)
		}
		if err != nil {
			return
		}
	}
}

// lateReader reads on after its pipe's deadline while there is something: what
// was written in time counts, however long the listener took.
type lateReader struct {
	pipe *os.File
	late int // reads after the deadline
}

// maxLate is how many buffers a full pipe of the largest size holds, and one.
const maxLate = 17

func (r *lateReader) Read(p []byte) (int, error) {
	n, err := r.pipe.Read(p)
	if r.late < maxLate && errors.Is(err, os.ErrDeadlineExceeded) {
		r.late++
		r.pipe.SetReadDeadline(time.Now().Add(10 * time.Millisecond))
		return r.pipe.Read(p)
	}
	return n, err
}

// feed copies the caller's input, and then what comes while the command runs. A
// command that does not read it is no error.
func (r *run) feed(pipe *os.File) {
	if r.spec.Stdin != nil {
		io.Copy(pipe, r.spec.Stdin)
	}
	if r.input != nil {
		io.Copy(pipe, r.input)
		r.input.Stop()
	}
	if r.terminal == nil { // that has one file for both ways
		pipe.Close()
	}
}

// drain waits for the pumps and gives up on pipes that something still holds.
func (r *run) drain(pumps *sync.WaitGroup, pipes ...*os.File) {
	drained := make(chan struct{})
	go func() { pumps.Wait(); close(drained) }()
	timer := time.NewTimer(drainTime)
	defer timer.Stop()
	select {
	case <-drained:
		return
	case <-timer.C:
	}
	for _, p := range pipes {
		if p != nil {
			p.SetReadDeadline(time.Now())
		}
	}
	<-drained
}

// settle says that the command is over.
func (r *run) settle() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.ended = true
	if r.ladder != nil {
		r.ladder.Stop()
	}
}

// finish sets the result and wakes everybody.
func (r *run) finish(end ending, err error, duration time.Duration) {
	for _, c := range r.captures {
		c.Finish()
	}
	r.mu.Lock()
	r.result = sandbox.Result{ExitCode: end.code, TimedOut: r.timedOut, Cancelled: r.cancelled,
		Started: r.started, Duration: duration, Facts: r.facts}
	r.mu.Unlock()
	if end.signal != 0 {
		r.result.Signal = signalName(end.signal)
	}
	var made []string
	if r.scanner != nil {
		made = r.denials(end, err == nil)
	}
	if r.guarded != nil {
		r.result.Facts = r.guarded.end(r.facts, made)
	}
	if r.bounds != nil {
		r.result.Facts.Limits = r.bounds.end(r.facts.Limits, r.result.Signal)
	}
	if err != nil {
		r.err = &sandbox.UnavailableError{Mode: r.spec.Policy.Mode, Detail: err.Error(), Started: true}
	}
	close(r.done)
}

// denials puts together what was seen and what the command said. made are notable
// paths that were seen being made.
func (r *run) denials(end ending, known bool) (made []string) {
	r.result.Observation = sandbox.Observation{State: sandbox.NotObserved, Reason: r.unobserved}
	var seen []sandbox.Denial
	if r.observed != nil {
		seen, made, r.result.Observation = r.observed.end()
	}
	if !known {
		return made
	}
	said := r.scanner.Denials(sandbox.DenialContext{Policy: r.spec.Policy, Dir: r.spec.Dir,
		ExitCode: end.code, Signal: r.result.Signal, Writable: r.writable, Namespaces: r.namespaces, Refusal: r.refusal})
	r.result.Denials = sandbox.MergeDenials(seen, said, r.result.Observation, sandbox.Circumstances{
		Housekeeping: sandbox.HousekeepingOf(r.spec.Env),
		Mentioned:    func(path string) bool { return r.scanner.Mentions(path, r.spec.Dir) },
		Succeeded:    end.code == 0 && r.result.Signal == "",
	})
	r.result.Denied = sandbox.Matter(r.result.Denials)
	return made
}

// Wait implements sandbox.Process.
func (r *run) Wait() (sandbox.Result, error) {
	<-r.done
	return r.result, r.err
}

// Provider implements sandbox.Process.
func (r *run) Provider() string {
	if r.facts.Provider == "" {
		return sandbox.ProviderNone
	}
	return r.facts.Provider
}

// Done implements sandbox.Process.
func (r *run) Done() <-chan struct{} { return r.done }

// Output implements sandbox.Process.
func (r *run) Output(s sandbox.Stream) *sandbox.Capture { return r.captures[s] }

// Input implements sandbox.Process.
func (r *run) Input() *sandbox.Input { return r.input }

// Resize implements sandbox.Process.
func (r *run) Resize(size sandbox.TerminalSize) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case r.terminal == nil:
		return errors.New("the command has no terminal")
	case r.ended:
		return nil
	}
	return r.terminal.resize(size)
}

// Signal implements sandbox.Process.
func (r *run) Signal(sig os.Signal) error {
	number, ok := sig.(syscall.Signal)
	if !ok {
		return errors.New("not a signal of this system")
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.ended {
		return nil
	}
	return r.leader.signal(number)
}

// Cancel implements sandbox.Process.
func (r *run) Cancel() { r.end(func() { r.cancelled = true }) }

// expire ends the command because its time is over.
func (r *run) expire() { r.end(func() { r.timedOut = true }) }

// end begins the ladder: TERM, or HUP, to the process group, KILL to everything after
// the grace time. The first cause is the one that is reported.
func (r *run) end(cause func()) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.ended || r.ladder != nil {
		return
	}
	cause()
	r.leader.signal(r.farewell())
	resume(r.leader) // a stopped process gets TERM only when it runs again
	r.ladder = time.AfterFunc(cmpOr(r.spec.Grace, sandbox.DefaultGrace), r.kill)
}

// farewell is the signal that asks the command to end. One with a terminal is hung up,
// as by a window that is closed: an interactive shell ignores TERM, and passes HUP on
// to its jobs.
func (r *run) farewell() syscall.Signal {
	if r.terminal != nil {
		return syscall.SIGHUP
	}
	return syscall.SIGTERM
}

// kill ends everything without asking.
func (r *run) kill() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.ended {
		if !r.timedOut {
			r.cancelled = true
		}
		r.leader.kill()
	}
}

func cmpOr(d, otherwise time.Duration) time.Duration {
	if d == 0 {
		return otherwise
	}
	return d
}
