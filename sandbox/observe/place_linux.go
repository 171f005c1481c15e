package observe

import (
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// place is what a name leads to, held by descriptors, so that it stays the same
// whatever happens to the name.
type place struct {
	parent int          // the folder; the object itself if name is "."
	name   string       // one component, or "." for an object that is named by a descriptor
	object int          // -1 if there is nothing of that name
	stat   unix.Statx_t // of the object
	above  unix.Statx_t // of the folder
	slash  bool         // the name ended with a slash, so it means a folder
}

// look has the flags with which objects are held: they are not opened, and links
// are not followed.
const look = unix.O_PATH | unix.O_NOFOLLOW | unix.O_CLOEXEC

// statMask is what is asked of an object.
const statMask = unix.STATX_TYPE | unix.STATX_MODE | unix.STATX_UID | unix.STATX_GID | unix.STATX_INO | unix.STATX_NLINK | unix.STATX_MNT_ID

func (p *place) exists() bool { return p.object >= 0 }

// kind is the type of the object, S_IF…
func (p *place) kind() uint32 { return uint32(p.stat.Mode) & unix.S_IFMT }

func (p *place) isFolder() bool { return p.exists() && p.kind() == unix.S_IFDIR }

// nameless reports whether the object was not found under a name in its folder,
// so that the name cannot be changed by way of this place.
func (p *place) nameless() bool { return p.name == "." }

// unnamed reports whether the object is a file that was made without a name and
// has got none yet (open(2), O_TMPFILE). The kernel calls it by its number.
func (p *place) unnamed() bool {
	if !p.nameless() || p.kind() != unix.S_IFREG || p.stat.Nlink != 0 {
		return false
	}
	path, err := os.Readlink(ownDescriptor(p.object))
	return err == nil && strings.HasSuffix(path, "/#"+strconv.FormatUint(p.stat.Ino, 10)+" (deleted)")
}

func (p *place) close() {
	if p == nil {
		return
	}
	if p.parent >= 0 {
		unix.Close(p.parent)
	}
	if p.object >= 0 {
		unix.Close(p.object)
	}
}

// path is where the place is, as who found it would name it. ok is false for
// what has no name any more.
func (p *place) path() (path string, ok bool) {
	if p.nameless() {
		return pathOf(p.object)
	}
	folder, ok := pathOf(p.parent)
	if !ok {
		return "", false
	}
	return strings.TrimSuffix(folder, "/") + "/" + p.name, true
}

// pathOf is the path of what a descriptor holds.
func pathOf(fd int) (path string, ok bool) {
	path, err := os.Readlink(ownDescriptor(fd))
	return path, err == nil && strings.HasPrefix(path, "/") && !strings.HasSuffix(path, " (deleted)")
}

// ownDescriptor is the name by which the kernel finds a descriptor of ours.
func ownDescriptor(fd int) string { return "/proc/self/fd/" + strconv.Itoa(fd) }

// statOf looks at what a descriptor holds.
func statOf(fd int) (st unix.Statx_t, errno unix.Errno) {
	if err := unix.Statx(fd, "", unix.AT_EMPTY_PATH|unix.AT_STATX_DONT_SYNC, statMask, &st); err != nil {
		return st, errnoOf(err)
	}
	return st, 0
}

// same reports whether two objects are one.
func same(a, b *unix.Statx_t) bool {
	return a.Ino == b.Ino && a.Dev_major == b.Dev_major && a.Dev_minor == b.Dev_minor
}

// sameMount reports whether two objects were found on one mount. Before Linux 5.8
// nobody can tell, and devices are compared.
func sameMount(a, b *unix.Statx_t) bool {
	if a.Mask&b.Mask&unix.STATX_MNT_ID == 0 {
		return sameDevice(a, b)
	}
	return a.Mnt_id == b.Mnt_id
}

// sameDevice reports whether two objects are of one file system.
func sameDevice(a, b *unix.Statx_t) bool {
	return a.Dev_major == b.Dev_major && a.Dev_minor == b.Dev_minor
}

// mountFlags are the flags of the mount that a descriptor lies on, ST_…
func mountFlags(fd int) (int64, unix.Errno) {
	var st unix.Statfs_t
	if err := unix.Fstatfs(fd, &st); err != nil {
		return 0, errnoOf(err)
	}
	return int64(st.Flags), 0
}

// onProc reports whether a descriptor holds something of a /proc.
func onProc(fd int) bool {
	var st unix.Statfs_t
	return unix.Fstatfs(fd, &st) == nil && st.Type == unix.PROC_SUPER_MAGIC
}

// placeOf is the place of an object that a descriptor holds, which it takes.
func placeOf(fd int) (*place, unix.Errno) {
	parent, err := unix.FcntlInt(uintptr(fd), unix.F_DUPFD_CLOEXEC, 0)
	if err != nil {
		unix.Close(fd)
		return nil, errnoOf(err)
	}
	p := &place{parent: parent, name: ".", object: fd}
	var errno unix.Errno
	if p.stat, errno = statOf(fd); errno != 0 {
		p.close()
		return nil, errno
	}
	p.above = p.stat
	return p, 0
}
