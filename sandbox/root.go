package sandbox

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"
)

// Root is a folder declared writable. It is canonical and pinned when it is
// declared: a provider compares device and inode when it binds the folder, so
// that a root swapped for a link or another folder later is refused.
type Root struct {
	Path string // absolute, symbolic links resolved
	File bool   // it is a file, not a folder; only of what was granted one by one
	Dev  uint64
	Ino  uint64

	pin *os.File // keeps the inode number from being used again; nil where the system has no O_PATH
}

// Forbidden says which folders can never be roots, because a command that may
// write there could change what confine or the person's shell does next.
type Forbidden struct {
	Home string   // the home folder and everything above it
	Own  []string // paths of confine itself: settings, state, runtime files, its binary
}

// RootError says why a folder was refused as a root, or a file or folder as a
// grant.
type RootError struct {
	Path   string
	Reason string
	Grant  GrantKind // what was to be granted; empty for a root
}

func (e *RootError) Error() string {
	if e.Grant != "" {
		return fmt.Sprintf("%q cannot be granted for %s: %s", e.Path, e.Grant.doing(), e.Reason)
	}
	return fmt.Sprintf("%q cannot be a writable root: %s", e.Path, e.Reason)
}

// DeclareRoot resolves path and pins the folder found there. The error is a
// *RootError for a folder that is refused, and satisfies errors.Is(err,
// fs.ErrNotExist) for one that is missing.
func DeclareRoot(path string, forbidden Forbidden) (*Root, error) {
	if !filepath.IsAbs(path) {
		return nil, &RootError{Path: path, Reason: "it is not an absolute path"}
	}
	real, err := filepath.EvalSymlinks(path)
	if err != nil {
		return nil, fmt.Errorf("resolving root %q: %w", path, err)
	}
	if reason := forbidden.reason(real); reason != "" {
		return nil, &RootError{Path: path, Reason: reason}
	}
	root, err := pinRoot(real)
	if err != nil {
		return nil, fmt.Errorf("opening root %q: %w", path, err)
	}
	return root, nil
}

// reason is empty if real may be a root.
func (f Forbidden) reason(real string) string {
	const instead = "; open a project folder instead"
	reason := f.wide(real)
	if reason == aboveHome {
		return reason + instead
	}
	if reason = cmp.Or(reason, f.own(real)); reason != "" {
		return reason
	}
	if reason = emptied(real); reason != "" {
		return reason + instead
	}
	return ""
}

const aboveHome = "it is the home folder or lies above it"

// wide says why real is too much to be opened at once.
func (f Forbidden) wide(real string) string {
	if real == "/" || filepath.VolumeName(real)+string(filepath.Separator) == real {
		return "it is the root of the file system"
	}
	if f.Home != "" && holds(real, Canonical(f.Home)) {
		return aboveHome
	}
	return ""
}

// own says what of confine itself lies at, in or above real, or is reached through a
// link in it: no mount keeps commands from replacing one.
func (f Forbidden) own(real string) string {
	for _, own := range f.Own {
		if own == "" {
			continue
		}
		for _, step := range Way(own) {
			if step.Link && holds(real, step.Folder) {
				return fmt.Sprintf("the link %q leads to confine's own files at %q", filepath.Join(step.Folder, step.Name), own)
			}
		}
		own = Canonical(own)
		if holds(real, own) || isDir(own) && holds(own, real) {
			return fmt.Sprintf("confine keeps its own files at %q", own)
		}
	}
	return ""
}

// holds reports whether path is folder or lies below it, also where a bind
// mount or a file system that ignores case gives the folder another name.
func holds(folder, path string) bool {
	if Within(path, folder) {
		return true
	}
	info, err := os.Stat(folder)
	if err != nil {
		return false
	}
	for ; ; path = filepath.Dir(path) {
		if above, err := os.Stat(path); err == nil && os.SameFile(info, above) {
			return true
		}
		if path == filepath.Dir(path) {
			return false
		}
	}
}

func isDir(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.IsDir()
}

// Canonical resolves what exists of path and keeps the rest as spelled.
func Canonical(path string) string {
	path = filepath.Clean(path)
	for rest, head := "", path; ; {
		if real, err := filepath.EvalSymlinks(head); err == nil {
			return filepath.Join(real, rest)
		}
		parent := filepath.Dir(head)
		if parent == head {
			return path
		}
		rest, head = filepath.Join(filepath.Base(head), rest), parent
	}
}

// Within reports whether path is folder or lies below it. Both must be clean
// and absolute; nothing is resolved.
func Within(path, folder string) bool {
	if path == folder || folder == "/" {
		return true
	}
	return len(path) > len(folder) && path[len(folder)] == filepath.Separator && path[:len(folder)] == folder
}

func (r *Root) identity() string { return fmt.Sprintf("%d:%d:%s", r.Dev, r.Ino, r.Path) }

// Close lets go of the folder. Policies made from the root stay comparable.
func (r *Root) Close() error {
	if r.pin == nil {
		return nil
	}
	return r.pin.Close()
}
