package protect

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/confine-dev/confine/sandbox"
)

// Found is what has to stay as it is during a run in workspace-write mode.
type Found struct {
	// Metadata are folders outside the roots that git has to write. The caller
	// closes them.
	Metadata []*sandbox.Root

	// Protected are canonical paths in the roots and in Metadata. One that does
	// not exist is to stay absent.
	Protected []string

	// Missed says why something may be missing from Protected; empty if nothing is.
	Missed string
}

// Finder finds. The zero value is ready. Its methods may be called from several
// goroutines.
type Finder struct {
	mu    sync.Mutex
	walks map[string]*walked // guarded by mu; by root
	own   *own               // guarded by mu
	now   func() time.Time   // nil: time.Now; replaced by tests
}

// Limits of one search.
const (
	maxProtected    = 600 // paths
	maxRepositories = 100 // looked at, besides the roots
	maxWhole        = 4   // of these, in which files of editors and agents are kept absent: each costs a mount
	maxTargets      = 64  // that one repository's configuration names
	maxWorktrees    = 100 // of one repository
	maxModules      = 100 // of one repository
	maxModuleDepth  = 6
	maxIncludes     = 50 // configurations of one repository
)

// Find looks at the roots and at the repositories in and around them. Folders are
// walked at the first call for a root, and again when that was a while ago: otherwise
// it takes a system call for each folder and a few dozen more.
func (f *Finder) Find(roots []*sandbox.Root, forbidden sandbox.Forbidden) Found {
	s := &search{forbidden: forbidden, seen: map[string]bool{}, folders: map[string]resolved{}}
	for _, root := range roots {
		s.places = append(s.places, root.Path)
	}
	var trees, inner []string
	for _, root := range roots {
		above := ""
		if isAbsent(filepath.Join(root.Path, dotGit)) {
			above = s.repositoryAbove(root.Path)
		}
		w := f.walk(root)
		if !w.complete {
			s.miss(fmt.Sprintf("%s has more folders than are looked at, or some that cannot be, and repositories in it may not be protected", strconv.Quote(root.Path)))
		}
		if w.unwatched {
			s.miss(fmt.Sprintf("%s has more folders than every run can look at, and repositories that other programs made in it since %s may not be protected", strconv.Quote(root.Path), w.at.Format(time.TimeOnly)))
		}
		for _, folder := range w.closed {
			s.keepClosed(folder)
		}
		trees, inner = append(trees, root.Path), append(inner, w.repositories...)
		for _, tree := range append([]string{root.Path}, w.repositories...) {
			s.outside(tree, false)
		}
		if above != "" {
			s.outside(above, true)
			s.git(above)
		}
	}
	for i, tree := range append(trees, inner...) {
		if i > len(roots)+maxRepositories {
			s.miss(fmt.Sprintf("only %d repositories of the workspace are protected", maxRepositories))
			break
		}
		s.top(tree, i < len(roots)+maxWhole)
	}
	s.keepOwn(f.ownNames(forbidden))
	return s.found
}

// search is one call of Find.
type search struct {
	forbidden sandbox.Forbidden
	places    []string // that commands can write to
	folders   map[string]resolved
	seen      map[string]bool // paths in found.Protected and git folders that were looked at
	found     Found
}

func (s *search) miss(reason string) {
	if s.found.Missed == "" {
		s.found.Missed = reason
	}
}

// keep protects a path, and what it leads to if it is a link, as far as commands
// can write there. Of a path that permissions hide, the folder is protected that
// hides it: a command can close a folder in one run to open it in the next.
func (s *search) keep(path string) {
	parent, err := s.real(filepath.Dir(path))
	if errors.Is(err, fs.ErrPermission) {
		s.keep(filepath.Dir(path))
	}
	if err != nil {
		return
	}
	path = filepath.Join(parent, filepath.Base(path))
	info, err := os.Lstat(path)
	if errors.Is(err, fs.ErrPermission) && path != parent {
		s.keep(parent)
		return
	}
	if s.seen[path] || !s.writable(path) || s.isPlace(path) {
		return
	}
	if len(s.found.Protected) >= maxProtected {
		s.miss(fmt.Sprintf("only %d paths of the workspace are protected", maxProtected))
		return
	}
	s.seen[path] = true
	s.found.Protected = append(s.found.Protected, path)
	if err == nil && info.Mode().IsRegular() && names(info) > 1 {
		s.miss(fmt.Sprintf("%s has a second name (a hard link), by which it can perhaps be changed", strconv.Quote(path)))
	}
	if err == nil && info.Mode()&os.ModeSymlink != 0 {
		if real, err := filepath.EvalSymlinks(path); err == nil {
			s.keep(real)
		}
	}
}

// real follows the links of a folder, once for all that lies in it.
func (s *search) real(folder string) (string, error) {
	known, ok := s.folders[folder]
	if !ok {
		known.path, known.err = filepath.EvalSymlinks(folder)
		s.folders[folder] = known
	}
	return known.path, known.err
}

// resolved is where a folder really is, or why nobody can tell.
type resolved struct {
	path string
	err  error
}

// keepClosed protects a folder if it cannot be listed, though its owner, whom
// commands run as, could change that.
func (s *search) keepClosed(folder string) {
	info, err := os.Lstat(folder)
	if err != nil || !info.IsDir() || !ours(info) {
		return
	}
	if _, _, err := entries(folder, 1); errors.Is(err, fs.ErrPermission) {
		s.keep(folder)
	}
}

// firstAbsent is the outermost part of a path that does not exist, for nothing can
// be kept absent in a folder that is absent itself; or the path, if it does.
func firstAbsent(path string) string {
	for parent := filepath.Dir(path); isAbsent(parent) && parent != path; parent = filepath.Dir(path) {
		path = parent
	}
	return path
}

// isPlace reports whether protecting a folder would close a root: what is open
// by its own name is meant to be.
func (s *search) isPlace(path string) bool {
	for _, place := range s.places {
		if sandbox.Within(place, path) {
			return true
		}
	}
	return false
}

// top looks at the top of a root or work tree. Files of editors and agents that do
// not exist are left out unless it is whole.
func (s *search) top(tree string, whole bool) {
	for _, name := range slices.Concat(autoRun, alsoRun) {
		path := filepath.Join(tree, name)
		if whole && slices.Contains(autoRun, name) || !isAbsent(path) {
			s.keep(path)
		}
	}
	s.git(tree)
	if isBare(tree) {
		s.folder(tree, tree)
	}
}

// git looks at the .git of a work tree, whatever it is. An absent one is left to
// be made: git init and git clone are ordinary work.
func (s *search) git(tree string) {
	path := filepath.Join(tree, dotGit)
	info, err := os.Lstat(path)
	switch {
	case err != nil:
	case info.IsDir():
		s.folder(path, tree)
	case info.Mode().IsRegular():
		s.keep(path)
		if gitdir, err := readPointer(path, "gitdir: ", tree); err == nil {
			s.folder(gitdir, tree)
		}
	case info.Mode()&os.ModeSymlink != 0:
		s.keep(path)
		if real, err := filepath.EvalSymlinks(path); err == nil {
			s.folder(real, tree)
		}
	default:
		s.keep(path)
	}
}

// folder looks at a git folder, whose work tree is at top.
func (s *search) folder(git, top string) {
	const mark = "\x00" // no path has it
	if s.seen[git+mark] {
		return
	}
	s.seen[git+mark] = true
	at := func(name ...string) string { return filepath.Join(append([]string{git}, name...)...) }
	settings := s.configuration(git, top)
	own := func(folder string) {
		s.keep(filepath.Join(folder, gitCommonDir))
		if extra := filepath.Join(folder, worktreeConfig); settings.perWorktree || !isAbsent(extra) {
			s.keep(extra) // git looks at it only where the configuration says so
		}
	}
	own(git)
	if pointer := at(gitDirPointer); !isAbsent(pointer) {
		s.keep(pointer)
	}
	common, err := readPointer(at(gitCommonDir), "", git)
	if err != nil { // else of a linked worktree, or what covers its absence
		common = git
	}
	s.keep(filepath.Join(common, gitConfig))
	s.keep(filepath.Join(common, gitHooks))
	worktrees, whole, err := entries(at("worktrees"), maxWorktrees)
	if err != nil {
		s.keepClosed(at("worktrees"))
	}
	for _, e := range worktrees {
		if e.IsDir() {
			own(at("worktrees", e.Name()))
			s.keep(at("worktrees", e.Name(), gitDirPointer))
		}
	}
	if !whole {
		s.miss(fmt.Sprintf("%s has more worktrees than are looked at", strconv.Quote(git)))
	}
	for _, target := range settings.targets {
		s.keep(firstAbsent(target))
	}
	left := maxModules
	s.modules(at("modules"), top, maxModuleDepth, &left)
	if left < 0 {
		s.miss(fmt.Sprintf("%s has more submodules than are looked at", strconv.Quote(git)))
	}
}

// modules looks at the git folders of submodules, whose names may have slashes.
func (s *search) modules(folder, top string, depth int, left *int) {
	list, whole, err := entries(folder, maxModules)
	if err != nil {
		s.keepClosed(folder)
	}
	if !whole || depth == 0 && len(list) > 0 {
		*left = -1
	}
	if depth == 0 {
		return
	}
	for _, e := range list {
		if !e.IsDir() || *left < 0 {
			continue
		}
		path := filepath.Join(folder, e.Name())
		if isGitFolder(path) || isOf(filepath.Join(path, gitConfig), 0) {
			*left--
			s.folder(path, filepath.Join(top, e.Name()))
			continue
		}
		s.modules(path, filepath.Join(top, e.Name()), depth-1, left)
	}
}

// isGitFolder knows git's folder by what git itself looks for.
func isGitFolder(path string) bool {
	for _, name := range bareParts {
		if isAbsent(filepath.Join(path, name)) {
			return false
		}
	}
	return true
}

// isBare also knows a bare repository of which a command has taken away what it
// could, to bring it back when the rest is not protected any more.
func isBare(path string) bool {
	return isGitFolder(path) || isAbsent(filepath.Join(path, dotGit)) &&
		isOf(filepath.Join(path, gitConfig), 0) && isOf(filepath.Join(path, gitHooks), fs.ModeDir)
}

// isOf reports whether there is something of a type; 0 is a regular file.
func isOf(path string, kind fs.FileMode) bool {
	info, err := os.Lstat(path)
	return err == nil && info.Mode().Type() == kind
}

func isAbsent(path string) bool {
	_, err := os.Lstat(path)
	return err != nil
}
