package observe

import (
	"os"
	"path/filepath"
	"slices"

	"github.com/confine-dev/confine/sandbox"
	"github.com/confine-dev/confine/sandbox/local"
	"golang.org/x/sys/unix"
)

// boundary knows what the sandbox refuses. Each method returns the error that the
// kernel gives, or 0 for what the sandbox lets pass.
type boundary interface {
	// names asks whether names in the place's folder can change.
	names(*place) unix.Errno

	// data asks whether the object can be opened for writing.
	data(*place) unix.Errno

	// metadata asks whether mode, owner, times and attributes of the object can
	// change.
	metadata(*place) unix.Errno

	// busy asks whether the object is kept from being renamed or removed.
	busy(*place) unix.Errno

	// rename and link ask whether the object can get a name in another folder.
	// Each side that must be granted is named.
	rename(from, to *place) []refusal
	link(from, to *place) []refusal
}

// newBoundary is that of a run.
func newBoundary(run local.Watched, landlock int) boundary {
	allowed := newAllowed(run)
	if run.Namespaces {
		return view{allowed}
	}
	return rules{allowed, landlock}
}

// view is the boundary of a run with its own mounts: they say themselves whether
// they can be written.
type view struct{ allowed *allowed }

func (v view) names(p *place) unix.Errno { return readOnly(p.parent) }

func (v view) metadata(p *place) unix.Errno { return readOnly(p.object) }

func (v view) data(p *place) unix.Errno {
	switch p.kind() {
	case unix.S_IFREG, unix.S_IFDIR:
		return readOnly(p.object)
	}
	// A read-only mount does not keep anybody from writing to a device or a FIFO;
	// Landlock does, except to what has no name, such as a pipe.
	flags, errno := mountFlags(p.object)
	if errno != 0 {
		return 0
	}
	if device := p.kind() == unix.S_IFCHR || p.kind() == unix.S_IFBLK; device && flags&unix.ST_NODEV != 0 {
		return unix.EACCES
	}
	if path, named := p.path(); named && !v.allowed.holds(path) {
		return unix.EACCES
	}
	return 0
}

func (v view) busy(p *place) unix.Errno {
	if p.exists() && !sameMount(&p.stat, &p.above) {
		return unix.EBUSY
	}
	return 0
}

func (v view) rename(from, to *place) []refusal {
	if sameMount(&from.above, &to.above) {
		return oneOf(refusal{opRename, to, v.names(to)}, refusal{opRename, from, v.busy(from)}, refusal{opRename, to, v.busy(to)})
	}
	var list []refusal
	for _, side := range []*place{to, from} {
		if v.names(side) != 0 {
			list = append(list, refusal{opRename, side, unix.EXDEV})
		}
	}
	if list == nil {
		list = append(list, refusal{opRename, to, unix.EXDEV})
	}
	return list
}

func (v view) link(from, to *place) []refusal {
	switch errno := v.names(to); {
	case errno != 0 || sameMount(&from.stat, &to.above): // this is looked at first
		return oneOf(refusal{opCreate, to, errno})
	case v.metadata(from) != 0:
		return oneOf(refusal{opLink, from, unix.EXDEV})
	}
	return oneOf(refusal{opLink, to, unix.EXDEV})
}

func readOnly(fd int) unix.Errno {
	flags, errno := mountFlags(fd)
	if errno == 0 && flags&unix.ST_RDONLY != 0 {
		return unix.EROFS
	}
	return 0
}

// rules is the boundary of a run without namespaces: Landlock alone, which allows
// writing below some folders.
type rules struct {
	allowed *allowed
	version int // of Landlock
}

func (r rules) names(p *place) unix.Errno {
	if r.allowed.reaches(p.parent) && !r.allowed.forbids(&p.above) {
		return 0
	}
	return unix.EACCES
}

func (r rules) data(p *place) unix.Errno {
	if _, named := p.path(); !named || r.allowed.reaches(p.object) && !r.allowed.forbids(&p.stat) {
		return 0
	}
	return unix.EACCES
}

func (r rules) metadata(*place) unix.Errno { return 0 }

func (r rules) busy(*place) unix.Errno { return 0 }

func (r rules) rename(from, to *place) []refusal {
	var list []refusal
	for _, side := range []*place{to, from} {
		if errno := r.names(side); errno != 0 {
			list = append(list, refusal{opRename, side, errno})
		}
	}
	switch {
	case same(&from.above, &to.above):
		return list[:min(len(list), 1)]
	case list == nil && r.version < 2:
		list = append(list, refusal{opRename, to, unix.EXDEV})
	}
	return list
}

func (r rules) link(from, to *place) []refusal {
	switch {
	case r.names(to) != 0:
		return oneOf(refusal{opCreate, to, r.names(to)})
	case same(&from.above, &to.above):
		return nil
	case r.version < 2 || !r.allowed.reachesFolder(from):
		// A file may not get a name where more may be done with it.
		return oneOf(refusal{opLink, from, unix.EXDEV})
	}
	return nil
}

// truncates reports whether Landlock governs truncating a file by its name.
func (r rules) truncates() bool { return r.version >= 3 }

// allowed are the places that a command can write to.
type allowed struct {
	paths []string
	files map[file]bool // the same by device and inode

	weak   bool  // the command lacks privileges that this process has
	groups []int // of this process
}

// file identifies an object.
type file struct {
	major, minor uint32
	ino          uint64
}

func fileOf(st *unix.Statx_t) file { return file{st.Dev_major, st.Dev_minor, st.Ino} }

func newAllowed(run local.Watched) *allowed {
	a := &allowed{files: map[file]bool{}, weak: !run.Namespaces && os.Geteuid() == 0}
	a.groups, _ = os.Getgroups()
	a.groups = append(a.groups, os.Getegid())
	add := func(path string) {
		a.paths = append(a.paths, filepath.Clean(path))
		var st unix.Statx_t
		if !run.Namespaces && unix.Statx(unix.AT_FDCWD, path, 0, statMask, &st) == nil {
			a.files[fileOf(&st)] = true
		}
	}
	for _, root := range run.Policy.Roots {
		if run.Policy.Mode == sandbox.WorkspaceWrite {
			add(root.Path)
		}
	}
	for _, granted := range run.Policy.Writable {
		add(granted.Path)
	}
	for _, path := range run.Writable {
		add(path)
	}
	return a
}

// holds reports whether a path is in an allowed place, by its text.
func (a *allowed) holds(path string) bool {
	return slices.ContainsFunc(a.paths, func(place string) bool { return sandbox.Within(path, place) })
}

// reaches reports whether an object is in an allowed place, whatever name led to
// it. What cannot be told is taken for allowed.
func (a *allowed) reaches(fd int) bool {
	path, named := pathOf(fd)
	if !named || a.holds(path) {
		return true
	}
	at, err := unix.FcntlInt(uintptr(fd), unix.F_DUPFD_CLOEXEC, 0)
	if err != nil {
		return true
	}
	defer func() { unix.Close(at) }()
	for range maxSteps {
		here, errno := statOf(at)
		if errno != 0 || a.files[fileOf(&here)] {
			return true
		}
		if uint32(here.Mode)&unix.S_IFMT != unix.S_IFDIR {
			// A file does not know its folder; its path does.
			above, err := unix.Open(filepath.Dir(path), unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
			if err != nil {
				return true
			}
			unix.Close(at)
			at = above
			continue
		}
		above, err := unix.Openat(at, "..", unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
		if err != nil {
			return true
		}
		up, errno := statOf(above)
		unix.Close(at)
		at = above
		if errno != 0 || same(&here, &up) && sameMount(&here, &up) {
			return errno != 0
		}
	}
	return true
}

// reachesFolder reports whether the folder of an object is in an allowed place.
// One that was found by a descriptor does not say its folder; its path does.
func (a *allowed) reachesFolder(p *place) bool {
	if !p.nameless() {
		return a.reaches(p.parent)
	}
	path, named := p.path()
	if !named {
		return true
	}
	folder, err := unix.Open(filepath.Dir(path), unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return true
	}
	defer unix.Close(folder)
	return a.reaches(folder)
}

// forbids reports whether root without its privileges may not write to an object
// that root with them could.
func (a *allowed) forbids(st *unix.Statx_t) bool {
	if !a.weak {
		return false
	}
	const writeOwner, writeGroup, writeOther = 0o200, 0o020, 0o002
	switch {
	case int(st.Uid) == os.Geteuid():
		return st.Mode&writeOwner == 0
	case slices.Contains(a.groups, int(st.Gid)):
		return st.Mode&writeGroup == 0
	}
	return st.Mode&writeOther == 0
}
