//go:build !linux

package local

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
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

// Wrapper confines on Linux only, in this version.
type Wrapper interface{ Name() string }

// Engine starts unconfined commands; on this system nothing is confined yet.
type Engine struct {
	spill string

	mu   sync.Mutex
	runs map[*run]string // guarded by mu: living runs and their sessions
}

// New returns an engine. There is no wrapper for this system.
func New(w Wrapper, o Options) (*Engine, error) {
	if w != nil {
		return nil, fmt.Errorf("provider %q does not exist on this system", w.Name())
	}
	spill, err := os.MkdirTemp(o.StateDir, "spill-")
	if err != nil {
		return nil, fmt.Errorf("making confine's runtime folder: %w", err)
	}
	return &Engine{spill: spill, runs: map[*run]string{}}, nil
}

// Child does nothing on this system.
func Child([]string) {}

// Unconfined is the engine itself.
func (e *Engine) Unconfined() sandbox.Provider { return e }

// Name implements sandbox.Provider.
func (e *Engine) Name() string { return sandbox.ProviderNone }

// SpillDir is a private folder for Spec.SpillDir.
func (e *Engine) SpillDir() string { return e.spill }

// Probe implements sandbox.Provider.
func (e *Engine) Probe(context.Context) sandbox.Report {
	return sandbox.Report{Provider: sandbox.ProviderNone, Usable: true, Reason: "nothing is confined"}
}

// Start implements sandbox.Provider.
func (e *Engine) Start(ctx context.Context, spec sandbox.Spec) (sandbox.Process, error) {
	if err := checkSpec(ctx, spec); err != nil {
		return nil, err
	}
	if spec.Policy.Mode.Confined() {
		return nil, &sandbox.UnavailableError{Mode: spec.Policy.Mode, Lacking: true}
	}
	if err := checkDir(spec.Dir); err != nil {
		return nil, err
	}
	program, err := resolve(spec)
	if err != nil {
		return nil, err
	}
	return e.begin(spec, program)
}

func (e *Engine) begin(spec sandbox.Spec, program resolved) (*run, error) {
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
	if spec.Stdin != nil {
		stdinRead, write, err := os.Pipe()
		if err != nil {
			return nil, errors.Join(err, stdoutRead.Close(), stderrRead.Close())
		}
		defer stdinRead.Close()
		cmd.Stdin, stdinWrite = stdinRead, write
	}
	if err := cmd.Start(); err != nil {
		return nil, errors.Join(&sandbox.StartError{Kind: sandbox.ProgramNotExecutable, Path: program.path, Err: err}, stdoutRead.Close(), stderrRead.Close())
	}
	r := newRun(spec, sandbox.Facts{Mode: spec.Policy.Mode}, sandbox.CaptureOptions{})
	r.leader = &execLeader{cmd}
	e.mu.Lock()
	e.runs[r] = spec.Session
	e.mu.Unlock()
	r.follow(stdoutRead, stderrRead, stdinWrite)
	go func() {
		<-r.done
		e.mu.Lock()
		delete(e.runs, r)
		e.mu.Unlock()
	}()
	return r, nil
}

// CloseSession implements sandbox.Provider.
func (e *Engine) CloseSession(session string) {
	e.end(func(s string) bool { return s == session })
}

// Close implements sandbox.Provider.
func (e *Engine) Close() error {
	e.end(func(string) bool { return true })
	return os.RemoveAll(filepath.Clean(e.spill))
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
type execLeader struct{ cmd *exec.Cmd }

func (l *execLeader) wait(over func()) (ending, error) {
	err := l.cmd.Wait()
	over()
	l.kill() // what is left of the group
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		return ending{}, err
	}
	if status, ok := l.cmd.ProcessState.Sys().(syscall.WaitStatus); ok && status.Signaled() {
		return ending{signal: status.Signal()}, nil
	}
	return ending{code: l.cmd.ProcessState.ExitCode()}, nil
}

func (l *execLeader) signal(sig syscall.Signal) error { return signalGroup(l.cmd.Process, sig) }

func (l *execLeader) kill() { signalGroup(l.cmd.Process, syscall.SIGKILL) }

// scriptFile holds a command too long for an argument; only Linux needs it.
func scriptFile(string) (*os.File, string, error) {
	return nil, "", &sandbox.StartError{Kind: sandbox.ArgumentListTooLong, Path: "bash", Err: errors.New("the command is longer than 128 KiB")}
}

var _ sandbox.Provider = (*Engine)(nil)
