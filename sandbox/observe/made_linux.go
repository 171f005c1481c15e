package observe

import (
	"slices"
	"strings"

	"golang.org/x/sys/unix"
)

// maxMade bounds how many made paths are kept.
const maxMade = 200

// noteMade keeps what a request is about to make under a name that the run is
// asked to list, or in a folder of such a name. A name that is not absolute is
// counted from where the task is now.
func (w *watch) noteMade(tid int, r request, first, second text) {
	if w.run.Notable == nil || len(w.made) >= maxMade {
		return
	}
	at, name := r.first, first
	switch r.kind {
	case opening:
		if r.flags&(unix.O_CREAT|unix.O_WRONLY|unix.O_RDWR|unix.O_TRUNC) == 0 {
			return
		}
	case making:
	case renaming, linking:
		at, name = r.second, second
	default:
		return
	}
	end := w.notable(string(name))
	if end == 0 {
		return
	}
	found, _, errno := find(tid, w.root, at, string(name[:end]))
	if errno != 0 {
		return
	}
	defer found.close()
	if path, ok := found.path(); ok && !slices.Contains(w.made, path) {
		w.made = append(w.made, path)
	}
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
