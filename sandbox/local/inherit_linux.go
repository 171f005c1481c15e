package local

import (
	"fmt"
	"os"
	"sync"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// inheritance is what a command gets from whoever started this process, and
// what the Go runtime changed for itself only.
type inheritance struct {
	init *os.File

	once  sync.Once
	files *unix.Rlimit // nil: leave the limit on open files as it is
}

// restore gives a child the limit on open files and the dispositions of signals
// that a command expects: a shell cannot trap a signal that was ignored when it
// started.
func (h *inheritance) restore(s *Script) {
	h.once.Do(func() { h.files = fileLimit(h.init) })
	if h.files != nil {
		s.Call("restoring the limit on open files", unix.SYS_PRLIMIT64, Int(0), Int(unix.RLIMIT_NOFILE), Struct(h.files), Int(0))
	}
	const lastSignal = 64
	for sig := 1; sig <= lastSignal; sig++ {
		if ignored(sig) {
			var byDefault sigaction
			s.Call("resetting signals", unix.SYS_RT_SIGACTION, Int(sig), Struct(&byDefault), Int(0), Int(maskSize))
		}
	}
}

// openFiles is the limit on open files that a command gets if nobody lowers it.
func (h *inheritance) openFiles() unix.Rlimit {
	h.once.Do(func() { h.files = fileLimit(h.init) })
	if h.files != nil {
		return *h.files
	}
	now := unix.Rlimit{Cur: unix.RLIM_INFINITY, Max: unix.RLIM_INFINITY}
	unix.Getrlimit(unix.RLIMIT_NOFILE, &now) // cannot fail
	return now
}

// sigaction is the kernel's struct sigaction; handler 0 is SIG_DFL, 1 SIG_IGN.
type sigaction struct{ handler, flags, restorer, mask uint64 }

const maskSize = 8

// ignored reports whether this process ignores a signal now.
func ignored(sig int) bool {
	var now sigaction
	_, _, errno := syscall.RawSyscall6(unix.SYS_RT_SIGACTION, uintptr(sig), 0, uintptr(unsafe.Pointer(&now)), maskSize, 0, 0)
	return errno == 0 && now.handler == 1
}

// fileLimit is the limit on open files that this process was started with, or
// nil if it still has it. Package syscall raises the soft limit to the hard one
// less one and puts it back only in children that it starts itself. So such a
// child is looked at: the init, which changes no limits, told to execute what
// cannot be executed.
func fileLimit(init *os.File) *unix.Rlimit {
	var now, first unix.Rlimit
	if unix.Getrlimit(unix.RLIMIT_NOFILE, &now) != nil || now.Cur != now.Max-1 {
		return nil
	}
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		return nil
	}
	defer null.Close()
	n := null.Fd()
	children.mu.RLock() // until the number is noted
	defer children.mu.RUnlock()
	const program = 4 // the init's place among the descriptors
	pid, err := syscall.ForkExec(fmt.Sprintf("/proc/self/fd/%d", program), []string{"confine", initName(0, "limits"), "/"},
		&syscall.ProcAttr{Files: []uintptr{n, n, n, n, init.Fd()}, Env: []string{}})
	if err != nil {
		return nil
	}
	children.note(pid)
	err = unix.Prlimit(pid, unix.RLIMIT_NOFILE, nil, &first)
	children.reap(pid)
	if err != nil {
		return nil
	}
	return &first
}
