package local

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/confine-dev/confine/sandbox"
)

// resolved is a command ready to be executed.
type resolved struct {
	path   string
	argv   []string
	script *os.File // holds a command that is too long for an argument; nil otherwise
}

// maxArgument is the longest single argument, its NUL included (execve(2):
// MAX_ARG_STRLEN, 32 pages).
const maxArgument = 128 << 10

// resolve finds the program. It looks with this process's eyes; what the child
// sees is decided when it executes.
func resolve(spec sandbox.Spec) (resolved, error) {
	if spec.Command == "" {
		path, err := lookPath(spec.Argv[0], spec.Dir, pathOf(spec.Env))
		return resolved{path: path, argv: spec.Argv}, err
	}
	shell, err := findShell()
	if err != nil {
		return resolved{}, err
	}
	if len(spec.Command) < maxArgument {
		return resolved{path: shell, argv: []string{"bash", "-c", spec.Command}}, nil
	}
	script, name, err := scriptFile(spec.Command)
	if err != nil {
		return resolved{}, err
	}
	return resolved{path: shell, argv: []string{"bash", name}, script: script}, nil
}

func findShell() (string, error) {
	for _, path := range shells {
		if executable(path) == nil {
			return path, nil
		}
	}
	return lookPath("bash", "/", os.Getenv("PATH"))
}

// lookPath finds a program as execvp(3) does, save that a folder which may not be
// searched makes no program one that cannot be executed: what is not seen there is
// not found, and the error tells of the folder.
func lookPath(name, dir, path string) (string, error) {
	if hasFolder(name) {
		full := fileOf(name)
		if !filepath.IsAbs(full) {
			full = filepath.Join(dir, full)
		}
		return full, executable(full)
	}
	var found error
	closed := ""
	for _, folder := range filepath.SplitList(path) {
		if !filepath.IsAbs(folder) {
			folder = filepath.Join(dir, folder)
		}
		full := fileOf(filepath.Join(folder, name))
		if _, err := os.Lstat(full); errors.Is(err, fs.ErrPermission) {
			closed = cmp.Or(closed, folder)
			continue
		}
		err := executable(full)
		if err == nil {
			return full, nil
		}
		var start *sandbox.StartError
		if errors.As(err, &start) && start.Kind == sandbox.ProgramNotExecutable {
			found = err
		}
	}
	if found != nil {
		return "", found
	}
	missing := fs.ErrNotExist
	if closed != "" {
		missing = fmt.Errorf("%w, as far as PATH may be searched: %q: %w", fs.ErrNotExist, closed, fs.ErrPermission)
	}
	return "", &sandbox.StartError{Kind: sandbox.ProgramNotFound, Path: name, Err: missing}
}

// executable says why a path cannot be executed.
func executable(path string) error {
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, syscall.ENOTDIR):
		return &sandbox.StartError{Kind: sandbox.ProgramNotFound, Path: path, Err: fs.ErrNotExist}
	case err != nil:
		return &sandbox.StartError{Kind: sandbox.ProgramNotExecutable, Path: path, Err: err}
	case info.IsDir():
		return &sandbox.StartError{Kind: sandbox.ProgramNotExecutable, Path: path, Err: errors.New("it is a folder")}
	case !runnable(info):
		return &sandbox.StartError{Kind: sandbox.ProgramNotExecutable, Path: path, Err: fs.ErrPermission}
	}
	return nil
}

func pathOf(env []string) string {
	for _, entry := range env {
		if name, value, _ := strings.Cut(entry, "="); isPath(name) {
			return value
		}
	}
	return usualPath
}

// checkDir says why a working directory cannot be used, before anything that
// could fail for the same errno.
func checkDir(dir string) error {
	bad := func(err error) error {
		return &sandbox.StartError{Kind: sandbox.BadWorkingDirectory, Path: dir, Err: err}
	}
	if !filepath.IsAbs(dir) {
		return bad(errors.New("it is not an absolute path"))
	}
	info, err := os.Stat(dir)
	if err != nil {
		var path *fs.PathError
		if errors.As(err, &path) {
			err = path.Err
		}
		return bad(err)
	}
	if !info.IsDir() {
		return bad(syscall.ENOTDIR)
	}
	return nil
}
