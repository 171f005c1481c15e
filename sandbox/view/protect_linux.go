package view

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"syscall"

	"github.com/confine-dev/confine/sandbox"
)

// protected puts paths inside roots read-only over themselves. A mount keeps what
// it covers from being renamed, removed or linked to, not what lies above it:
// so every folder between the root and the path is bound on itself as well, else
// renaming it would get round the protection. The price is that nothing can be
// renamed from one side of such a folder to the other (EXDEV).
//
// A path that was granted is not protected: so it can be replaced, as git does
// with its configuration, and not only be written. Links cannot be covered and
// are left out, like what does not exist and what is read-only anyway.
//
// The error says that something is there but cannot be protected.
func (b *builder) protected() error {
	for _, path := range slices.Sorted(slices.Values(b.request.Policy.Protected)) {
		if outer, ok := b.around(path); !ok || !outer.Writable || !outer.own() || b.lifted(path) {
			continue
		}
		held, err := identify(path)
		if err == nil {
			err = b.between(path)
		}
		if gone(err) {
			continue
		}
		if err != nil {
			return fmt.Errorf("%s cannot be protected: %w", strconv.Quote(path), err)
		}
		m := Mount{Path: path, Source: path, File: held.File, Root: held, Why: why("protecting", path)}
		if stand := b.request.Cover; stand != "" && !held.File && isEmpty(path) {
			if shown, err := identify(stand); err == nil {
				m.Source, m.Root = stand, shown
			}
		}
		b.add(m)
	}
	return nil
}

// gone reports whether an error of identify says that a path is absent, a link, or
// another one by now.
func gone(err error) bool {
	return slices.ContainsFunc([]error{syscall.ENOENT, syscall.ENOTDIR, syscall.ELOOP, syscall.ESTALE}, func(e error) bool { return errors.Is(err, e) })
}

// lifted reports whether exactly this path was granted for writing.
func (b *builder) lifted(path string) bool {
	return slices.ContainsFunc(b.request.Policy.Writable, func(r *sandbox.Root) bool { return r.Path == path })
}

// between binds the folders from the mount around a path down to it. It fails if
// one of them is not what it was: then the path is another one by now.
func (b *builder) between(path string) error {
	outer, _ := b.around(path)
	var folders []Mount
	for folder := filepath.Dir(path); folder != outer.Path && sandbox.Within(folder, outer.Path); folder = filepath.Dir(folder) {
		held, err := identify(folder)
		if err != nil {
			return err
		}
		if held.File {
			return syscall.ENOTDIR
		}
		folders = append(folders, Mount{Path: folder, Source: folder, Writable: true, Root: held, between: true, Why: why("keeping in its place", folder)})
	}
	for _, m := range folders {
		b.add(m)
	}
	return nil
}

// isEmpty reports whether a folder has no entries.
func isEmpty(folder string) bool {
	dir, err := os.Open(folder)
	if err != nil {
		return false
	}
	defer dir.Close()
	names, err := dir.Readdirnames(1)
	return len(names) == 0 && err != nil
}

// oPath is O_PATH, which package syscall does not name (open(2)).
const oPath = 0x200000

// identify tells what is at a canonical path, for comparison in the child. It
// fails if there is nothing, or a link leads there (see gone): commands may
// exchange what lies in a root at any time, and a folder that is bound writable
// must never be one outside.
func identify(path string) (*sandbox.Root, error) {
	fd, err := syscall.Open(path, oPath|syscall.O_NOFOLLOW|syscall.O_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	defer syscall.Close(fd)
	var st syscall.Stat_t
	if err := syscall.Fstat(fd, &st); err != nil {
		return nil, err
	}
	if st.Mode&syscall.S_IFMT == syscall.S_IFLNK {
		return nil, syscall.ELOOP
	}
	opened, err := os.Readlink(fmt.Sprintf("/proc/self/fd/%d", fd))
	if err != nil {
		return nil, err
	}
	if opened != path {
		return nil, syscall.ESTALE
	}
	return &sandbox.Root{Path: path, File: st.Mode&syscall.S_IFMT != syscall.S_IFDIR, Dev: st.Dev, Ino: st.Ino}, nil
}
