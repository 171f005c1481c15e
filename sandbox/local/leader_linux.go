package local

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// signalName is the symbolic name of a signal.
func signalName(s syscall.Signal) string {
	if name := unix.SignalName(s); name != "" {
		return name
	}
	return fmt.Sprintf("SIG%d", int(s)) // a real-time signal
}

// resume lets a stopped command go on, so that it can receive what was sent.
func resume(l leader) { l.signal(unix.SIGCONT) }

// Kinds of the init's records; see init_linux_amd64.s.
const (
	recordStarted        = 1
	recordLandlockFailed = 2
	recordExecFailed     = 3
	recordEnded          = 4
	recordOrderFailed    = 5
	recordTerminalFailed = 6
)

// initLeader is a leader that is a run's init.
type initLeader struct {
	pid    int      // of our child: the init or, if there is one, its runner, which ends with it
	status *os.File // the init's records
	tree   bool     // no PID namespace
	orders []string // what the calls of its orders are called
	engine *Engine

	mu     sync.Mutex
	pidfd  int  // guarded by mu: -1 once closed, when its number may be another run's
	killed bool // guarded by mu: kill ended the init
}

// readRecord reads the init's next record.
func (l *initLeader) readRecord() (kind uint32, value uint32, err error) {
	var record [8]byte
	if _, err := io.ReadFull(l.status, record[:]); err != nil {
		return 0, 0, err
	}
	return binary.NativeEndian.Uint32(record[:]), binary.NativeEndian.Uint32(record[4:]), nil
}

// errInitGone says that the init ended without saying how the command did.
var errInitGone = errors.New("the sandbox's init was killed; how the command ended is not known")

// begun reads the first record: the command began (nil), or a *StepError.
func (l *initLeader) begun() error {
	kind, value, err := l.readRecord()
	switch {
	case err != nil:
		return errors.New("the sandbox's init ended before the command began")
	case kind == recordStarted:
		return nil
	case kind == recordLandlockFailed:
		return &StepError{"restricting the command with Landlock", syscall.Errno(value)}
	case kind == recordTerminalFailed:
		return &StepError{stepOwnTerminal, syscall.Errno(value)}
	case kind == recordExecFailed:
		return &StepError{stepExec, syscall.Errno(value)}
	case kind == recordOrderFailed && int(value>>12) < len(l.orders):
		return &StepError{l.orders[value>>12], syscall.Errno(value & 0xfff)}
	}
	return fmt.Errorf("the sandbox's init sent an unknown record %d", kind)
}

// begin waits until the command began. If it did not, nothing is left of it.
func (l *initLeader) begin() error {
	if err := l.begun(); err != nil {
		l.giveUp()
		return err
	}
	return nil
}

// giveUp ends a run that did not begin.
func (l *initLeader) giveUp() {
	l.send(unix.SIGKILL)
	if l.tree {
		l.endOrphans()
	}
	l.abandon()
}

// wait implements leader.
func (l *initLeader) wait(over func()) (ending, error) {
	kind, value, err := l.readRecord()
	over()
	known := err == nil && kind == recordEnded
	complete := true
	if l.tree {
		complete = l.endTree(known)
	}
	killed := l.abandon()
	if !complete {
		l.engine.log.Warn("processes of a run could not all be ended", "init", l.pid)
	}
	if !known && killed {
		return ending{signal: unix.SIGKILL}, nil
	}
	if !known {
		return ending{}, errInitGone
	}
	status := unix.WaitStatus(value)
	if status.Signaled() {
		return ending{signal: status.Signal()}, nil
	}
	return ending{code: status.ExitStatus()}, nil
}

// treeTime bounds how long the rest of a run without a PID namespace is hunted.
// Hundreds of processes may be left, and on a busy machine each of them waits for
// a processor until it can end.
const treeTime = 10 * time.Second

// Times between two looks at the process table, which takes long when it is long.
const (
	soon  = 2 * time.Millisecond // after something new was found
	later = 50 * time.Millisecond
)

// endTree ends what the command left behind. The init adopts orphans, so they
// are all below it, and it ends when there are none; if it was killed they are
// this process's.
func (l *initLeader) endTree(alive bool) bool {
	if !alive {
		return l.endOrphans()
	}
	hunted := hunted{}
	pause := soon
	for end := time.Now().Add(treeTime); !l.gone(pause); {
		if time.Now().After(end) {
			l.send(unix.SIGKILL)
			return l.endOrphans()
		}
		pause = min(2*pause, later)
		if hunted.kill(descendants(processes(), l.pid)) {
			pause = soon
		}
	}
	return true
}

// endOrphans ends what an init that was killed leaves. Its pipe is closed before
// its children become this process's, so its end is awaited.
func (l *initLeader) endOrphans() bool {
	return l.gone(treeTime) && l.engine.endStrays()
}

// forever is a limit for gone.
const forever = -time.Millisecond

// gone waits for the init's end, but not longer than limit. Only wait and what
// it calls may do so, because they close the descriptor.
func (l *initLeader) gone(limit time.Duration) bool {
	for {
		n, err := unix.Poll([]unix.PollFd{{Fd: int32(l.pidfd), Events: unix.POLLIN}}, int(limit/time.Millisecond))
		if err != unix.EINTR {
			return n == 1
		}
	}
}

// abandon reaps the init, which has ended or is about to, and lets go of it. It
// reports whether kill ended it.
func (l *initLeader) abandon() (killed bool) {
	l.gone(forever) // without the lock: a process that cannot die must not block Cancel
	l.mu.Lock()
	defer l.mu.Unlock()
	children.reap(l.pid)
	unix.Close(l.pidfd)
	l.pidfd = -1
	l.status.Close()
	return l.killed
}

// send signals the init, unless it was let go of.
func (l *initLeader) send(sig syscall.Signal) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.pidfd < 0 {
		return nil
	}
	if sig == unix.SIGKILL {
		l.killed = true
	}
	return unix.PidfdSendSignal(l.pidfd, sig, nil, 0)
}

// signal implements leader: the init forwards it.
func (l *initLeader) signal(sig syscall.Signal) error {
	switch sig {
	case unix.SIGKILL:
		l.kill()
		return nil
	case unix.SIGSTOP:
		return errors.New("a command cannot be stopped: its init cannot receive that signal to forward it")
	}
	if err := l.send(sig); err != unix.ESRCH {
		return err
	}
	return nil // it ended by itself and is about to be reaped
}

// kill implements leader.
func (l *initLeader) kill() {
	if !l.tree {
		l.send(unix.SIGKILL)
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.pidfd < 0 {
		return
	}
	// The init must live to adopt what its children leave; it ends itself.
	for _, p := range descendants(processes(), l.pid) {
		p.kill()
	}
}
