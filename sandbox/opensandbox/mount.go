package opensandbox

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/confine-dev/confine/sandbox"
)

// maxVolumes bounds what is mounted into one sandbox.
const maxVolumes = 100

// mounts plans what the service mounts: the roots, as the mode lets commands use them,
// and in them what commands must not change, with each folder on the way to it, so
// that none can be renamed away. Outer ones come first.
func (p *Provider) mounts(policy sandbox.Policy) ([]volume, error) {
	if p.config.Workspace != WorkspaceMount {
		return nil, nil
	}
	readOnly := map[string]bool{}
	for _, root := range policy.Roots {
		for _, hidden := range policy.Unreadable {
			if sandbox.Within(hidden, root.Path) {
				return nil, unusable(policy, fmt.Sprintf("%q is hidden from commands and lies in the workspace, which a service can mount as a whole only", hidden),
					`set sandbox_workspace = "upload", which leaves it out`)
			}
		}
		readOnly[root.Path] = policy.Mode != sandbox.WorkspaceWrite
	}
	if policy.Mode == sandbox.WorkspaceWrite {
		for _, path := range policy.Protected {
			closePath(readOnly, policy.Roots, path)
		}
	}
	if len(readOnly) > maxVolumes {
		return nil, unusable(policy, fmt.Sprintf("the workspace has %d files and folders that must stay as they are, and a service is given %d mounts at most", len(readOnly), maxVolumes),
			`set sandbox_workspace = "upload", or open a smaller folder`)
	}
	paths := make([]string, 0, len(readOnly))
	for path := range readOnly {
		paths = append(paths, path)
	}
	slices.Sort(paths) // a folder comes before what is in it
	var volumes []volume
	for i, path := range paths {
		v := volume{Name: fmt.Sprintf("confine-%d", i), MountPath: path, ReadOnly: readOnly[path]}
		v.Host.Path = path
		volumes = append(volumes, v)
	}
	return volumes, nil
}

// closePath adds a path that stays read-only. What does not exist, and what is a link,
// cannot be mounted: it is looked at after the run.
func closePath(readOnly map[string]bool, roots []*sandbox.Root, path string) {
	if info, err := os.Lstat(path); err != nil || !info.IsDir() && !info.Mode().IsRegular() {
		return
	}
	for _, root := range roots {
		if !sandbox.Within(path, root.Path) {
			continue
		}
		readOnly[path] = true
		for dir := filepath.Dir(path); sandbox.Within(dir, root.Path); dir = filepath.Dir(dir) {
			if _, known := readOnly[dir]; !known {
				readOnly[dir] = false
			}
		}
	}
}

// rootsOnly are the roots that lie in no other.
func rootsOnly(policy sandbox.Policy) []string {
	var tops []string
	for _, path := range policy.RootPaths() {
		inner := slices.ContainsFunc(policy.Roots, func(o *sandbox.Root) bool { return o.Path != path && sandbox.Within(path, o.Path) })
		if !inner && !slices.Contains(tops, path) && strings.HasPrefix(path, "/") {
			tops = append(tops, path)
		}
	}
	return tops
}
