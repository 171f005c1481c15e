package observe

import (
	"bytes"
	"strconv"
	"unsafe"

	"golang.org/x/sys/unix"
)

// quick recognises what is certainly not refused, with as few system calls as
// possible and no memory of earlier ones. Whatever is not simple is left to walk.
// Most calls of most commands end here while their task waits.
type quick struct {
	boundary boundary
	mounts   map[uint64]mount // by number; those of a view do not change
	proc     []byte           // a path in /proc, with a NUL
	link     [maxPath]byte
	stat     unix.Statx_t
	object   unix.Statx_t
}

// mount is what is known of a mount.
type mount struct{ readOnly, proc bool }

func newQuick(b boundary) *quick { return &quick{boundary: b, mounts: map[uint64]mount{}} }

// text is a path in our memory with a NUL behind it.
type text = []byte

// harmless reports whether a request is certainly not refused. first and second
// are its names.
func (q *quick) harmless(tid, root int, r request, first, second text) bool {
	switch r.kind {
	case opening:
		if isNullDevice(first) {
			return true
		}
		const exclusive = unix.O_CREAT | unix.O_EXCL
		if r.flags&unix.O_TMPFILE == unix.O_TMPFILE {
			return false
		}
		return q.one(tid, root, r.first, first, r.flags&exclusive != exclusive, true)
	case making:
		return !isDevice(r.mode) && q.one(tid, root, r.first, first, false, false)
	case renaming, linking:
		return q.both(tid, root, r, first, second)
	}
	return q.one(tid, root, r.first, first, true, false)
}

// isNullDevice recognises the devices that every command writes to. Commands
// cannot change what these names mean.
func isNullDevice(path text) bool {
	switch string(path) {
	case "/dev/null", "/dev/tty", "/dev/zero", "/dev/full":
		return true
	}
	return false
}

// one looks at a name: its folder can be written and, if the object matters, it is
// of the same mount and no link that would be followed.
func (q *quick) one(tid, root int, n name, path text, object, opened bool) bool {
	folder, last, ok := q.folder(tid, root, n, path)
	if !ok {
		return false
	}
	if folder != root {
		defer closeQuickly(folder)
	}
	return q.writable(folder) && (!object || q.plain(folder, last, n.follow, opened))
}

// both looks at the two names of a rename or link.
func (q *quick) both(tid, root int, r request, first, second text) bool {
	if r.first.follow || r.first.empty {
		return false
	}
	from, old, ok := q.folder(tid, root, r.first, first)
	if !ok {
		return false
	}
	if from != root {
		defer closeQuickly(from)
	}
	to, last, ok := q.folder(tid, root, r.second, second)
	if !ok {
		return false
	}
	if to != root {
		defer closeQuickly(to)
	}
	if !q.writable(from) || !q.plain(from, old, false, false) {
		return false
	}
	above := q.stat
	if !q.writable(to) || !q.plain(to, last, false, false) {
		return false
	}
	if rules, ok := q.boundary.(rules); ok {
		return rules.version >= 2 || same(&above, &q.stat)
	}
	return sameMount(&above, &q.stat)
}

// folder opens the folder of a name, or returns root itself. last is the name in
// it.
func (q *quick) folder(tid, root int, n name, path text) (fd int, last text, ok bool) {
	slash := bytes.LastIndexByte(path, '/')
	last = path[slash+1:]
	switch string(last) {
	case "", ".", "..":
		return -1, nil, false
	}
	if slash == 0 {
		return root, last, true
	}
	base := root
	if slash < 0 || path[0] != '/' {
		if base, ok = q.base(tid, n.dir); !ok || slash < 0 {
			return base, last, ok
		}
		defer closeQuickly(base)
	}
	how := unix.OpenHow{Flags: unix.O_PATH | unix.O_DIRECTORY | unix.O_CLOEXEC, Resolve: unix.RESOLVE_BENEATH | unix.RESOLVE_NO_MAGICLINKS}
	if base == root {
		how.Resolve = unix.RESOLVE_IN_ROOT | unix.RESOLVE_NO_MAGICLINKS
	}
	path[slash] = 0
	n1, _, errno := unix.Syscall6(unix.SYS_OPENAT2, uintptr(base), uintptr(unsafe.Pointer(&path[0])), uintptr(unsafe.Pointer(&how)), unix.SizeofOpenHow, 0, 0)
	path[slash] = '/'
	return int(n1), last, errno == 0
}

// base opens what a relative path starts from.
func (q *quick) base(tid, dir int) (fd int, ok bool) {
	q.proc = append(q.proc[:0], "/proc/"...)
	q.proc = strconv.AppendInt(q.proc, int64(tid), 10)
	switch {
	case dir == unix.AT_FDCWD:
		q.proc = append(q.proc, "/cwd\x00"...)
	case dir < 0:
		return -1, false
	default:
		q.proc = append(q.proc, "/fd/"...)
		q.proc = strconv.AppendInt(q.proc, int64(dir), 10)
		q.proc = append(q.proc, 0)
	}
	const at = unix.AT_FDCWD
	n, _, errno := unix.Syscall6(unix.SYS_OPENAT, at&(1<<64-1), uintptr(unsafe.Pointer(&q.proc[0])), unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0, 0, 0)
	return int(n), errno == 0
}

// writable looks at a folder, which stat then describes.
func (q *quick) writable(fd int) bool {
	var none byte
	if statQuickly(fd, &none, unix.AT_EMPTY_PATH, &q.stat) != 0 || q.stat.Mask&unix.STATX_MNT_ID == 0 {
		return false
	}
	m, known := q.mounts[q.stat.Mnt_id]
	if !known {
		var st unix.Statfs_t
		if unix.Fstatfs(fd, &st) != nil {
			return false
		}
		m = mount{readOnly: st.Flags&unix.ST_RDONLY != 0, proc: st.Type == unix.PROC_SUPER_MAGIC}
		q.mounts[q.stat.Mnt_id] = m
	}
	if m.proc {
		return false // names mean something else to every process
	}
	if rules, ok := q.boundary.(rules); ok {
		return q.holds(rules.allowed, fd) && !rules.allowed.forbids(&q.stat)
	}
	return !m.readOnly
}

// holds reports whether the path of a folder lies in an allowed place.
func (q *quick) holds(a *allowed, fd int) bool {
	q.proc = strconv.AppendInt(append(q.proc[:0], "/proc/self/fd/"...), int64(fd), 10)
	q.proc = append(q.proc, 0)
	n, _, errno := unix.Syscall6(unix.SYS_READLINKAT, 0, uintptr(unsafe.Pointer(&q.proc[0])), uintptr(unsafe.Pointer(&q.link[0])), uintptr(len(q.link)), 0, 0)
	if errno != 0 {
		return false
	}
	path := q.link[:n]
	for _, place := range a.paths {
		if len(path) >= len(place) && string(path[:len(place)]) == place && (len(path) == len(place) || path[len(place)] == '/') {
			return true
		}
	}
	return false
}

// plain looks at a name in the folder that stat describes: there is nothing, or
// something ordinary of the same mount.
func (q *quick) plain(folder int, name text, follow, opened bool) bool {
	switch statQuickly(folder, &name[0], unix.AT_SYMLINK_NOFOLLOW, &q.object) {
	case unix.ENOENT:
		return true
	case 0:
	default:
		return false
	}
	if !sameMount(&q.object, &q.stat) {
		return false
	}
	if rules, ok := q.boundary.(rules); ok && rules.allowed.forbids(&q.object) {
		return false
	}
	switch uint32(q.object.Mode) & unix.S_IFMT {
	case unix.S_IFREG, unix.S_IFDIR:
		return true
	case unix.S_IFLNK:
		return !follow
	}
	return !opened
}

// statQuickly is statx(2) for a name that ends with NUL.
func statQuickly(fd int, name *byte, flags int, st *unix.Statx_t) unix.Errno {
	_, _, errno := unix.Syscall6(unix.SYS_STATX, uintptr(fd), uintptr(unsafe.Pointer(name)), uintptr(flags|unix.AT_STATX_DONT_SYNC), statMask, uintptr(unsafe.Pointer(st)), 0)
	return errno
}

func closeQuickly(fd int) { unix.RawSyscall(unix.SYS_CLOSE, uintptr(fd), 0, 0) }
