package local

import (
	"log/slog"
	"os"
	"os/signal"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// guardian is the server's view of the process that cleans up after it.
type guardian struct {
	home *home
	log  *slog.Logger

	mu     sync.Mutex
	pipe   *os.File      // guarded by mu: closing it wakes the guardian
	pid    int           // guarded by mu
	gone   chan struct{} // guarded by mu: closed when the present guardian was reaped
	closed bool          // guarded by mu
	deaths int           // guarded by mu: how often it had to be started again
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
	read, write, err := os.Pipe()
	if err != nil {
		return err
	}
	pid, err := startSelf(&syscall.SysProcAttr{Setsid: true}, []string{"__guardian", g.home.dir, g.home.id}, read, g.home.lock)
	read.Close()
	if err != nil {
		write.Close()
		return err
	}
	g.pid, g.pipe, g.gone = pid, write, make(chan struct{})
	go g.watch(pid, g.gone)
	return nil
}

// watch reaps a guardian and replaces one that died too early.
func (g *guardian) watch(pid int, gone chan struct{}) {
	err := waitChild(pid)
	g.mu.Lock()
	g.pid = 0
	g.pipe.Close()
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
		g.pipe.Close()
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
// id; descriptor 3 is a pipe whose other end only the server holds, and 4 the
// locked lock file.
func guardianMain(args []string) int {
	if len(args) != 2 {
		return 2
	}
	// Nothing but the end of the server ends the guardian.
	signal.Ignore(unix.SIGHUP, unix.SIGINT, unix.SIGTERM, unix.SIGQUIT, unix.SIGPIPE, unix.SIGUSR1, unix.SIGUSR2)
	unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0)
	buffer := make([]byte, 64)
	for {
		n, err := unix.Read(3, buffer)
		if err == unix.EINTR {
			continue
		}
		if n <= 0 {
			break
		}
	}
	clean := endRuns(args[1], guardianTime)
	if err := removeTree(args[0]); err != nil || !clean {
		return 1 // the next server sweeps
	}
	return 0
}
