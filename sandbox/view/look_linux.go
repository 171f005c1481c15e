package view

import (
	"path/filepath"
	"strconv"
	"strings"

	"github.com/confine-dev/confine/sandbox"
	"golang.org/x/sys/unix"
)

// A plan is made anew for each run, because nothing that was seen of a path may
// be believed in the next one. So looking has to be cheap: here each look is the
// calls that it needs, where package os makes twice as many.

// real follows links; a path that leads nowhere stays as it is.
func real(path string) string {
	fd, err := open(path, unix.O_PATH)
	if err == unix.ENOENT {
		return path
	}
	if err == nil {
		found, err := pathOf(fd)
		unix.Close(fd)
		if err == nil && strings.HasPrefix(found, "/") && !strings.HasSuffix(found, " (deleted)") {
			return found
		}
	}
	if found, err := filepath.EvalSymlinks(path); err == nil {
		return found
	}
	return path
}

// identify tells what is at a canonical path, for comparison in the child. It
// fails if there is nothing, or a link leads there (see gone): commands may
// exchange what lies in a root at any time, and a folder that is bound writable
// must never be one outside.
func identify(path string) (*sandbox.Root, error) {
	fd, err := open(path, unix.O_PATH|unix.O_NOFOLLOW)
	if err != nil {
		return nil, err
	}
	defer unix.Close(fd)
	var st unix.Stat_t
	if err := again(func() error { return unix.Fstat(fd, &st) }); err != nil {
		return nil, err
	}
	if st.Mode&unix.S_IFMT == unix.S_IFLNK {
		return nil, unix.ELOOP
	}
	opened, err := pathOf(fd)
	if err != nil {
		return nil, err
	}
	if opened != path {
		return nil, unix.ESTALE
	}
	return &sandbox.Root{Path: path, File: st.Mode&unix.S_IFMT != unix.S_IFDIR, Dev: st.Dev, Ino: st.Ino}, nil
}

// kindOf is the type of what is at a path, S_IF…, and its permissions. A link
// counts as itself.
func kindOf(path string) (mode uint32, err error) {
	var st unix.Stat_t
	err = again(func() error { return unix.Lstat(path, &st) })
	return st.Mode, err
}

// isEmpty reports whether a folder has no entries.
func isEmpty(folder string) bool {
	fd, err := open(folder, unix.O_RDONLY|unix.O_DIRECTORY)
	if err != nil {
		return false
	}
	defer unix.Close(fd)
	for {
		var entries [1024]byte
		n, err := 0, error(nil)
		err = again(func() error { n, err = unix.ReadDirent(fd, entries[:]); return err })
		if err != nil || n == 0 {
			return err == nil
		}
		if _, count, _ := unix.ParseDirent(entries[:n], 1, nil); count > 0 {
			return false
		}
	}
}

// open opens close-on-exec.
func open(path string, flags int) (fd int, err error) {
	err = again(func() error { fd, err = unix.Open(path, flags|unix.O_CLOEXEC, 0); return err })
	return fd, err
}

// pathOf is where the kernel says that what a descriptor holds is; it adds
// " (deleted)" to what is nowhere any more.
func pathOf(fd int) (string, error) {
	var buffer [unix.PathMax]byte
	n, err := unix.Readlink("/proc/self/fd/"+strconv.Itoa(fd), buffer[:])
	if err == nil && n == len(buffer) {
		err = unix.ENAMETOOLONG
	}
	if err != nil {
		return "", err
	}
	return string(buffer[:n]), nil
}

// again repeats a call that a signal interrupted. The runtime sends itself some,
// and file systems of the network or of programs notice.
func again(call func() error) error {
	for {
		if err := call(); err != unix.EINTR {
			return err
		}
	}
}
