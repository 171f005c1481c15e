package landlock

import (
	"github.com/confine-dev/confine/sandbox/local"
	"github.com/confine-dev/confine/sandbox/view"
	"golang.org/x/sys/unix"
)

// roomy reports whether a mount hides a folder but gets places for others.
func (w writer) roomy(m view.Mount) bool { return m.Source == "" && m.Hides() && w.plan.Holds(m) }

// copies are, by the index of a mount that hides something, the path of an
// earlier one that looks the same, of which it can be a copy: one call in place of
// many. Where a command could make links on the way each gets its own. One that
// may not come to be is copied by nobody.
func (w writer) copies() []string {
	copied := make([]string, len(w.plan.Mounts))
	patterns := map[bool]string{} // by whether they hide files
	for i, m := range w.plan.Mounts {
		switch pattern := patterns[m.File]; {
		case !m.Hides() || w.roomy(m) || !w.plan.Steady(m):
		case pattern != "":
			copied[i] = pattern
		case !m.Fleeting:
			patterns[m.File] = m.Path
		}
	}
	return copied
}

// copy mounts, at the place of m, what is mounted at pattern, as read-only and
// without devices as it is there.
func (w writer) copy(m view.Mount, pattern string) {
	w.s.Call(m.Why, unix.SYS_MOUNT, local.Text(pattern), local.Text(m.Path), local.Int(0), local.Int(unix.MS_BIND), local.Int(0))
	if m.Fleeting {
		w.s.Ignore(unix.ENOENT)
	}
}
