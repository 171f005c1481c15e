package landlock

import (
	"encoding/binary"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/confine-dev/confine/sandbox/local"
	"github.com/confine-dev/confine/sandbox/restrict"
	"github.com/confine-dev/confine/sandbox/view"
	"golang.org/x/sys/unix"
)

// writer writes a plan as calls.
//
// What must stay reachable is taken as a detached mount while it can still be
// named; then everything becomes read-only; then hiding folders are put up and
// what was taken is put in its place.
type writer struct {
	s    *local.Script
	plan *view.Plan
}

// Sizes of the file systems in memory.
const (
	devSize = "size=64k"
	runSize = "size=64k"
)

// write adds all calls.
func (w writer) write() {
	w.s.Call("separating the mounts", unix.SYS_MOUNT, local.Text(""), local.Text("/"), local.Text(""), local.Int(unix.MS_REC|unix.MS_PRIVATE), local.Int(0))
	taken, copied := make([]local.Ref, len(w.plan.Mounts)), w.copies()
	for i, m := range w.plan.Mounts {
		if copied[i] != "" {
			continue
		}
		if m.Source == "" {
			taken[i] = w.makeNew(m)
			continue
		}
		taken[i] = w.take(m.Why, m.Source)
		if m.Root != nil {
			restrict.Expect(w.s, m.Why, taken[i], m.Root)
		}
	}
	devices := w.takeDevices()
	w.setAttributes("making everything read-only", unix.AT_FDCWD, "/", unix.AT_RECURSIVE,
		unix.MOUNT_ATTR_RDONLY|unix.MOUNT_ATTR_NOSUID|unix.MOUNT_ATTR_NODEV)
	for _, folder := range w.plan.Hidden {
		w.mountNew("hiding "+strconv.Quote(folder), "tmpfs", folder, unix.MS_NOSUID|unix.MS_NODEV, "mode=755,"+runSize)
	}
	w.device(devices)
	w.process()
	for i, m := range w.plan.Mounts {
		if copied[i] != "" {
			w.copy(m, copied[i])
			continue
		}
		w.place(m, taken[i])
	}
	for _, folder := range w.plan.Hidden {
		w.setAttributes("closing "+strconv.Quote(folder), unix.AT_FDCWD, folder, 0, unix.MOUNT_ATTR_RDONLY)
	}
	for i, m := range w.plan.Mounts {
		if w.roomy(m) {
			w.setAttributesOf(m.Why, taken[i], 0, unix.MOUNT_ATTR_RDONLY)
		}
	}
}

// take clones the mount at path. Result: a detached mount.
func (w writer) take(what, path string) local.Ref {
	return w.s.Call(what, unix.SYS_OPEN_TREE, local.Int(unix.AT_FDCWD), local.Text(path),
		local.Int(unix.OPEN_TREE_CLONE|unix.OPEN_TREE_CLOEXEC|unix.AT_RECURSIVE|unix.AT_NO_AUTOMOUNT))
}

// makeNew makes a file system in memory, for temporary files or to hide a folder.
// Result: a detached mount.
func (w writer) makeNew(m view.Mount) local.Ref {
	what, options := m.Why, [][2]string{{"mode", "1777"}, {"size", strconv.FormatUint(w.plan.Room.Bytes, 10)}, {"nr_inodes", strconv.FormatUint(w.plan.Room.Files, 10)}}
	switch {
	case w.roomy(m):
		options = [][2]string{{"mode", "755"}, {"size", "64k"}}
	case m.Hides():
		options = [][2]string{{"mode", "0"}, {"size", "4k"}}
	}
	fs := w.s.Call(what, unix.SYS_FSOPEN, local.Text("tmpfs"), local.Int(unix.FSOPEN_CLOEXEC))
	for _, option := range options {
		w.s.Call(what, unix.SYS_FSCONFIG, local.Result(fs), local.Int(unix.FSCONFIG_SET_STRING), local.Text(option[0]), local.Text(option[1]), local.Int(0))
	}
	w.s.Call(what, unix.SYS_FSCONFIG, local.Result(fs), local.Int(unix.FSCONFIG_CMD_CREATE), local.Int(0), local.Int(0), local.Int(0))
	return w.s.Call(what, unix.SYS_FSMOUNT, local.Result(fs), local.Int(unix.FSMOUNT_CLOEXEC), local.Int(unix.MOUNT_ATTR_NOSUID|unix.MOUNT_ATTR_NODEV))
}

// place moves a mount to its place without following links: its parents may lie
// in the session's temporary files or in a root, where commands can make links.
func (w writer) place(m view.Mount, fd local.Ref) {
	w.makePlace(m)
	set := uint64(unix.MOUNT_ATTR_NOSUID | unix.MOUNT_ATTR_NODEV)
	if !m.Writable && !w.roomy(m) {
		set |= unix.MOUNT_ATTR_RDONLY
	}
	w.setAttributesOf(m.Why, fd, unix.AT_RECURSIVE, set)
	if m.Fleeting {
		// By name at once, for it may go at any moment. It lies where no command
		// can make links.
		w.move(m.Why, fd, m.Path)
		w.s.Ignore(unix.ENOENT)
		return
	}
	how := unix.OpenHow{Flags: unix.O_PATH | unix.O_CLOEXEC, Resolve: unix.RESOLVE_NO_SYMLINKS}
	place := w.s.Call(m.Why, unix.SYS_OPENAT2, local.Int(unix.AT_FDCWD), local.Text(m.Path), local.Struct(&how), local.Int(unix.SizeofOpenHow))
	w.s.Call(m.Why, unix.SYS_MOVE_MOUNT, local.Result(fd), local.Text(""), local.Result(place), local.Text(""),
		local.Int(unix.MOVE_MOUNT_F_EMPTY_PATH|unix.MOVE_MOUNT_T_EMPTY_PATH))
}

// makePlace makes the folders, and the file, that a mount needs where the
// host's are not.
func (w writer) makePlace(m view.Mount) {
	path, missing := w.plan.Place(m)
	if !missing {
		return
	}
	what := "making a place for " + strconv.Quote(m.Path)
	parts := strings.Split(strings.TrimPrefix(m.Path, path+"/"), "/")
	for n, part := range parts {
		path = filepath.Join(path, part)
		if n == len(parts)-1 && m.File {
			w.touch(what, path)
			return
		}
		w.s.Call(what, unix.SYS_MKDIRAT, local.Int(unix.AT_FDCWD), local.Text(path), local.Int(0o755))
		w.s.Ignore(unix.EEXIST)
	}
}

// touch makes an empty file unless something is there. It opens nothing: a
// command may have put a FIFO there, and opening that would wait for a reader.
func (w writer) touch(what, path string) {
	w.s.Call(what, unix.SYS_MKNODAT, local.Int(unix.AT_FDCWD), local.Text(path), local.Int(unix.S_IFREG|0o644), local.Int(0))
	w.s.Ignore(unix.EEXIST)
}

func (w writer) mountNew(what, kind, path string, flags int, options string) {
	w.s.Call(what, unix.SYS_MOUNT, local.Text(kind), local.Text(path), local.Text(kind), local.Int(flags), local.Text(options))
}

func (w writer) move(what string, fd local.Ref, path string) {
	w.s.Call(what, unix.SYS_MOVE_MOUNT, local.Result(fd), local.Text(""), local.Int(unix.AT_FDCWD), local.Text(path), local.Int(unix.MOVE_MOUNT_F_EMPTY_PATH))
}

func (w writer) setAttributes(what string, dir int, path string, flags int, set uint64) {
	w.s.Call(what, unix.SYS_MOUNT_SETATTR, local.Int(dir), local.Text(path), local.Int(flags), local.Bytes(attributes(set)), local.Int(32))
}

func (w writer) setAttributesOf(what string, fd local.Ref, flags int, set uint64) {
	w.s.Call(what, unix.SYS_MOUNT_SETATTR, local.Result(fd), local.Text(""), local.Int(flags|unix.AT_EMPTY_PATH), local.Bytes(attributes(set)), local.Int(32))
}

// attributes is a struct mount_attr (mount_setattr(2)).
func attributes(set uint64) []byte {
	return append(binary.NativeEndian.AppendUint64(nil, set), make([]byte, 24)...)
}
