package local

import (
	"encoding/binary"
	"os"
	"sync/atomic"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// The guardian stands in for the observers of its server: a trapped call that
// nobody answers waits for ever, and one whose listener is gone fails. It holds a
// copy of each listener and lets calls pass, unseen, when the server has ended or
// stands still.

// standIn is the guardian's side of one run.
type standIn struct {
	listener *os.File
	progress *Progress
	waiting  bool   // a call waited when this was last looked at
	received uint64 // and so many had been taken by then
	busy     atomic.Bool
}

// stillTime is how long a call must wait, with none being taken, before the
// guardian answers.
const stillTime = 250 * time.Millisecond

// notice is what a server tells its guardian: a slot, with a listener.
type notice struct {
	slot     int
	listener *os.File
}

// bytes is a notice as it is sent.
func noticeBytes(slot int) []byte { return binary.NativeEndian.AppendUint32(nil, uint32(slot)) }

// standIns are all runs that a guardian was told of.
type standIns struct {
	progress []Progress
	runs     map[int]*standIn // by slot
}

// add takes a notice.
func (s *standIns) add(n notice) {
	if n.slot < 0 || n.slot >= len(s.progress) {
		n.listener.Close()
		return
	}
	if old := s.runs[n.slot]; old != nil {
		old.listener.Close() // that run is over
	}
	s.runs[n.slot] = &standIn{listener: n.listener, progress: &s.progress[n.slot]}
}

// look finds the runs that nobody answers, and those that are over.
func (s *standIns) look() {
	for slot, run := range s.runs {
		waiting, over := run.state()
		if over {
			if !run.busy.Load() {
				run.listener.Close()
				delete(s.runs, slot)
			}
			continue
		}
		received := atomic.LoadUint64(&run.progress.Received)
		if waiting && run.waiting && received == run.received && run.busy.CompareAndSwap(false, true) {
			go run.answer(received)
		}
		run.waiting, run.received = waiting, received
	}
}

// state asks the kernel whether a call waits, and whether no process is left that
// could make one.
func (r *standIn) state() (waiting, over bool) {
	poll := []unix.PollFd{{Fd: int32(r.listener.Fd()), Events: unix.POLLIN}}
	if _, err := unix.Poll(poll, 0); err != nil {
		return false, false
	}
	return poll[0].Revents&unix.POLLIN != 0, poll[0].Revents&unix.POLLHUP != 0
}

// answer lets calls pass as long as the server takes none.
func (r *standIn) answer(received uint64) {
	defer r.busy.Store(false)
	for atomic.LoadUint64(&r.progress.Received) == received {
		if waiting, over := r.state(); over || !waiting {
			return
		}
		if r.pass() {
			atomic.AddUint64(&r.progress.Stolen, 1)
		}
	}
}

// answerAll lets every call pass until the last process of the run is gone.
func (r *standIn) answerAll() {
	for {
		poll := []unix.PollFd{{Fd: int32(r.listener.Fd()), Events: unix.POLLIN}}
		if _, err := unix.Poll(poll, -1); err != nil && err != unix.EINTR {
			return
		}
		if poll[0].Revents&unix.POLLIN != 0 {
			r.pass()
		} else if poll[0].Revents != 0 {
			return
		}
	}
}

// Layout of struct seccomp_notif and seccomp_notif_resp (seccomp_unotify(2)).
type (
	notification struct {
		id         uint64
		pid, flags uint32
		nr         int32
		arch       uint32
		ip         uint64
		args       [6]uint64
	}
	notificationAnswer struct {
		id    uint64
		value int64
		errno int32
		flags uint32
	}
)

// pass takes one call and lets it go on into the kernel. It reports whether there
// was one: it may be gone by then, with its process or to another answer.
func (r *standIn) pass() bool {
	var n notification
	if _, _, errno := syscall.Syscall(unix.SYS_IOCTL, r.listener.Fd(), unix.SECCOMP_IOCTL_NOTIF_RECV, uintptr(unsafe.Pointer(&n))); errno != 0 {
		return false
	}
	answer := notificationAnswer{id: n.id, flags: unix.SECCOMP_USER_NOTIF_FLAG_CONTINUE}
	_, _, errno := syscall.Syscall(unix.SYS_IOCTL, r.listener.Fd(), unix.SECCOMP_IOCTL_NOTIF_SEND, uintptr(unsafe.Pointer(&answer)))
	return errno == 0
}
