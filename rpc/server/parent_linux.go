package server

import (
	"math"
	"os"
	"syscall"
	"unsafe"
)

// The system call number is the same on every architecture (pidfd_open(2)).
const sysPidfdOpen = 434

// watchEditor ends the connection when the process of the editor ends. A pid
// that does not exist here belongs to another PID namespace and is ignored:
// the end of the stream tells us instead.
func (c *client) watchEditor(pid int64) {
	if pid <= 0 || pid > math.MaxInt32 || pid == int64(os.Getpid()) {
		return
	}
	fd, _, errno := syscall.RawSyscall(sysPidfdOpen, uintptr(pid), syscall.O_NONBLOCK, 0)
	if errno != 0 {
		c.o.Log.Info("not watching the editor's process", "pid", pid, "reason", errno)
		return
	}
	syscall.CloseOnExec(int(fd)) // the kernel has set it; this says so
	file := os.NewFile(fd, "pidfd")
	raw, err := file.SyscallConn()
	if err != nil {
		c.o.Log.Warn("not watching the editor's process", "pid", pid, "reason", err)
		file.Close()
		return
	}
	c.working.Go(func() {
		ended := false
		// Closing the file below ends the wait with an error.
		raw.Read(func(fd uintptr) bool { ended = readable(fd); return ended })
		if ended {
			c.o.Log.Info("the editor's process has ended", "pid", pid)
			c.cancel()
			c.conn.Close()
		}
	})
	c.working.Go(func() {
		<-c.ctx.Done()
		file.Close()
	})
}

// readable reports whether a pidfd says that its process has ended.
func readable(fd uintptr) bool {
	const pollIn = 1
	type pollfd struct {
		fd      int32
		events  int16
		revents int16
	}
	p := pollfd{fd: int32(fd), events: pollIn}
	var now syscall.Timespec // zero: do not wait
	n, _, errno := syscall.Syscall6(syscall.SYS_PPOLL, uintptr(unsafe.Pointer(&p)), 1, uintptr(unsafe.Pointer(&now)), 0, 0, 0)
	return errno == 0 && n == 1 && p.revents&pollIn != 0
}
