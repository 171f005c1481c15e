package server

import (
	"slices"

	"github.com/confine-dev/confine/sandbox"
	"github.com/confine-dev/confine/sandbox/protect"
)

// guarded finds what must not change in the roots, and what git needs outside
// them, anew for each run because repositories and worktrees come and go. The
// folders found stay pinned until the connection ends; the same folder is pinned
// once.
func (f *folders) guarded(roots []*sandbox.Root) protect.Found {
	found := f.finder.Find(roots, f.forbidden)
	f.mu.Lock()
	defer f.mu.Unlock()
	for i, root := range found.Metadata {
		same := func(r *sandbox.Root) bool { return r.Path == root.Path && r.Dev == root.Dev && r.Ino == root.Ino }
		if j := slices.IndexFunc(f.pinned, same); j >= 0 {
			root.Close()
			found.Metadata[i] = f.pinned[j]
		} else {
			f.pinned = append(f.pinned, root)
		}
	}
	return found
}
