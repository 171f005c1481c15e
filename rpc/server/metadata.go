package server

import (
	"slices"

	"github.com/confine-dev/confine/sandbox"
)

// metadata finds what git needs outside the roots, anew for each run because
// worktrees come and go. The folders found stay pinned until the connection
// ends; the same folder is pinned once.
func (f *folders) metadata(roots []*sandbox.Root) (extra []*sandbox.Root, protected []string) {
	found, protected := sandbox.GitMetadata(roots, f.forbidden)
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, root := range found {
		same := func(r *sandbox.Root) bool { return r.Path == root.Path && r.Dev == root.Dev && r.Ino == root.Ino }
		if i := slices.IndexFunc(f.pinned, same); i >= 0 {
			root.Close()
			root = f.pinned[i]
		} else {
			f.pinned = append(f.pinned, root)
		}
		extra = append(extra, root)
	}
	return extra, protected
}
