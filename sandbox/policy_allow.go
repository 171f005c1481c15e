package sandbox

import (
	"path/filepath"
	"slices"
)

// MayWrite reports whether the policy lets a command write a file of the host.
// path is absolute, clean and without links. The longest place around it
// decides: a root, a granted file or folder, a protected path; of equal ones the
// grant. What every command has of its own, such as /tmp, is not asked about.
func (p Policy) MayWrite(path string) bool {
	if !p.Mode.Confined() {
		return true
	}
	length, writable := -1, false
	look := func(place string, verdict bool) {
		if place = filepath.Clean(place); len(place) >= length && Within(path, place) {
			length, writable = len(place), verdict
		}
	}
	if p.Mode == WorkspaceWrite {
		for _, root := range p.Roots {
			look(root.Path, true)
		}
	}
	for _, protected := range p.Protected {
		look(protected, false)
	}
	for _, granted := range p.Writable {
		look(granted.Path, true)
	}
	return writable
}

// MayRead reports whether a command can read a file of the host, as far as the
// policy and the places that commands see empty tell. path is absolute, clean
// and without links.
func (p Policy) MayRead(path string) bool {
	if !p.Mode.Confined() {
		return true
	}
	length, readable := -1, true
	look := func(place string, verdict bool) {
		if place = filepath.Clean(place); len(place) >= length && Within(path, place) {
			length, readable = len(place), verdict
		}
	}
	for _, place := range slices.Concat(servicePlaces(), ownPlaces) {
		look(place, false)
	}
	for _, root := range slices.Concat(p.Roots, p.Writable) {
		look(root.Path, true)
	}
	for _, hidden := range p.Unreadable {
		look(hidden, false)
	}
	for _, granted := range p.Readable {
		look(granted.Path, true)
	}
	return readable
}
