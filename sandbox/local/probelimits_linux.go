package local

import (
	"errors"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"

	"github.com/confine-dev/confine/sandbox"
	"golang.org/x/sys/unix"
)

// probeLimits are low, so that a probing child can try to exceed them, and far
// more than it needs. They are set by the same means as any others.
var probeLimits = sandbox.Limits{Processes: 100, OpenFiles: 256, FileSize: 1 << 20, TempSize: 256 << 10}

// limitTrials use up what is limited.
var limitTrials = []trial{
	limitTrial(sandbox.ProcessCount, "start more processes than allowed", func(o probeOrders) error {
		switch {
		case o.Counting == countNone:
			return nil
		case o.Counting != countNumbers:
			return onePastProcesses()
		case o.Thorough:
			return moreNumbers()
		}
		return errNumbers
	}),
	limitTrial(sandbox.ProcessCount, "raise the limit on processes", func(o probeOrders) error {
		switch o.Counting {
		case countNone:
			return nil
		case countNumbers:
			return openTo(pidMaxPath, unix.O_WRONLY)
		}
		return raise(unix.RLIMIT_NPROC)
	}),
	limitTrial(sandbox.OpenFiles, "open more files than allowed", func(probeOrders) error { return manyFiles(probeLimits.OpenFiles) }),
	limitTrial(sandbox.OpenFiles, "raise the limit on open files", func(probeOrders) error { return raise(unix.RLIMIT_NOFILE) }),
	limitTrial(sandbox.FileSize, "write a larger file than allowed", func(o probeOrders) error { return largeFile(o, int64(probeLimits.FileSize)) }),
	limitTrial(sandbox.FileSize, "raise the limit on the size of files", func(probeOrders) error { return raise(unix.RLIMIT_FSIZE) }),
	limitTrial(sandbox.TemporaryFiles, "write more temporary files than allowed", func(probeOrders) error { return fill(int(probeLimits.TempSize)) }),
}

func limitTrial(r sandbox.Resource, name string, try func(probeOrders) error) trial {
	return trial{facet: limitFacet(r), name: name, certain: true, fits: func(o probeOrders) bool { return o.Bounded },
		try: func(o probeOrders, _ string) error { return try(o) }}
}

// onePastProcesses starts a process in a child that has lowered its own limit to
// one: that fails if the kernel counts at all. The limit of this process, whose
// runtime may need a thread at any moment, stays what it is.
func onePastProcesses() error {
	var limit unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NPROC, &limit); err != nil {
		return need(err)
	}
	if limit.Max == unix.RLIM_INFINITY {
		return nil
	}
	limit.Cur = 1
	s := &Script{}
	s.Call("lowering the limit", unix.SYS_PRLIMIT64, Int(0), Int(unix.RLIMIT_NPROC), Struct(&limit), Int(0))
	s.Call(stepFork, unix.SYS_CLONE, Int(unix.SIGCHLD), Int(0), Int(0), Int(0), Int(0)) // it goes on with the next call, too
	s.Call("ending", unix.SYS_EXIT_GROUP, Int(0))
	pid, err := newProgram(s, -1, 0).spawn()
	var failed *StepError
	switch {
	case err == nil:
		children.reap(pid)
		return nil
	case errors.As(err, &failed) && failed.Step == stepFork:
		return failed.Errno
	}
	return need(err)
}

const stepFork = "starting a process"

// errNumbers stands for what a child sees before it becomes the init: it does not
// go on unless the kernel says that it took the number (setNumbers). To try it
// takes a tenth of a second.
var errNumbers = errors.New("the kernel took the limit")

// moreNumbers starts more processes than a PID namespace has numbers for. To look
// at its own limit is not enough: that of a namespace around it counts as well.
func moreNumbers() error {
	return errnoError(forkSleepers(make([]uintptr, max(probeLimits.Processes+reservedNumbers, fewestNumbers())+1)))
}

// forkSleepers forks as often as there is room for numbers, or until that fails, and
// ends all children. It leaves the runtime no occasion to start a thread meanwhile,
// which would fail as well and end this process.
//
//go:noinline
//go:norace
func forkSleepers(pids []uintptr) (errno syscall.Errno) {
	syscall.ForkLock.Lock()
	defer syscall.ForkLock.Unlock()
	n := 0
	for ; n < len(pids) && errno == 0; n++ {
		pids[n], _, errno = syscall.RawSyscall6(unix.SYS_CLONE, uintptr(unix.SIGCHLD), 0, 0, 0, 0, 0)
		for errno == 0 && pids[n] == 0 {
			syscall.RawSyscall6(unix.SYS_PPOLL, 0, 0, 0, 0, 0, 0)
		}
	}
	if errno != 0 {
		n-- // the last did not begin
	}
	for _, pid := range pids[:n] {
		syscall.RawSyscall(unix.SYS_KILL, pid, uintptr(unix.SIGKILL), 0)
		syscall.RawSyscall6(unix.SYS_WAIT4, pid, 0, unix.WALL, 0, 0, 0)
	}
	return errno
}

// raise adds one to a hard limit.
func raise(resource int) error {
	var limit unix.Rlimit
	if err := unix.Getrlimit(resource, &limit); err != nil {
		return need(err)
	}
	if limit.Max == unix.RLIM_INFINITY {
		return nil
	}
	limit.Max++
	return unix.Prlimit(0, resource, &limit, nil)
}

// manyFiles has more descriptors than most for a moment.
func manyFiles(most uint64) error {
	var have []int
	defer func() {
		for _, fd := range have {
			unix.Close(fd)
		}
	}()
	for range most + 1 {
		fd, err := unix.FcntlInt(1, unix.F_DUPFD_CLOEXEC, 0)
		if err != nil {
			return err
		}
		have = append(have, fd)
	}
	return nil
}

// largeFile writes one byte behind the largest size.
func largeFile(o probeOrders, size int64) error {
	signal.Ignore(syscall.SIGXFSZ)
	return scratchFile(o.writable(), func(fd int) error {
		_, err := unix.Pwrite(fd, []byte{0}, size)
		return err
	})
}

// fill writes one byte more than fits.
func fill(size int) error {
	return scratchFile(os.TempDir(), func(fd int) error {
		for written := 0; written <= size; {
			n, err := unix.Write(fd, make([]byte, min(64<<10, size+1-written)))
			if err != nil {
				return err
			}
			written += n
		}
		return nil
	})
}

func scratchFile(folder string, use func(fd int) error) error {
	path := filepath.Join(folder, "limits")
	fd, err := unix.Open(path, unix.O_WRONLY|unix.O_CREAT|unix.O_TRUNC|unix.O_CLOEXEC, 0o600)
	if err != nil {
		return need(err)
	}
	defer os.Remove(path)
	defer unix.Close(fd)
	return use(fd)
}
