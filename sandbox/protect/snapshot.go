package protect

import (
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/confine-dev/confine/sandbox"
)

// Snapshot is what a run must not have changed when it is over.
type Snapshot struct {
	policy sandbox.Policy
	before map[string]stamp
}

// stamp tells whether something is still the same.
type stamp struct {
	info    os.FileInfo // nil: it did not exist
	changed int64       // when the system last noted a change of it; 0 where that is not known
}

// Limits of one snapshot: entries of one protected folder, and how deep.
const (
	maxStamped      = 200
	maxStampedDepth = 3
)

// Take looks at all that a policy protects, and at what it cannot protect before
// the run: a .git that a root does not have yet, and links, which anybody can
// replace who can write to their folder. deep looks into protected folders, too:
// for a level on which nothing keeps them.
func Take(policy sandbox.Policy, deep bool) *Snapshot {
	s := &Snapshot{policy: policy, before: map[string]stamp{}}
	for _, root := range policy.Roots {
		if policy.MayWrite(root.Path) {
			s.take(filepath.Join(root.Path, dotGit), 0)
		}
	}
	for _, path := range policy.Protected {
		if !policy.MayWrite(filepath.Dir(path)) {
			continue // it lies in another one, or nothing can be written there
		}
		depth := 0
		if deep {
			depth = maxStampedDepth
		}
		s.take(path, depth)
	}
	return s
}

func (s *Snapshot) take(path string, depth int) {
	if _, known := s.before[path]; known && depth == 0 {
		return
	}
	now := stampOf(path)
	s.before[path] = now
	if depth == 0 || now.info == nil || !now.info.IsDir() {
		return
	}
	list, _, _ := entries(path, maxStamped)
	for _, e := range list {
		s.take(filepath.Join(path, e.Name()), depth-1)
	}
}

// Planted lists what is not as it was, and those of made, paths of notable names
// that were seen being made, which are there now and were not protected. A change
// by somebody else during the run is listed as well: nobody can tell.
func (s *Snapshot) Planted(made []string) []string {
	var planted []string
	for path, before := range s.before {
		if !before.same(stampOf(path), filepath.Base(path) == dotGit && !s.protects(path)) && !s.granted(path) {
			planted = append(planted, path)
		}
	}
	for _, path := range made {
		path = filepath.Clean(path)
		if slices.Contains(bareParts, filepath.Base(path)) {
			folder := filepath.Dir(path)
			if filepath.Base(folder) == dotGit || !isGitFolder(folder) || s.protects(filepath.Join(folder, gitConfig)) {
				continue // no repository, or one that was there and is protected
			}
			path = filepath.Join(folder, bareParts[0])
		}
		if _, known := s.before[path]; known || isAbsent(path) || !s.policy.MayWrite(filepath.Dir(path)) || s.granted(path) || s.around(path) {
			continue
		}
		planted = append(planted, path)
	}
	slices.Sort(planted)
	return outermost(slices.Compact(planted))
}

// same compares. Of what is a folder on both sides only the identity counts where
// its content is free.
func (a stamp) same(b stamp, free bool) bool {
	if a.info == nil || b.info == nil {
		return a.info == nil && b.info == nil
	}
	if !os.SameFile(a.info, b.info) || a.info.Mode().Type() != b.info.Mode().Type() {
		return false
	}
	return free || a.changed == b.changed && a.info.ModTime().Equal(b.info.ModTime()) && a.info.Size() == b.info.Size()
}

func stampOf(path string) stamp {
	info, err := os.Lstat(path)
	if err != nil {
		return stamp{}
	}
	return stamp{info, changeTime(info)}
}

func (s *Snapshot) protects(path string) bool { return slices.Contains(s.policy.Protected, path) }

// granted reports whether the person allowed exactly this to be changed.
func (s *Snapshot) granted(path string) bool {
	return s.protects(path) && s.policy.MayWrite(path) ||
		slices.ContainsFunc(s.policy.Lifted, func(l string) bool { return sandbox.Within(l, path) || sandbox.Within(path, l) })
}

// around reports whether something in a folder is protected: it is not new, and
// what matters in it is looked at by itself.
func (s *Snapshot) around(path string) bool {
	return slices.ContainsFunc(s.policy.Protected, func(p string) bool { return sandbox.Within(p, path) })
}

// outermost drops, from sorted paths, those that lie in others of them.
func outermost(paths []string) (out []string) {
	for _, path := range paths {
		if !slices.ContainsFunc(out, func(o string) bool { return strings.HasPrefix(path, o+string(filepath.Separator)) }) {
			out = append(out, path)
		}
	}
	return out
}

// Exposed reports whether anything was looked at.
func (s *Snapshot) Exposed() bool { return len(s.before) > 0 }
