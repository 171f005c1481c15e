package sandbox

import (
	"fmt"
	"os"
	"syscall"
)

// oPath is O_PATH, which package syscall does not name (open(2)).
const oPath = 0x200000

// pinRoot opens the folder without following a link in the last place and
// notes what it is.
func pinRoot(real string) (*Root, error) { return pin(real, syscall.O_DIRECTORY) }

// pinGrant does the same for a file or folder. The error is errSpecial for
// anything else, which is not opened in earnest: O_PATH neither waits for the
// other end of a FIFO nor wakes a device.
func pinGrant(real string) (*Root, error) { return pin(real, 0) }

func pin(real string, flags int) (*Root, error) {
	fd, err := syscall.Open(real, oPath|flags|syscall.O_NOFOLLOW|syscall.O_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	root, err := describe(fd, real)
	if err != nil {
		syscall.Close(fd)
		return nil, err
	}
	root.pin = os.NewFile(uintptr(fd), real)
	return root, nil
}

func describe(fd int, real string) (*Root, error) {
	// Between resolving the path and opening it, a folder on the way may have
	// become a link to one that must never be a root.
	opened, err := os.Readlink(fmt.Sprintf("/proc/self/fd/%d", fd))
	if err == nil && opened != real {
		err = fmt.Errorf("it changed while it was opened: %q became %q", real, opened)
	}
	if err != nil {
		return nil, err
	}
	var st syscall.Stat_t
	if err := syscall.Fstat(fd, &st); err != nil {
		return nil, err
	}
	root := &Root{Path: real, Dev: st.Dev, Ino: st.Ino}
	switch st.Mode & syscall.S_IFMT {
	case syscall.S_IFDIR:
	case syscall.S_IFREG:
		root.File = true
	case syscall.S_IFLNK:
		return nil, fmt.Errorf("it changed while it was opened: %q became a link", real)
	default:
		return nil, errSpecial
	}
	return root, nil
}
