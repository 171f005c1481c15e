//go:build unix

package local

import (
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

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
	sessionsDir   = "s" // short, because a socket below it has a name of 108 bytes at most
	spillDir      = "spill"
)

// newHome makes a server's folder and locks it.
func newHome(state string) (h *home, err error) {
	defer func() {
		if err != nil {
			err = fmt.Errorf("making confine's runtime folder: %w", err)
		}
	}()
	if err := os.MkdirAll(filepath.Join(state, serversFolder), 0o700); err != nil {
		return nil, err
	}
	unlock, err := lockServers(state)
	if err != nil {
		return nil, err
	}
	defer unlock()
	var random [8]byte
	rand.Read(random[:])
	h = &home{id: hex.EncodeToString(random[:])}
	h.dir = filepath.Join(state, serversFolder, h.id)
	for _, dir := range []string{h.dir, h.sessions(), h.spill()} {
		if err := os.Mkdir(dir, 0o700); err != nil {
			return nil, errors.Join(err, removeTree(h.dir))
		}
	}
	if h.lock, err = os.OpenFile(filepath.Join(h.dir, lockFile), os.O_CREATE|os.O_EXCL|os.O_RDWR, 0o600); err != nil {
		return nil, errors.Join(err, removeTree(h.dir))
	}
	if err := flock(h.lock, unix.LOCK_EX|unix.LOCK_NB); err != nil {
		return nil, errors.Join(err, h.remove())
	}
	return h, nil
}

// lockServers keeps other servers from making folders and from looking for
// dead ones: between its making and its locking a folder looks like a dead
// server's.
func lockServers(state string) (unlock func(), err error) {
	dir, err := os.Open(filepath.Join(state, serversFolder))
	if err != nil {
		return nil, err
	}
	if err := flock(dir, unix.LOCK_EX); err != nil {
		dir.Close()
		return nil, err
	}
	return func() { dir.Close() }, nil
}

func flock(f *os.File, how int) error {
	for {
		if err := unix.Flock(int(f.Fd()), how); err != unix.EINTR {
			return err
		}
	}
}

func (h *home) sessions() string { return filepath.Join(h.dir, sessionsDir) }
func (h *home) spill() string    { return filepath.Join(h.dir, spillDir) }

// remove deletes the folder and lets go of the lock.
func (h *home) remove() error {
	err := removeTree(h.dir)
	return errors.Join(err, h.lock.Close())
}

// removeTree removes a folder, whatever commands that could write there did to
// the modes of what is in it.
func removeTree(dir string) error {
	err := os.RemoveAll(dir)
	if !errors.Is(err, fs.ErrPermission) {
		return err
	}
	if err := os.Chmod(dir, 0o700); err != nil {
		return err
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return err
	}
	defer root.Close()
	// The function is called with a folder before it is read. What fails here
	// fails again, and is reported, below.
	_ = fs.WalkDir(root.FS(), ".", func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.IsDir() {
			_ = root.Chmod(path, 0o700)
		}
		return nil
	})
	return os.RemoveAll(dir)
}

// deadServers finds the folders that nobody holds and locks those that have a
// lock; one without was being removed by a server that was killed.
func deadServers(state string) map[string]*os.File {
	unlock, err := lockServers(state)
	if err != nil {
		return nil // nothing was ever started here
	}
	defer unlock()
	entries, err := os.ReadDir(filepath.Join(state, serversFolder))
	if err != nil {
		return nil
	}
	dead := map[string]*os.File{}
	for _, e := range entries {
		dir := filepath.Join(state, serversFolder, e.Name())
		lock, err := os.OpenFile(filepath.Join(dir, lockFile), os.O_RDWR|unix.O_NOFOLLOW, 0)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			dead[dir] = nil
		case err != nil:
		case flock(lock, unix.LOCK_EX|unix.LOCK_NB) == nil:
			dead[dir] = lock
		default:
			lock.Close()
		}
	}
	return dead
}
