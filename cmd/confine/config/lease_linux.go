package config

import (
	"errors"
	"os"
	"syscall"
)

// keepOut makes other programs that want to write to the file wait until release. ok
// is false while one of them has it open for writing. The kernel gives a lease for
// reading, and takes writers' time until it is given back, on files of our own; where
// it gives none for another reason, nobody is kept out.
//
// A writer that waits makes the kernel send SIGIO, which Go's runtime drops.
func keepOut(file *os.File) (release func(), ok bool) {
	const setLease = 1024 // F_SETLEASE
	lease := func(kind uintptr) (errno syscall.Errno) {
		raw, err := file.SyscallConn()
		if err != nil {
			return syscall.EINVAL
		}
		raw.Control(func(fd uintptr) { _, _, errno = syscall.Syscall(syscall.SYS_FCNTL, fd, setLease, kind) })
		return errno
	}
	switch errno := lease(syscall.F_RDLCK); {
	case errors.Is(errno, syscall.EAGAIN):
		return func() {}, false
	case errno != 0:
		return func() {}, true
	}
	return func() { lease(syscall.F_UNLCK) }, true
}
