package local

import (
	"fmt"
	"os"
	"sync/atomic"
	"time"
	"unsafe"

	"github.com/confine-dev/confine/sandbox"
	"github.com/confine-dev/confine/sandbox/protect"
	"golang.org/x/sys/unix"
)

// watchedRun is a run that an observer watches and, from a moment on, the
// guardian too.
type watchedRun struct {
	watch    Watch
	progress *Progress
	standby  *time.Timer
	guard    *guardian
	slot     int // in the table of progress; -1: none was free
}

// standbyTime is when the guardian is told of a run. Most runs are over by then;
// telling it would wake it for each. A run whose server dies earlier is ended
// with its trapped calls.
const standbyTime = 100 * time.Millisecond

// watch lets the observer answer a listener from now on.
func (e *Engine) watch(listener *os.File, policy sandbox.Policy, l *Launch) *watchedRun {
	w := &watchedRun{guard: e.guard, slot: e.guard.table.take(), progress: &Progress{}}
	if w.slot >= 0 {
		w.progress = e.guard.table.at(w.slot)
		if copied, err := unix.FcntlInt(listener.Fd(), unix.F_DUPFD_CLOEXEC, 0); err == nil {
			backup := os.NewFile(uintptr(copied), "listener")
			w.standby = time.AfterFunc(standbyTime, func() { e.guard.stand(w.slot, backup) })
			e.guard.hold(w.slot, backup)
		}
	}
	w.watch = e.options.Observer.Watch(listener, Watched{Policy: policy, Namespaces: l.isolated(), Writable: l.Writable, Notable: protect.Notable, Absent: l.absent(), Progress: w.progress})
	return w
}

// absent are the protected paths that are covered.
func (l *Launch) absent() []string {
	if l.guarded == nil {
		return nil
	}
	return l.guarded.absent
}

// end implements watched.
func (w *watchedRun) end() ([]sandbox.Denial, []string, sandbox.Observation) {
	seen := w.watch.End()
	stolen := atomic.LoadUint64(&w.progress.Stolen)
	if w.slot >= 0 {
		if w.standby != nil {
			w.standby.Stop()
		}
		w.guard.release(w.slot)
	}
	if stolen > 0 {
		seen.State, seen.Reason = sandbox.ObservedPartly, fmt.Sprintf("the server stood still for a while; its guardian let %d calls pass unseen", stolen)
		seen.Omitted += int(stolen)
	}
	return seen.Denials, seen.Made, seen.Observation
}

// endWatch ends the watching of a run that did not begin.
func (r *run) endWatch() {
	if r.observed != nil {
		r.observed.end()
	}
}

// progressTable is memory that a server shares with its guardian.
type progressTable struct {
	file  *os.File
	slots []Progress
	free  chan int // slots that no run has
}

// progressSlots bounds how many runs can be watched by the guardian at once.
const progressSlots = 1024

func newProgressTable() (*progressTable, error) {
	fd, err := unix.MemfdCreate("confine-progress", unix.MFD_CLOEXEC)
	if err != nil {
		return nil, fmt.Errorf("making memory for the guardian: %w", err)
	}
	t := &progressTable{file: os.NewFile(uintptr(fd), "confine-progress"), free: make(chan int, progressSlots)}
	const size = progressSlots * int(unsafe.Sizeof(Progress{}))
	if err := unix.Ftruncate(fd, int64(size)); err != nil {
		t.file.Close()
		return nil, fmt.Errorf("making memory for the guardian: %w", err)
	}
	if t.slots, err = mapProgress(fd, size); err != nil {
		t.file.Close()
		return nil, err
	}
	for i := range progressSlots {
		t.free <- i
	}
	return t, nil
}

// mapProgress maps a table; it stays mapped as long as the process lives, since
// an observer may still hold a place in it.
func mapProgress(fd, size int) ([]Progress, error) {
	data, err := unix.Mmap(fd, 0, size, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	if err != nil {
		return nil, fmt.Errorf("mapping memory for the guardian: %w", err)
	}
	return unsafe.Slice((*Progress)(unsafe.Pointer(&data[0])), progressSlots), nil
}

// take gives a slot with both numbers 0, or -1.
func (t *progressTable) take() int {
	select {
	case slot := <-t.free:
		atomic.StoreUint64(&t.slots[slot].Received, 0)
		atomic.StoreUint64(&t.slots[slot].Stolen, 0)
		return slot
	default:
		return -1
	}
}

func (t *progressTable) at(slot int) *Progress { return &t.slots[slot] }

func (t *progressTable) put(slot int) { t.free <- slot }

func bytesOf(filter []unix.SockFilter) []byte {
	return unsafe.Slice((*byte)(unsafe.Pointer(&filter[0])), len(filter)*int(unsafe.Sizeof(filter[0])))
}
