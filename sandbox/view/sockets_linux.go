package view

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"github.com/confine-dev/confine/sandbox"
)

// MaxSockets is how many sockets outside the hidden folders are hidden one by one.
const MaxSockets = 128

// maxList bounds how much of the kernel's list of sockets is read, in bytes; it
// has about a hundred for each.
const maxList = 4 << 20

// sockets covers the sockets of host services that lie elsewhere than in hidden
// folders. Those in the workspace are its own, and those in what was granted were
// part of the question.
func (b *builder) sockets() error {
	list, err := bound()
	if err != nil {
		return fmt.Errorf("finding the sockets of host services: %w", err)
	}
	left := MaxSockets
	for _, path := range boundSockets(list, b.covered) {
		if left == 0 {
			break
		}
		if b.ours(path) || !b.shown(path) {
			continue
		}
		b.add(Mount{Path: path, Source: nothing, File: true, Fleeting: true, Why: why("hiding the socket", path)})
		left--
	}
	return nil
}

// bound is the kernel's list of the unix sockets of this network namespace.
func bound() ([]byte, error) {
	list, err := listed("/proc/net/unix", maxList)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, fs.ErrPermission) {
		return nil, nil // no /proc, no unix sockets at all, or a host that shows them to nobody
	}
	return list, err
}

// covered reports whether a path, as it is written, lies where nothing is shown
// anyway. Most sockets do, and it costs nothing to say so.
func (b *builder) covered(path string) bool {
	// What /proc shows of us is not what it showed the process that gave the name.
	return b.plan.Covered(path) || sandbox.Within(path, "/var/run") || sandbox.Within(path, "/proc")
}

// ours reports whether a path lies in the workspace or in what was granted.
func (b *builder) ours(path string) bool {
	in := func(root *sandbox.Root) bool { return sandbox.Within(path, root.Path) }
	return slices.ContainsFunc(b.request.Policy.Roots, in) || slices.ContainsFunc(grants(b.request.Policy), in)
}

// boundSockets are the canonical paths of the sockets in a list of the kernel's
// that exist by the name they were given, sorted. Names that are not absolute
// mean something to the process alone that gave them.
func boundSockets(list []byte, skip func(string) bool) []string {
	var paths []string
	seen := map[string]bool{}
	folders := map[string]string{} // by their names as written; empty: it cannot be found
	for line := range bytes.Lines(list) {
		at := bytes.IndexByte(line, '/')
		// Behind a blank: else it is the middle of a relative or an abstract name.
		if at < 1 || line[at-1] != ' ' {
			continue
		}
		path := string(bytes.TrimSuffix(line[at:], []byte("\n")))
		if seen[path] || skip(path) {
			continue
		}
		seen[path] = true
		dir, name := filepath.Split(path)
		folder, known := folders[dir]
		if !known {
			folder, _ = filepath.EvalSymlinks(dir) // else empty
			folders[dir] = folder
		}
		if folder == "" || name == "" {
			continue
		}
		path = filepath.Join(folder, name)
		if info, err := os.Lstat(path); err == nil && info.Mode()&fs.ModeSocket != 0 {
			paths = append(paths, path)
		}
	}
	slices.Sort(paths)
	return slices.Compact(paths)
}
