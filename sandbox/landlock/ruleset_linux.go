package landlock

import (
	"encoding/binary"

	"github.com/confine-dev/confine/sandbox"
	"github.com/confine-dev/confine/sandbox/local"
	"golang.org/x/sys/unix"
)

// rule allows rights on a path and everything below it.
type rule struct {
	path   string
	rights uint64
	root   *sandbox.Root // what must be found at path; nil: whatever is there
}

// Scopes of landlock_ruleset_attr.
const (
	scopeAbstract = 1 // LANDLOCK_SCOPE_ABSTRACT_UNIX_SOCKET
	scopeSignal   = 2 // LANDLOCK_SCOPE_SIGNAL
)

// ruleset describes a Landlock ruleset.
type ruleset struct {
	abi    abi
	tcp    bool   // refuse TCP
	scoped uint64 // scopes to refuse, as far as the kernel knows them
	rules  []rule
}

// create adds the calls that make the ruleset in the child, which sees mounts
// that nobody else does. Result: its descriptor.
func (r ruleset) create(s *local.Script) local.Ref {
	attr := binary.NativeEndian.AppendUint64(nil, r.abi.files)
	size := 8
	if r.abi.network {
		var tcp uint64
		if r.tcp {
			tcp = unix.LANDLOCK_ACCESS_NET_BIND_TCP | unix.LANDLOCK_ACCESS_NET_CONNECT_TCP
		}
		attr, size = binary.NativeEndian.AppendUint64(attr, tcp), 16
	}
	if r.abi.scopes {
		attr, size = binary.NativeEndian.AppendUint64(attr, r.scoped), 24
	}
	ref := s.Call("making the Landlock ruleset", unix.SYS_LANDLOCK_CREATE_RULESET, local.Bytes(attr), local.Int(size), local.Int(0))
	for _, rule := range r.rules {
		rule.add(s, ref, r.abi)
	}
	return ref
}

// expect adds the call that fails unless a descriptor is of the folder that was
// declared: one that was swapped since must not become writable.
func expect(s *local.Script, what string, fd local.Ref, root *sandbox.Root) {
	stat := make([]byte, 144) // struct stat of amd64 is the largest
	want := binary.NativeEndian.AppendUint64(nil, root.Dev)
	want = binary.NativeEndian.AppendUint64(want, root.Ino)
	s.Call(what, unix.SYS_FSTAT, local.Result(fd), local.Bytes(stat))
	s.Expect(stat[:16], want)
}

// add adds the calls for one rule.
func (r rule) add(s *local.Script, ruleset local.Ref, a abi) {
	what := "allowing writes to " + r.path
	fd := s.Call(what, unix.SYS_OPENAT, local.Int(unix.AT_FDCWD), local.Text(r.path), local.Int(unix.O_PATH|unix.O_CLOEXEC))
	// struct landlock_path_beneath_attr is packed: 8 bytes of rights, then the
	// descriptor, which is known only in the child.
	attr := binary.NativeEndian.AppendUint64(nil, r.rights&a.files)
	attr = append(attr, 0, 0, 0, 0)
	s.Patch(attr[8:])
	if r.root != nil {
		expect(s, what, fd, r.root)
	}
	const pathBeneath = 1 // LANDLOCK_RULE_PATH_BENEATH
	s.Call(what, unix.SYS_LANDLOCK_ADD_RULE, local.Result(ruleset), local.Int(pathBeneath), local.Bytes(attr), local.Int(0))
	s.Call(what, unix.SYS_CLOSE, local.Result(fd))
}
