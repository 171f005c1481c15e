//go:build unix

package opensandbox

import (
	"os"
	"syscall"
)

// lock fails if somebody else holds the file.
func lock(file *os.File) error {
	for {
		if err := syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != syscall.EINTR {
			return err
		}
	}
}
