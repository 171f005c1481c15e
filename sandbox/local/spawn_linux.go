package local

import (
	"runtime"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// The three hooks that package syscall itself calls around fork; they are
// among the few that the linker lets others use.

//go:linkname runtimeBeforeFork syscall.runtime_BeforeFork
func runtimeBeforeFork()

//go:linkname runtimeAfterFork syscall.runtime_AfterFork
func runtimeAfterFork()

//go:linkname runtimeAfterForkInChild syscall.runtime_AfterForkInChild
func runtimeAfterForkInChild()

// vforkClone is clone(2) with CLONE_VFORK and CLONE_VM: it returns twice on
// one stack, first in the child (0), then, when the child has executed a
// program or ended, in the parent (pid or a negative errno).
func vforkClone(flags uintptr, pidfd *int32) (r uintptr)

// vforkOnward clones once more, with namespaces; only the new child (0) or a
// failure (errno) returns. The caller's process notes the child's number in
// pid and ends.
func vforkOnward(flags uintptr, pid *int32) (errno uintptr)

// program is a compiled launch. Everything the child touches is in it.
type program struct {
	ops    []op
	onward int     // index of the op before which the second clone happens; -1: none
	flags  uintptr // of the second clone
	failed int     // 1 + index of the op that failed; 0: none
	errno  uintptr
	second int32   // process number of the second child
	script *Script // keeps what the ops point to, and knows their names

	offered bool // to the kernel, when memory runs out
}

const onwardFailed = -1

// newProgram compiles a script. From its call number onward on (-1: never) a
// second child goes on, cloned with flags.
func newProgram(s *Script, onward int, flags uintptr) *program {
	return &program{ops: s.ops(), onward: onward, flags: flags, script: s}
}

//go:noinline
//go:norace
//go:nocheckptr
func (p *program) child() uintptr {
	runtimeBeforeFork()
	r := vforkClone(unix.CLONE_VFORK|unix.CLONE_VM|uintptr(unix.SIGCHLD), nil)
	if r != 0 {
		return r
	}
	runtimeAfterForkInChild()
	for i := range p.ops {
		if i == p.onward {
			if e := vforkOnward(p.flags, &p.second); e != 0 {
				p.failed, p.errno = onwardFailed, e
				exitChild()
			}
		}
		o := &p.ops[i]
		if e := o.run(p.ops); e != 0 {
			p.failed, p.errno = i+1, e
			exitChild()
		}
	}
	exitChild()
	return 0
}

//go:nosplit
//go:norace
func exitChild() {
	for {
		syscall.RawSyscall(unix.SYS_EXIT_GROUP, 125, 0, 0)
	}
}

// run makes one call in the child. It must not allocate, grow the stack or
// call anything but raw system calls.
//
//go:nosplit
//go:norace
//go:nocheckptr
func (o *op) run(ops []op) uintptr {
	a := o.a
	if o.ref != 0 {
		for j := range a {
			if o.ref&(1<<uint(j)) != 0 {
				a[j] = ops[a[j]].result
			}
		}
	}
	r, _, e := syscall.RawSyscall6(o.nr, a[0], a[1], a[2], a[3], a[4], a[5])
	if e != 0 && uintptr(e) != o.ignore {
		return uintptr(e)
	}
	o.result = r
	if o.patch != nil {
		*o.patch = int32(r)
	}
	for i := uintptr(0); i < o.size; i++ {
		if *(*byte)(unsafe.Add(unsafe.Pointer(o.got), i)) != *(*byte)(unsafe.Add(unsafe.Pointer(o.want), i)) {
			return uintptr(unix.ESTALE)
		}
	}
	return 0
}

// spawner clones children from one thread that never ends: a child is told of
// the death of the thread that cloned it, not of the process.
type spawner struct {
	jobs chan func()
	done chan struct{} // closed when the thread has ended
}

func newSpawner() *spawner {
	s := &spawner{jobs: make(chan func()), done: make(chan struct{})}
	go func() {
		defer close(s.done)
		runtime.LockOSThread() // never unlocked: the thread ends with the goroutine
		for job := range s.jobs {
			job()
		}
	}()
	return s
}

// close ends the thread; children cloned from it get their death signal.
func (s *spawner) close() {
	close(s.jobs)
	<-s.done
}

// spawn runs the program in a child and returns the number of the process that
// executed the init. The error is a *StepError if a call failed.
func (s *spawner) spawn(p *program) (pid int, err error) {
	result := make(chan struct{})
	s.jobs <- func() {
		defer close(result)
		pid, err = p.spawn()
	}
	<-result
	return pid, err
}

func (p *program) spawn() (int, error) {
	// A change of credentials in a child that shares our memory may change whether
	// this process can be traced (prctl(2), PR_SET_DUMPABLE); put back what was.
	dumpable, _ := unix.PrctlRetInt(unix.PR_GET_DUMPABLE, 0, 0, 0, 0)
	children.mu.RLock() // until the number is noted
	defer children.mu.RUnlock()
	syscall.ForkLock.Lock()
	taken := func() {}
	if p.offered {
		taken = offering()
	}
	r := p.child()
	runtimeAfterFork()
	taken()
	syscall.ForkLock.Unlock()
	const notTraceable = 0 // also for 2, which cannot be set
	if dumpable != 1 {
		dumpable = notTraceable
	}
	unix.Prctl(unix.PR_SET_DUMPABLE, uintptr(dumpable), 0, 0, 0)
	runtime.KeepAlive(p)
	if r > ^uintptr(4095) {
		return 0, &StepError{"cloning a child", syscall.Errno(-r)}
	}
	first, last := int(r), int(r)
	if p.onward >= 0 {
		children.reap(first)
		last = int(p.second)
	}
	if p.failed != 0 {
		if last != 0 && (p.onward < 0 || p.second != 0) {
			children.reap(last)
		}
		return 0, p.stepError()
	}
	if last == 0 {
		return 0, &StepError{"cloning the init", syscall.ECHILD}
	}
	children.note(last)
	return last, nil
}

func (p *program) stepError() error {
	errno := syscall.Errno(p.errno)
	if p.failed == onwardFailed {
		return &StepError{"making the run's namespaces", errno}
	}
	return &StepError{p.script.calls[p.failed-1].what, errno}
}
