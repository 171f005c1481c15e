package sandbox

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
)

// worktreeParts are the folders of a repository that a commit in a linked
// worktree writes to. Its configuration and hooks are not among them: they run
// programs for everybody who uses the repository.
var worktreeParts = []string{"objects", "refs", "logs"}

// worktreePointers are the files of a worktree's folder that decide which
// repository git believes in.
var worktreePointers = []string{"commondir", "gitdir", "config.worktree"}

// GitMetadata finds what a commit in the given roots must write outside them:
// for a root that is a linked worktree, the worktree's own folder in its
// repository and the repository's objects, refs and logs. protected are paths
// below these that must stay as they are.
//
// A root's .git file is written by commands and proves nothing. It is believed
// only if the repository points back at exactly this file
// (gitrepository-layout(5), worktrees/<id>/gitdir). The caller closes what is
// returned.
func GitMetadata(roots []*Root, forbidden Forbidden) (metadata []*Root, protected []string) {
	for _, root := range roots {
		gitdir, common, err := linkedWorktree(root.Path)
		if err != nil {
			continue
		}
		paths := []string{gitdir}
		for _, part := range worktreeParts {
			paths = append(paths, filepath.Join(common, part))
		}
		for _, path := range paths {
			if found, err := DeclareRoot(path, forbidden); err == nil && found.Path == path {
				metadata = append(metadata, found)
			} else if err == nil {
				found.Close() // a link leads elsewhere
			}
		}
		for _, name := range worktreePointers {
			protected = append(protected, filepath.Join(gitdir, name))
		}
	}
	return metadata, protected
}

var errNoWorktree = errors.New("not a linked worktree")

// linkedWorktree returns the folder of a worktree in its repository and the
// repository's own, both canonical.
func linkedWorktree(folder string) (gitdir, common string, err error) {
	pointer := filepath.Join(folder, ".git")
	info, err := os.Lstat(pointer)
	if err != nil || !info.Mode().IsRegular() {
		return "", "", errNoWorktree
	}
	target, err := readPointer(pointer, "gitdir: ", folder)
	if err != nil {
		return "", "", err
	}
	common, err = readPointer(filepath.Join(target, "commondir"), "", target)
	if err != nil {
		return "", "", err
	}
	back, err := readPointer(filepath.Join(target, "gitdir"), "", target)
	if err != nil {
		return "", "", err
	}
	if back != pointer || filepath.Dir(target) != filepath.Join(common, "worktrees") {
		return "", "", errNoWorktree
	}
	return target, common, nil
}

// maxPointer is far longer than any path that the system accepts.
const maxPointer = 8 << 10

// readPointer reads a path from the first line of a file and resolves it. What
// was opened is looked at, not the name: a command may put a FIFO there at any
// time, and whoever waited for its other end would wait for ever.
func readPointer(path, prefix, base string) (string, error) {
	file, err := os.OpenFile(path, os.O_RDONLY|noFollow|syscall.O_NONBLOCK, 0)
	if err != nil {
		return "", err
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil {
		return "", err
	}
	if !info.Mode().IsRegular() || info.Size() > maxPointer {
		return "", errNoWorktree
	}
	data, err := io.ReadAll(io.LimitReader(file, maxPointer))
	if err != nil {
		return "", err
	}
	line, _, _ := strings.Cut(string(data), "\n")
	value, ok := strings.CutPrefix(line, prefix)
	if !ok {
		return "", errNoWorktree
	}
	value = strings.TrimRight(value, "\r ")
	if !filepath.IsAbs(value) {
		value = filepath.Join(base, value)
	}
	return filepath.EvalSymlinks(value)
}
