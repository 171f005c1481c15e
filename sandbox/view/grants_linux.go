package view

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"

	"github.com/confine-dev/confine/sandbox"
)

// Check refuses what no provider for Linux can give yet, or must never: with
// namespaces and without.
func Check(p sandbox.Policy) error {
	if !p.Mode.Confined() {
		return fmt.Errorf("mode %q confines nothing", p.Mode)
	}
	if len(p.Unreadable) > 0 {
		return fmt.Errorf("hiding files from commands is not available yet")
	}
	if path := deepProtected(p); path != "" {
		return fmt.Errorf("keeping %s read-only is not available yet: its folder could be renamed, and another put there", strconv.Quote(path))
	}
	for _, root := range slices.Concat(p.Writable, p.Readable) {
		if reason := ungrantable(root); reason != "" {
			return refusedGrant(root, reason)
		}
	}
	return nil
}

func refusedGrant(root *sandbox.Root, reason string) error {
	return fmt.Errorf("%s cannot be granted: %s", strconv.Quote(root.Path), reason)
}

// deepProtected is a protected path that does not lie at the top of a writable
// folder. A mount keeps what it covers from being renamed, not what lies above.
func deepProtected(p sandbox.Policy) string {
	writable := p.RootPaths()
	for _, root := range p.Writable {
		writable = append(writable, root.Path)
	}
	for _, path := range p.Protected {
		top := slices.Contains(writable, path) || slices.Contains(writable, filepath.Dir(path))
		if !top && slices.ContainsFunc(writable, func(w string) bool { return sandbox.Within(path, w) }) {
			return path
		}
	}
	return ""
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

// checkGrants refuses to show a hidden folder as a whole, which would bring
// back every socket in it, and anything of confine's own folder, state.
func checkGrants(policy sandbox.Policy, hidden []string, state string) error {
	for _, root := range slices.Concat(policy.Writable, policy.Readable) {
		if sandbox.Within(root.Path, state) {
			return refusedGrant(root, "confine keeps its own files there")
		}
		for _, folder := range hidden {
			if sandbox.Within(folder, root.Path) {
				return refusedGrant(root, fmt.Sprintf("it would show all of %s, where the host's services or confine itself keep what commands must not reach", strconv.Quote(folder)))
			}
		}
	}
	return nil
}
