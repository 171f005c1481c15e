package local

import (
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/confine-dev/confine/sandbox"
	"golang.org/x/sys/unix"
)

// Runner is a program outside confine, such as bubblewrap, that makes the
// namespaces and the view of a run and executes the run's init in them as PID 1.
type Runner struct {
	Program *os.File // what is executed, opened with O_PATH
	Name    string   // argv[0], and what it is called in messages

	// Args are its arguments, before the program that it shall execute, which
	// the engine adds. RunnerStatus in them is a descriptor for its own report.
	Args []string

	// Inside is run by the init in what the runner made, before it starts
	// anything: restrictions belong here.
	Inside Script
}

// RunnerStatus is the descriptor on which a runner may report what it did; what
// it wrote is in RunnerError.
const RunnerStatus = 11

// RunnerError says that a runner ended without executing the init.
type RunnerError struct {
	Name   string
	Stderr string // what it printed, at most a few KiB
	Status string // what it wrote to RunnerStatus
	Cause  error  // how it ended

	// What an Explainer says of it; empty if there is none.
	Reason   string
	Remedies []string
}

func (e *RunnerError) Error() string {
	if e.Reason != "" {
		return e.Reason
	}
	if line := firstLine(e.Stderr); line != "" {
		return fmt.Sprintf("%s did not start the command: %s", e.Name, line)
	}
	return fmt.Sprintf("%s did not start the command: %v", e.Name, e.Cause)
}

func (e *RunnerError) Unwrap() error { return e.Cause }

// Explainer is a Wrapper that knows why its runner failed.
type Explainer interface {
	// Explain says in one sentence why, and what a person can do about it.
	Explain(*RunnerError) (reason string, remedies []string)
}

// Descriptors of a runner, besides 0 to 3, 5 and RunnerStatus. The init finds
// them too and puts the streams in their place.
const (
	fdControl    = 6 // the socket to the server
	fdStreams    = 7 // to 9: the command's
	fdImage      = 10
	fdRunnerFree = RunnerStatus + 1
)

// compileRunner makes the program of a child that becomes a runner. The command,
// its arguments and its environment travel in the init's image, so that a runner
// has none and shows none. image is to be closed after the child was spawned;
// names are what the calls of its orders are called.
func (e *Engine) compileRunner(spec sandbox.Spec, program resolved, l *Launch, s *session, p *pipes, filter []unix.SockFilter) (_ *program, image *os.File, names []string, _ error) {
	inside := insideRunner(spec, program, l, filter)
	image, err := openInit(orders{script: inside, path: program.path, argv: program.argv, envp: environment(spec.Env, l.Env, l.Defaults)})
	if err != nil {
		return nil, nil, nil, err
	}
	script := &Script{}
	script.Call("letting go of the server's end", unix.SYS_CLOSE, Int(e.life.Fd()))
	if l.Namespaces {
		script.join(s, l.SharedNetwork)
	}
	onward, flags := -1, uintptr(0)
	if l.bounds.numbered() {
		// A PID namespace around that of the runner: what a namespace may give
		// away bounds those in it, too.
		onward = len(script.calls)
		flags = unix.CLONE_NEWPID | unix.CLONE_NEWNS | unix.CLONE_PARENT | unix.CLONE_VFORK | unix.CLONE_VM | uintptr(unix.SIGCHLD)
	}
	script.Call("asking for a death signal", unix.SYS_PRCTL, Int(unix.PR_SET_PDEATHSIG), Int(int(unix.SIGKILL)))
	e.seeServer(script)
	script.blockSignals()
	script.Call("leaving the server's session", unix.SYS_SETSID)
	l.bounds.setNumbers(script)
	if l.bounds.numbered() { // bubblewrap looks its child up in /proc, by the number that it has for it
		script.Call("mounting /proc", unix.SYS_MOUNT, Text("proc"), Text("/proc"), Text("proc"), Int(unix.MS_NOSUID|unix.MS_NODEV|unix.MS_NOEXEC), Int(0))
	}
	script.Call("changing to the root folder", unix.SYS_CHDIR, Text("/"))
	runner := script.keep("keeping the runner's program", l.Runner.Program)
	null := script.Call("opening the null device", unix.SYS_OPENAT, Int(unix.AT_FDCWD), Text(os.DevNull), Int(unix.O_RDWR|unix.O_CLOEXEC))
	null = script.Call("opening the null device", unix.SYS_FCNTL, Result(null), Int(unix.F_DUPFD_CLOEXEC), Int(fdHigh))
	targets := []target{{0, null}, {1, null}, {2, script.keep("keeping the runner's streams", p.runnerStderrWrite)},
		{fdStatus, script.keep("keeping the status pipe", p.statusWrite)},
		{fdControl, script.keep("keeping the socket to the server", p.controlChild)},
		{fdImage, script.keep("keeping the init's program", image)},
		{RunnerStatus, script.keep("keeping the runner's streams", p.runnerReportWrite)}}
	if program.script != nil {
		targets = append(targets, target{fdScript, script.keep("keeping the command", program.script)})
	}
	for i, file := range p.streams() {
		targets = append(targets, target{fdStreams + i, script.keep("keeping the command's streams", file)})
	}
	script.placeAll(targets, fdRunnerFree)
	e.inherited.restore(script)
	argv := append([]string{l.Runner.Name}, l.Runner.Args...)
	argv = append(argv, fmt.Sprintf("/proc/self/fd/%d", fdImage), initName(l.initFlags(), e.home.id))
	args, err := texts(argv)
	if err != nil {
		image.Close()
		return nil, nil, nil, fmt.Errorf("the arguments of %s hold a NUL byte: %w", l.Runner.Name, err)
	}
	none, _ := texts(nil)
	script.Call("executing "+l.Runner.Name, unix.SYS_EXECVEAT, Result(runner), Text(""), args, none, Int(unix.AT_EMPTY_PATH))
	compiled := newProgram(script, onward, flags)
	compiled.offered = true
	return compiled, image, inside.names(), nil
}

// insideRunner is what the init does in what a runner made.
func insideRunner(spec sandbox.Spec, program resolved, l *Launch, filter []unix.SockFilter) *Script {
	s := &Script{}
	s.blockSignals()
	base := s.Append(&l.Runner.Inside)
	if l.HasRuleset {
		// It may have that number already, and dup3 refuses what changes nothing.
		kept := s.Call("keeping the ruleset", unix.SYS_FCNTL, Result(base+l.Ruleset), Int(unix.F_DUPFD_CLOEXEC), Int(fdHigh))
		s.Call("placing the ruleset", unix.SYS_DUP3, Result(kept), Int(fdRuleset), Int(0))
	}
	var handed []Ref
	if l.terminal != nil {
		master, slave := s.makeTerminal(*l.terminal)
		handed = append(handed, master, slave)
		for i := range 3 {
			s.Call("placing the command's terminal", unix.SYS_DUP3, Result(slave), Int(i), Int(0))
		}
	} else {
		for i := range 3 {
			s.Call("placing the command's streams", unix.SYS_DUP3, Int(fdStreams+i), Int(i), Int(0))
		}
	}
	handed = append(handed, s.Call("opening the init", unix.SYS_PIDFD_OPEN, Int(1), Int(0)))
	if filter != nil {
		handed = append(handed, s.listen(filter))
	}
	s.handOver(Int(fdControl), handed...)
	if !l.HasRuleset {
		s.Call("closing descriptors", unix.SYS_CLOSE_RANGE, Int(fdRuleset), Int(fdRuleset), Int(0))
	}
	if program.script == nil {
		s.Call("closing descriptors", unix.SYS_CLOSE_RANGE, Int(fdScript), Int(fdScript), Int(0))
	}
	s.Call("closing descriptors", unix.SYS_CLOSE_RANGE, Int(fdFree), Int(uintptr(^uint32(0))), Int(unix.CLOSE_RANGE_CLOEXEC))
	l.bounds.set(s)
	s.Call(stepChdir, unix.SYS_CHDIR, Text(spec.Dir))
	return s
}

// names are what the calls are called.
func (s *Script) names() []string {
	var names []string
	for _, c := range s.calls {
		names = append(names, c.what)
	}
	return names
}

// runnerTime bounds how long a runner is awaited that has failed already.
const runnerTime = 2 * time.Second

// runnerFailed waits for a runner whose init did not begin and says why. cause is
// what was noticed first.
func (l *initLeader) runnerFailed(runner *Runner, p *pipes, cause error) error {
	pidfd, err := unix.PidfdOpen(l.pid, 0)
	if err == nil {
		l.pidfd = pidfd
		if !errors.Is(cause, errNotHandedOver) || !l.gone(runnerTime) {
			unix.PidfdSendSignal(pidfd, unix.SIGKILL, nil, 0)
		}
		unix.Close(pidfd)
		l.pidfd = -1
	}
	ended := waitChild(l.pid)
	record := l.begun()
	l.status.Close()
	var step *StepError
	if errors.As(record, &step) {
		return step
	}
	failure := &RunnerError{Name: runner.Name, Stderr: firstOf(p.runnerStderr), Status: firstOf(p.runnerReport), Cause: cause}
	if errors.Is(cause, errNotHandedOver) && ended != nil {
		failure.Cause = ended
	}
	if explainer, ok := l.engine.wrapper.(Explainer); ok {
		failure.Reason, failure.Remedies = explainer.Explain(failure)
	}
	return failure
}

// firstOf is the beginning of what a pipe holds whose writers have ended.
func firstOf(pipe *os.File) string {
	pipe.SetReadDeadline(time.Now().Add(time.Second)) // should something live that still writes
	text, _ := io.ReadAll(io.LimitReader(pipe, 4<<10))
	return string(text)
}
