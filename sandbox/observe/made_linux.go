package observe

import (
	"slices"
	"strings"

	"github.com/confine-dev/confine/sandbox"
	"golang.org/x/sys/unix"
)

// maxMade bounds how many made paths are kept.
const maxMade = 200

// noteMade keeps what a request is about to make under a name that the run is
// asked to list, or in a folder of such a name. The denial is that of making what
// is kept absent: the folder that stands in its place answers as any folder does,
// and not as the sandbox.
func (w *watch) noteMade(tid int, r request, first, second text) []sandbox.Denial {
	if w.run.Notable == nil {
		return nil
	}
	at, name, op, errno := r.first, first, opCreate, unix.EISDIR
	switch r.kind {
	case opening:
		if r.flags&(unix.O_CREAT|unix.O_WRONLY|unix.O_RDWR|unix.O_TRUNC) == 0 {
			return nil
		}
	case making:
		if errno = unix.EEXIST; r.mode&unix.S_IFMT == unix.S_IFDIR {
			errno = 0 // whoever makes a folder is often content with one that is there
		}
	case renaming:
		at, name, op = r.second, second, opRename
	case linking:
		at, name, errno = r.second, second, unix.EEXIST
	default:
		return nil
	}
	end := w.notable(string(name))
	if end == 0 {
		return nil
	}
	found, _, failed := find(tid, w.root, at, string(name[:end]))
	if failed != 0 {
		return nil
	}
	defer found.close()
	path, ok := found.path()
	if !ok {
		return nil
	}
	if slices.Contains(w.run.Absent, path) {
		if end < len(name) || errno == 0 || !found.isFolder() {
			return nil
		}
		return []sandbox.Denial{{Op: op, Path: path, Errno: unix.ErrnoName(errno)}}
	}
	w.keepMade(path)
	return nil
}

func (w *watch) keepMade(path string) {
	switch {
	case slices.Contains(w.made, path):
	case len(w.made) == maxMade:
		w.unseen[crowded]++ // or a command could make and remove so many that one more goes unnoticed
	default:
		w.made = append(w.made, path)
	}
}

// noteMoved follows what is kept to where a request is about to move it, as part
// of a folder around it.
func (w *watch) noteMoved(tid int, r request, first, second text) {
	if r.kind != renaming || len(w.made) == 0 {
		return
	}
	from, _, failed := find(tid, w.root, r.first, string(first))
	if failed != 0 {
		return
	}
	defer from.close()
	old, ok := from.path()
	if inside := func(path string) bool { return strings.HasPrefix(path, old+"/") }; !ok || !from.isFolder() || !slices.ContainsFunc(w.made, inside) {
		return
	}
	to, _, failed := find(tid, w.root, r.second, string(second))
	if failed != 0 {
		return
	}
	defer to.close()
	if path, ok := to.path(); ok {
		for _, made := range slices.Clone(w.made) {
			if rest, inside := strings.CutPrefix(made, old+"/"); inside {
				w.keepMade(path + "/" + rest)
			}
		}
	}
}

// notable is where in a path the first name ends that is to be listed; 0 if there
// is none. What lies in a git folder is git's.
func (w *watch) notable(path string) int {
	for start := 0; start < len(path); {
		length := strings.IndexByte(path[start:], '/')
		last := length < 0
		if last {
			length = len(path) - start
		}
		name := path[start : start+length]
		switch last = last || path[start+length:] == "/"; {
		case length > 1 && (name[0] == '.' || last) && w.run.Notable(name, last):
			return start + length
		case name == ".git":
			return 0
		}
		start += length + 1
	}
	return 0
}
