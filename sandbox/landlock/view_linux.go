package landlock

import (
	"encoding/binary"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/confine-dev/confine/sandbox"
	"github.com/confine-dev/confine/sandbox/local"
	"github.com/confine-dev/confine/sandbox/restrict"
	"golang.org/x/sys/unix"
)

// view builds what the command sees of the file system: the host's, read-only,
// with the roots writable, its own /dev, /proc and /tmp, and the folders of
// host services hidden.
//
// The order matters. What must stay reachable is taken as a detached mount
// while it can still be named; then everything becomes read-only; then hiding
// folders are put up and what was taken is put in its place, outer before
// inner.
type view struct {
	s       *local.Script
	request local.Request
	hidden  []string // folders that an empty file system covers
	covered []string // the same, and shared memory, which a new one covers
	mounts  []mount
}

// mount is a detached mount and where it goes.
type mount struct {
	path     string
	fd       local.Ref
	file     bool
	writable bool
}

// Sizes of the file systems in memory.
const (
	devSize = "size=64k"
	runSize = "size=64k"
)

// build adds all calls.
func (v *view) build() {
	v.hidden = v.hiddenFolders()
	v.covered = append(slices.Clone(v.hidden), sharedMemory)
	v.s.Call("separating the mounts", unix.SYS_MOUNT, local.Text(""), local.Text("/"), local.Text(""), local.Int(unix.MS_REC|unix.MS_PRIVATE), local.Int(0))
	v.takeRoots()
	v.takeProtected()
	v.takeCaches()
	v.takeVisible()
	devices := v.takeDevices()
	tmp := v.takeTmp()
	v.setAttributes("making everything read-only", unix.AT_FDCWD, "/", unix.AT_RECURSIVE,
		unix.MOUNT_ATTR_RDONLY|unix.MOUNT_ATTR_NOSUID|unix.MOUNT_ATTR_NODEV)
	v.hide(tmp)
	v.device(devices)
	v.process()
	v.place()
}

// hiddenFolders are the folders in which host services keep their sockets, and
// confine's own. A link is followed: its target is hidden.
func (v *view) hiddenFolders() []string {
	candidates := []string{"/tmp", "/run", "/var/run", v.request.State}
	if dir := os.Getenv("XDG_RUNTIME_DIR"); filepath.IsAbs(dir) {
		candidates = append(candidates, dir)
	}
	var hidden []string
	for _, c := range candidates {
		real, err := filepath.EvalSymlinks(c)
		if err != nil || real == "/" {
			continue
		}
		if info, err := os.Stat(real); err == nil && info.IsDir() {
			hidden = append(hidden, real)
		}
	}
	slices.Sort(hidden)
	// What lies below another hidden folder is hidden with it; sorting puts it
	// behind.
	var outermost []string
	for _, h := range hidden {
		if !slices.ContainsFunc(outermost, func(o string) bool { return sandbox.Within(h, o) }) {
			outermost = append(outermost, h)
		}
	}
	return outermost
}

func (v *view) isCovered(path string) bool {
	return slices.ContainsFunc(v.covered, func(c string) bool { return sandbox.Within(path, c) })
}

// take clones the mount at path. Result: a detached mount.
func (v *view) take(what, path string) local.Ref {
	return v.s.Call(what, unix.SYS_OPEN_TREE, local.Int(unix.AT_FDCWD), local.Text(path),
		local.Int(unix.OPEN_TREE_CLONE|unix.OPEN_TREE_CLOEXEC|unix.AT_RECURSIVE|unix.AT_NO_AUTOMOUNT))
}

// takeRoots takes the roots and compares each with what was declared.
func (v *view) takeRoots() {
	for _, root := range v.request.Policy.Roots {
		writable := v.request.Policy.Mode == sandbox.WorkspaceWrite
		if !writable && !v.isCovered(root.Path) {
			continue
		}
		what := "binding the workspace folder " + quote(root.Path)
		fd := v.take(what, root.Path)
		restrict.Expect(v.s, what, fd, root)
		v.mounts = append(v.mounts, mount{path: root.Path, fd: fd, writable: writable})
	}
}

// takeCaches takes the session's layers of the tool caches: what is written to
// them never reaches the host.
func (v *view) takeCaches() {
	for _, c := range v.request.Caches {
		v.mounts = append(v.mounts, mount{path: c.Path, fd: v.take("opening the cache "+quote(c.Path), c.Layer), writable: true})
	}
}

// takeProtected takes the paths inside roots that stay read-only.
func (v *view) takeProtected() {
	for _, path := range v.request.Policy.Protected {
		info, err := os.Lstat(path)
		if err != nil || info.Mode()&os.ModeSymlink != 0 {
			continue
		}
		fd := v.take("protecting "+quote(path), path)
		v.mounts = append(v.mounts, mount{path: path, fd: fd, file: !info.IsDir()})
	}
}

// takeVisible takes what would be hidden though the command needs it.
func (v *view) takeVisible() {
	for _, path := range append(slices.Clone(v.request.Visible), systemPaths()...) {
		v.show(path, func(mode os.FileMode) bool { return mode.IsDir() || mode.IsRegular() })
	}
	// A folder here would be one of host services.
	v.show(v.request.Program, func(mode os.FileMode) bool { return mode.IsRegular() && mode&0o111 != 0 })
}

// show takes what a path leads to, if it is hidden and of an accepted mode.
func (v *view) show(path string, accept func(os.FileMode) bool) {
	real, err := filepath.EvalSymlinks(path)
	if err != nil || !v.isCovered(real) || slices.Contains(v.covered, real) {
		return
	}
	if slices.ContainsFunc(v.mounts, func(m mount) bool { return sandbox.Within(real, m.path) }) {
		return // comes along
	}
	info, err := os.Stat(real)
	if err != nil || !accept(info.Mode()) {
		return
	}
	fd := v.take("showing "+quote(real), real)
	v.mounts = append(v.mounts, mount{path: real, fd: fd, file: !info.IsDir()})
}

// systemPaths are files and programs that some systems keep below /run.
func systemPaths() []string {
	return []string{"/etc/resolv.conf", "/run/current-system", "/run/opengl-driver", "/run/opengl-driver-32", "/run/booted-system"}
}

// hide covers the hidden folders. /tmp is the session's.
func (v *view) hide(tmp local.Ref) {
	for _, folder := range v.hidden {
		if folder == tmpFolder() {
			v.move("mounting the session's temporary files", tmp, folder)
			continue
		}
		what := "hiding " + quote(folder)
		v.mountNew(what, "tmpfs", folder, unix.MS_NOSUID|unix.MS_NODEV, "mode=755,"+runSize)
	}
}

// tmpFolder is where /tmp really is.
func tmpFolder() string {
	real, err := filepath.EvalSymlinks("/tmp")
	if err != nil {
		return "/tmp"
	}
	return real
}

// takeTmp takes the session's temporary files, or makes ones that end with
// this run: in read-only mode nothing is kept.
func (v *view) takeTmp() local.Ref {
	if v.request.Policy.Mode == sandbox.WorkspaceWrite {
		return v.take("taking the session's temporary files", v.request.Tmp)
	}
	fs := v.s.Call("making temporary files", unix.SYS_FSOPEN, local.Text("tmpfs"), local.Int(unix.FSOPEN_CLOEXEC))
	for _, option := range [][2]string{{"mode", "1777"}, {"size", "10%"}} {
		v.s.Call("making temporary files", unix.SYS_FSCONFIG, local.Result(fs), local.Int(unix.FSCONFIG_SET_STRING), local.Text(option[0]), local.Text(option[1]), local.Int(0))
	}
	v.s.Call("making temporary files", unix.SYS_FSCONFIG, local.Result(fs), local.Int(unix.FSCONFIG_CMD_CREATE), local.Int(0), local.Int(0), local.Int(0))
	return v.s.Call("making temporary files", unix.SYS_FSMOUNT, local.Result(fs), local.Int(unix.FSMOUNT_CLOEXEC), local.Int(unix.MOUNT_ATTR_NOSUID|unix.MOUNT_ATTR_NODEV))
}

// place puts the taken mounts in their places, outer before inner, and ends
// with the hidden folders read-only.
func (v *view) place() {
	slices.SortStableFunc(v.mounts, func(a, b mount) int { return strings.Compare(a.path, b.path) })
	for _, m := range v.mounts {
		what := "showing " + quote(m.path)
		v.makePlace(m)
		set := uint64(unix.MOUNT_ATTR_NOSUID | unix.MOUNT_ATTR_NODEV)
		if !m.writable {
			set |= unix.MOUNT_ATTR_RDONLY
		}
		v.setAttributesOf(what, m.fd, unix.AT_RECURSIVE, set)
		v.put(what, m)
	}
	for _, folder := range v.hidden {
		if folder != tmpFolder() {
			v.setAttributes("closing "+quote(folder), unix.AT_FDCWD, folder, 0, unix.MOUNT_ATTR_RDONLY)
		}
	}
}

// put moves a mount to its place without following links: its parents may lie
// in the session's temporary files or in a root, where commands can make links.
func (v *view) put(what string, m mount) {
	how := unix.OpenHow{Flags: unix.O_PATH | unix.O_CLOEXEC, Resolve: unix.RESOLVE_NO_SYMLINKS}
	place := v.s.Call(what, unix.SYS_OPENAT2, local.Int(unix.AT_FDCWD), local.Text(m.path), local.Struct(&how), local.Int(unix.SizeofOpenHow))
	v.s.Call(what, unix.SYS_MOVE_MOUNT, local.Result(m.fd), local.Text(""), local.Result(place), local.Text(""),
		local.Int(unix.MOVE_MOUNT_F_EMPTY_PATH|unix.MOVE_MOUNT_T_EMPTY_PATH))
}

// makePlace makes the folders, and the file, that a mount below a covered
// folder needs.
func (v *view) makePlace(m mount) {
	i := slices.IndexFunc(v.covered, func(c string) bool { return sandbox.Within(m.path, c) && m.path != c })
	if i < 0 {
		return
	}
	what := "making a place for " + quote(m.path)
	path := v.covered[i]
	parts := strings.Split(strings.TrimPrefix(m.path, path+"/"), "/")
	for n, part := range parts {
		path = filepath.Join(path, part)
		if n == len(parts)-1 && m.file {
			v.touch(what, path)
			return
		}
		v.s.Call(what, unix.SYS_MKDIRAT, local.Int(unix.AT_FDCWD), local.Text(path), local.Int(0o755))
		v.s.Ignore(unix.EEXIST)
	}
}

// touch makes an empty file unless something is there. It opens nothing: a
// command may have put a FIFO there, and opening that would wait for a reader.
func (v *view) touch(what, path string) {
	v.s.Call(what, unix.SYS_MKNODAT, local.Int(unix.AT_FDCWD), local.Text(path), local.Int(unix.S_IFREG|0o644), local.Int(0))
	v.s.Ignore(unix.EEXIST)
}

func (v *view) mountNew(what, kind, path string, flags int, options string) {
	v.s.Call(what, unix.SYS_MOUNT, local.Text(kind), local.Text(path), local.Text(kind), local.Int(flags), local.Text(options))
}

func (v *view) move(what string, fd local.Ref, path string) {
	v.s.Call(what, unix.SYS_MOVE_MOUNT, local.Result(fd), local.Text(""), local.Int(unix.AT_FDCWD), local.Text(path), local.Int(unix.MOVE_MOUNT_F_EMPTY_PATH))
}

func (v *view) setAttributes(what string, dir int, path string, flags int, set uint64) {
	v.s.Call(what, unix.SYS_MOUNT_SETATTR, local.Int(dir), local.Text(path), local.Int(flags), local.Bytes(attributes(set)), local.Int(32))
}

func (v *view) setAttributesOf(what string, fd local.Ref, flags int, set uint64) {
	v.s.Call(what, unix.SYS_MOUNT_SETATTR, local.Result(fd), local.Text(""), local.Int(flags|unix.AT_EMPTY_PATH), local.Bytes(attributes(set)), local.Int(32))
}

// attributes is a struct mount_attr (mount_setattr(2)).
func attributes(set uint64) []byte {
	return append(binary.NativeEndian.AppendUint64(nil, set), make([]byte, 24)...)
}
