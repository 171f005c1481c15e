package observe

import (
	"fmt"
	"os"
	"runtime"
	"strings"
	"sync/atomic"
	"time"

	"github.com/confine-dev/confine/sandbox"
	"github.com/confine-dev/confine/sandbox/local"
	"golang.org/x/sys/unix"
)

// watch observes one run. Its loop is the only goroutine that touches what is
// below the line, until it has ended.
type watch struct {
	file    *os.File      // the listener, open until End
	thread  atomic.Int32  // that the loop runs on; 0 before
	ending  atomic.Bool   // tells the loop to end
	done    chan struct{} // closed by the loop
	run     local.Watched
	decoder map[int32]func(args) request

	// ------
	listener listener
	boundary boundary
	quick    *quick
	network  network
	judge    func(*notification) []sandbox.Denial // decides what to note; replaced by tests
	root     int                                  // the run's root folder, -1 before the first call
	first    [maxPath + 1]byte
	second   [maxPath + 1]byte
	attr     [maxPath + 1]byte
	record   *record
	made     []string       // paths of notable names
	broken   string         // why nothing is judged any more
	unseen   map[string]int // calls that could not be judged, by reason
}

// Reasons for calls that could not be judged.
const (
	unreadable = "a process that is not dumpable, or that the host lets nobody trace, cannot be looked into"
	starved    = "confine could not open what a call was about"
	tooLong    = "a name had more links than are followed"
	crowded    = "more was made than is listed of what programs outside run or believe"
)

// prepare makes a watch whose loop does not run yet.
func (o *observer) prepare(file *os.File, run local.Watched) *watch {
	w := &watch{
		file: file, done: make(chan struct{}), run: run, decoder: o.decoders[run.Namespaces],
		listener: listener(file.Fd()), boundary: newBoundary(run, o.options.Landlock),
		network: newNetwork(o.options, run), root: -1, record: newRecord(), unseen: map[string]int{},
	}
	w.quick, w.judge = newQuick(w.boundary), w.denials
	if w.run.Progress == nil {
		w.run.Progress = &local.Progress{}
	}
	return w
}

// decoders are the traps of a run by the numbers of their calls.
func decoders(namespaces bool) map[int32]func(args) request {
	all := map[int32]func(args) request{}
	for _, t := range traps(namespaces) {
		all[int32(t.call)] = t.decode
	}
	return all
}

// loop answers stopped tasks until none of the run is left or End is called. It
// stays on one thread, so that End can wake it.
func (w *watch) loop() {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	defer close(w.done)
	w.thread.Store(int32(unix.Gettid()))
	w.listener.wakeDirectly()
	var n notification
	for w.next() {
		switch errno := w.listener.receive(&n); errno {
		case 0:
			atomic.AddUint64(&w.run.Progress.Received, 1)
			w.handle(&n)
		case unix.EINTR, unix.ENOENT: // the task got a signal, or somebody else took the call
		default:
			w.unseen[fmt.Sprintf("receiving from the kernel: %v", errno)]++
			return
		}
	}
}

// next waits until a task has stopped. It is false at the end. Receiving alone
// would wait as well, but cannot be interrupted, and before Linux 6.11 does not
// notice that no task is left.
func (w *watch) next() bool {
	for !w.ending.Load() {
		switch ready, deserted := w.listener.wait(); {
		case ready:
			return true
		case deserted:
			return false
		}
	}
	return false
}

// handle looks at a stopped task, lets it go on, and notes what it is refused.
func (w *watch) handle(n *notification) {
	if w.broken != "" {
		w.listener.goOn(n.id)
		return
	}
	defer w.survive(n.id)
	denials := w.judge(n)
	if w.listener.goOn(n.id) != 0 {
		return // it was killed before it began
	}
	for _, d := range denials {
		w.record.add(d)
	}
}

// survive keeps a mistake in judging from stopping the command.
func (w *watch) survive(id uint64) {
	if cause := recover(); cause != nil {
		w.broken = fmt.Sprintf("the observer failed (%v)", cause)
		w.listener.goOn(id)
	}
}

// denials decides which operations a stopped task will be refused by the sandbox
// alone. Nothing of the task's memory is read twice.
func (w *watch) denials(n *notification) []sandbox.Denial {
	decode := w.decoder[n.nr]
	if decode == nil {
		return nil
	}
	r := decode(n.args)
	if r.kind == nothing || !w.enter(n) {
		return nil
	}
	if r.kind == connecting {
		return w.connection(n, r)
	}
	var first text
	var ok bool
	if r.kind == binding {
		r, first, ok = w.bound(n, r)
	} else {
		first, ok = w.read(n, r.first.addr, w.first[:])
	}
	var second text
	if ok && (r.kind == renaming || r.kind == linking) {
		second, ok = w.read(n, r.second.addr, w.second[:])
	}
	var attr text
	if ok && r.kind == attributing {
		attr, ok = w.read(n, r.attr, w.attr[:])
	}
	if ok {
		w.noteMoved(int(n.tid), r, first, second)
		if kept := w.noteMade(int(n.tid), r, first, second); kept != nil && w.listener.waits(n.id) {
			return w.describe(int(n.tid), kept)
		}
	}
	if !ok || w.quick.harmless(int(n.tid), w.root, r, first, second) || !w.listener.waits(n.id) {
		return nil
	}
	found := w.files(int(n.tid), r, string(first), string(second), string(attr))
	return w.describe(int(n.tid), found)
}

// read copies a text of a stopped task. No address at all is an empty text: some
// calls take that for their descriptor.
func (w *watch) read(n *notification, addr uint64, into []byte) (text, bool) {
	if addr == 0 {
		into[0] = 0
		return into[:0], true
	}
	got, errno := readText(int(n.tid), addr, into[:maxPath])
	w.closed(errno)
	return got, errno == 0
}

// bound reads the name that a unix socket is to get: it becomes a file.
func (w *watch) bound(n *notification, r request) (request, text, bool) {
	a, ok, errno := readAddress(int(n.tid), r)
	w.closed(errno)
	if !ok || a.unix == "" {
		return r, nil, false
	}
	if a.unix[0] == '@' {
		w.network.bound(int(n.tid), a.unix)
		return r, nil, false
	}
	length := copy(w.first[:], a.unix+"\x00") - 1
	return create(plain(0), unix.S_IFSOCK), w.first[:length], true
}

// closed counts a call of a task that cannot be looked into.
func (w *watch) closed(errno unix.Errno) {
	if errno == unix.EPERM || errno == unix.EACCES {
		w.unseen[unreadable]++
	}
	w.missed(errno)
}

// missed counts a call that cannot be judged because of an error. What the task is
// refused itself is none.
func (w *watch) missed(errno unix.Errno) {
	switch errno {
	case unix.EMFILE, unix.ENFILE, unix.ENOMEM:
		w.unseen[starved]++
	case errTooMuch:
		w.unseen[tooLong]++
	}
}

// enter opens the run's root folder at the first call. All tasks of a run have the
// same, because none may change it.
func (w *watch) enter(n *notification) bool {
	if w.root >= 0 {
		return true
	}
	fd, errno := openTask(int(n.tid), "root")
	w.closed(errno)
	if errno != 0 {
		return false
	}
	if !w.listener.waits(n.id) {
		unix.Close(fd) // of whoever has the number now
		return false
	}
	w.root = fd
	return true
}

// files judges a request that is about files.
func (w *watch) files(tid int, r request, first, second, attr string) (found []sandbox.Denial) {
	from, lost, errno := find(tid, w.root, r.looked(first), first)
	w.missed(errno)
	if lost != "" && w.run.Namespaces {
		return hidden(r, lost)
	}
	if errno != 0 {
		return nil
	}
	defer from.close()
	var to *place
	if r.kind == renaming || r.kind == linking {
		to, _, errno = find(tid, w.root, r.second, second)
		w.missed(errno)
		if errno != 0 {
			return nil
		}
		defer to.close()
	}
	refused := refuse(w.boundary, r, from, to)
	if len(refused) == 0 || !w.permitted(r, from, to, attr) {
		return nil
	}
	for _, f := range refused {
		if path, ok := f.at.path(); ok {
			found = append(found, sandbox.Denial{Op: f.op, Path: path, Errno: unix.ErrnoName(f.errno), Idle: f.errno == unix.EBUSY && idle(r, from, to)})
		}
	}
	return found
}

// permitted asks whether the host alone would let the request pass.
func (w *watch) permitted(r request, from, to *place, attr string) bool {
	if w.run.Namespaces {
		host, errno := onHost(from)
		w.missed(errno)
		if errno != 0 {
			return false
		}
		defer host.close()
		from = host
		if to != nil {
			host, errno := onHost(to)
			w.missed(errno)
			if errno != 0 {
				return false
			}
			defer host.close()
			to = host
		}
	}
	if r.kind == attributing {
		return !fails(r, from, to) && attributePermitted(attr, from)
	}
	return permitted(r, from, to)
}

// connection judges a request that is about an address.
func (w *watch) connection(n *notification, r request) []sandbox.Denial {
	a, ok, errno := readAddress(int(n.tid), r)
	w.closed(errno)
	if !ok || !w.listener.waits(n.id) || w.run.Policy.Network && a.inet.IsValid() {
		return nil
	}
	return w.describe(int(n.tid), w.network.refused(int(n.tid), r, a, w.root))
}

// describe adds who was refused.
func (w *watch) describe(tid int, found []sandbox.Denial) []sandbox.Denial {
	if len(found) == 0 {
		return nil
	}
	program, ids := programOf(tid), ids{}
	if known, errno := idsOf(tid); errno == 0 {
		ids = known
	}
	for i := range found {
		found[i].Exe, found[i].PID = program, ids.process
	}
	return found
}

// End implements local.Watch.
func (w *watch) End() local.Observed {
	if !w.halt() {
		// The listener stays open: closing it would make calls fail.
		return local.Observed{Observation: sandbox.Observation{State: sandbox.ObservedPartly, Reason: "the observer did not end"}}
	}
	var result local.Observed
	result.Denials, result.Omitted = w.record.answer()
	result.Made, result.State = w.made, sandbox.ObservedFully
	if reasons := w.reasons(result.Omitted); len(reasons) > 0 {
		result.State, result.Reason = sandbox.ObservedPartly, strings.Join(reasons, "; ")
	}
	if w.root >= 0 {
		unix.Close(w.root)
	}
	w.file.Close()
	return result
}

// halt ends the loop and reports whether it did. It has ended by itself if no task
// is left. Otherwise a signal wakes it, one that the runtime uses and ignores.
func (w *watch) halt() bool {
	w.ending.Store(true)
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	late := time.After(10 * time.Second)
	for {
		select {
		case <-w.done:
			return true
		case <-late:
			return false
		case <-tick.C:
			if thread := int(w.thread.Load()); thread != 0 {
				unix.Tgkill(os.Getpid(), thread, unix.SIGURG)
			}
		}
	}
}

// reasons says why something may be missing.
func (w *watch) reasons(omitted int) (list []string) {
	if w.broken != "" {
		list = append(list, w.broken)
	}
	if omitted > 0 {
		list = append(list, fmt.Sprintf("more was refused than is kept: %d operations are left out", omitted))
	}
	if stolen := atomic.LoadUint64(&w.run.Progress.Stolen); stolen > 0 {
		list = append(list, fmt.Sprintf("the observer was too slow, and %d calls went on unseen", stolen))
	}
	for _, reason := range []string{unreadable, starved, tooLong, crowded} {
		if n := w.unseen[reason]; n > 0 {
			list = append(list, fmt.Sprintf("%s (%d calls)", reason, n))
			delete(w.unseen, reason)
		}
	}
	for reason := range w.unseen {
		list = append(list, reason)
	}
	if !w.run.Namespaces && !w.run.Policy.Network {
		list = append(list, "without namespaces sockets of the internet are refused when they are made, which is not observed")
	}
	return list
}
