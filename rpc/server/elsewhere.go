package server

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"github.com/confine-dev/confine/sandbox"
)

// elsewhere reports whether git, in a folder, may find another repository than in
// the workspace folder or working directory around it: that one's configuration can
// be a command's work, or come with what was cloned, and name programs to run.
func (c *client) elsewhere(dir string, s *Settings) bool {
	var homes []string
	if usual, err := c.folders.workingDirectory(); err == nil {
		homes = append(homes, sandbox.Canonical(usual))
	}
	for _, root := range c.roots(s) {
		homes = append(homes, root.Path)
	}
	dir = sandbox.Canonical(dir)
	if dir == filepath.Dir(dir) { // nothing is above it, and no command can make anything in it
		return holdsRepository(dir)
	}
	for ; !slices.Contains(homes, dir); dir = filepath.Dir(dir) {
		if dir == filepath.Dir(dir) || holdsRepository(dir) {
			return true
		}
	}
	return false
}

// holdsRepository reports whether git may take a folder for one with a repository; a
// bare one has no .git.
func holdsRepository(dir string) bool {
	for _, name := range []string{".git", "HEAD"} {
		if _, err := os.Lstat(filepath.Join(dir, name)); !errors.Is(err, fs.ErrNotExist) {
			return true
		}
	}
	return false
}
