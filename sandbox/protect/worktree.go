package protect

import (
	"errors"
	"os"
	"path/filepath"
	"slices"

	"github.com/confine-dev/confine/sandbox"
)

// worktreeParts are the folders of a repository that a commit in a linked
// worktree writes to. Its configuration and hooks are not among them: they run
// programs for everybody who uses the repository.
var worktreeParts = []string{"objects", "refs", "logs"}

var errNoWorktree = errors.New("not a linked worktree")

// linkedWorktree returns the folder of a worktree in its repository and the
// repository's own, both canonical. A .git file is written by commands and
// proves nothing. It is believed only if the repository points back at exactly
// this file (gitrepository-layout(5), worktrees/<id>/gitdir).
func linkedWorktree(folder string) (gitdir, common string, err error) {
	pointer := filepath.Join(folder, dotGit)
	info, err := os.Lstat(pointer)
	if err != nil || !info.Mode().IsRegular() {
		return "", "", errNoWorktree
	}
	target, err := readPointer(pointer, "gitdir: ", folder)
	if err != nil {
		return "", "", err
	}
	common, err = readPointer(filepath.Join(target, gitCommonDir), "", target)
	if err != nil {
		return "", "", err
	}
	back, err := readPointer(filepath.Join(target, gitDirPointer), "", target)
	if err != nil {
		return "", "", err
	}
	if back != pointer || filepath.Dir(target) != filepath.Join(common, "worktrees") {
		return "", "", errNoWorktree
	}
	return target, common, nil
}

// outside opens what git must write outside the roots for the work tree at top:
// of a linked worktree its own folder and the repository's objects, refs and
// logs; of a workspace inside a repository, and only then, that repository's git
// folder. What is opened is protected like what lies in a root.
func (s *search) outside(top string, above bool) {
	var paths []string
	switch gitdir, common, err := linkedWorktree(top); {
	case err == nil:
		paths = []string{gitdir}
		for _, part := range worktreeParts {
			paths = append(paths, filepath.Join(common, part))
		}
	case above:
		folder := filepath.Join(top, dotGit)
		if info, err := os.Lstat(folder); err != nil || !info.IsDir() || !isGitFolder(folder) {
			return
		}
		paths = []string{folder}
	}
	for _, path := range paths {
		if s.writable(path) {
			continue
		}
		found, err := sandbox.DeclareRoot(path, s.forbidden)
		switch {
		case err != nil:
		case found.Path != path:
			_ = found.Close() // a link leads elsewhere
		default:
			s.found.Metadata = append(s.found.Metadata, found)
			s.places = append(s.places, path)
		}
	}
}

// repositoryAbove is the work tree around a root, as git finds it; empty if there
// is none, or if it is so wide that it is not meant: the home folder, for example.
func (s *search) repositoryAbove(root string) string {
	for folder := filepath.Dir(root); ; folder = filepath.Dir(folder) {
		if folder == filepath.Dir(folder) || s.holdsHome(folder) {
			return ""
		}
		if _, err := os.Lstat(filepath.Join(folder, dotGit)); err == nil {
			return folder
		}
	}
}

func (s *search) holdsHome(folder string) bool {
	home := s.forbidden.Home
	if real, err := filepath.EvalSymlinks(home); err == nil {
		home = real
	}
	return home != "" && sandbox.Within(home, folder)
}

// writable reports whether a path lies where commands can write.
func (s *search) writable(path string) bool {
	return slices.ContainsFunc(s.places, func(place string) bool { return sandbox.Within(path, place) })
}
