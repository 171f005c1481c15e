//go:build unix && !linux

package local

import (
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

func ownGroup() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setsid: true} }

func signalGroup(p *os.Process, sig syscall.Signal) error { return syscall.Kill(-p.Pid, sig) }

func signalName(s syscall.Signal) string { return unix.SignalName(s) }

func resume(l leader) { l.signal(syscall.SIGCONT) }
