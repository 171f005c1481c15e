package local

import (
	"errors"
	"fmt"
	"maps"
	"net"
	"os"
	"path/filepath"
	"syscall"

	"github.com/confine-dev/confine/sandbox"
	"golang.org/x/sys/unix"
)

// look corrects what the child says by what is seen on the host.
func (s *probeStage) look(attempts []attempt) ([]attempt, error) {
	now, err := readStates(s.orders.Outside)
	if err != nil {
		return nil, fmt.Errorf("looking at what the probe did: %w", err)
	}
	for i := range attempts {
		a := &attempts[i]
		t := trialByTitle()[a.Title]
		seen := t.seen != nil && t.seen(s) || t.hasVictim() && changed(s.files, now, t.name)
		switch {
		case seen:
			a.Outcome, a.Detail = sandbox.Possible, "it was seen on the host"
		case t.blind && a.Outcome == sandbox.Possible:
			a.Outcome, a.Detail = sandbox.Refused, "nothing of it was seen on the host"
		}
		for _, name := range []string{t.name, t.name + newSuffix} {
			delete(s.files, name)
			delete(now, name)
		}
	}
	for name := range merged(s.files, now) {
		if changed(s.files, now, name) {
			attempts = append(attempts, attempt{string(sandbox.FileWrite) + ": change something else outside", sandbox.Possible, name})
		}
	}
	return attempts, nil
}

// fileState is what can be told of a file.
type fileState struct {
	ino, links, size uint64
	changed          syscall.Timespec
	text             string
}

// readStates describes all files of a folder.
func readStates(dir string) (map[string]fileState, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	states := map[string]fileState{}
	for _, entry := range entries {
		var stat syscall.Stat_t
		path := filepath.Join(dir, entry.Name())
		if err := syscall.Lstat(path, &stat); err != nil {
			return nil, err
		}
		state := fileState{ino: stat.Ino}
		if entry.Type().IsRegular() { // a FIFO changes when somebody writes to it
			state.links, state.size, state.changed = uint64(stat.Nlink), uint64(stat.Size), stat.Ctim
			data, err := os.ReadFile(path)
			if err != nil {
				return nil, err
			}
			state.text = string(data)
		}
		states[entry.Name()] = state
	}
	return states, nil
}

func merged(a, b map[string]fileState) map[string]fileState {
	both := maps.Clone(a)
	maps.Copy(both, b)
	return both
}

func changed(before, now map[string]fileState, name string) bool {
	_, made := now[name+newSuffix]
	return made || before[name] != now[name]
}

// heard reports whether a datagram came.
func (s *probeStage) heard(c *net.UDPConn) bool {
	if c == nil {
		return false
	}
	raw, err := c.SyscallConn()
	if err != nil {
		return false
	}
	came := false
	raw.Control(func(fd uintptr) {
		_, _, err := unix.Recvfrom(int(fd), make([]byte, 16), unix.MSG_DONTWAIT)
		came = err == nil
	})
	return came
}

// locked reports whether somebody holds the lock.
func (s *probeStage) locked() bool {
	f, err := os.Open(s.orders.Lock)
	if err != nil {
		return false
	}
	defer f.Close()
	return errors.Is(flock(f, unix.LOCK_EX|unix.LOCK_NB), unix.EWOULDBLOCK)
}
