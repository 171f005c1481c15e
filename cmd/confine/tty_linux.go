package main

import (
	"os"
	"syscall"
	"unsafe"
)

// controllingTerminal is opened rather than standard input, which may be
// somebody else's.
const controllingTerminal = "/dev/tty"

// isTerminal reports whether the file is a terminal. A character device need
// not be one: /dev/null is not.
func isTerminal(file *os.File) bool {
	var settings syscall.Termios
	return ioctl(file, syscall.TCGETS, uintptr(unsafe.Pointer(&settings))) == nil
}

// discardTyped throws away what was typed and not read yet (tcflush(3)).
func discardTyped(file *os.File) error {
	const tcflsh, tciflush = 0x540B, 0 // asm-generic/ioctls.h, for every architecture that Go has and we build for
	return ioctl(file, tcflsh, tciflush)
}

func ioctl(file *os.File, request, argument uintptr) error {
	conn, err := file.SyscallConn()
	if err != nil {
		return err
	}
	var errno syscall.Errno
	err = conn.Control(func(fd uintptr) {
		_, _, errno = syscall.Syscall(syscall.SYS_IOCTL, fd, request, argument)
	})
	if err == nil && errno != 0 {
		err = errno
	}
	return err
}
