package sandboxtest

import (
	"bufio"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"
)

// entryOps is the hidden entry that performs operations: SEED BASE NUMBER...
const entryOps = "__ops"

func init() { childEntries[entryOps] = opsMain }

// opsWorkers is how many threads perform operations at once. Each has a working
// directory of its own.
const opsWorkers = 4

// opsOutcome is what came of an operation.
type opsOutcome struct {
	step  string // in which it failed; empty if it did not
	errno syscall.Errno
}

func (o opsOutcome) String() string {
	if o.errno == 0 {
		return "succeeded"
	}
	return fmt.Sprintf("failed with %s in step %q", unix.ErrnoName(o.errno), o.step)
}

// opsPrepare is the step before all others.
const opsPrepare = "prepare"

// opsMain performs operations and prints the number of its process and then, for
// each operation, its number, the error number and the step.
func opsMain(args []string) int {
	if len(args) < 2 {
		return 2
	}
	seed, err := strconv.ParseUint(args[0], 10, 64)
	if err != nil {
		return 2
	}
	numbers := make(chan int) // closed here
	outcomes := make([]opsOutcome, len(args)-2)
	var workers sync.WaitGroup
	for range opsWorkers {
		workers.Go(func() {
			runtime.LockOSThread() // never unlocked: it has a working directory of its own
			if err := unix.Unshare(unix.CLONE_FS); err != nil {
				panic(err)
			}
			for i := range numbers {
				number, err := strconv.Atoi(args[2+i])
				if err != nil {
					panic(err)
				}
				outcomes[i] = perform(drawOperation(seed, number, args[1]))
			}
		})
	}
	for i := range outcomes {
		numbers <- i
	}
	close(numbers)
	workers.Wait()
	out := bufio.NewWriter(os.Stdout)
	fmt.Fprintln(out, os.Getpid())
	for i, o := range outcomes {
		fmt.Fprintf(out, "%s %d %s\n", args[2+i], int(o.errno), o.step)
	}
	if out.Flush() != nil {
		return 1
	}
	return 0
}

// parseOps reads what opsMain printed.
func parseOps(text string) (pid int, outcomes map[int]opsOutcome, err error) {
	first, rest, _ := strings.Cut(text, "\n")
	if pid, err = strconv.Atoi(first); err != nil {
		return 0, nil, fmt.Errorf("the child printed %q", first)
	}
	outcomes = map[int]opsOutcome{}
	for line := range strings.Lines(rest) {
		fields := strings.SplitN(strings.TrimSuffix(line, "\n"), " ", 3)
		if len(fields) != 3 {
			return 0, nil, fmt.Errorf("the child printed %q", line)
		}
		number, err := strconv.Atoi(fields[0])
		errno, err2 := strconv.Atoi(fields[1])
		if err != nil || err2 != nil {
			return 0, nil, fmt.Errorf("the child printed %q", line)
		}
		outcomes[number] = opsOutcome{fields[2], syscall.Errno(errno)}
	}
	return pid, outcomes, nil
}

// attempt is an operation while it is performed.
type attempt struct {
	*operation
	step     string // what is done next
	one, two opsHandle
	opened   []int // to be closed
}

// opsHandle is a file as a system call takes it.
type opsHandle struct {
	dir  int    // AT_FDCWD, or the descriptor that the path starts from
	path string // empty if fd is the file
	fd   int
}

// perform does an operation and cleans up behind it.
func perform(op *operation) opsOutcome {
	x := &attempt{operation: op, step: opsPrepare}
	defer func() {
		for _, fd := range x.opened {
			unix.Close(fd)
		}
	}()
	err := unix.Chdir("/")
	if err == nil {
		x.one, err = x.prepare(op.first)
	}
	if err == nil && op.call.second != nil {
		x.two, err = x.prepare(op.second)
	}
	if err == nil {
		err = op.call.try(x)
	}
	if err == nil {
		return opsOutcome{}
	}
	errno, ok := err.(syscall.Errno)
	if !ok {
		panic(fmt.Sprintf("%v: %v", op, err))
	}
	return opsOutcome{x.step, errno}
}

// open opens what is closed when the operation is over.
func (x *attempt) open(dir int, path string, flags int) (int, error) {
	fd, err := unix.Openat(dir, path, flags|unix.O_CLOEXEC|unix.O_NONBLOCK, 0o644)
	if err == nil {
		x.opened = append(x.opened, fd)
	}
	return fd, err
}

// prepare makes a name usable. It changes nothing.
func (x *attempt) prepare(f opsFile) (opsHandle, error) {
	h := opsHandle{dir: unix.AT_FDCWD, path: f.path, fd: -1}
	var err error
	switch f.form {
	case formEntered:
		err = unix.Chdir(f.from)
	case formBelowRead:
		h.dir, err = x.open(unix.AT_FDCWD, f.from, unix.O_RDONLY|unix.O_DIRECTORY)
	case formBelowPath:
		h.dir, err = x.open(unix.AT_FDCWD, f.from, unix.O_PATH|unix.O_DIRECTORY)
	case formBelowProc:
		var fd int
		fd, err = x.open(unix.AT_FDCWD, f.from, unix.O_PATH|unix.O_DIRECTORY)
		h.path = filepath.Join("/proc/self/fd", strconv.Itoa(fd)) + "/" + f.path
	case formReopenRead, formHeld:
		h.fd, err = x.open(unix.AT_FDCWD, f.path, unix.O_RDONLY)
	case formReopenPath, formHeldPath:
		h.fd, err = x.open(unix.AT_FDCWD, f.path, unix.O_PATH)
	}
	switch f.form {
	case formReopenRead, formReopenPath:
		h.path = f.from + strconv.Itoa(h.fd)
	case formHeld, formHeldPath:
		h.path = ""
	}
	return h, err
}

// older returns the system call that newer ones replaced, if it can do this.
func (x *attempt) older(name string) (nr uintptr, ok bool) {
	if !x.old || x.one.path == "" || x.one.dir != unix.AT_FDCWD || x.call.second != nil && x.two.dir != unix.AT_FDCWD {
		return 0, false
	}
	nr, ok = opsOlderCalls[name]
	return nr, ok
}
