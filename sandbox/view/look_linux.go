package view

import (
	"path/filepath"
	"slices"
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
	opened, err := pathOf(fd)
	if err == nil && opened != path && st.Mode&unix.S_IFMT != unix.S_IFLNK {
		err = unix.ESTALE
	}
	if err != nil {
		return nil, err
	}
	return identity(path, &st)
}

// heldFolder is the folder of the last path that was identified, held open: what
// else is in it takes one call. The zero value holds none.
type heldFolder struct {
	path string
	fd   int
}

// identify is the function identify for a path in whose folder others may be asked
// for next.
func (h *heldFolder) identify(path string) (*sandbox.Root, error) {
	if folder := filepath.Dir(path); folder != h.path {
		if err := h.open(folder); err != nil {
			return nil, err
		}
	}
	var st unix.Stat_t
	err := again(func() error { return unix.Fstatat(h.fd, filepath.Base(path), &st, unix.AT_SYMLINK_NOFOLLOW) })
	if err != nil {
		return nil, err
	}
	return identity(path, &st)
}

// open holds a folder that no link leads to.
func (h *heldFolder) open(folder string) error {
	h.close()
	fd, err := open(folder, unix.O_PATH|unix.O_DIRECTORY|unix.O_NOFOLLOW)
	if err != nil {
		return err
	}
	opened, err := pathOf(fd)
	if err == nil && opened != folder {
		err = unix.ESTALE
	}
	if err != nil {
		unix.Close(fd)
		return err
	}
	h.path, h.fd = folder, fd
	return nil
}

func (h *heldFolder) close() {
	if h.path != "" {
		unix.Close(h.fd)
		h.path = ""
	}
}

// identity is what stat says is at a canonical path, which must be no link.
func identity(path string, st *unix.Stat_t) (*sandbox.Root, error) {
	if st.Mode&unix.S_IFMT == unix.S_IFLNK {
		return nil, unix.ELOOP
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

// isEmpty reports whether a name in a folder is that of one without entries.
func isEmpty(dir int, name string) bool {
	fd, err := openAt(dir, name, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW)
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

// listed reads what the kernel lists in a file of /proc, limit bytes at most. Reads
// are as large as it answers, because it looks for its place anew in each.
func listed(path string, limit int) ([]byte, error) {
	fd, err := open(path, unix.O_RDONLY)
	if err != nil {
		return nil, err
	}
	defer unix.Close(fd)
	list := make([]byte, 0, 8<<10)
	for len(list) < limit {
		list = slices.Grow(list, 4<<10) // no more comes at once
		n := 0
		err := again(func() error { n, err = unix.Read(fd, list[len(list):min(cap(list), limit)]); return err })
		if err != nil || n == 0 {
			return list, err
		}
		list = list[:len(list)+n]
	}
	return list, nil
}

// open opens close-on-exec.
func open(path string, flags int) (fd int, err error) { return openAt(unix.AT_FDCWD, path, flags) }

func openAt(dir int, name string, flags int) (fd int, err error) {
	err = again(func() error { fd, err = unix.Openat(dir, name, flags|unix.O_CLOEXEC, 0); return err })
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
