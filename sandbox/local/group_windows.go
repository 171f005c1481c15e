package local

import (
	"fmt"
	"os"
	"syscall"
)

func ownGroup() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{CreationFlags: syscall.CREATE_NEW_PROCESS_GROUP}
}

// signalGroup can only end the process itself on this system.
func signalGroup(p *os.Process, _ syscall.Signal) error { return p.Kill() }

func signalName(s syscall.Signal) string { return fmt.Sprintf("SIG%d", int(s)) }

func resume(leader) {}
