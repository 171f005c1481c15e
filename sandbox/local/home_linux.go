package local

import (
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"
)

// home is what one server keeps on disk: a private folder below the state
// folder, locked while the server or its guardian lives.
type home struct {
	id   string
	dir  string
	lock *os.File
}

const (
	serversFolder = "servers"
	lockFile      = "lock"
	sessionsDir   = "sessions"
	spillDir      = "spill"
)

// newHome makes a server's folder and locks it.
func newHome(state string) (*home, error) {
	var random [8]byte
	rand.Read(random[:])
	h := &home{id: hex.EncodeToString(random[:])}
	h.dir = filepath.Join(state, serversFolder, h.id)
	for _, dir := range []string{h.dir, h.sessions(), h.spill()} {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return nil, fmt.Errorf("making confine's runtime folder: %w", err)
		}
	}
	lock, err := os.OpenFile(filepath.Join(h.dir, lockFile), os.O_CREATE|os.O_EXCL|os.O_RDWR, 0o600)
	if err != nil {
		return nil, fmt.Errorf("making confine's runtime folder: %w", err)
	}
	if err := unix.Flock(int(lock.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		lock.Close()
		return nil, fmt.Errorf("locking confine's runtime folder: %w", err)
	}
	h.lock = lock
	return h, nil
}

func (h *home) sessions() string { return filepath.Join(h.dir, sessionsDir) }
func (h *home) spill() string    { return filepath.Join(h.dir, spillDir) }

// remove deletes the folder and lets go of the lock.
func (h *home) remove() error {
	err := os.RemoveAll(h.dir)
	return errors.Join(err, h.lock.Close())
}

// sweep ends and removes what servers left whose guardian died as well: their
// folders are not locked any more.
func sweep(state string) {
	entries, err := os.ReadDir(filepath.Join(state, serversFolder))
	if err != nil {
		return // nothing was ever started here
	}
	for _, e := range entries {
		dir := filepath.Join(state, serversFolder, e.Name())
		lock, err := os.OpenFile(filepath.Join(dir, lockFile), os.O_RDWR|unix.O_NOFOLLOW, 0)
		if err != nil {
			// A folder without its lock is being made or being removed; one
			// that stays so for an hour is neither.
			if info, err := e.Info(); err == nil && time.Since(info.ModTime()) > time.Hour {
				os.RemoveAll(dir)
			}
			continue
		}
		if unix.Flock(int(lock.Fd()), unix.LOCK_EX|unix.LOCK_NB) == nil {
			endRuns(e.Name(), time.Second)
			os.RemoveAll(dir)
		}
		lock.Close()
	}
}
