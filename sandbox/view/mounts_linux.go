package view

import (
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/confine-dev/confine/sandbox"
	"github.com/confine-dev/confine/sandbox/local"
)

// builder fills in the mounts of a plan. What comes later knows what is there
// already and takes its place.
type builder struct {
	plan    *Plan
	request local.Request
	writes  bool     // the roots are writable
	masks   []string // what is to be hidden, outer before inner
}

// add puts a mount among the others, in place of one with the same path.
func (b *builder) add(m Mount) {
	i, found := slices.BinarySearchFunc(b.plan.Mounts, m.Path, func(have Mount, path string) int { return strings.Compare(have.Path, path) })
	if found {
		b.plan.Mounts[i] = m
		return
	}
	b.plan.Mounts = slices.Insert(b.plan.Mounts, i, m) // a folder's path begins those of what is in it, and so comes first
}

// around is the innermost mount that holds a path.
func (b *builder) around(path string) (m Mount, ok bool) {
	for _, outer := range b.plan.Mounts {
		if sandbox.Within(path, outer.Path) {
			m, ok = outer, true // inner ones come later
		}
	}
	return m, ok
}

// temporary is the session's /tmp. In read-only mode nothing is kept, and the
// run gets one of its own.
func (b *builder) temporary() {
	m := Mount{Path: b.plan.tmp, Writable: true, Why: "making temporary files"}
	if b.writes {
		m.Source, m.Why = b.request.Tmp, "showing the session's temporary files"
	}
	b.add(m)
}

// roots are writable or, in read-only mode, shown where they would be hidden.
func (b *builder) roots() {
	for _, root := range b.request.Policy.Roots {
		if b.writes || b.plan.Covered(root.Path) || b.masked(root.Path) {
			b.add(declared("binding the workspace folder", root, b.writes))
		}
	}
}

// granted are what was granted one by one. What can be written anyway gets no
// mount: a file that is one can be neither renamed nor removed.
func (b *builder) granted() {
	byPath := func(a, b *sandbox.Root) int { return strings.Compare(a.Path, b.Path) }
	for _, root := range slices.SortedFunc(slices.Values(b.request.Policy.Writable), byPath) {
		if m, ok := b.around(root.Path); !ok || !m.Writable || !m.own() || b.masked(root.Path) {
			b.add(declared("granting writes to", root, true))
		}
	}
	for _, root := range slices.SortedFunc(slices.Values(b.request.Policy.Readable), byPath) {
		if !b.shown(root.Path) || b.masked(root.Path) {
			b.add(declared("showing", root, false))
		}
	}
}

// caches are the session's layers of the tool caches: what is written to them
// never reaches the host. Where the host's own were granted there is no layer.
func (b *builder) caches() {
	for _, c := range b.request.Caches {
		if m, ok := b.around(c.Path); ok && (m.Hides() || m.Root != nil && m.Writable) {
			continue
		}
		b.add(Mount{Path: c.Path, Source: c.Layer, Writable: true, Why: why("opening the cache", c.Path)})
	}
}

// visible are what would be hidden though the command needs it.
func (b *builder) visible() {
	ordinary := func(mode os.FileMode) bool { return mode.IsDir() || mode.IsRegular() }
	for _, path := range b.request.Visible {
		b.show(real(path), ordinary)
	}
	for _, path := range systemPaths {
		if path = real(path); !b.masked(path) {
			b.show(path, ordinary)
		}
	}
	// A folder here would be one of host services, and what is to be unreadable
	// is not to be had by running it.
	if program := real(b.request.Program); !b.masked(program) {
		b.show(program, func(mode os.FileMode) bool { return mode.IsRegular() && mode&0o111 != 0 })
	}
}

// show shows what is at a canonical path, if it is hidden and of an accepted mode.
func (b *builder) show(path string, accept func(os.FileMode) bool) {
	m, ok := b.around(path)
	switch {
	case slices.Contains(b.plan.covers(), path):
		return
	case ok && m.own():
		return // comes along
	case !b.plan.Covered(path) && !(ok && m.Hides()):
		return
	}
	info, err := os.Stat(path)
	if err != nil || !accept(info.Mode()) {
		return
	}
	b.add(Mount{Path: path, Source: path, File: !info.IsDir(), Why: why("showing", path)})
}

// uncovered is an error if a mount would lie over what covers something.
func (b *builder) uncovered() error {
	for _, folder := range append(slices.Clone(b.plan.Hidden), SharedMemory) {
		if m, ok := b.around(folder); ok && m.Path != folder {
			return fmt.Errorf("%s cannot be shown: it holds %s, which is to be hidden", strconv.Quote(m.Path), strconv.Quote(folder))
		}
	}
	return nil
}

// declared is the mount of what was declared, which is compared.
func declared(doing string, root *sandbox.Root, writable bool) Mount {
	return Mount{Path: root.Path, Source: root.Path, File: root.File, Writable: writable, Root: root, Why: why(doing, root.Path)}
}

func why(doing, path string) string { return doing + " " + strconv.Quote(path) }
