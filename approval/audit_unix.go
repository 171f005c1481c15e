//go:build linux || darwin

package approval

import (
	"errors"
	"io/fs"
	"os"
	"syscall"
)

// openFlags keep a link from being followed and a FIFO from blocking.
const openFlags = syscall.O_NOFOLLOW | syscall.O_NONBLOCK | syscall.O_CLOEXEC

const closeBeforeRename = false

var errLocked error = syscall.EWOULDBLOCK

func tryLock(f auditFile) error {
	for {
		if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != syscall.EINTR {
			return err
		}
	}
}

func unlock(f auditFile) { syscall.Flock(int(f.Fd()), syscall.LOCK_UN) }

// private reports what lets others at a file or folder.
func private(info fs.FileInfo) error {
	st, ok := info.Sys().(*syscall.Stat_t)
	switch {
	case !ok || int(st.Uid) != os.Geteuid():
		return errors.New("belongs to another user: choose a place of your own")
	case info.Mode().Perm()&0o077 != 0:
		return errors.New("is open to others: take their permissions away (chmod go-rwx)")
	case info.Mode().IsRegular() && st.Nlink != 1:
		return errors.New("has a second name: remove it")
	}
	return nil
}

// syncFolder makes a new name survive a crash.
func syncFolder(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	return f.Sync()
}
