package sandboxtest

import (
	"os"
	"path/filepath"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// What follows performs operations, in the child. The newer system calls take
// descriptors of folders; where an operation has none, it may be done by the
// call that they replaced, which a filter must know too.

func tryOpen(x *attempt) error {
	x.step = "open"
	fd, err := x.openFirst()
	if err != nil {
		return err
	}
	x.step = string(x.action)
	switch x.action {
	case actWrite:
		_, err = unix.Write(fd, []byte("gone"))
	case actTruncate:
		err = unix.Ftruncate(fd, 2)
	case actMap:
		err = writeMapped(fd)
	case actCopy:
		err = x.copyTo(fd)
	}
	return err
}

// openFirst opens by one of the calls that open.
func (x *attempt) openFirst() (int, error) {
	nr, ok := x.older("open")
	if !ok {
		return x.open(x.one.dir, x.one.path, x.flags)
	}
	flags, mode := uintptr(x.flags|unix.O_CLOEXEC|unix.O_NONBLOCK|unix.O_LARGEFILE), uintptr(0o644)
	const creates = unix.O_CREAT | unix.O_WRONLY | unix.O_TRUNC
	if x.flags == creates && x.first.target(true).kind != isPipe { // it would wait for a reader
		nr, flags, mode = opsOlderCalls["creat"], mode, 0
	}
	path, err := unix.BytePtrFromString(x.one.path)
	if err != nil {
		return 0, err
	}
	fd, _, errno := unix.Syscall(nr, uintptr(unsafe.Pointer(path)), flags, mode)
	if errno != 0 {
		return 0, errno
	}
	x.opened = append(x.opened, int(fd))
	return int(fd), nil
}

func writeMapped(fd int) error {
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return err
	}
	if st.Size == 0 { // there must be something to map
		if err := unix.Ftruncate(fd, 4); err != nil {
			return err
		}
	}
	data, err := unix.Mmap(fd, 0, 2, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	if err != nil {
		return err
	}
	copy(data, "go")
	return unix.Munmap(data)
}

func (x *attempt) copyTo(fd int) error {
	source, err := x.open(unix.AT_FDCWD, filepath.Join(x.base, opsSource), unix.O_RDONLY)
	if err != nil {
		return err
	}
	_, err = unix.CopyFileRange(source, nil, fd, nil, 4, 0)
	return err
}

func tryUnnamed(x *attempt) error {
	x.step = "open"
	fd, err := x.open(x.one.dir, x.one.path, x.flags)
	if err != nil {
		return err
	}
	x.step = "link"
	return unix.Linkat(unix.AT_FDCWD, procFd(fd), x.two.dir, x.two.path, unix.AT_SYMLINK_FOLLOW)
}

func tryTruncate(x *attempt) error {
	x.step = "truncate"
	return unix.Truncate(x.one.path, int64(x.flags))
}

func tryRename(x *attempt) error {
	x.step = "rename"
	nr, ok := x.older("rename")
	switch {
	case x.flags != 0:
		return unix.Renameat2(x.one.dir, x.one.path, x.two.dir, x.two.path, uint(x.flags))
	case ok:
		return twoPaths(nr, x.one.path, x.two.path)
	}
	return unix.Renameat(x.one.dir, x.one.path, x.two.dir, x.two.path)
}

func tryLink(x *attempt) error {
	x.step = "link"
	if nr, ok := x.older("link"); ok && x.flags == 0 {
		return twoPaths(nr, x.one.path, x.two.path)
	}
	return unix.Linkat(x.one.dir, x.one.path, x.two.dir, x.two.path, x.flags)
}

func trySymlink(x *attempt) error {
	x.step = "symlink"
	if nr, ok := x.older("symlink"); ok {
		return twoPaths(nr, "anywhere", x.one.path)
	}
	return unix.Symlinkat("anywhere", x.one.dir, x.one.path)
}

func tryMkdir(x *attempt) error {
	x.step = "mkdir"
	if nr, ok := x.older("mkdir"); ok {
		return onePath(nr, x.one.path, 0o755)
	}
	return unix.Mkdirat(x.one.dir, x.one.path, 0o755)
}

func tryMknod(x *attempt) error {
	x.step = "mknod"
	if nr, ok := x.older("mknod"); ok {
		return onePath(nr, x.one.path, uintptr(x.flags))
	}
	return unix.Mknodat(x.one.dir, x.one.path, uint32(x.flags), 0)
}

func tryUnlink(x *attempt) error {
	x.step = "unlink"
	if nr, ok := x.older("unlink"); ok {
		return onePath(nr, x.one.path)
	}
	return unix.Unlinkat(x.one.dir, x.one.path, 0)
}

func tryRmdir(x *attempt) error {
	x.step = "rmdir"
	if nr, ok := x.older("rmdir"); ok {
		return onePath(nr, x.one.path)
	}
	return unix.Unlinkat(x.one.dir, x.one.path, unix.AT_REMOVEDIR)
}

func tryChmod(x *attempt) error {
	x.step = "chmod"
	const mode = 0o640
	nr, ok := x.older("chmod")
	switch {
	case x.first.form == formHeld:
		return unix.Fchmod(x.one.fd, mode)
	case x.first.form == formHeldPath:
		return unix.Fchmodat(x.one.fd, "", mode, unix.AT_EMPTY_PATH)
	case ok && x.flags == 0:
		return onePath(nr, x.one.path, mode)
	}
	return unix.Fchmodat(x.one.dir, x.one.path, mode, x.flags)
}

func tryChown(x *attempt) error {
	x.step = "chown"
	uid, gid := os.Geteuid(), os.Getegid() // who has it already
	name := "chown"
	if x.flags != 0 {
		name = "lchown"
	}
	nr, ok := x.older(name)
	switch {
	case x.first.form == formHeld:
		return unix.Fchown(x.one.fd, uid, gid)
	case x.first.form == formHeldPath:
		return unix.Fchownat(x.one.fd, "", uid, gid, unix.AT_EMPTY_PATH)
	case ok:
		return onePath(nr, x.one.path, uintptr(uid), uintptr(gid))
	}
	return unix.Fchownat(x.one.dir, x.one.path, uid, gid, x.flags)
}

func tryTimes(x *attempt) error {
	x.step = "utimensat"
	times := []unix.Timespec{{Sec: 1}, {Sec: 2}}
	nr, ok := x.older("utimes")
	switch {
	case x.first.form == formHeld:
		_, _, errno := unix.Syscall6(unix.SYS_UTIMENSAT, uintptr(x.one.fd), 0, uintptr(unsafe.Pointer(&times[0])), 0, 0, 0)
		return fault(errno)
	case x.first.form == formHeldPath:
		return unix.UtimesNanoAt(x.one.fd, "", times, unix.AT_EMPTY_PATH)
	case ok && x.flags == 0:
		return onePath(nr, x.one.path, 0) // now
	}
	return unix.UtimesNanoAt(x.one.dir, x.one.path, times, x.flags)
}

func tryXattr(x *attempt) error {
	x.step = "setxattr"
	const name = "user.ops"
	switch {
	case x.first.form == formHeld:
		return unix.Fsetxattr(x.one.fd, name, []byte("gone"), 0)
	case x.flags != 0:
		return unix.Lsetxattr(x.one.path, name, []byte("gone"), 0)
	}
	return unix.Setxattr(x.one.path, name, []byte("gone"), 0)
}

// onePath makes a system call whose first argument is a path.
func onePath(nr uintptr, path string, rest ...uintptr) error {
	p, err := unix.BytePtrFromString(path)
	if err != nil {
		return err
	}
	var args [2]uintptr
	copy(args[:], rest)
	_, _, errno := unix.Syscall(nr, uintptr(unsafe.Pointer(p)), args[0], args[1])
	return fault(errno)
}

// twoPaths makes a system call whose two arguments are paths.
func twoPaths(nr uintptr, first, second string) error {
	a, err := unix.BytePtrFromString(first)
	if err != nil {
		return err
	}
	b, err := unix.BytePtrFromString(second)
	if err != nil {
		return err
	}
	_, _, errno := unix.Syscall(nr, uintptr(unsafe.Pointer(a)), uintptr(unsafe.Pointer(b)), 0)
	return fault(errno)
}

func fault(errno syscall.Errno) error {
	if errno == 0 {
		return nil
	}
	return errno
}
