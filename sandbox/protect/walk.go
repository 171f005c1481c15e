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

// Limits of a walk, and for how long it is believed: so long that walking never
// takes more than a small part of the time.
const (
	maxWalked    = 300_000 // files and folders
	maxWalkTime  = 2 * time.Second
	walkHolds    = 30 * time.Second
	walkShare    = 200 // at most the 200th part of the time is spent walking
	maxWalkDepth = 32

	maxWatched     = 20_000 // folders that each run looks at for changes
	maxRefreshTime = 200 * time.Millisecond
)

// walk returns what is known of a root, walking if it must. Otherwise only folders
// that have changed are listed again: a repository that somebody else made since the
// last run is not to wait for the next walk.
func (f *Finder) walk(root *sandbox.Root) walked {
	now := f.clock()
	f.mu.Lock()
	defer f.mu.Unlock()
	known := f.walks[root.Path]
	if known != nil && (known.root.Dev != root.Dev || known.root.Ino != root.Ino) {
		known = nil // another folder
	}
	start := now()
	if known != nil && start.Sub(known.at) < max(walkHolds, walkShare*known.took) {
		return known.refresh(start, func() bool { return now().Sub(start) > maxRefreshTime })
	}
	w := &walked{root: sandbox.Root{Path: root.Path, Dev: root.Dev, Ino: root.Ino}, folders: map[string]bool{}}
	w.complete = true // unless look finds otherwise
	left := w.look([]place{{root.Path, 0}}, start, func() bool { return now().Sub(start) > maxWalkTime })
	w.complete = w.complete && len(left) == 0
	if known != nil {
		w.repositories = knownFirst(known.repositories, w.repositories)
	}
	w.at = now()
	w.took = w.at.Sub(start)
	if f.walks == nil {
		f.walks = map[string]*walked{}
	}
	f.walks[root.Path] = w
	found := *w
	found.unwatched = false // nothing of it is older than the run
	return found
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
			if (base == dotGit || base == bareParts[0]) && sandbox.Within(tree, w.root.Path) {
				w.found(tree)
			}
		}
	}
}
