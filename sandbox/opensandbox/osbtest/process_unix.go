//go:build unix

package osbtest

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
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

// marked lists the processes that were marked with a folder or one below it.
func marked(dir string) []int {
	proc, err := os.Open("/proc")
	if err != nil {
		return nil
	}
	defer proc.Close()
	names, _ := proc.Readdirnames(-1)
	var pids []int
	var environ bytes.Buffer // one for all: this is done after every sandbox
	for _, name := range names {
		pid, err := strconv.Atoi(name)
		if err != nil {
			continue
		}
		if readEnvironment(&environ, "/proc/"+name) && marks(environ.Bytes(), dir) {
			pids = append(pids, pid)
		}
	}
	return pids
}

// marks reports whether an environment says that its process belongs to a folder.
func marks(environ []byte, dir string) bool {
	for _, equals := range []string{"=", "\x00"} { // NUL while bash takes its entries apart
		_, rest, found := bytes.Cut(environ, []byte("\x00"+marker+equals+dir))
		if found && len(rest) > 0 && (rest[0] == 0 || rest[0] == '/') {
			return true
		}
	}
	return false
}

// readEnvironment reads that of a process into buffer, a NUL byte before each entry
// and at the end, and reports whether there is one. Within execve a process has
// neither environment nor arguments, or a part, and is still what it was.
func readEnvironment(buffer *bytes.Buffer, dir string) bool {
	for without := 0; without < 20; {
		if !readInto(buffer, dir+"/environ") {
			return false
		}
		if buffer.Len() > 1 && buffer.Bytes()[buffer.Len()-1] == 0 {
			return true
		}
		// A zombie and a thread of the kernel have no program.
		if _, err := os.Readlink(dir + "/exe"); err != nil || !readInto(buffer, dir+"/cmdline") {
			return false
		}
		if buffer.Len() > 1 {
			without++ // it may have been started without an environment
		}
		runtime.Gosched()
	}
	return false
}

// readInto reads a file into buffer, after a NUL byte.
func readInto(buffer *bytes.Buffer, path string) bool {
	file, err := os.Open(path)
	if err != nil {
		return false
	}
	defer file.Close()
	buffer.Reset()
	buffer.WriteByte(0)
	_, err = buffer.ReadFrom(file)
	return err == nil
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
