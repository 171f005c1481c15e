package server

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/confine-dev/confine/sandbox"
)

// extras are the folders of writable_roots, in their order. Each is declared when it
// is first met and not looked for again while it stays in the settings: what is made
// in its place later may be the work of a command.
func (f *folders) extras(paths []string) []folder {
	if len(paths) == 0 {
		return nil
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	list := make([]folder, 0, len(paths))
	for _, path := range paths {
		at := slices.IndexFunc(f.extra, func(o folder) bool { return o.path == path })
		if at < 0 {
			at = len(f.extra)
			f.extra = append(f.extra, f.openExtra(path))
		}
		list = append(list, f.extra[at])
	}
	return list
}

// dropExtras forgets the folders that the settings name no more, so that they are
// looked for when they are named again. Their roots stay pinned, as in remove.
func (f *folders) dropExtras(named []string) (removed []*sandbox.Root) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.extra = slices.DeleteFunc(f.extra, func(o folder) bool {
		if slices.Contains(named, o.path) {
			return false
		}
		if o.root != nil {
			removed = append(removed, o.root)
		}
		return true
	})
	f.gone = append(f.gone, removed...)
	return removed
}

// openExtra is called with mu held.
func (f *folders) openExtra(path string) folder {
	if link := f.plantedLink(path); link != "" {
		return folder{path: path, refusal: fmt.Sprintf("%q is a link in a folder that commands can write to; name the folder that is meant", link)}
	}
	root, err := sandbox.DeclareRoot(path, f.forbidden)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return folder{path: path, refusal: "it does not exist"}
	case err != nil:
		return folder{path: path, refusal: err.Error()}
	}
	return folder{path: path, root: root}
}

// plantedLink finds a link on the way to path that lies in a root, where a command
// may have made it; empty if there is none.
func (f *folders) plantedLink(path string) string {
	inRoot := func(path string) bool {
		return slices.ContainsFunc(slices.Concat(f.open, f.extra), func(o folder) bool {
			return o.root != nil && sandbox.Within(path, o.root.Path)
		})
	}
	here := filepath.VolumeName(path) + string(filepath.Separator)
	for _, name := range strings.Split(strings.TrimPrefix(filepath.ToSlash(path), filepath.ToSlash(here)), "/") {
		real, err := filepath.EvalSymlinks(here)
		if err != nil {
			return "" // it does not exist, or is refused for another reason
		}
		here = filepath.Join(here, name)
		info, err := os.Lstat(filepath.Join(real, name))
		if err == nil && info.Mode()&fs.ModeSymlink != 0 && inRoot(real) {
			return here
		}
	}
	return ""
}
