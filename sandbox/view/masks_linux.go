package view

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"syscall"

	"github.com/confine-dev/confine/sandbox"
	"github.com/confine-dev/confine/sandbox/mounts"
)

// nothing is shown in place of a file that is hidden. In a view, where there are
// no devices but those of /dev, nobody can open it, root included.
const nothing = "/dev/null"

// Hides reports whether a mount hides what the host has there, in place of
// showing something.
func (m Mount) Hides() bool {
	return !m.Writable && (m.Source == "" || m.Source == nothing && m.Path != nothing)
}

// Holds reports whether other mounts have their places in a folder that a mount
// hides: then these must be made in it.
func (p *Plan) Holds(m Mount) bool {
	return slices.ContainsFunc(p.Mounts, func(inner Mount) bool { return inner.Path != m.Path && sandbox.Within(inner.Path, m.Path) })
}

// Steady reports whether no command can change what lies on the way to the place
// of a mount, or has to make it.
func (p *Plan) Steady(m Mount) bool {
	_, missing := p.Place(m)
	return !missing && !slices.ContainsFunc(p.Mounts, func(outer Mount) bool {
		return outer.Writable && outer.Path != m.Path && sandbox.Within(m.Path, outer.Path)
	})
}

// checkUnreadable refuses to hide what no command can do without.
func checkUnreadable(policy sandbox.Policy) error {
	for _, path := range policy.Unreadable {
		for _, kernel := range []string{"/proc", "/dev"} {
			if !filepath.IsAbs(path) || sandbox.Within(kernel, path) {
				return fmt.Errorf("%s cannot be hidden: commands need %s", strconv.Quote(path), kernel)
			}
		}
	}
	return nil
}

// unreadable returns what is to be hidden and exists, outer before inner: what the
// policy names, and file systems of the kernel where they do not belong. A command
// that runs in the same session can change links only in a root, and no link is
// followed when a mount gets its place.
func unreadable(policy sandbox.Policy) ([]string, error) {
	var paths []string
	for _, path := range policy.Unreadable {
		info, err := os.Lstat(path)
		if absent(err) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("%s cannot be hidden: %w", strconv.Quote(path), err)
		}
		if path = filepath.Clean(path); info.Mode()&os.ModeSymlink != 0 {
			path = real(path)
		}
		if !sandbox.Within(path, "/dev") || sandbox.Within(path, SharedMemory) { // commands have their own devices
			paths = append(paths, path)
		}
	}
	table, err := mounted()
	if err != nil {
		return nil, fmt.Errorf("finding what is mounted, and other names of what is to be hidden: %w", err)
	}
	if err := checkRoots(table, policy); err != nil {
		return nil, err
	}
	paths = append(withAliases(paths, table, policy.Roots), strayKernel(table)...)
	slices.Sort(paths)
	return slices.Compact(paths), nil
}

// withAliases adds the names that paths have by other mounts of their file
// systems. Those that would hide a root with what it lies in are left out.
func withAliases(paths []string, table mounts.Table, roots []*sandbox.Root) []string {
	all := slices.Clone(paths)
	for _, path := range paths {
		for _, alias := range table.Aliases(path) {
			if !slices.ContainsFunc(roots, func(r *sandbox.Root) bool { return r.Path == alias }) {
				all = append(all, alias)
			}
		}
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// absent reports whether an error says that there is nothing of a name. Any other
// leaves that open, and permissions can be changed by commands.
func absent(err error) bool {
	return errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR)
}

// masked reports whether a path is, or is in, what is to be hidden, though its
// surroundings may be shown.
func (b *builder) masked(path string) bool {
	m, ok := b.around(path)
	return slices.ContainsFunc(b.masks, func(mask string) bool {
		over := !ok || sandbox.Within(mask, m.Path) && !(mask == m.Path && b.grants(m))
		return over && sandbox.Within(path, mask)
	})
}

// shown reports whether a command would see what the host has at a path.
func (b *builder) shown(path string) bool {
	if m, ok := b.around(path); ok {
		return m.own()
	}
	return !b.plan.Covered(path)
}

// hide covers what is to be unreadable. Of equal paths a grant counts more. What
// lies in a writable folder cannot be moved away, so that the next run finds it.
func (b *builder) hide() error {
	for _, path := range b.masks {
		outer, ok := b.around(path)
		if ok && outer.Path == path && b.grants(outer) || !b.shown(path) {
			continue
		}
		info, err := os.Lstat(path)
		if absent(err) {
			continue
		}
		if err != nil {
			return fmt.Errorf("%s cannot be hidden: %w", strconv.Quote(path), err)
		}
		if outer.Writable && outer.Path != path {
			if err := b.between(path); err != nil {
				return fmt.Errorf("%s cannot be hidden: a folder on the way to it was just replaced (%w)", strconv.Quote(path), err)
			}
		}
		b.forgetIn(path)
		m := Mount{Path: path, Why: why("hiding", path)}
		if !info.IsDir() {
			m.Source, m.File = nothing, true
		}
		b.add(m)
	}
	// What lies in a hidden folder needs no cover of its own, and has no place for one.
	b.plan.Hidden = slices.DeleteFunc(b.plan.Hidden, func(folder string) bool {
		m, ok := b.around(folder)
		return ok && m.Hides()
	})
	return nil
}

// grants reports whether a mount is what was granted one by one.
func (b *builder) grants(m Mount) bool {
	return m.Root != nil && slices.Contains(grants(b.request.Policy), m.Root)
}

// forgetIn drops the mounts below a folder that is to be hidden which only say
// how what is there may be used. Declared and granted ones stay, with theirs.
func (b *builder) forgetIn(folder string) {
	kept := folder
	b.plan.Mounts = slices.DeleteFunc(b.plan.Mounts, func(m Mount) bool {
		if m.Path == folder || !sandbox.Within(m.Path, folder) || kept != folder && sandbox.Within(m.Path, kept) {
			return false
		}
		if m.Root != nil && slices.Contains(b.request.Policy.Roots, m.Root) || b.grants(m) {
			kept = m.Path // sorted: what lies in it comes next
			return false
		}
		return m.own() || m.Root != nil
	})
}
