package config

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"syscall"
	"time"
)

// Limits of settings files, in bytes. Real ones have a few hundred.
const (
	maxFileSize      = 1 << 20
	maxWorkspaceSize = 64 << 10
)

// workspaceFile is the settings file of a workspace folder, below it.
const (
	workspaceFolder = ".confine"
	workspaceFile   = "config.toml"
)

// Error is a mistake in the settings that the person has to mend.
type Error struct {
	Path   string // the file, or another place that settings come from
	Line   int    // from 1; 0 if the place as a whole is meant
	Reason string
}

func (e *Error) Error() string {
	if e.Line > 0 {
		return fmt.Sprintf("reading settings: %s:%d: %s", e.Path, e.Line, e.Reason)
	}
	return fmt.Sprintf("reading settings: %s: %s", e.Path, e.Reason)
}

// readUserFile reads the person's own file, which may be a symbolic link. The
// entries are nil if there is none or the path is empty, here and below.
func readUserFile(path string) ([]entry, error) {
	if path == "" {
		return nil, nil
	}
	return readOwnFile(path, func(fs.FileInfo) string { return "" })
}

// readManagedFile reads the file of whoever administers the machine: it decides
// over the person, so only its owner may have written it.
func readManagedFile(path string, owner int) ([]entry, error) {
	if path == "" {
		return nil, nil
	}
	entries, err := readOwnFile(path, func(info fs.FileInfo) string { return notManaged(info, owner) })
	if entries == nil && err == nil {
		return nil, nil
	}
	if info, statErr := os.Stat(filepath.Dir(path)); statErr == nil && err == nil {
		if reason := notManaged(info, owner); reason != "" {
			return nil, &Error{Path: path, Reason: "of its folder: " + reason}
		}
	}
	return entries, err
}

// notManaged says why others than the administrator may have written a file.
func notManaged(info fs.FileInfo, owner int) string {
	switch uid, known := ownerOf(info); {
	case known && uid != owner:
		return fmt.Sprintf("it belongs to user %d and must belong to user %d", uid, owner)
	case known && info.Mode().Perm()&0o022 != 0:
		return "others than its owner can write to it; run chmod go-w on it and check what it says"
	}
	return ""
}

// readOwnFile reads a regular file of bounded size that only its owner, or a
// group the owner trusts, can have written.
func readOwnFile(path string, fault func(fs.FileInfo) string) ([]entry, error) {
	// A FIFO in place of the file would block the open for ever.
	file, err := os.OpenFile(path, os.O_RDONLY|openNonblock, 0)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, danglingLink(path)
	}
	if err != nil {
		return nil, &Error{Path: path, Reason: fmt.Sprintf("it exists but cannot be opened (%v)", unwrapPath(err))}
	}
	defer file.Close()
	info, err := file.Stat()
	switch {
	case err != nil:
		return nil, &Error{Path: path, Reason: unwrapPath(err).Error()}
	case !info.Mode().IsRegular():
		return nil, &Error{Path: path, Reason: "it is not a regular file"}
	case info.Mode().Perm()&0o002 != 0 && runtime.GOOS != "windows": // Windows shows 0666 for every file
		return nil, &Error{Path: path, Reason: "every user of this machine can write to it; run chmod o-w on it and check what it says"}
	}
	if reason := fault(info); reason != "" {
		return nil, &Error{Path: path, Reason: reason}
	}
	data, err := readWhole(file, maxFileSize, 2*time.Second)
	if err != nil {
		return nil, &Error{Path: path, Reason: fmt.Sprintf("it cannot be read (%v)", unwrapPath(err))}
	}
	return parseTOML(path, data, false)
}

// danglingLink tells a missing file from a link that leads nowhere: the person
// who made the link believes that there are settings.
func danglingLink(path string) error {
	if _, err := os.Lstat(path); err == nil {
		return &Error{Path: path, Reason: "it is a symbolic link to a file that does not exist"}
	}
	return nil
}

// readWorkspaceFile reads the settings file of a workspace folder, which anybody
// may have written to do harm: it is reached by no link, nothing blocks, it is small,
// and no error has a word of it, since it may be another file's second name.
func readWorkspaceFile(folder string) ([]entry, error) {
	path := filepath.Join(folder, workspaceFolder, workspaceFile)
	fail := func(format string, args ...any) ([]entry, error) {
		return nil, &Error{Path: path, Reason: fmt.Sprintf(format, args...)}
	}
	top, err := os.OpenRoot(folder)
	if err != nil {
		if errors.Is(err, fs.ErrPermission) || noFolder(folder) {
			return nil, nil // nor can anything be run in it
		}
		return fail("the workspace cannot be looked at (%v)", unwrapPath(err))
	}
	defer top.Close()
	name := filepath.Join(workspaceFolder, workspaceFile)
	outer, err := top.Stat(workspaceFolder) // a link may lead to a folder of the workspace, not out of it
	link, missing := top.Lstat(workspaceFolder)
	switch {
	case errors.Is(missing, fs.ErrNotExist):
		return nil, nil
	case err != nil:
		return fail("its folder cannot be looked at (%v)", unwrapPath(err))
	case !outer.IsDir():
		return fail("%s is not a folder", workspaceFolder)
	}
	before, err := top.Lstat(name)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, nil
	case err != nil:
		return fail("it cannot be looked at (%v)", unwrapPath(err))
	case !before.Mode().IsRegular():
		return fail("it is not a regular file")
	case !link.IsDir():
		return fail("%s is a link, which a command can replace, and with it what the file says: make it a folder", workspaceFolder)
	}
	file, err := top.OpenFile(name, os.O_RDONLY|openNonblock, 0)
	if err != nil {
		return fail("it exists but cannot be opened (%v)", unwrapPath(err))
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil || !os.SameFile(info, before) {
		return fail("it was replaced while it was read")
	}
	if reason := notOfWorkspace(top, info); reason != "" {
		return fail("%s", reason)
	}
	data, err := readWhole(file, maxWorkspaceSize, 200*time.Millisecond)
	if err != nil {
		return fail("it cannot be read (%v)", unwrapPath(err))
	}
	return parseTOML(path, data, true)
}

// noFolder reports whether there is no such folder. That looking failed for another
// reason, such as too many open files, says nothing.
func noFolder(path string) bool {
	info, err := os.Stat(path)
	if err == nil {
		return !info.IsDir()
	}
	return errors.Is(err, fs.ErrNotExist) || errors.Is(err, fs.ErrPermission) || errors.Is(err, syscall.ENOTDIR)
}

// notOfWorkspace says why a file is not one that the owner of its workspace, root
// or we have put there.
func notOfWorkspace(top *os.Root, info fs.FileInfo) string {
	uid, known := ownerOf(info)
	if !known || uid == os.Geteuid() || uid == 0 {
		return ""
	}
	if folder, err := top.Stat("."); err == nil {
		if owner, known := ownerOf(folder); known && owner == uid {
			return ""
		}
	}
	return fmt.Sprintf("it belongs to user %d, who is neither you, root nor the owner of the workspace", uid)
}

// readWhole reads at most limit bytes, while no other program writes: between being
// emptied and being written anew a file says something that nobody meant. For a program
// that does not come to an end it waits no longer than patience.
func readWhole(file *os.File, limit int64, patience time.Duration) ([]byte, error) {
	const pause = 2 * time.Millisecond
	release, ok := keepOut(file)
	for end := time.Now().Add(patience); !ok && time.Now().Before(end); release, ok = keepOut(file) {
		time.Sleep(pause)
	}
	defer release()
	data, err := io.ReadAll(io.LimitReader(file, limit+1))
	if err == nil && int64(len(data)) > limit {
		err = fmt.Errorf("it is larger than %d bytes", limit)
	}
	return data, err
}

// unwrapPath drops the path of a *fs.PathError, for messages that name it.
func unwrapPath(err error) error {
	var pathErr *fs.PathError
	if errors.As(err, &pathErr) {
		return pathErr.Err
	}
	return err
}
