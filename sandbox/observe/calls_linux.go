package observe

import (
	"slices"
	"strings"

	"github.com/confine-dev/confine/sandbox/restrict"
	"golang.org/x/sys/unix"
)

// kind is what a call does.
type kind uint8

const (
	nothing     kind = iota
	opening          // opens for writing, or creates
	making           // gives a new name to something new: mkdir, symlink, mknod
	removing         // unlink, rmdir
	renaming         // rename
	linking          // link
	truncating       // truncate
	chmoding         // the mode
	chowning         // the owner
	timing           // the times
	attributing      // extended attributes
	connecting       // connect, and datagrams with an address
	binding          // bind, which makes a file if the socket is a unix one
)

// request is what a call asks for, as far as it stands in its arguments.
type request struct {
	kind   kind
	first  name
	second name   // the new name of renaming and linking
	flags  int    // of opening: O_…; of renaming: RENAME_…
	mode   uint32 // of making: the type of the new file, S_IF…
	folder bool   // removing: a folder
	now    bool   // timing: to the present
	owner  [2]uint32
	socket int    // connecting
	sends  bool   // connecting: a datagram is sent, too
	addr   uint64 // connecting, binding: where the address lies
	size   uint64 // connecting, binding: how long it is
	attr   uint64 // attributing: where its name lies
}

// looked is the first name as the kernel looks it up: a slash behind it makes links
// be followed after all, unless it is the name itself that is to change.
func (r request) looked(text string) name {
	n := r.first
	switch {
	case r.kind == making, r.kind == removing, r.kind == renaming, r.kind == opening && r.flags&unix.O_CREAT != 0:
	case strings.HasSuffix(text, "/"):
		n.follow = true
	}
	return n
}

// name is a path as a call has it.
type name struct {
	dir    int    // descriptor that it starts from
	addr   uint64 // where the text lies
	follow bool   // a link in the last place is followed
	empty  bool   // an empty text, or none at all, means dir itself
}

// args are the arguments of a call.
type args = [6]uint64

// trap is a system call, or some uses of it, that is observed.
type trap struct {
	call   uintptr
	when   []restrict.Condition
	decode func(args) request
}

// write has the flags of open that change something. Of O_TMPFILE it is only the
// bit that no other flag has.
const write = unix.O_WRONLY | unix.O_RDWR | unix.O_CREAT | unix.O_TRUNC | unix.O_TMPFILE&^unix.O_DIRECTORY

// Calls with a path in a system call that the kernel has since 6.13; the same
// number on every architecture.
const (
	sysSetxattrat    = 463
	sysRemovexattrat = 466
)

func writes(arg int) []restrict.Condition { return []restrict.Condition{restrict.AnyOf(arg, write)} }

// given holds if an argument that points to something does not point nowhere. A
// filter compares 32 bits; addresses whose low half is zero are not handed out in
// practice, and what passes unseen is refused all the same.
func given(arg int) []restrict.Condition { return []restrict.Condition{restrict.Differs(arg, 0)} }

// fileTraps are the calls that change files by name and that every architecture
// has.
func fileTraps() []trap {
	return []trap{
		{unix.SYS_OPENAT, writes(2), func(a args) request { return open(at(a[0], a[1]), a[2]) }},
		{unix.SYS_UNLINKAT, nil, func(a args) request {
			return request{kind: removing, first: at(a[0], a[1]), folder: a[2]&unix.AT_REMOVEDIR != 0}
		}},
		{unix.SYS_RENAMEAT, nil, func(a args) request { return rename(at(a[0], a[1]), at(a[2], a[3]), 0) }},
		{unix.SYS_RENAMEAT2, nil, func(a args) request { return rename(at(a[0], a[1]), at(a[2], a[3]), a[4]) }},
		{unix.SYS_MKDIRAT, nil, func(a args) request { return create(at(a[0], a[1]), unix.S_IFDIR) }},
		{unix.SYS_MKNODAT, nil, func(a args) request { return create(at(a[0], a[1]), a[2]) }},
		{unix.SYS_SYMLINKAT, nil, func(a args) request { return create(at(a[1], a[2]), unix.S_IFLNK) }},
		{unix.SYS_LINKAT, nil, func(a args) request {
			old := at(a[0], a[1]).flags(a[4])
			old.follow = a[4]&unix.AT_SYMLINK_FOLLOW != 0
			return request{kind: linking, first: old, second: at(a[2], a[3])}
		}},
		{unix.SYS_TRUNCATE, nil, func(a args) request { return request{kind: truncating, first: followed(a[0])} }},
		{unix.SYS_BIND, nil, func(a args) request { return request{kind: binding, addr: a[1], size: a[2]} }},
	}
}

// metadataTraps are the calls that change what is known of a file.
func metadataTraps() []trap {
	attribute := func(n name, attr uint64) request { return request{kind: attributing, first: n, attr: attr} }
	return []trap{
		{unix.SYS_FCHMODAT, nil, func(a args) request { return request{kind: chmoding, first: at(a[0], a[1]).flags(0)} }},
		{unix.SYS_FCHMODAT2, nil, func(a args) request { return request{kind: chmoding, first: at(a[0], a[1]).flags(a[3])} }},
		{unix.SYS_FCHOWNAT, nil, func(a args) request { return chown(at(a[0], a[1]).flags(a[4]), a[2], a[3]) }},
		{unix.SYS_UTIMENSAT, given(1), func(a args) request {
			return request{kind: timing, first: at(a[0], a[1]).flags(a[3]), now: a[2] == 0}
		}},
		{unix.SYS_SETXATTR, nil, func(a args) request { return attribute(followed(a[0]), a[1]) }},
		{unix.SYS_LSETXATTR, nil, func(a args) request { return attribute(plain(a[0]), a[1]) }},
		{unix.SYS_REMOVEXATTR, nil, func(a args) request { return attribute(followed(a[0]), a[1]) }},
		{unix.SYS_LREMOVEXATTR, nil, func(a args) request { return attribute(plain(a[0]), a[1]) }},
		{sysSetxattrat, nil, func(a args) request { return attribute(at(a[0], a[1]).flags(a[2]), a[3]) }},
		{sysRemovexattrat, nil, func(a args) request { return attribute(at(a[0], a[1]).flags(a[2]), a[3]) }},
	}
}

// socketTraps are the calls that reach somebody.
func socketTraps() []trap {
	return []trap{
		{unix.SYS_CONNECT, nil, func(a args) request {
			return request{kind: connecting, socket: descriptor(a[0]), addr: a[1], size: a[2]}
		}},
		{unix.SYS_SENDTO, given(4), func(a args) request {
			return request{kind: connecting, sends: true, socket: descriptor(a[0]), addr: a[4], size: a[5]}
		}},
		{unix.SYS_SENDMMSG, nil, func(a args) request {
			return request{kind: connecting, sends: true, socket: descriptor(a[0]), addr: a[1], size: messages}
		}},
	}
}

// messages as the size of an address says that a list of messages holds it.
const messages = ^uint64(0)

// traps are all calls that are observed. Without namespaces nothing refuses
// metadata, sockets of the internet cannot be made, and others stay reachable.
func traps(namespaces bool) []trap {
	if !namespaces {
		return slices.Concat(fileTraps(), archFileTraps())
	}
	return slices.Concat(fileTraps(), metadataTraps(), socketTraps(), archFileTraps(), archMetadataTraps())
}

// filter is the program that stops those calls.
func filter(namespaces bool) []unix.SockFilter {
	var cases []restrict.Case
	for _, t := range traps(namespaces) {
		cases = append(cases, restrict.Case{Call: t.call, When: t.when, Do: restrict.Notify})
	}
	return restrict.Assemble(cases)
}

// descriptor is an argument of type int.
func descriptor(v uint64) int { return int(int32(v)) }

func at(dir, addr uint64) name { return name{dir: descriptor(dir), addr: addr} }

// plain is a name in a call without a folder.
func plain(addr uint64) name { return name{dir: unix.AT_FDCWD, addr: addr} }

func followed(addr uint64) name { return name{dir: unix.AT_FDCWD, addr: addr, follow: true} }

// flags are the AT_… flags of calls that follow links unless told otherwise.
func (n name) flags(v uint64) name {
	n.follow, n.empty = v&unix.AT_SYMLINK_NOFOLLOW == 0, v&unix.AT_EMPTY_PATH != 0
	return n
}

func open(n name, flags uint64) request {
	f := int(uint32(flags))
	if f&unix.O_PATH != 0 {
		return request{} // the flags that change something have no meaning then
	}
	n.follow = f&unix.O_NOFOLLOW == 0 && f&(unix.O_CREAT|unix.O_EXCL) != unix.O_CREAT|unix.O_EXCL
	return request{kind: opening, first: n, flags: f}
}

func create(n name, mode uint64) request {
	return request{kind: making, first: n, mode: uint32(mode) & unix.S_IFMT}
}

func rename(from, to name, flags uint64) request {
	return request{kind: renaming, first: from, second: to, flags: int(uint32(flags))}
}

func chown(n name, uid, gid uint64) request {
	r := request{kind: chowning, first: n, owner: [2]uint32{uint32(uid), uint32(gid)}}
	if r.owner == [2]uint32{unchanged, unchanged} {
		return request{}
	}
	return r
}

// unchanged is the owner that chown leaves alone.
const unchanged = ^uint32(0)
