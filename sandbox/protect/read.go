package protect

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
)

var errNotRegular = errors.New("it is not a regular file")

// readSome reads the beginning of a regular file. What was opened is looked at,
// not the name: a command may put a FIFO there at any time, and whoever waited
// for its other end would wait for ever. whole is false if there was more.
func readSome(path string, limit int64) (data []byte, whole bool, err error) {
	file, err := os.OpenFile(path, os.O_RDONLY|openFlags, 0)
	if err != nil {
		return nil, false, err
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil {
		return nil, false, err
	}
	if !info.Mode().IsRegular() {
		return nil, false, errNotRegular
	}
	data, err = io.ReadAll(io.LimitReader(file, limit))
	return data, info.Size() <= limit, err
}

// maxPointer is far longer than any path that the system accepts.
const maxPointer = 8 << 10

var errNoPointer = errors.New("it holds no path")

// readPointer reads a path from the first line of a file and resolves it.
func readPointer(path, prefix, base string) (string, error) {
	data, whole, err := readSome(path, maxPointer)
	if err != nil {
		return "", err
	}
	line, _, _ := strings.Cut(string(data), "\n")
	value, ok := strings.CutPrefix(line, prefix)
	if !ok || !whole {
		return "", errNoPointer
	}
	value = strings.TrimRight(value, "\r ")
	if !filepath.IsAbs(value) {
		value = filepath.Join(base, value)
	}
	return filepath.EvalSymlinks(value)
}

// entries lists at most limit names of a folder, in no order. What is no folder
// has none. The error says why a folder could not be listed, and nothing is known
// of it then.
func entries(folder string, limit int) (list []os.DirEntry, whole bool, err error) {
	dir, err := os.OpenFile(folder, os.O_RDONLY|openFlags, 0)
	if noFolder(err) {
		return nil, true, nil
	}
	if err != nil {
		return nil, false, err
	}
	defer dir.Close()
	list, err = dir.ReadDir(limit + 1)
	if len(list) > limit {
		return list[:limit], false, nil
	}
	if err == io.EOF || noFolder(err) {
		err = nil
	}
	return list, err == nil, err
}

// noFolder reports whether an error says that there is nothing of a name, or
// something else than a folder.
func noFolder(err error) bool {
	return errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR) || errors.Is(err, syscall.ELOOP)
}
