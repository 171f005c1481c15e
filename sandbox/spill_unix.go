//go:build unix

package sandbox

import (
	"errors"
	"io/fs"
	"os"
	"syscall"
)

const noFollow = syscall.O_NOFOLLOW

// checkPrivate refuses a folder that another user could read or change.
func checkPrivate(dir fs.FileInfo) error {
	st, ok := dir.Sys().(*syscall.Stat_t)
	switch {
	case !ok || int(st.Uid) != os.Geteuid():
		return errors.New("it belongs to another user")
	case dir.Mode().Perm()&0o077 != 0:
		return errors.New("other users have access to it; its mode must be 0700")
	}
	return nil
}
