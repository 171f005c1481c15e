package observe

import (
	"unsafe"

	"golang.org/x/sys/unix"
)

// notification is struct seccomp_notif: a task that waits in a call.
type notification struct {
	id    uint64
	tid   uint32 // as we number tasks
	flags uint32
	nr    int32
	arch  uint32
	ip    uint64
	args  args
}

// response is struct seccomp_notif_resp.
type response struct {
	id    uint64
	value int64
	errno int32
	flags uint32
}

// listener is the descriptor on which stopped tasks are reported.
type listener int

// wakeDirectly lets a stopped task and us hand the processor to each other. A
// kernel before 6.6 does not know it and is slower.
func (l listener) wakeDirectly() {
	unix.Syscall(unix.SYS_IOCTL, uintptr(l), unix.SECCOMP_IOCTL_NOTIF_SET_FLAGS, unix.SECCOMP_USER_NOTIF_FD_SYNC_WAKE_UP)
}

// receive takes the next stopped task, for which it may wait. It fails with ENOENT
// if the task is gone already or, since Linux 6.11, no task has the filter any more.
func (l listener) receive(n *notification) unix.Errno {
	*n = notification{}
	_, _, errno := unix.Syscall(unix.SYS_IOCTL, uintptr(l), unix.SECCOMP_IOCTL_NOTIF_RECV, uintptr(unsafe.Pointer(n)))
	return errno
}

// wait waits until a task has stopped or no task has the filter any more. Signals
// end it early.
func (l listener) wait() (ready, deserted bool) {
	fds := [1]unix.PollFd{{Fd: int32(l), Events: unix.POLLIN}}
	if _, err := unix.Poll(fds[:], -1); err != nil {
		return false, err != unix.EINTR
	}
	ready = fds[0].Revents&unix.POLLIN != 0
	return ready, !ready
}

// goOn lets a stopped task continue its call. It fails with ENOENT if the task is
// gone or somebody else has answered.
func (l listener) goOn(id uint64) unix.Errno {
	r := response{id: id, flags: unix.SECCOMP_USER_NOTIF_FLAG_CONTINUE}
	_, _, errno := unix.RawSyscall(unix.SYS_IOCTL, uintptr(l), unix.SECCOMP_IOCTL_NOTIF_SEND, uintptr(unsafe.Pointer(&r)))
	return errno
}

// waits reports whether a task still waits. What was read of a task by its number
// is that task's only if it does.
func (l listener) waits(id uint64) bool {
	_, _, errno := unix.RawSyscall(unix.SYS_IOCTL, uintptr(l), unix.SECCOMP_IOCTL_NOTIF_ID_VALID, uintptr(unsafe.Pointer(&id)))
	return errno == 0
}
