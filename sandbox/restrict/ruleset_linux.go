package restrict

import (
	"encoding/binary"

	"github.com/confine-dev/confine/sandbox"
	"github.com/confine-dev/confine/sandbox/local"
	"golang.org/x/sys/unix"
)

// Ruleset describes a Landlock ruleset: no write of any kind save what a rule
// allows.
type Ruleset struct {
	ABI       ABI
	RefuseTCP bool   // as far as the kernel knows how
	Scopes    Scopes // to refuse, as far as the kernel knows them
	Rules     []Rule
}

// Rule allows rights on a path and everything below it.
type Rule struct {
	Path   string
	Rights Rights
	Root   *sandbox.Root // what must be found at Path; nil: whatever is there
}

// Granted allows writing to a folder or regular file that was declared, and to
// nothing that is there in its stead.
func Granted(root *sandbox.Root) Rule {
	if root.File {
		return Rule{Path: root.Path, Rights: OnContent, Root: root}
	}
	return Rule{Path: root.Path, Rights: InFolder, Root: root}
}

// Scopes are what a process may not reach outside its own domain.
type Scopes uint64

// The scopes of struct landlock_ruleset_attr.
const (
	ScopeAbstract Scopes = 1 // LANDLOCK_SCOPE_ABSTRACT_UNIX_SOCKET
	ScopeSignal   Scopes = 2 // LANDLOCK_SCOPE_SIGNAL
)

// Create adds the calls that make the ruleset in the child, which sees mounts
// that nobody else does. Result: its descriptor.
func (r Ruleset) Create(s *local.Script) local.Ref {
	attr := binary.NativeEndian.AppendUint64(nil, uint64(r.ABI.Files))
	if r.ABI.Network {
		var tcp uint64
		if r.RefuseTCP {
			tcp = unix.LANDLOCK_ACCESS_NET_BIND_TCP | unix.LANDLOCK_ACCESS_NET_CONNECT_TCP
		}
		attr = binary.NativeEndian.AppendUint64(attr, tcp)
	}
	if r.ABI.Scopes {
		attr = binary.NativeEndian.AppendUint64(attr, uint64(r.Scopes))
	}
	ref := s.Call("making the Landlock ruleset", unix.SYS_LANDLOCK_CREATE_RULESET, local.Bytes(attr), local.Int(len(attr)), local.Int(0))
	for _, rule := range r.Rules {
		rule.add(s, ref, r.ABI)
	}
	return ref
}

// add adds the calls for one rule.
func (r Rule) add(s *local.Script, ruleset local.Ref, a ABI) {
	what := "allowing writes to " + r.Path
	fd := s.Call(what, unix.SYS_OPENAT, local.Int(unix.AT_FDCWD), local.Text(r.Path), local.Int(unix.O_PATH|unix.O_CLOEXEC))
	// struct landlock_path_beneath_attr is packed: 8 bytes of rights, then the
	// descriptor, which is known only in the child.
	attr := binary.NativeEndian.AppendUint64(nil, uint64(r.Rights&a.Files))
	attr = append(attr, 0, 0, 0, 0)
	s.Patch(attr[8:])
	if r.Root != nil {
		Expect(s, what, fd, r.Root)
	}
	const pathBeneath = 1 // LANDLOCK_RULE_PATH_BENEATH
	s.Call(what, unix.SYS_LANDLOCK_ADD_RULE, local.Result(ruleset), local.Int(pathBeneath), local.Bytes(attr), local.Int(0))
	s.Call(what, unix.SYS_CLOSE, local.Result(fd))
}

// Expect adds the call that fails unless a descriptor is of what was declared:
// what was swapped since must not become writable. what completes the sentence
// "… failed".
func Expect(s *local.Script, what string, fd local.Ref, root *sandbox.Root) {
	stat := make([]byte, 144) // struct stat of amd64 is the largest
	want := binary.NativeEndian.AppendUint64(nil, root.Dev)
	want = binary.NativeEndian.AppendUint64(want, root.Ino)
	s.Call(what, unix.SYS_FSTAT, local.Result(fd), local.Bytes(stat))
	s.Expect(stat[:16], want)
}
