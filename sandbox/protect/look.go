package protect

import (
	"errors"
	"io/fs"
	"path/filepath"
	"slices"
	"time"

	"github.com/confine-dev/confine/sandbox"
)

// walked is what is known of a root from a walk through it and from looking again at
// folders that have changed since.
type walked struct {
	root         sandbox.Root // as it was declared
	at           time.Time    // when the walk ended
	took         time.Duration
	repositories []string // work trees and bare repositories below the root, outer first
	closed       []string // folders that cannot be listed for want of permission
	complete     bool

	watched   []watched       // folders that were listed, outer first
	folders   map[string]bool // the paths of these
	left      []place         // folders that have changed and are still to be listed
	unwatched bool            // there are more folders than are watched
}

// place is a folder that is to be listed, and how deep in the root it lies.
type place struct {
	path  string
	depth int
}

// watched is a folder that was listed, and what it was before.
type watched struct {
	place
	mark    mark
	settled bool // a change after that would show
}

// refresh lists the folders that have changed, and the new ones in them. The result
// says what holds for the run that begins now.
func (w *walked) refresh(now time.Time, late func() bool) walked {
	queue := w.left
	w.watched = slices.DeleteFunc(w.watched, func(f watched) bool {
		if !f.settled {
			queue = append(queue, f.place)
			return true
		}
		m, ok := markOf(f.path)
		switch {
		case !ok:
			delete(w.folders, f.path)
		case m != f.mark:
			queue = append(queue, f.place)
		}
		return !ok || m != f.mark
	})
	w.left = w.look(queue, now, late)
	known := *w
	known.complete = w.complete && len(w.left) == 0
	return known
}

// look lists folders and those in them that are not known yet, breadth first, so that
// what is cut off lies deep, and returns what was. Links are not followed. Folders of
// packages are left out: they hold thousands of folders, and nobody works in them.
func (w *walked) look(queue []place, now time.Time, late func() bool) (left []place) {
	if len(queue) == 0 {
		return nil
	}
	count := 0
	kernel := mounted().StrayKernel() // commands see nothing there
	for ; len(queue) > 0; queue = queue[1:] {
		here := queue[0]
		if count > maxWalked || late() {
			return queue
		}
		was, there := markOf(here.path) // before it is listed
		if !there {
			delete(w.folders, here.path)
			continue
		}
		list, whole, err := entries(here.path, maxWalked-count)
		if errors.Is(err, fs.ErrPermission) {
			w.closed = with(w.closed, here.path)
			whole = true // nobody can look at it unless its owner changes that; see keepClosed
		}
		count += len(list)
		w.complete = w.complete && whole
		w.watch(here, was, now)
		bare := 0
		for _, e := range list {
			switch e.Name() {
			case dotGit:
				bare = -len(list) // not one
				w.found(here.path)
			case "HEAD", "objects", "refs":
				bare++
			}
		}
		if bare == 3 && here.path != w.root.Path {
			w.found(here.path)
			continue
		}
		for _, e := range list {
			switch {
			case !e.IsDir() || e.Name() == dotGit || e.Name() == "node_modules":
			case here.depth == maxWalkDepth:
				w.complete = false
			default:
				path := filepath.Join(here.path, e.Name())
				if !w.folders[path] && !slices.Contains(kernel, path) {
					queue = append(queue, place{path, here.depth + 1})
				}
			}
		}
	}
	return nil
}

// watch remembers a folder as it was before it was listed.
func (w *walked) watch(here place, was mark, now time.Time) {
	if len(w.watched) >= maxWatched {
		w.unwatched = true
		return
	}
	w.watched = append(w.watched, watched{here, was, sandbox.Settled(was.time(), now)})
	w.folders[here.path] = true
}

// found notes a repository below the root. Of too many, Find tells.
func (w *walked) found(tree string) {
	if tree != w.root.Path && len(w.repositories) < maxRepositories+2 {
		w.repositories = with(w.repositories, tree)
	}
}

// with adds a text to a list, which others may hold, unless it is there.
func with(list []string, text string) []string {
	if slices.Contains(list, text) {
		return list
	}
	return append(slices.Clip(list), text)
}
