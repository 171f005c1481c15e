package observe

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/confine-dev/confine/sandbox"
	"golang.org/x/sys/unix"
)

// onHost finds a place of a command's view on the host, by its path and without
// links. It is another object there where the view hides the host's. Of objects
// with no name on the host there is none, but a file made without a name is the
// same everywhere.
func onHost(p *place) (*place, unix.Errno) {
	path, ok := p.path()
	if !ok && p.unnamed() {
		fd, err := unix.FcntlInt(uintptr(p.object), unix.F_DUPFD_CLOEXEC, 0)
		if err != nil {
			return nil, errnoOf(err)
		}
		return placeOf(fd)
	}
	if !ok {
		return nil, unix.ENOENT
	}
	if p.nameless() {
		fd, errno := openHost(path)
		if errno != 0 {
			return nil, errno
		}
		return placeOf(fd)
	}
	parent, errno := openHost(filepath.Dir(path))
	if errno != 0 {
		return nil, errno
	}
	h := &place{parent: parent, name: p.name, object: -1, slash: p.slash}
	if h.above, errno = statOf(parent); errno != 0 {
		h.close()
		return nil, errno
	}
	h.object, _ = unix.Openat(parent, p.name, look, 0)
	if h.object >= 0 {
		if h.stat, errno = statOf(h.object); errno != 0 {
			h.close()
			return nil, errno
		}
	}
	return h, 0
}

// hidden judges a request that creates something at a path on which the view has a
// folder missing: the host may have it.
func hidden(r request, path string) []sandbox.Denial {
	if r.kind != making && (r.kind != opening || r.flags&unix.O_CREAT == 0) {
		return nil
	}
	if sandbox.Within(path, "/proc") {
		return nil // the host's has other processes under the same numbers
	}
	root, err := unix.Open("/", unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil
	}
	defer unix.Close(root)
	host, _, errno := find(unix.Gettid(), root, name{dir: unix.AT_FDCWD, follow: r.first.follow}, path)
	if errno != 0 {
		return nil
	}
	defer host.close()
	path, named := host.path()
	if !named || onProc(host.parent) || !permitted(r, host, nil) {
		return nil
	}
	op := opCreate
	if host.exists() {
		op = opWrite
	}
	return []sandbox.Denial{{Op: op, Path: path, Errno: unix.ErrnoName(unix.ENOENT)}}
}

func openHost(path string) (int, unix.Errno) {
	fd, err := unix.Openat2(unix.AT_FDCWD, path, &unix.OpenHow{Flags: look, Resolve: unix.RESOLVE_NO_SYMLINKS | unix.RESOLVE_NO_MAGICLINKS})
	if err == unix.ENOSYS {
		fd, err = unix.Open(path, look, 0)
	}
	if err != nil {
		return -1, errnoOf(err)
	}
	return fd, 0
}

// permitted reports whether this process could do on the host what a request asks
// for: nothing is in the way but the sandbox. Permissions, access lists, attributes
// of files and the host's own read-only mounts count.
func permitted(r request, from, to *place) bool {
	if fails(r, from, to) {
		return false
	}
	switch r.kind {
	case opening:
		return openPermitted(r.flags, from)
	case truncating:
		return may(from.object, unix.W_OK) && !executed(from)
	case making:
		return changes(from) && (!isDevice(r.mode) || capable(unix.CAP_MKNOD))
	case removing:
		return removable(from) && (!r.folder || isEmpty(from))
	case renaming:
		return renamePermitted(r.flags, from, to)
	case linking:
		together := sameMount(&from.stat, &to.above) || from.unnamed() && sameDevice(&from.stat, &to.above)
		return changes(to) && together && linkable(from)
	case chmoding:
		return owns(from)
	case chowning:
		return chownPermitted(r.owner, from)
	case timing:
		return owns(from) || r.now && may(from.object, unix.W_OK)
	}
	return false
}

func openPermitted(flags int, p *place) bool {
	if !p.exists() {
		return changes(p)
	}
	if p.isFolder() {
		return may(p.object, unix.W_OK|unix.X_OK)
	}
	mode := uint32(0)
	if flags&unix.O_ACCMODE != unix.O_WRONLY {
		mode |= unix.R_OK
	}
	if flags&unix.O_ACCMODE != unix.O_RDONLY || flags&unix.O_TRUNC != 0 {
		mode |= unix.W_OK
	}
	return may(p.object, mode) && !executed(p)
}

func renamePermitted(flags int, from, to *place) bool {
	exchange := flags&unix.RENAME_EXCHANGE != 0
	switch {
	case !removable(from) || !changes(to) || !sameMount(&from.above, &to.above):
		return false
	case to.exists() && (!removable(to) || !exchange && to.isFolder() && !isEmpty(to)):
		return false
	case from.isFolder() && !same(&from.above, &to.above) && !may(from.object, unix.W_OK):
		return false // what ".." means changes
	}
	old, named := from.path()
	folder, ok := pathOf(to.parent)
	inside := folder == old || strings.HasPrefix(folder, old+"/") // a folder cannot move into itself
	return named && ok && !inside
}

func chownPermitted(owner [2]uint32, p *place) bool {
	if capable(unix.CAP_CHOWN) {
		return changeable(p)
	}
	uid, gid := owner[0], owner[1]
	groups, _ := os.Getgroups()
	mine := gid == unchanged || int(gid) == os.Getegid() || slices.Contains(groups, int(gid))
	return owns(p) && (uid == unchanged || uid == p.stat.Uid) && mine
}

// attributePermitted reports whether an extended attribute of an object could be
// changed.
func attributePermitted(attr string, p *place) bool {
	switch {
	case strings.HasPrefix(attr, "user."):
		return (p.isFolder() || p.kind() == unix.S_IFREG) && may(p.object, unix.W_OK)
	case strings.HasPrefix(attr, "system.posix_acl_"):
		return owns(p)
	case attr == "security.capability":
		return capable(unix.CAP_SETFCAP) && changeable(p)
	case strings.HasPrefix(attr, "trusted."), strings.HasPrefix(attr, "security."):
		return capable(unix.CAP_SYS_ADMIN) && changeable(p)
	}
	return false
}

// may asks the kernel whether this process may do something with an object.
func may(object int, mode uint32) bool {
	const as = unix.AT_EACCESS | unix.AT_EMPTY_PATH
	err := unix.Faccessat(object, "", mode, as)
	if err == unix.EINVAL || err == unix.ENOSYS { // before Linux 5.8
		err = unix.Faccessat(unix.AT_FDCWD, ownDescriptor(object), mode, unix.AT_EACCESS)
	}
	return err == nil
}

// changes reports whether names in the place's folder may change.
func changes(p *place) bool {
	var st unix.Statfs_t
	if unix.Fstatfs(p.parent, &st) != nil || st.Type == unix.PROC_SUPER_MAGIC || st.Type == unix.SYSFS_MAGIC {
		return false // the kernel makes the names there
	}
	return may(p.parent, unix.W_OK|unix.X_OK)
}

// removable reports whether the object may lose its name.
func removable(p *place) bool {
	const fixed = unix.STATX_ATTR_IMMUTABLE | unix.STATX_ATTR_APPEND
	if !changes(p) || p.stat.Attributes&fixed != 0 || !sameMount(&p.stat, &p.above) {
		return false
	}
	sticky := p.above.Mode&unix.S_ISVTX != 0
	return !sticky || isOwner(&p.above) || isOwner(&p.stat) || capable(unix.CAP_FOWNER)
}

// linkable reports whether the object may get another name, where the system
// protects hard links (fs.protected_hardlinks), as nearly all do.
func linkable(p *place) bool {
	const fixed = unix.STATX_ATTR_IMMUTABLE | unix.STATX_ATTR_APPEND
	return p.stat.Attributes&fixed == 0 && (isOwner(&p.stat) || capable(unix.CAP_FOWNER) ||
		p.kind() == unix.S_IFREG && may(p.object, unix.R_OK|unix.W_OK))
}

// owns reports whether attributes of the object may change.
func owns(p *place) bool {
	return (isOwner(&p.stat) || capable(unix.CAP_FOWNER)) && changeable(p)
}

// changeable reports whether the object's file system lets attributes change.
func changeable(p *place) bool {
	const fixed = unix.STATX_ATTR_IMMUTABLE | unix.STATX_ATTR_APPEND
	return p.stat.Attributes&fixed == 0 && readOnly(p.object) == 0
}

func isOwner(st *unix.Statx_t) bool { return int(st.Uid) == os.Geteuid() }

// isEmpty reports whether a folder has nothing in it.
func isEmpty(p *place) bool {
	fd, err := unix.Open(ownDescriptor(p.object), unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return false
	}
	folder := os.NewFile(uintptr(fd), "")
	defer folder.Close()
	names, _ := folder.Readdirnames(1)
	return len(names) == 0
}

// executed reports whether a file is a program that runs now, which nobody may
// write to. Only processes that this one may look at are seen.
func executed(p *place) bool {
	const anyExecute = 0o111
	if p.stat.Mode&anyExecute == 0 || p.kind() != unix.S_IFREG {
		return false
	}
	processes, err := os.ReadDir("/proc")
	if err != nil {
		return false
	}
	for _, entry := range processes {
		if c := entry.Name()[0]; c < '0' || c > '9' {
			continue
		}
		var st unix.Statx_t
		if unix.Statx(unix.AT_FDCWD, "/proc/"+entry.Name()+"/exe", 0, statMask, &st) == nil && same(&st, &p.stat) {
			return true
		}
	}
	return false
}

// capable reports whether this process has a capability.
func capable(c int) bool { return capabilities()&(1<<c) != 0 }

var capabilities = sync.OnceValue(func() uint64 {
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var data [2]unix.CapUserData
	if unix.Capget(&header, &data[0]) != nil {
		return 0
	}
	return uint64(data[1].Effective)<<32 | uint64(data[0].Effective)
})
