package protect

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"syscall"

	"github.com/confine-dev/confine/sandbox"
)

// settings are what a repository's configuration says.
type settings struct {
	perWorktree bool     // worktrees have a configuration of their own
	targets     []string // what it names: hooks, configurations, programs
}

// configuration reads the configuration of a git folder and all that it
// includes, whatever the conditions.
func (s *search) configuration(git, top string) settings {
	var found settings
	queue := []string{filepath.Join(git, gitConfig), filepath.Join(git, worktreeConfig)}
	if common, err := readPointer(filepath.Join(git, gitCommonDir), "", git); err == nil && common != git {
		queue = append(queue, filepath.Join(common, gitConfig)) // of a linked worktree
	}
	if home, err := os.UserHomeDir(); err == nil {
		// Hooks that are set for all repositories may lie in each.
		queue = append(queue, filepath.Join(home, ".gitconfig"), filepath.Join(home, ".config/git/config"))
	}
	for i := 0; i < len(queue); i++ {
		if i == maxIncludes {
			s.miss(fmt.Sprintf("the configuration of %s includes more files than are looked at", strconv.Quote(git)))
			break
		}
		data, whole, err := readSome(real(queue[i]), maxConfig)
		if unknown(err) && (s.writable(queue[i]) || !errors.Is(err, fs.ErrPermission)) {
			s.miss(fmt.Sprintf("%s cannot be read", strconv.Quote(queue[i])))
		}
		if err == nil && !whole {
			s.miss(fmt.Sprintf("%s is larger than what is looked at", strconv.Quote(queue[i])))
		}
		list := parseConfig(string(data))
		if i == 0 {
			top = workTree(list, git, top)
		}
		for _, e := range list {
			for _, target := range s.targets(e, filepath.Dir(queue[i]), top) {
				if len(found.targets) == maxTargets {
					s.miss(fmt.Sprintf("the configuration of %s names more files than are looked at", strconv.Quote(git)))
					break
				}
				found.targets = append(found.targets, target)
			}
			if e.section == "include" || e.section == "includeif" {
				if path := expand(e.value, filepath.Dir(queue[i])); e.key == "path" && !slices.Contains(queue, path) {
					queue = append(queue, path)
				}
			}
			if e.section == "extensions" && e.key == "worktreeconfig" && e.value != "false" {
				found.perWorktree = true
			}
		}
	}
	return found
}

// unknown reports whether an error leaves open what a configuration says.
func unknown(err error) bool {
	return err != nil && !noFolder(err) && err != errNotRegular && !errors.Is(err, syscall.EISDIR) && !errors.Is(err, syscall.ENXIO)
}

// workTree is where the work tree is, which a submodule's git folder says itself.
func workTree(list []entry, git, top string) string {
	for _, e := range list {
		if e.section == "core" && e.key == "worktree" {
			top = expand(e.value, git)
		}
	}
	return top
}

// targets are the paths that an entry names and commands can write to.
func (s *search) targets(e entry, base, top string) (list []string) {
	switch {
	case e.section == "core" && e.key == "hookspath":
		list = append(list, expand(e.value, top))
	case e.key == "path" && (e.section == "include" || e.section == "includeif"):
		list = append(list, expand(e.value, base))
	case e.runs():
		for _, word := range words(e.value) {
			path := expand(word, top)
			if info, err := os.Stat(path); err == nil && info.Mode().IsRegular() {
				list = append(list, path)
			}
		}
	}
	return slices.DeleteFunc(list, func(path string) bool {
		return !slices.ContainsFunc(s.places, func(place string) bool { return sandbox.Within(real(path), place) || sandbox.Within(path, place) })
	})
}

// real follows links; a path that leads nowhere stays as it is.
func real(path string) string {
	if found, err := filepath.EvalSymlinks(path); err == nil {
		return found
	}
	return path
}
