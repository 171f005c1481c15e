package local

import (
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"

	"github.com/confine-dev/confine/sandbox"
	"golang.org/x/sys/unix"
)

// Names of steps whose failure can be the command's, not the sandbox's.
const (
	stepExec        = "executing the program"
	stepInit        = "executing the init"
	stepChdir       = "changing to the working directory"
	stepOwnTerminal = "making the terminal the command's own"
)

// Descriptors that the init and the command find, besides 0 to 2.
const (
	fdStatus  = 3  // the init's records go here
	fdRuleset = 4  // Landlock ruleset, if there is one
	fdScript  = 5  // a command too long for an argument, or the probe's program
	fdFree    = 6  // from here on everything is closed
	fdHigh    = 64 // where descriptors wait for their final number
)

// blockSignals keeps every signal from the init until it looks for them.
func (s *Script) blockSignals() {
	s.Call("blocking signals", unix.SYS_RT_SIGPROCMASK, Int(unix.SIG_SETMASK), Bytes(slices.Repeat([]byte{0xff}, 8)), Int(0), Int(8))
}

// scriptFile holds a command in memory; name is its path for the shell.
func scriptFile(command string) (file *os.File, name string, err error) {
	fd, err := unix.MemfdCreate("command", unix.MFD_CLOEXEC)
	if err != nil {
		return nil, "", fmt.Errorf("making a memory file for the command: %w", err)
	}
	file = os.NewFile(uintptr(fd), "command")
	if _, err := file.WriteString(command); err != nil {
		file.Close()
		return nil, "", fmt.Errorf("writing the command to memory: %w", err)
	}
	return file, scriptPath, nil
}

var scriptPath = fmt.Sprintf("/proc/self/fd/%d", fdScript)

// compile makes the whole program of a child: join the session, clone into the
// run's namespaces, prepare, place the descriptors, confine, become the init.
func (e *Engine) compile(spec sandbox.Spec, program resolved, l *Launch, s *session, p *pipes, filter []unix.SockFilter) (*program, error) {
	script := &Script{}
	script.Grow(len(l.Prepare.calls) + len(l.Confine.calls) + ownCalls)
	script.Call("letting go of the server's end", unix.SYS_CLOSE, Int(e.life.Fd()))
	onward, flags := -1, uintptr(0)
	if l.Namespaces {
		script.join(s, l.SharedNetwork)
		onward = len(script.calls)
		flags = unix.CLONE_NEWNS | unix.CLONE_NEWPID | unix.CLONE_NEWIPC | unix.CLONE_NEWUTS |
			unix.CLONE_PARENT | unix.CLONE_VFORK | unix.CLONE_VM | uintptr(unix.SIGCHLD)
		// Without a PID namespace the init must outlive the server instead, so
		// that the guardian finds what is below it.
		script.Call("asking for a death signal", unix.SYS_PRCTL, Int(unix.PR_SET_PDEATHSIG), Int(int(unix.SIGKILL)))
	}
	// A server that died before that is not noticed by the signal: nobody holds
	// the other end of this socket then, and sending fails with EPIPE.
	e.seeServer(script)
	script.blockSignals()
	script.Call("leaving the server's session", unix.SYS_SETSID)
	l.bounds.setNumbers(script)

	base := script.Append(&l.Prepare)
	var control, slave Ref
	var handed []Ref
	if p.controlChild != nil {
		control = script.keep("keeping the socket to the server", p.controlChild)
	}
	if l.terminal != nil {
		var master Ref
		master, slave = script.makeTerminal(*l.terminal)
		handed = append(handed, master, slave)
		if l.TerminalRights != 0 {
			script.allowTerminal(base+l.Ruleset, slave, l.TerminalRights)
		}
	}
	init := script.place(e.init, program, l, base+l.Ruleset, p, slave)
	e.inherited.restore(script)
	script.Append(&l.Confine)
	if filter != nil {
		handed = append(handed, script.listen(filter))
	}
	if len(handed) > 0 {
		script.handOver(Result(control), handed...)
	}
	l.bounds.set(script)
	script.Call(stepChdir, unix.SYS_CHDIR, Text(spec.Dir))
	if err := script.execute(init, e.home.id, program, environment(spec.Env, l.Env, l.Defaults), l); err != nil {
		return nil, err
	}
	compiled := newProgram(script, onward, flags)
	compiled.offered = l.bounds != nil
	return compiled, nil
}

// ownCalls is how many calls a program has besides those of its launch, about.
const ownCalls = 50

// seeServer adds the call that fails if the server is dead.
func (e *Engine) seeServer(script *Script) {
	script.Call("seeing that the server lives", unix.SYS_SENDTO, Int(e.peer.Fd()), Bytes([]byte{0}), Int(0), Int(unix.MSG_NOSIGNAL))
}

// keep copies a descriptor away from the low numbers, which are about to be
// given to others.
func (s *Script) keep(what string, file *os.File) Ref {
	return s.Call(what, unix.SYS_FCNTL, Int(file.Fd()), Int(unix.F_DUPFD_CLOEXEC), Int(fdHigh))
}

// join enters what the session's runs share.
func (s *Script) join(session *session, sharedNetwork bool) {
	s.Call("joining the session's user namespace", unix.SYS_SETNS, Int(session.user.Fd()), Int(unix.CLONE_NEWUSER))
	if !sharedNetwork {
		s.Call("joining the session's network", unix.SYS_SETNS, Int(session.network.Fd()), Int(unix.CLONE_NEWNET))
	}
	s.Call("joining the session's mounts", unix.SYS_SETNS, Int(session.mount.Fd()), Int(unix.CLONE_NEWNS))
}

// place puts every descriptor where the init expects it and arranges for all
// others to be closed. Result: the init's program.
func (s *Script) place(init *os.File, program resolved, l *Launch, ruleset Ref, p *pipes, slave Ref) Ref {
	initFd := s.keep("keeping the init's program", init)
	targets := []target{{fdStatus, s.keep("keeping the status pipe", p.statusWrite)}}
	if l.HasRuleset {
		targets = append(targets, target{fdRuleset, s.Call("keeping the ruleset", unix.SYS_FCNTL, Result(ruleset), Int(unix.F_DUPFD_CLOEXEC), Int(fdHigh))})
	}
	if program.script != nil {
		targets = append(targets, target{fdScript, s.keep("keeping the command", program.script)})
	}
	for number, file := range p.streams() {
		targets = append(targets, target{number, s.keep("keeping the command's streams", file)})
	}
	if l.terminal != nil {
		targets = append(targets, target{0, slave}, target{1, slave}, target{2, slave})
	}
	s.placeAll(targets, fdFree)
	return initFd
}

// target is the number that a descriptor is to have.
type target struct {
	number int
	from   Ref
}

// placeAll gives descriptors their numbers and arranges for all others to be
// closed: below free at once, the rest when a program is executed.
func (s *Script) placeAll(targets []target, free int) {
	taken := map[int]bool{}
	for _, t := range targets {
		s.Call("placing descriptors", unix.SYS_DUP3, Result(t.from), Int(t.number), Int(0))
		taken[t.number] = true
	}
	for number := fdStatus; number < free; number++ {
		if !taken[number] {
			s.Call("closing descriptors", unix.SYS_CLOSE_RANGE, Int(number), Int(number), Int(0))
		}
	}
	s.Call("closing descriptors", unix.SYS_CLOSE_RANGE, Int(free), Int(uintptr(^uint32(0))), Int(unix.CLOSE_RANGE_CLOEXEC))
}

// execute becomes the init, which executes the program.
func (s *Script) execute(init Ref, server string, program resolved, env []string, l *Launch) error {
	argv, err := texts(append([]string{"confine", initName(l.initFlags(), server), program.path}, program.argv...))
	if err != nil {
		return fmt.Errorf("the command's arguments hold a NUL byte: %w", err)
	}
	envp, err := texts(env)
	if err != nil {
		return fmt.Errorf("the command's environment holds a NUL byte: %w", err)
	}
	s.Call(stepInit, unix.SYS_EXECVEAT, Result(init), Text(""), argv, envp, Int(unix.AT_EMPTY_PATH))
	return nil
}

// initFlags are what the init of a launch is told.
func (l *Launch) initFlags() int {
	flags := 0
	if l.HasRuleset {
		flags |= initLandlock
	}
	if !l.isolated() {
		flags |= initTree
	}
	if l.terminal != nil {
		flags |= initTerminal
	}
	return flags
}

// isolated reports whether a run has namespaces of its own, whoever makes them.
func (l *Launch) isolated() bool { return l.Namespaces || l.Runner != nil }

// environment lets replacements win over the command's own variables, and these
// over defaults.
func environment(env []string, replace, defaults map[string]string) []string {
	all := maps.Clone(defaults)
	if all == nil {
		all = map[string]string{}
	}
	out := make([]string, 0, len(env)+len(replace)+len(all))
	for _, entry := range env {
		name, _, _ := strings.Cut(entry, "=")
		if _, replaced := replace[name]; !replaced {
			out = append(out, entry)
		}
		delete(all, name)
	}
	maps.Copy(all, replace)
	for _, name := range slices.Sorted(maps.Keys(all)) {
		out = append(out, name+"="+all[name])
	}
	return out
}
