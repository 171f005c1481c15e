package protect

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/confine-dev/confine/sandbox"
)

// walked is what a walk through a root found.
type walked struct {
	root         sandbox.Root // as it was declared
	at           time.Time    // when it ended
	took         time.Duration
	repositories []string // work trees and bare repositories below the root, outer first
	kernel       []string // where the kernel shows itself: commands see nothing there
	closed       []string // folders that cannot be listed for want of permission
	complete     bool
}

// Limits of a walk, and for how long it is believed: so long that walking never
// takes more than a small part of the time.
const (
	maxWalked    = 300_000 // files and folders
	maxWalkTime  = 2 * time.Second
	walkHolds    = 30 * time.Second
	walkShare    = 200 // at most the 200th part of the time is spent walking
	maxWalkDepth = 32
	maxNewcomers = 1000 // files and folders right below the root that each run looks at
)

// walk returns what is known of a root, walking if it must.
func (f *Finder) walk(root *sandbox.Root) walked {
	now := f.clock()
	f.mu.Lock()
	defer f.mu.Unlock()
	known := f.walks[root.Path]
	if known != nil && (known.root.Dev != root.Dev || known.root.Ino != root.Ino) {
		known = nil // another folder
	}
	if known != nil && now().Sub(known.at) < max(walkHolds, walkShare*known.took) {
		if late := known.newcomers(); len(late) > 0 && len(known.repositories) <= maxRepositories {
			known.repositories = append(slices.Clone(known.repositories), late...)
		}
		return *known
	}
	start := now()
	w := &walked{root: sandbox.Root{Path: root.Path, Dev: root.Dev, Ino: root.Ino}, kernel: mounted().StrayKernel()}
	w.look(func() bool { return now().Sub(start) > maxWalkTime })
	if known != nil {
		w.repositories = knownFirst(known.repositories, w.repositories)
	}
	w.at = now()
	w.took = w.at.Sub(start)
	if f.walks == nil {
		f.walks = map[string]*walked{}
	}
	f.walks[root.Path] = w
	return *w
}

// newcomers are repositories right below the root that the walk did not find: what the
// person cloned a moment ago is not to wait for the next one. Deeper ones do.
func (w *walked) newcomers() (trees []string) {
	list, _, _ := entries(w.root.Path, maxNewcomers) // a folder that cannot be listed, the walk has told of
	for _, e := range list {
		tree := filepath.Join(w.root.Path, e.Name())
		if !e.IsDir() || e.Name() == dotGit || slices.Contains(w.repositories, tree) {
			continue
		}
		if _, err := os.Lstat(filepath.Join(tree, dotGit)); err == nil {
			trees = append(trees, tree)
		}
	}
	return trees
}

func (f *Finder) clock() func() time.Time {
	if f.now != nil {
		return f.now
	}
	return time.Now
}

// knownFirst puts the repositories that were found before, and are still there,
// before those that were found now. Otherwise a command could make so many, or so
// many files, that the person's own are not looked at any more.
func knownFirst(before, now []string) []string {
	list := slices.DeleteFunc(slices.Clone(before), func(tree string) bool {
		_, err := os.Lstat(filepath.Join(tree, dotGit))
		return errors.Is(err, fs.ErrNotExist) && !isBare(tree)
	})
	known := map[string]bool{}
	for _, tree := range list {
		known[tree] = true
	}
	return append(list, slices.DeleteFunc(slices.Clone(now), func(tree string) bool { return known[tree] })...)
}

// Note tells of paths that were made in a run, so that repositories among them
// are protected in the next.
func (f *Finder) Note(made []string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, path := range made {
		tree, base := filepath.Dir(path), filepath.Base(path)
		for _, w := range f.walks {
			if (base == dotGit || base == bareParts[0]) && sandbox.Within(tree, w.root.Path) && tree != w.root.Path && !slices.Contains(w.repositories, tree) && len(w.repositories) <= maxRepositories {
				w.repositories = append(slices.Clone(w.repositories), tree)
			}
		}
	}
}

// look walks the root, breadth first, so that what is cut off lies deep.
// Links are not followed. Folders of packages are left out: they hold thousands of
// folders, and nobody works in them.
func (w *walked) look(late func() bool) {
	type place struct {
		path  string
		depth int
	}
	root, count := w.root.Path, 0
	w.complete = true
	for queue := []place{{root, 0}}; len(queue) > 0; queue = queue[1:] {
		here := queue[0]
		if count > maxWalked || late() {
			w.complete = false
			return
		}
		list, whole, err := entries(here.path, maxWalked-count)
		if errors.Is(err, fs.ErrPermission) {
			w.closed = append(w.closed, here.path)
			whole = true // nobody can look at it unless its owner changes that; see keepClosed
		}
		count += len(list)
		w.complete = w.complete && whole
		bare := 0
		for _, e := range list {
			switch e.Name() {
			case dotGit:
				bare = -len(list) // not one
				if here.path != root {
					w.repositories = append(w.repositories, here.path)
				}
			case "HEAD", "objects", "refs":
				bare++
			}
		}
		if bare == 3 && here.path != root {
			w.repositories = append(w.repositories, here.path)
			continue
		}
		for _, e := range list {
			switch {
			case !e.IsDir() || e.Name() == dotGit || e.Name() == "node_modules":
			case here.depth == maxWalkDepth:
				w.complete = false
			default:
				if path := filepath.Join(here.path, e.Name()); !slices.Contains(w.kernel, path) {
					queue = append(queue, place{path, here.depth + 1})
				}
			}
		}
	}
}
