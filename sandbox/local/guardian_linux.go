package local

import (
	"encoding/binary"
	"log/slog"
	"os"
	"os/signal"
	"path/filepath"
	"sync"
	"syscall"
	"time"
	"unsafe"

	"github.com/confine-dev/confine/sandbox/harden"
	"golang.org/x/sys/unix"
)

// guardian is the server's view of the process that cleans up after it.
type guardian struct {
	home  *home
	log   *slog.Logger
	table *progressTable

	mu     sync.Mutex
	socket *os.File         // guarded by mu: closing it wakes the guardian
	held   map[int]*os.File // guarded by mu: copies of listeners, by slot, of the runs that are watched
	told   map[int]bool     // guarded by mu: which of them the guardian should know
	pid    int              // guarded by mu
	gone   chan struct{}    // guarded by mu: closed when the present guardian was reaped
	closed bool             // guarded by mu
	deaths int              // guarded by mu: how often it had to be started again
}

// maxGuardians bounds how often a dying guardian is replaced.
const maxGuardians = 100

// start starts the guardian unless one lives.
func (g *guardian) start() error {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.pid != 0 || g.closed {
		return nil
	}
	ours, theirs, err := socketPair(unix.SOCK_SEQPACKET)
	if err != nil {
		return err
	}
	pid, err := startSelf(&syscall.SysProcAttr{Setsid: true}, []string{"__guardian", g.home.dir, g.home.id}, theirs, g.home.lock, g.table.file)
	theirs.Close()
	if err != nil {
		ours.Close()
		return err
	}
	g.pid, g.socket, g.gone = pid, ours, make(chan struct{})
	for slot := range g.told {
		g.tell(slot)
	}
	go g.watch(pid, g.gone)
	return nil
}

// hold keeps a copy of a listener until it is released.
func (g *guardian) hold(slot int, listener *os.File) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.held[slot] = listener
}

// stand lets the guardian stand in for the observer of a run that still has the
// slot.
func (g *guardian) stand(slot int, listener *os.File) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.held[slot] == listener {
		g.told[slot] = true
		g.tell(slot)
	}
}

// tell sends the guardian a listener. g.mu is held. That the guardian is gone is
// no failure: the next one is told.
func (g *guardian) tell(slot int) {
	if g.pid == 0 {
		return
	}
	err := unix.Sendmsg(int(g.socket.Fd()), noticeBytes(slot), unix.UnixRights(int(g.held[slot].Fd())), nil, unix.MSG_NOSIGNAL|unix.MSG_DONTWAIT)
	if err != nil {
		g.log.Warn("the guardian cannot be told of a run", "error", err)
	}
}

// release says that a run is over.
func (g *guardian) release(slot int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if listener := g.held[slot]; listener != nil {
		listener.Close()
	}
	delete(g.held, slot)
	delete(g.told, slot)
	g.table.put(slot)
}

// watch reaps a guardian and replaces one that died too early.
func (g *guardian) watch(pid int, gone chan struct{}) {
	err := waitChild(pid)
	g.mu.Lock()
	g.pid = 0
	g.socket.Close()
	g.deaths++
	again := !g.closed && g.deaths < maxGuardians
	close(gone)
	g.mu.Unlock()
	if again {
		g.log.Warn("the guardian ended and is started again", "error", err)
		if err := g.start(); err != nil {
			g.log.Error("starting the guardian", "error", err)
		}
	}
}

// close lets the guardian, if there is one, clean up and waits for it.
func (g *guardian) close() {
	g.mu.Lock()
	g.closed = true
	gone := g.gone
	alive := g.pid != 0
	if alive {
		g.socket.Close()
	}
	g.mu.Unlock()
	if alive {
		<-gone
	}
}

// guardianTime bounds how long a guardian hunts: long, because nobody waits for
// it and a machine may be busy.
const guardianTime = 10 * time.Second

// guardianMain waits until its server ended, then ends what is left of the
// server's runs and removes its folder. args are the folder and the server's
// id; descriptor 3 is a socket whose other end only the server holds, 4 the
// locked lock file, 5 the table of progress.
func guardianMain(args []string) int {
	if len(args) != 2 {
		return 2
	}
	// Nothing but the end of the server ends the guardian.
	signal.Ignore(unix.SIGHUP, unix.SIGINT, unix.SIGTERM, unix.SIGQUIT, unix.SIGPIPE, unix.SIGUSR1, unix.SIGUSR2)
	harden.Apply(harden.Options{})
	table, err := mapProgress(5, progressSlots*int(unsafe.Sizeof(Progress{})))
	if err != nil {
		return 2
	}
	for _, run := range standBy(os.NewFile(3, "server"), table) {
		go run.answerAll() // until it is ended below
	}
	clean := endRuns(args[1], guardianTime)
	sweepCovers(filepath.Dir(filepath.Dir(args[0])))
	if err := removeTree(args[0]); err != nil || !clean {
		return 1 // the next server sweeps
	}
	return 0
}

// standBy stands in for the server until it has ended. Result: the runs that it
// left.
func standBy(server *os.File, table []Progress) map[int]*standIn {
	s := &standIns{progress: table, runs: map[int]*standIn{}}
	for {
		wait := -1
		if len(s.runs) > 0 {
			wait = int(stillTime / time.Millisecond)
		}
		poll := []unix.PollFd{{Fd: int32(server.Fd()), Events: unix.POLLIN}}
		n, err := unix.Poll(poll, wait)
		if err == unix.EINTR {
			continue
		}
		if n == 0 {
			s.look()
			continue
		}
		text, files, err := receiveFiles(server, 4, 1)
		if err == errNoDescriptors && len(text) == 4 {
			continue // it had none left to take one
		}
		if err != nil {
			return s.runs
		}
		s.add(notice{int(binary.NativeEndian.Uint32([]byte(text))), files[0]})
	}
}
