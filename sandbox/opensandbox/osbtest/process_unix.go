//go:build unix

package osbtest

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"syscall"
	"time"
)

// Signals for a process group.
const (
	probe     = syscall.Signal(0)
	terminate = syscall.SIGTERM
	kill      = syscall.SIGKILL
)

func ownGroup(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} }

// group signals everything in a command's process group and reports whether there
// was anything.
func (c *command) group(signal syscall.Signal) bool {
	return syscall.Kill(-c.cmd.Process.Pid, signal) == nil
}

func signalOf(state *os.ProcessState) string {
	status, ok := state.Sys().(syscall.WaitStatus)
	if !ok || !status.Signaled() {
		return ""
	}
	switch status.Signal() {
	case syscall.SIGKILL:
		return "SIGKILL"
	case syscall.SIGTERM:
		return "SIGTERM"
	default:
		return "signal " + strconv.Itoa(int(status.Signal()))
	}
}

// Marked lists the processes of a sandbox by their environment, those that left
// their process group included. It knows them on Linux only.
func (s *Server) Marked(sandbox string) []int { return marked(filepath.Join(s.scratch, sandbox)) }

func marked(dir string) []int {
	proc, err := os.Open("/proc")
	if err != nil {
		return nil
	}
	defer proc.Close()
	names, _ := proc.Readdirnames(-1)
	entry := []byte("\x00" + marker + "=" + dir)
	var pids []int
	var environ bytes.Buffer // one for all: this is done after every sandbox
	for _, name := range names {
		pid, err := strconv.Atoi(name)
		if err != nil {
			continue
		}
		file, err := os.Open("/proc/" + name + "/environ")
		if err != nil {
			continue
		}
		environ.Reset()
		_, err = environ.ReadFrom(file)
		file.Close()
		if err == nil && bytes.Contains(environ.Bytes(), entry) {
			pids = append(pids, pid)
		}
	}
	return pids
}

// endMarked kills every process that was marked with a folder, until there is none:
// one may start another while it is looked for.
func (s *Server) endMarked(dir string) {
	for {
		pids := marked(dir)
		if len(pids) == 0 {
			return
		}
		for _, pid := range pids {
			_ = syscall.Kill(pid, syscall.SIGKILL)
		}
		time.Sleep(time.Millisecond) // they need a moment
	}
}
