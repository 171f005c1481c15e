package bwrap

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"github.com/confine-dev/confine/sandbox"
	"github.com/confine-dev/confine/sandbox/local"
	"github.com/confine-dev/confine/sandbox/view"
)

// extras are the paths of Options that a run gets. They are canonical.
type extras struct {
	readOnly []shown
	devices  []string
	skipped  []Skip
}

// shown is a path and what is there.
type shown struct {
	path string
	file bool
}

// Skip is a path of Options that runs do not get.
type Skip struct {
	Path   string // as it was set
	Reason string
}

func (s Skip) String() string { return s.Path + ": " + s.Reason }

// Skipped lists what Options name and no run would get now: it does not exist,
// is of the wrong kind, or would undo the view.
func (w *Wrapper) Skipped() []Skip {
	if len(w.options.ReadOnly)+len(w.options.Devices) == 0 {
		return nil
	}
	plan, err := view.Of(local.Request{Policy: sandbox.Policy{Mode: sandbox.ReadOnly}})
	if err != nil {
		return nil // nothing runs then
	}
	return w.options.look(plan, "").skipped
}

// look finds out which paths a run gets. state is confine's own folder.
func (o Options) look(plan *view.Plan, state string) (e extras) {
	covered := append(slices.Clone(plan.Hidden), real("/tmp"), view.SharedMemory)
	e.readOnly = e.take(o.ReadOnly, func(set, path string, info fs.FileInfo) string {
		for _, folder := range append(covered, "/dev", "/proc", "/sys") {
			if sandbox.Within(folder, path) {
				return fmt.Sprintf("it would show %q as the host has it", folder)
			}
		}
		for _, folder := range covered {
			if sandbox.Within(path, folder) && !sandbox.Within(set, folder) {
				// A command can make a link where it may write.
				return fmt.Sprintf("it leads into %q, which is hidden; name the path there", folder)
			}
		}
		switch {
		case state != "" && sandbox.Within(path, real(state)):
			return "it belongs to confine"
		case sandbox.Within(path, "/proc"), sandbox.Within(path, "/dev") && !sandbox.Within(path, view.SharedMemory):
			return "it belongs to the kernel"
		case !info.IsDir() && !info.Mode().IsRegular():
			return "it is neither a folder nor a regular file"
		case !info.IsDir() && filepath.Dir(path) == real("/tmp"):
			return "bubblewrap cannot safely show a file at the top of the session's temporary files"
		}
		return ""
	})
	for _, taken := range e.take(o.Devices, func(set, path string, info fs.FileInfo) string {
		switch {
		case info.Mode()&fs.ModeDevice == 0:
			return "it is not a device"
		case path != set && !sandbox.Within(set, "/dev"):
			return "it is a link; name the device"
		case sandbox.Within(path, "/dev/pts"):
			return "it is somebody's terminal"
		}
		return ""
	}) {
		e.devices = append(e.devices, taken.path)
	}
	return e
}

// between lists the folders between what a run may write to and the paths that
// are to stay read-only in it. Each is mounted on itself: a mount point cannot be
// renamed, with which the path would be out of its way.
func (e extras) between(plan *view.Plan) []string {
	var folders []string
	for _, narrowed := range e.readOnly {
		top := ""
		for _, m := range plan.Mounts { // inner ones come later
			if sandbox.Within(narrowed.path, m.Path) {
				if top = ""; m.Writable && m.Source == m.Path && !m.File {
					top = m.Path
				}
			}
		}
		for folder := filepath.Dir(narrowed.path); top != "" && folder != top && sandbox.Within(folder, top); folder = filepath.Dir(folder) {
			folders = append(folders, folder)
		}
	}
	slices.Sort(folders)
	return slices.Compact(folders)
}

// real follows links; a path that leads nowhere stays as it is.
func real(path string) string {
	if path, err := filepath.EvalSymlinks(path); err == nil {
		return path
	}
	return path
}

// usable lists the caches in which nothing has a place of its own, be it granted or
// hidden. The session's layer over another one could hide that place or hold a link
// there; for such a run the cache is the host's, read-only.
func usable(caches []local.Cache, plan *view.Plan, extra extras) []local.Cache {
	return slices.DeleteFunc(slices.Clone(caches), func(c local.Cache) bool {
		return slices.ContainsFunc(plan.Mounts, func(m view.Mount) bool { return m.Path != c.Path && sandbox.Within(m.Path, c.Path) }) ||
			slices.ContainsFunc(extra.readOnly, func(s shown) bool { return sandbox.Within(s.path, c.Path) })
	})
}

// take resolves paths and keeps those for which refuse gives no reason. It is told
// each as it was set and as it is.
func (e *extras) take(paths []string, refuse func(set, path string, info fs.FileInfo) string) (kept []shown) {
	for _, path := range paths {
		target, err := filepath.EvalSymlinks(path)
		var info fs.FileInfo
		if err == nil {
			info, err = os.Stat(target)
		}
		reason := ""
		switch {
		case os.IsNotExist(err):
			reason = "it does not exist"
		case err != nil:
			reason = fmt.Sprintf("it cannot be looked at (%v)", err)
		default:
			reason = refuse(filepath.Clean(path), target, info)
		}
		if reason != "" {
			e.skipped = append(e.skipped, Skip{path, reason})
			continue
		}
		kept = append(kept, shown{target, !info.IsDir()})
	}
	return kept
}
