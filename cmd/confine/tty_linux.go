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
	_, err := terminalSettings(file)
	return err == nil
}

func terminalSettings(file *os.File) (settings syscall.Termios, err error) {
	err = ioctl(file, syscall.TCGETS, uintptr(unsafe.Pointer(&settings)))
	return settings, err
}

// setTerminal changes settings at once: what was typed stays, and output that is
// stopped is not waited for.
func setTerminal(file *os.File, settings syscall.Termios) error {
	return ioctl(file, syscall.TCSETS, uintptr(unsafe.Pointer(&settings)))
}

// raw is a terminal that passes every key on as it is typed and shows every byte as
// it is written (cfmakeraw(3)).
func raw(settings syscall.Termios) syscall.Termios {
	settings.Iflag &^= syscall.IGNBRK | syscall.BRKINT | syscall.PARMRK | syscall.ISTRIP |
		syscall.INLCR | syscall.IGNCR | syscall.ICRNL | syscall.IXON
	settings.Oflag &^= syscall.OPOST
	settings.Lflag &^= syscall.ECHO | syscall.ECHONL | syscall.ICANON | syscall.ISIG | syscall.IEXTEN
	settings.Cflag = settings.Cflag&^(syscall.CSIZE|syscall.PARENB) | syscall.CS8
	settings.Cc[syscall.VMIN], settings.Cc[syscall.VTIME] = 1, 0
	return settings
}

// terminalSize is 0 by 0 where it cannot be told.
func terminalSize(file *os.File) (columns, rows int) {
	var size struct{ rows, columns, width, height uint16 } // struct winsize
	if ioctl(file, syscall.TIOCGWINSZ, uintptr(unsafe.Pointer(&size))) != nil {
		return 0, 0
	}
	return int(size.columns), int(size.rows)
}

// inForeground reports whether this program is who has the terminal now, and not a
// shell or another of its jobs.
func inForeground(file *os.File) bool {
	var group int32
	err := ioctl(file, syscall.TIOCGPGRP, uintptr(unsafe.Pointer(&group)))
	return err == nil && int(group) == syscall.Getpgrp()
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
