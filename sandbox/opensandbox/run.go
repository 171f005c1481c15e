package opensandbox

import (
	"errors"
	"fmt"
	"os"
	"sync"
	"syscall"
	"time"

	"github.com/confine-dev/confine/sandbox"
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
	err := unusable(r.spec.Policy, fmt.Sprintf(format, args...), seeDoctor)
	err.Started = true
	return err
}
