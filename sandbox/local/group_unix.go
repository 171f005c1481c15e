//go:build unix && !linux

package local

import (
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

func ownGroup() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setsid: true} }

// group is a command's process group.
type group struct{ leader int }

func newGroup(p *os.Process) (*group, error) { return &group{p.Pid}, nil }

func (g *group) signal(sig syscall.Signal) error { return syscall.Kill(-g.leader, sig) }

// close ends what is left.
func (g *group) close() { syscall.Kill(-g.leader, syscall.SIGKILL) }

func signalName(s syscall.Signal) string { return unix.SignalName(s) }

func resume(l leader) { l.signal(syscall.SIGCONT) }
