package sandbox

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// Step is a name that is looked up on the way to a path.
type Step struct {
	Folder string // has no link in it
	Name   string
	Link   bool // what is there is a symbolic link, which the way goes on through
}

// Way lists what is looked up to reach an absolute path, those of links included: to
// its end, or to what does not exist or cannot be looked at, which is the last step.
func Way(path string) (steps []Step) {
	top := filepath.VolumeName(path) + string(filepath.Separator)
	folder, rest := top, components(path)
	for links := 0; len(rest) > 0; {
		name := rest[0]
		rest = rest[1:]
		if name == ".." {
			folder = filepath.Dir(folder)
			continue
		}
		here := filepath.Join(folder, name)
		info, err := os.Lstat(here)
		link := err == nil && info.Mode()&fs.ModeSymlink != 0
		steps = append(steps, Step{folder, name, link})
		if err != nil {
			return steps
		}
		if !link {
			folder = here
			continue
		}
		target, err := os.Readlink(here)
		if links++; err != nil || links > maxLinks {
			return steps
		}
		if filepath.IsAbs(target) {
			folder = top
		}
		rest = append(components(target), rest...)
	}
	return steps
}

// components are the names in a path, ".." included.
func components(path string) (names []string) {
	path = strings.TrimPrefix(path, filepath.VolumeName(path))
	for name := range strings.SplitSeq(filepath.ToSlash(path), "/") {
		if name != "" && name != "." {
			names = append(names, name)
		}
	}
	return names
}
