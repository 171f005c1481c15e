package server

import (
	"path/filepath"

	"github.com/confine-dev/confine/sandbox"
)

// remoteWarning stands in every question about a command that runs on another machine.
const remoteWarning = "The command runs in a remote sandbox, not on this machine."

// reachable refuses what a provider on another machine cannot give. That a command
// would run on this one instead is never a way out.
func (s *Settings) reachable(p sandbox.Policy) error {
	switch {
	case !s.Elsewhere:
		return nil
	case !p.Mode.Confined():
		return invalid("mode %q runs commands on this machine, and the settings send them to %s: what that cannot do does not run", p.Mode, s.Provider)
	case len(p.Writable)+len(p.Readable) > 0:
		return invalid("files and folders of this machine cannot be granted to commands one by one: the settings send them to %s", s.Provider)
	}
	return nil
}

// remoteDirectory is the working directory in a remote sandbox, which has the
// workspace where it really is.
func (c *client) remoteDirectory(named, dir string, roots []*sandbox.Root) string {
	if named == "" && (len(c.folders.snapshot()) == 0 || dir[0] != '/') {
		return "/" // this machine's home folder, or drive, means nothing there
	}
	real, err := filepath.EvalSymlinks(dir)
	for _, root := range roots {
		if err == nil && sandbox.Within(real, root.Path) {
			return real
		}
	}
	return dir
}
