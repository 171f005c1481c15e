package view

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"

	"github.com/confine-dev/confine/sandbox"
	"github.com/confine-dev/confine/sandbox/local"
)

// Check refuses what no provider for Linux can give yet, or must never: with
// namespaces and without. Of does the same and more.
func Check(r local.Request) error {
	p := r.Policy
	if !p.Mode.Confined() {
		return fmt.Errorf("mode %q confines nothing", p.Mode)
	}
	if err := checkUnreadable(p); err != nil {
		return err
	}
	state := real(r.State)
	for _, root := range grants(p) {
		if reason := ungrantable(root); reason != "" {
			return refusedGrant(root, reason)
		}
		if sandbox.Within(root.Path, state) || sandbox.Within(state, root.Path) {
			return refusedGrant(root, "confine keeps its own files there")
		}
	}
	return nil
}

// grants are all that was granted one by one.
func grants(p sandbox.Policy) []*sandbox.Root { return slices.Concat(p.Writable, p.Readable) }

func refusedGrant(root *sandbox.Root, reason string) error {
	return fmt.Errorf("%s cannot be granted: %s", strconv.Quote(root.Path), reason)
}

// ungrantable says why something can never be granted one by one; empty if it
// can. Whether it is still the same is compared in the child.
func ungrantable(root *sandbox.Root) string {
	for _, kernel := range []string{"/proc", "/sys", "/dev"} {
		if sandbox.Within(root.Path, kernel) && !(sandbox.Within(root.Path, SharedMemory) && root.Path != SharedMemory) {
			return "it belongs to the kernel"
		}
	}
	info, err := os.Lstat(root.Path)
	switch {
	case err != nil:
		return fmt.Sprintf("it cannot be found any more (%v)", err)
	case root.File && !info.Mode().IsRegular():
		return "it is not a regular file"
	case !root.File && !info.IsDir():
		return "it is not a folder"
	}
	return ""
}

// checkHidden refuses grants that would bring back services: a hidden folder as
// a whole, and a folder in one that holds a socket, for a mount does not keep
// anybody from connecting.
func (p *Plan) checkHidden(policy sandbox.Policy, hidden []string) error {
	for _, root := range grants(policy) {
		for _, folder := range hidden {
			if sandbox.Within(folder, root.Path) {
				return refusedGrant(root, fmt.Sprintf("it would show all of %s, where services of the host keep their sockets", strconv.Quote(folder)))
			}
		}
		if !root.File && p.Covered(root.Path) {
			if reason := special(root.Path); reason != "" {
				return refusedGrant(root, reason)
			}
		}
	}
	return nil
}

// maxLooked bounds how many files of a folder are looked at.
const maxLooked = 20000

// special says where in a folder there is something else than files, folders
// and links; empty if nowhere. What this user cannot list, its commands cannot
// either.
func special(folder string) (reason string) {
	looked := 0
	filepath.WalkDir(folder, func(path string, d fs.DirEntry, err error) error {
		looked++
		switch {
		case looked > maxLooked:
			reason = fmt.Sprintf("it holds more than %d files, too many to make sure that no socket is among them", maxLooked)
		case err == nil && d.Type()&^(fs.ModeDir|fs.ModeSymlink) != 0:
			reason = fmt.Sprintf("%s in it is not a regular file", strconv.Quote(path))
		default:
			return nil
		}
		return filepath.SkipAll
	})
	return reason
}
