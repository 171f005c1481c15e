package observe

import (
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// walk resolves a path as a stopped task would.
type walk struct {
	tid    int
	root   int // the task's root folder
	follow bool

	at    int    // where the walk is
	rest  string // what is still to be walked
	links int
	steps int
	slash bool   // a slash followed the last component
	lost  string // the whole path, if a folder on it is missing
}

const (
	maxLinks = 40   // as the kernel has it
	maxSteps = 4096 // components of a path with all its links; more are not looked at
)

// Errors besides the kernel's own: those of files that a walk cannot mean.
const (
	errTooMuch   = unix.EOVERFLOW // more than is looked at
	errElsewhere = unix.EREMOTE   // something of another task
)

// find resolves a name of a stopped task. Errors are those that the kernel will
// give the task, too, unless the task itself cannot be looked at. lost is the path
// with its links resolved as far as there are folders, if one of them is missing.
func find(tid, root int, n name, text string) (p *place, lost string, errno unix.Errno) {
	w := &walk{tid: tid, root: root, follow: n.follow, rest: text}
	if text == "" && !n.empty {
		return nil, "", unix.ENOENT
	}
	if w.at, errno = openBase(tid, root, n.dir, text); errno != 0 {
		return nil, "", errno
	}
	if text == "" {
		p, errno = placeOf(w.at)
		return p, "", errno
	}
	p, errno = w.run()
	if w.at >= 0 {
		unix.Close(w.at)
	}
	return p, w.lost, errno
}

// openBase opens where a path starts.
func openBase(tid, root, dir int, text string) (int, unix.Errno) {
	switch {
	case strings.HasPrefix(text, "/"):
		fd, err := unix.FcntlInt(uintptr(root), unix.F_DUPFD_CLOEXEC, 0)
		if err != nil {
			return -1, errnoOf(err)
		}
		return fd, 0
	case dir == unix.AT_FDCWD:
		return openTask(tid, "cwd")
	case dir < 0:
		return -1, unix.EBADF
	}
	return openTask(tid, "fd/"+strconv.Itoa(dir))
}

// openTask holds what a link in /proc of a task leads to.
func openTask(tid int, link string) (int, unix.Errno) {
	fd, err := unix.Open("/proc/"+strconv.Itoa(tid)+"/"+link, unix.O_PATH|unix.O_CLOEXEC, 0)
	if err != nil {
		return -1, errnoOf(err)
	}
	return fd, 0
}

// run walks to the end. It leaves at to its caller to close, unless it is -1.
func (w *walk) run() (*place, unix.Errno) {
	for {
		part := w.next()
		if part == "" {
			fd := w.at
			w.at = -1
			return placeOf(fd)
		}
		if w.steps++; w.steps > maxSteps {
			return nil, errTooMuch
		}
		if part == ".." {
			if errno := w.up(); errno != 0 {
				return nil, errno
			}
			continue
		}
		p, errno := w.step(part)
		if p != nil || errno != 0 {
			return p, errno
		}
	}
}

// next takes the next component; it is empty at the end.
func (w *walk) next() (part string) {
	for {
		w.rest = strings.TrimLeft(w.rest, "/")
		var more bool
		part, w.rest, more = strings.Cut(w.rest, "/")
		if part != "." {
			w.slash = w.slash || more && w.last()
			return part
		}
	}
}

// last reports whether nothing but slashes follows.
func (w *walk) last() bool { return strings.Trim(w.rest, "/") == "" }

// up goes to the folder above, but not out of the task's root.
func (w *walk) up() unix.Errno {
	here, errno := statOf(w.at)
	if errno != 0 {
		return errno
	}
	root, errno := statOf(w.root)
	if errno != 0 {
		return errno
	}
	if same(&here, &root) && sameMount(&here, &root) {
		return 0
	}
	fd, err := unix.Openat(w.at, "..", unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return errnoOf(err)
	}
	w.move(fd)
	return 0
}

func (w *walk) move(fd int) {
	unix.Close(w.at)
	w.at = fd
}

// step looks at one component. A place is the end of the walk.
func (w *walk) step(part string) (*place, unix.Errno) {
	last := w.last()
	fd, err := unix.Openat(w.at, part, look, 0)
	if err == unix.ENOENT && last {
		p := &place{parent: w.at, name: part, object: -1, slash: w.slash}
		w.at = -1
		var errno unix.Errno
		p.above, errno = statOf(p.parent)
		return p, errno
	}
	if err == unix.ENOENT {
		if folder, ok := pathOf(w.at); ok {
			w.lost = strings.TrimSuffix(folder, "/") + "/" + part + "/" + w.rest
		}
	}
	if err != nil {
		return nil, errnoOf(err)
	}
	st, errno := statOf(fd)
	if errno != 0 {
		unix.Close(fd)
		return nil, errno
	}
	if uint32(st.Mode)&unix.S_IFMT == unix.S_IFLNK && (!last || w.follow) {
		defer unix.Close(fd)
		return w.link(part, fd)
	}
	if !last {
		w.move(fd)
		return nil, 0
	}
	p := &place{parent: w.at, name: part, object: fd, stat: st, slash: w.slash}
	w.at = -1
	p.above, errno = statOf(p.parent)
	return p, errno
}

// link follows a symbolic link.
func (w *walk) link(part string, fd int) (*place, unix.Errno) {
	if w.links++; w.links > maxLinks {
		return nil, unix.ELOOP
	}
	if onProc(w.at) {
		return w.procLink(part, fd)
	}
	target, errno := readLink(fd)
	if errno != 0 {
		return nil, errno
	}
	return nil, w.enter(target)
}

// enter continues with the target of a link.
func (w *walk) enter(target string) unix.Errno {
	if target == "" || len(target)+len(w.rest) > 2*maxPath {
		return unix.ENOENT
	}
	if strings.HasPrefix(target, "/") {
		fd, err := unix.FcntlInt(uintptr(w.root), unix.F_DUPFD_CLOEXEC, 0)
		if err != nil {
			return errnoOf(err)
		}
		w.move(fd)
	}
	if w.rest == "" {
		w.rest = target
	} else {
		w.rest = target + "/" + w.rest
	}
	return 0
}

// procLink follows a link of /proc. What it says depends on who reads it, and
// most are no texts but lead straight to an object.
func (w *walk) procLink(part string, fd int) (*place, unix.Errno) {
	here, errno := statOf(w.at)
	if errno != 0 {
		return nil, errno
	}
	const procRoot = 1 // inode of the top of every /proc
	if here.Ino == procRoot {
		ids, errno := idsOf(w.tid)
		if errno != 0 {
			return nil, errno
		}
		switch part {
		case "self":
			return nil, w.enter(strconv.Itoa(ids.process))
		case "thread-self":
			return nil, w.enter(strconv.Itoa(ids.process) + "/task/" + strconv.Itoa(ids.task))
		}
		target, errno := readLink(fd)
		if errno != 0 {
			return nil, errno
		}
		return nil, w.enter(target)
	}
	if !w.owns(w.at) {
		return nil, errElsewhere
	}
	object, err := unix.Openat(w.at, part, unix.O_PATH|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, errnoOf(err)
	}
	if w.last() {
		return placeOf(object)
	}
	w.move(object)
	return nil, 0
}

// owns reports whether a folder of /proc belongs to the process of the task.
func (w *walk) owns(fd int) bool {
	path, err := os.Readlink(ownDescriptor(fd))
	if err != nil {
		return false
	}
	ids, errno := idsOf(w.tid)
	if errno != 0 {
		return false
	}
	own := "/" + strconv.Itoa(ids.process)
	for _, folder := range []string{own, own + "/fd"} {
		if strings.HasSuffix(path, folder) {
			return true
		}
	}
	return strings.Contains(path, own+"/task/")
}

// readLink is the text of a symbolic link.
func readLink(fd int) (string, unix.Errno) {
	buffer := make([]byte, maxPath)
	n, err := unix.Readlinkat(fd, "", buffer)
	if err != nil {
		return "", errnoOf(err)
	}
	return string(buffer[:n]), 0
}
