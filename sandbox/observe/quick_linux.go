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
	for bytes.HasPrefix(path, dotSlash) && len(path) > len(dotSlash) && path[len(dotSlash)] != '/' {
		path = path[len(dotSlash):]
	}
	switch slash := bytes.IndexByte(path, '/'); {
	case slash < 0 && len(path) > 0:
		return q.here(tid, n, path, object, opened)
	case slash > 0 && !object && bytes.IndexByte(path[slash+1:], '/') < 0 && q.below(tid, n, path[:slash], path[slash+1:]):
		return true
	}
	folder, last, ok := q.folder(tid, root, n, path)
	if !ok {
		return false
	}
	if folder != root {
		defer closeQuickly(folder)
	}
	var none byte
	return statQuickly(folder, &none, unix.AT_EMPTY_PATH, &q.stat) == 0 && q.writable(folder, ownLink) &&
		(!object || q.plain(folder, &last[0], n.follow, opened))
}

// here does the same for a name without folders, and opens nothing.
func (q *quick) here(tid int, n name, last text, object, opened bool) bool {
	if string(last) == "." || string(last) == ".." || !q.spell(tid, n.dir) {
		return false
	}
	if statQuickly(unix.AT_FDCWD, &q.proc[0], 0, &q.stat) != 0 || !q.writable(unix.AT_FDCWD, q.proc) {
		return false
	}
	if !object {
		return true
	}
	q.proc[len(q.proc)-1] = '/'
	q.proc = append(append(q.proc, last...), 0)
	return q.plain(unix.AT_FDCWD, &q.proc[0], n.follow, opened)
}

var dotSlash = []byte("./")

// below does the same for a name in a folder where the path starts, if that is
// no link and the object does not matter. Archives are unpacked so.
func (q *quick) below(tid int, n name, folder, last text) bool {
	for _, part := range []text{folder, last} {
		if len(part) == 0 || string(part) == "." || string(part) == ".." {
			return false
		}
	}
	if !q.spell(tid, n.dir) {
		return false
	}
	q.proc[len(q.proc)-1] = '/'
	q.proc = append(append(q.proc, folder...), 0)
	if statQuickly(unix.AT_FDCWD, &q.proc[0], unix.AT_SYMLINK_NOFOLLOW, &q.stat) != 0 || uint32(q.stat.Mode)&unix.S_IFMT != unix.S_IFDIR {
		return false
	}
	if _, known := q.mounts[q.stat.Mnt_id]; !known {
		return false // to learn of it by its name would look it up again
	}
	return q.writable(unix.AT_FDCWD, q.proc)
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
	var none byte
	if statQuickly(from, &none, unix.AT_EMPTY_PATH, &q.stat) != 0 || !q.writable(from, ownLink) || !q.plain(from, &old[0], false, false) {
		return false
	}
	above := q.stat
	if statQuickly(to, &none, unix.AT_EMPTY_PATH, &q.stat) != 0 || !q.writable(to, ownLink) || !q.plain(to, &last[0], false, false) {
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
	if !q.spell(tid, dir) {
		return -1, false
	}
	const flags = unix.O_PATH | unix.O_DIRECTORY | unix.O_CLOEXEC
	n, _, errno := unix.Syscall6(unix.SYS_OPENAT, cwd, uintptr(unsafe.Pointer(&q.proc[0])), flags, 0, 0, 0)
	return int(n), errno == 0
}

// cwd is AT_FDCWD as an argument.
const cwd = ^uintptr(-unix.AT_FDCWD - 1)

// spell writes to proc the link by which the kernel finds where a task's relative
// paths start.
func (q *quick) spell(tid, dir int) bool {
	q.proc = strconv.AppendInt(append(q.proc[:0], "/proc/"...), int64(tid), 10)
	switch {
	case dir == unix.AT_FDCWD:
		q.proc = append(q.proc, "/cwd\x00"...)
	case dir < 0:
		return false
	default:
		q.proc = strconv.AppendInt(append(q.proc, "/fd/"...), int64(dir), 10)
		q.proc = append(q.proc, 0)
	}
	return true
}

// ownLink as the link of a folder is that of its descriptor.
var ownLink text

// writable looks at the folder that stat describes. It is held by a descriptor or
// found by a link of /proc.
func (q *quick) writable(fd int, link text) bool {
	m, known := q.mounts[q.stat.Mnt_id]
	if !known && !q.learn(fd, link, &m) || m.proc {
		return false // in a /proc names mean something else to every process
	}
	if rules, ok := q.boundary.(rules); ok {
		return q.holds(rules.allowed, fd, link) && !rules.allowed.forbids(&q.stat)
	}
	return !m.readOnly
}

// learn remembers what the mount of a folder is like.
func (q *quick) learn(fd int, link text, m *mount) bool {
	if q.stat.Mask&unix.STATX_MNT_ID == 0 {
		return false
	}
	var st unix.Statfs_t
	var err error
	if len(link) == 0 {
		err = unix.Fstatfs(fd, &st)
	} else {
		err = unix.Statfs(string(link[:len(link)-1]), &st)
	}
	*m = mount{readOnly: st.Flags&unix.ST_RDONLY != 0, proc: st.Type == unix.PROC_SUPER_MAGIC}
	if err == nil {
		q.mounts[q.stat.Mnt_id] = *m
	}
	return err == nil
}

// holds reports whether the path of a folder lies in an allowed place.
func (q *quick) holds(a *allowed, fd int, link text) bool {
	if len(link) == 0 {
		q.proc = strconv.AppendInt(append(q.proc[:0], "/proc/self/fd/"...), int64(fd), 10)
		q.proc = append(q.proc, 0)
		link = q.proc
	}
	n, _, errno := unix.Syscall6(unix.SYS_READLINKAT, cwd, uintptr(unsafe.Pointer(&link[0])), uintptr(unsafe.Pointer(&q.link[0])), uintptr(len(q.link)), 0, 0)
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
func (q *quick) plain(folder int, name *byte, follow, opened bool) bool {
	switch statQuickly(folder, name, unix.AT_SYMLINK_NOFOLLOW, &q.object) {
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
