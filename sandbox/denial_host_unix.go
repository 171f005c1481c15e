//go:build unix

package sandbox

import (
	"io/fs"
	"os"
	"syscall"
)

// Permissions for access, as access(2) has them.
const (
	mayRead  = 4
	mayWrite = 2
	mayEnter = 1
)

// owned reports whether this process may change the attributes of a file.
func owned(info fs.FileInfo) bool {
	st, ok := info.Sys().(*syscall.Stat_t)
	return ok && (os.Geteuid() == 0 || int(st.Uid) == os.Geteuid())
}

// sticky reports whether the folder keeps this process from removing a file in
// it that belongs to somebody else. file may be nil.
func sticky(folder string, file fs.FileInfo) bool {
	dir, err := os.Lstat(folder)
	if err != nil {
		return true
	}
	return file != nil && dir.Mode()&fs.ModeSticky != 0 && !owned(dir) && !owned(file)
}

// readOnlyMount reports whether a file lies on a read-only mount, which keeps
// its owner from changing its attributes, too.
func readOnlyMount(path string) bool {
	const readOnly = 1 // ST_RDONLY and MNT_RDONLY
	var st syscall.Statfs_t
	return syscall.Statfs(path, &st) != nil || st.Flags&readOnly != 0
}
