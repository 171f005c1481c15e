package server

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"

	"github.com/confine-dev/confine/sandbox"
)

// extras are the folders of writable_roots, in their order. Each is declared once; one
// that cannot be is tried again for every run, since it may only be missing yet.
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
			opened := f.openExtra(path)
			if opened.root != nil {
				f.extra = append(f.extra, opened)
			}
			list = append(list, opened)
			continue
		}
		list = append(list, f.extra[at])
	}
	return list
}

// dropExtras forgets the folders that the settings name no more. Their roots stay
// pinned, as in remove.
func (f *folders) dropExtras(named []string) []*sandbox.Root {
	return f.drop(&f.extra, func(o folder) bool { return !slices.Contains(named, o.path) })
}

// openExtra is called with mu held. Commands can write to the roots that there are, so
// that a link in one may be theirs: a folder that is reached through it is none that
// the person meant.
func (f *folders) openExtra(path string) folder {
	refuse := func(format string, args ...any) folder {
		return folder{path: path, refusal: fmt.Sprintf(format, args...)}
	}
	var in *sandbox.Root // the root that the way leads into
	for _, step := range sandbox.Way(path) {
		if root := f.rootOf(step.Folder); root != nil {
			if in = root; step.Link {
				return refuse("%q is a link in a folder that commands can write to; name the folder that is meant", filepath.Join(step.Folder, step.Name))
			}
		}
	}
	root, err := sandbox.DeclareRoot(path, f.forbidden)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return refuse("it does not exist")
	case err != nil:
		return refuse("%v", err)
	case in != nil && !sandbox.Within(root.Path, in.Path):
		root.Close()
		return refuse("a folder on the way to it became a link while it was opened")
	}
	return folder{path: path, root: root}
}

// rootOf is a root that a path lies in; nil if there is none.
func (f *folders) rootOf(path string) *sandbox.Root {
	for _, o := range slices.Concat(f.open, f.extra) {
		if o.root != nil && sandbox.Within(path, o.root.Path) {
			return o.root
		}
	}
	return nil
}
