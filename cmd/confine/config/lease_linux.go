package config

import (
	"errors"
	"os"
	"runtime"
	"syscall"
)

// beingWritten reports whether somebody has the file open for writing. The kernel
// gives a lease for reading only while nobody has; where it gives none for another
// reason, as for other users' files, the answer is no.
func beingWritten(file *os.File) bool {
	const setLease = 1024 // F_SETLEASE
	raw, err := file.SyscallConn()
	if err != nil {
		return false
	}
	busy := false
	raw.Control(func(fd uintptr) {
		_, _, errno := syscall.Syscall(syscall.SYS_FCNTL, fd, setLease, syscall.F_RDLCK)
		busy = errors.Is(errno, syscall.EAGAIN)
		if errno == 0 {
			syscall.Syscall(syscall.SYS_FCNTL, fd, setLease, syscall.F_UNLCK)
		}
	})
	runtime.KeepAlive(file)
	return busy
}
