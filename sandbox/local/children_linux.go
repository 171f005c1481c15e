package local

import (
	"os"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// children are the processes that this package started and did not reap yet.
// They are the process's, not an engine's, because orphans of a killed init
// come to the whole process and must be told from them.
var children childTable

type childTable struct {
	// mu is held for reading from before a clone until its number is noted, and
	// for writing while orphans are looked for.
	mu   sync.RWMutex
	pids sync.Map // int → struct{}
}

func (t *childTable) note(pid int) { t.pids.Store(pid, struct{}{}) }

// reap waits for a child that has ended or is about to.
func (t *childTable) reap(pid int) (unix.WaitStatus, error) {
	var status unix.WaitStatus
	for {
		_, err := unix.Wait4(pid, &status, unix.WALL, nil)
		if err == unix.EINTR {
			continue
		}
		t.pids.Delete(pid)
		return status, err
	}
}

// strays lists the children of this process that the package did not start,
// and what lives below them.
func (t *childTable) strays() (strays, below []process) {
	t.mu.Lock()
	defer t.mu.Unlock()
	all := processes()
	var pids []int
	for _, p := range all {
		if _, ours := t.pids.Load(p.pid); p.parent == os.Getpid() && !ours {
			strays, pids = append(strays, p), append(pids, p.pid)
		}
	}
	return strays, descendants(all, pids...)
}

// endStrays ends orphans of a run whose init was killed. They can be told from
// other children only where the process starts no others.
func (e *Engine) endStrays() bool {
	if !e.options.OwnsChildren {
		return false
	}
	empty := 0
	for end := time.Now().Add(treeTime); ; {
		strays, below := children.strays()
		if len(strays) == 0 {
			// The process table is not read at one moment: a process whose parent
			// ends meanwhile is seen below a parent that is not seen any more.
			if empty++; empty == 2 {
				return true
			}
			continue
		}
		empty = 0
		for _, p := range append(below, strays...) {
			p.kill()
		}
		for _, p := range strays {
			unix.Wait4(p.pid, nil, unix.WALL|unix.WNOHANG, nil) // if not now, then next time
		}
		if time.Now().After(end) {
			return false
		}
		time.Sleep(time.Millisecond) // polling: what was below comes to us only now
	}
}
