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
	switch {
	case slices.Contains(w.made, path):
	case len(w.made) == maxMade:
		w.unseen[crowded]++ // or a command could make and remove so many that one more goes unnoticed
	default:
		w.made = append(w.made, path)
	}
	return nil
}

// notable is where in a path the first name ends that is to be listed; 0 if there
// is none. What lies in a git folder is git's, and only making the folder counts.
func (w *watch) notable(path string) int {
	for start := 0; start < len(path); {
		length := strings.IndexByte(path[start:], '/')
		last := length < 0
		if last {
			length = len(path) - start
		}
		if name := path[start : start+length]; length > 1 && name[0] == '.' && w.run.Notable(name) && (last || name != ".git" || path[start+length:] == "/") {
			return start + length
		}
		start += length + 1
	}
	return 0
}
