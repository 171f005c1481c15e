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
func pinRoot(real string) (*Root, error) {
	fd, err := syscall.Open(real, oPath|syscall.O_DIRECTORY|syscall.O_NOFOLLOW|syscall.O_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	// Between resolving the path and opening it, a folder on the way may have
	// become a link to one that must never be a root.
	opened, err := os.Readlink(fmt.Sprintf("/proc/self/fd/%d", fd))
	if err == nil && opened != real {
		err = fmt.Errorf("it changed while it was opened: %q became %q", real, opened)
	}
	if err != nil {
		syscall.Close(fd)
		return nil, err
	}
	var st syscall.Stat_t
	if err := syscall.Fstat(fd, &st); err != nil {
		syscall.Close(fd)
		return nil, err
	}
	return &Root{Path: real, Dev: st.Dev, Ino: st.Ino, pin: os.NewFile(uintptr(fd), real)}, nil
}
