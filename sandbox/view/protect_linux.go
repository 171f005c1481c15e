package view

import (
	"cmp"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
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
	var stand *sandbox.Root // what is shown in place of empty folders
	if b.request.Cover != "" {
		stand, _ = identify(b.request.Cover)
	}
	var in heldFolder
	defer in.close()
	for _, path := range slices.SortedFunc(slices.Values(b.request.Policy.Protected), byFolder) {
		if outer, ok := b.around(path); !ok || !outer.Writable || !outer.own() || b.lifted(path) {
			continue
		}
		held, err := in.identify(path)
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
		if stand != nil && !held.File && isEmpty(in.fd, filepath.Base(path)) {
			m.Source, m.Root = stand.Path, stand
		}
		b.add(m)
	}
	return nil
}

// byFolder sorts folders before what is in them, and what is in one folder together.
func byFolder(a, b string) int {
	return cmp.Or(strings.Compare(filepath.Dir(a), filepath.Dir(b)), strings.Compare(a, b))
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
