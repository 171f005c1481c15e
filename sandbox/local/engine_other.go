//go:build !linux

package local

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"os/exec"
	"sync"
	"syscall"

	"github.com/confine-dev/confine/sandbox"
)

// Options configures an Engine.
type Options struct {
	// StateDir is confine's private folder. Required.
	StateDir string

	// Log gets what nobody else is told; nil discards it.
	Log *slog.Logger

	// NoNamespaces and OwnsChildren have no meaning on this system.
	NoNamespaces, OwnsChildren bool
}

// BeforeHardening has nothing to do on this system.
func BeforeHardening() {}

// Engine starts commands, behind what confines them on this system, if anything does.
type Engine struct {
	confiner *confiner

	mu   sync.Mutex
	runs map[*run]string // guarded by mu: living runs and their sessions
}

// New returns an engine that confines commands by a wrapper; with nil it refuses
// those that are to be confined.
func New(w Wrapper, o Options) (*Engine, error) {
	c, err := newConfiner(w, o.StateDir)
	if err != nil {
		return nil, err
	}
	return &Engine{confiner: c, runs: map[*run]string{}}, nil
}

// Unconfined is the same engine for commands that nothing confines.
func (e *Engine) Unconfined() sandbox.Provider { return bare{e} }

// bare is an engine that says so.
type bare struct{ *Engine }

func (bare) Name() string                         { return sandbox.ProviderNone }
func (bare) Probe(context.Context) sandbox.Report { return unconfinedReport }

var unconfinedReport = sandbox.Report{Provider: sandbox.ProviderNone, Usable: true, Reason: "nothing is confined"}

// Name implements sandbox.Provider.
func (e *Engine) Name() string { return e.confiner.name() }

// SpillDir is a private folder for Spec.SpillDir.
func (e *Engine) SpillDir() string { return e.confiner.spill() }

// Probe implements sandbox.Provider.
func (e *Engine) Probe(ctx context.Context) sandbox.Report { return e.confiner.probe(ctx) }

// Start implements sandbox.Provider.
func (e *Engine) Start(ctx context.Context, spec sandbox.Spec) (sandbox.Process, error) {
	if err := spec.Check(ctx); err != nil {
		return nil, err
	}
	if spec.Policy.Mode.Confined() && e.confiner.name() == sandbox.ProviderNone {
		return nil, &sandbox.UnavailableError{Mode: spec.Policy.Mode, Lacking: true}
	}
	if err := checkDir(spec.Dir); err != nil {
		return nil, err
	}
	program, err := resolve(spec)
	if err != nil {
		return nil, err
	}
	begin := e.begin
	if spec.Policy.Mode.Confined() {
		begin = e.confiner.begin
	}
	r, err := begin(ctx, spec, program)
	if err != nil {
		return nil, err
	}
	e.mu.Lock()
	e.runs[r] = spec.Session
	e.mu.Unlock()
	go func() {
		<-r.done
		e.mu.Lock()
		delete(e.runs, r)
		e.mu.Unlock()
	}()
	return r, nil
}

func (e *Engine) begin(_ context.Context, spec sandbox.Spec, program resolved) (*run, error) {
	cmd := &exec.Cmd{Path: program.path, Args: program.argv, Env: spec.Env, Dir: spec.Dir, SysProcAttr: ownGroup()}
	stdoutRead, stdoutWrite, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	defer stdoutWrite.Close()
	stderrRead, stderrWrite, err := os.Pipe()
	if err != nil {
		return nil, errors.Join(err, stdoutRead.Close())
	}
	defer stderrWrite.Close()
	cmd.Stdout, cmd.Stderr = stdoutWrite, stderrWrite
	var stdinWrite *os.File
	if takesInput(spec) {
		stdinRead, write, err := os.Pipe()
		if err != nil {
			return nil, errors.Join(err, stdoutRead.Close(), stderrRead.Close())
		}
		defer stdinRead.Close()
		cmd.Stdin, stdinWrite = stdinRead, write
	}
	if err := cmd.Start(); err != nil {
		return nil, errors.Join(&sandbox.StartError{Kind: sandbox.ProgramNotExecutable, Path: program.path, Err: err}, stdoutRead.Close(), stderrRead.Close(), closeIfAny(stdinWrite))
	}
	group, err := newGroup(cmd.Process)
	if err == nil {
		if err = e.confiner.keep(cmd.Process.Pid); err != nil {
			group.close()
		}
	}
	if err != nil {
		return nil, errors.Join(err, cmd.Wait(), stdoutRead.Close(), stderrRead.Close(), closeIfAny(stdinWrite))
	}
	r := newRun(spec, sandbox.Facts{Mode: spec.Policy.Mode}, sandbox.CaptureOptions{})
	r.leader = &execLeader{cmd, group, e.confiner}
	r.follow(stdoutRead, stderrRead, stdinWrite)
	return r, nil
}

func closeIfAny(f *os.File) error {
	if f == nil {
		return nil
	}
	return f.Close()
}

// CloseSession implements sandbox.Provider.
func (e *Engine) CloseSession(session string) {
	e.end(func(s string) bool { return s == session })
	e.confiner.closeSession(session)
}

// Close implements sandbox.Provider.
func (e *Engine) Close() error {
	e.end(func(string) bool { return true })
	return e.confiner.close()
}

func (e *Engine) end(which func(session string) bool) {
	var ending []*run
	e.mu.Lock()
	for r, session := range e.runs {
		if which(session) {
			ending = append(ending, r)
		}
	}
	e.mu.Unlock()
	for _, r := range ending {
		r.kill()
	}
	for _, r := range ending {
		<-r.done
	}
}

// execLeader is a leader that is the command itself.
type execLeader struct {
	cmd      *exec.Cmd
	group    *group
	confiner *confiner
}

func (l *execLeader) wait(over func()) (ending, error) {
	err := l.cmd.Wait()
	over()
	l.group.close()
	l.confiner.forget(l.cmd.Process.Pid)
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		return ending{}, err
	}
	if status, ok := l.cmd.ProcessState.Sys().(syscall.WaitStatus); ok && status.Signaled() {
		return ending{signal: status.Signal()}, nil
	}
	return ending{code: l.cmd.ProcessState.ExitCode()}, nil
}

func (l *execLeader) signal(sig syscall.Signal) error { return l.group.signal(sig) }

func (l *execLeader) kill() { l.group.signal(syscall.SIGKILL) }

// scriptFile holds a command too long for an argument; only Linux needs it.
func scriptFile(string) (*os.File, string, error) {
	return nil, "", &sandbox.StartError{Kind: sandbox.ArgumentListTooLong, Path: "bash", Err: errors.New("the command is longer than 128 KiB")}
}

var _ sandbox.Provider = (*Engine)(nil)
