package approval

import (
	"slices"

	"github.com/confine-dev/confine/sandbox"
)

// gain is what a wanted policy allows beyond the one in force.
type gain struct {
	mode      bool     // the mode is not the same and not narrower
	network   bool     // the network becomes reachable
	writable  []string // roots that were not writable
	unguarded []string // protected paths that become writable
	readable  []string // hidden paths that become readable

	write, read []*sandbox.Root // files and folders that are opened one by one
}

// none reports whether nothing is gained, so that there is nothing to ask.
func (g gain) none() bool {
	return !g.mode && !g.network && len(g.writable)+len(g.unguarded)+len(g.readable)+len(g.write)+len(g.read) == 0
}

// gained compares two policies. It errs on the side of a gain: what it cannot
// see to be the same or narrower is asked.
func gained(have, want sandbox.Policy) gain {
	if have.Mode != want.Mode && !have.Mode.Confined() && want.Mode.Confined() {
		return gain{} // nothing confined allows more than no sandbox of ours
	}
	g := gain{mode: want.Mode != have.Mode && !have.Mode.WiderThan(want.Mode)}
	if !want.Mode.Confined() {
		return g // the rest of a policy means nothing without a sandbox
	}
	g.network = want.Network && !have.Network
	for _, path := range have.Unreadable {
		if !covered(path, want.Unreadable) {
			g.readable = append(g.readable, path)
		}
	}
	for _, root := range want.Writable {
		if !has(have.Writable, root) && !freely(have, root.Path) {
			g.write = append(g.write, root)
		}
	}
	for _, root := range want.Readable {
		if !has(have.Readable, root) {
			g.read = append(g.read, root)
		}
	}
	if want.Mode != sandbox.WorkspaceWrite {
		return g
	}
	for _, root := range want.Roots {
		if have.Mode != sandbox.WorkspaceWrite || !has(have.Roots, root) {
			g.writable = append(g.writable, root.Path)
		}
	}
	for _, path := range have.Protected {
		if covered(path, want.RootPaths()) && !covered(path, want.Protected) {
			g.unguarded = append(g.unguarded, path)
		}
	}
	return g
}

// has matches the same folder or file, not merely the same name: a root that was
// replaced is another root.
func has(roots []*sandbox.Root, a *sandbox.Root) bool {
	return slices.ContainsFunc(roots, func(b *sandbox.Root) bool { return a.Path == b.Path && a.Dev == b.Dev && a.Ino == b.Ino })
}

// freely reports whether all of a path is writable without a grant.
func freely(have sandbox.Policy, path string) bool {
	if have.Mode != sandbox.WorkspaceWrite || !covered(path, have.RootPaths()) {
		return false
	}
	return !slices.ContainsFunc(have.Protected, func(p string) bool { return sandbox.Within(path, p) || sandbox.Within(p, path) })
}

func covered(path string, folders []string) bool {
	return slices.ContainsFunc(folders, func(folder string) bool { return sandbox.Within(path, folder) })
}
