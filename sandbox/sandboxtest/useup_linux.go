package sandboxtest

import (
	"errors"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"strconv"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// most bounds what children try: beyond it nothing was limited.
const most = 1500

// useUpMain uses something up and prints the error that stopped it, and how much
// it had.
func useUpMain(args []string) int {
	if len(args) != 1 || usages[args[0]] == nil {
		return 2
	}
	count, err := usages[args[0]]()
	var errno syscall.Errno
	if err != nil && !errors.As(err, &errno) {
		fmt.Println(err)
		return 1
	}
	fmt.Println(int(errno), count)
	return 0
}

var usages = map[string]func() (count uint64, err error){
	"processes":   func() (uint64, error) { return useUpProcesses(false) },
	"hold":        func() (uint64, error) { return useUpProcesses(true) },
	"descriptors": useUpDescriptors,
	"file":        func() (uint64, error) { return useUpFile(os.Getenv("TMPDIR")) },
	"temporary":   useUpTemporary,
	"names":       useUpNames,
	"raise":       raiseAll,
}

// useUpProcesses starts children that do nothing until the run ends. No thread may be
// needed meanwhile, so that nothing but raw calls is made. If it shall hold them, it
// does not end by itself.
//
//go:norace
func useUpProcesses(hold bool) (uint64, error) {
	count, errno := uint64(0), syscall.Errno(0)
	for count < most && errno == 0 {
		var pid uintptr
		pid, _, errno = syscall.RawSyscall6(unix.SYS_CLONE, uintptr(unix.SIGCHLD), 0, 0, 0, 0, 0)
		for errno == 0 && pid == 0 {
			syscall.RawSyscall6(unix.SYS_PPOLL, 0, 0, 0, 0, 0, 0)
		}
		if errno == 0 {
			count++
		}
	}
	if errno != 0 {
		// There is no room for a thread of the runtime: say it and end at once.
		text := strconv.Itoa(int(errno)) + " " + strconv.FormatUint(count, 10) + "\n"
		syscall.RawSyscall(unix.SYS_WRITE, 1, uintptr(unsafe.Pointer(unsafe.StringData(text))), uintptr(len(text)))
		for hold {
			syscall.RawSyscall6(unix.SYS_PPOLL, 0, 0, 0, 0, 0, 0)
		}
		syscall.RawSyscall(unix.SYS_EXIT_GROUP, 0, 0, 0)
	}
	return count, nil
}

func useUpDescriptors() (count uint64, err error) {
	for count < most {
		if _, err := unix.FcntlInt(1, unix.F_DUPFD, 0); err != nil {
			return count + 3, err // and those there were; a few are the runtime's
		}
		count++
	}
	return count, nil
}

// useUpFile makes one file as large as it can become.
func useUpFile(folder string) (size uint64, err error) {
	signal.Ignore(unix.SIGXFSZ)
	fd, err := unix.Open(filepath.Join(folder, "large"), unix.O_WRONLY|unix.O_CREAT|unix.O_TRUNC, 0o600)
	if err != nil {
		return 0, err
	}
	defer unix.Close(fd)
	defer os.Remove(filepath.Join(folder, "large"))
	for size < 64<<20 {
		n, err := unix.Write(fd, make([]byte, 64<<10))
		if err != nil {
			return size, err
		}
		size += uint64(n)
	}
	return size, nil
}

// useUpTemporary makes files that are as large as they may be, and leaves them.
func useUpTemporary() (size uint64, err error) {
	for i := range 64 {
		fd, err := unix.Open(filepath.Join(os.Getenv("TMPDIR"), fmt.Sprint("part", i)), unix.O_WRONLY|unix.O_CREAT, 0o600)
		if err != nil {
			return size, err
		}
		for written := uint64(0); written < lowLimits.FileSize; {
			n, err := unix.Write(fd, make([]byte, 64<<10))
			if err != nil {
				return size, err
			}
			written, size = written+uint64(n), size+uint64(n)
		}
		unix.Close(fd)
	}
	return size, nil
}

// useUpNames makes empty files, and leaves them.
func useUpNames() (count uint64, err error) {
	for count < most {
		fd, err := unix.Open(filepath.Join(os.Getenv("TMPDIR"), fmt.Sprint("empty", count)), unix.O_WRONLY|unix.O_CREAT, 0o600)
		if err != nil {
			return count, err
		}
		unix.Close(fd)
		count++
	}
	return count, nil
}

// raiseAll tries to raise every limit, and says how many it could.
func raiseAll() (raised uint64, _ error) {
	for _, resource := range []int{unix.RLIMIT_NPROC, unix.RLIMIT_NOFILE, unix.RLIMIT_FSIZE, unix.RLIMIT_CORE} {
		var limit unix.Rlimit
		if err := unix.Getrlimit(resource, &limit); err != nil {
			return raised, err
		}
		if limit.Max != unix.RLIM_INFINITY {
			limit.Max++
			if unix.Prlimit(0, resource, &limit, nil) == nil || unix.Prlimit(os.Getppid(), resource, &limit, nil) == nil || unix.Prlimit(1, resource, &limit, nil) == nil {
				raised++
			}
		}
	}
	if fd, err := unix.Open("/proc/sys/kernel/pid_max", unix.O_WRONLY, 0); err == nil {
		raised++
		unix.Close(fd)
	}
	return raised, nil
}
