package local

import (
	"encoding/binary"
	"fmt"
	"maps"
	"slices"
	"syscall"
	"unsafe"

	"github.com/confine-dev/confine/sandbox"
)

// Launch says how a child turns itself into the confined init of a run. It is
// a value: nothing happens until an executor runs its calls.
type Launch struct {
	// Namespaces clones the child into new mount, PID, IPC and UTS namespaces
	// inside the session's user namespace. Without it the child stays where it
	// is and its descendants are found by their parents.
	Namespaces bool

	// SharedNetwork keeps the host's network; otherwise the session's own
	// network namespace is joined. It has no meaning without Namespaces.
	SharedNetwork bool

	// Prepare runs first, with whatever privilege the child has.
	Prepare Script

	// Confine runs last before the init is executed: privileges are dropped
	// and filters installed here.
	Confine Script

	// Ruleset, if HasRuleset, names the call of Prepare whose result is the
	// Landlock ruleset that the command is restricted by.
	Ruleset    Ref
	HasRuleset bool

	// TerminalRights, if not 0, is what the ruleset shall allow on the command's own
	// terminal, which has no path yet.
	TerminalRights uint64

	// Fleeting says that the launch covers what may be gone by now: a runner that
	// failed because of that is worth another launch.
	Fleeting bool

	// Runner, if set, is a program that makes the run's namespaces and view in
	// place of Prepare and Confine. Ruleset then names a call of its Inside.
	Runner *Runner

	// Env are variables that replace the command's own, such as TMPDIR.
	Env map[string]string

	// Defaults are variables for a command that does not set them itself.
	Defaults map[string]string

	// Caches are those of the request that the command finds a layer over.
	Caches []Cache

	// Writable are the places besides the policy's roots that the command may
	// write to without a denial.
	Writable []string

	Facts sandbox.Facts

	terminal *sandbox.TerminalSize // nil for pipes

	guarded *guarded // nil if nothing is confined
	bounds  *bounds  // the same
}

// set adds variables that replace the command's own.
func (l *Launch) set(env map[string]string) {
	if l.Env == nil {
		l.Env = map[string]string{}
	}
	maps.Copy(l.Env, env)
}

// Script is a list of system calls with names that a person understands. It
// can be run by a child that shares this process's memory (spawn_linux.go) or be
// carried by the init's image into another one (orders_linux.go).
type Script struct {
	calls  []call
	points []point
}

// point is a pointer that lies in memory which a call is given.
type point struct{ at, target []byte }

// Ref names the result of an earlier call of the same script.
type Ref int

// Arg is one argument of a call.
type Arg struct {
	value uintptr        // of a result: its Ref
	addr  unsafe.Pointer // the argument is this address
	size  uint32         // of what lies there; 0: it cannot be carried away
	isRef bool
}

// call is one system call.
type call struct {
	what    string // gerund: "mounting /proc"
	nr      uintptr
	args    [6]Arg
	ignore  syscall.Errno // this error does not matter
	patch   []byte        // receives the result as an int32 in its first 4 bytes
	compare []byte        // must equal want afterwards
	want    []byte
}

// Int is a plain number.
func Int[T ~int | ~uintptr | ~uint32 | ~uint64 | ~int64 | ~int32](n T) Arg {
	return Arg{value: uintptr(n)}
}

// Bytes is the address of b, which the call may change.
func Bytes(b []byte) Arg { return Arg{addr: unsafe.Pointer(&b[0]), size: uint32(len(b))} }

// Text is the address of s with a NUL behind it. A text with a NUL inside
// would name another file; callers check that before.
func Text(s string) Arg { return Bytes(append([]byte(s), 0)) }

// Struct is the address of *v, which holds no pointers (see Point).
func Struct[T any](v *T) Arg { return Arg{addr: unsafe.Pointer(v), size: uint32(unsafe.Sizeof(*v))} }

// Point stores the address of target in the first 8 bytes of at.
func (s *Script) Point(at, target []byte) {
	binary.NativeEndian.PutUint64(at, uint64(uintptr(unsafe.Pointer(&target[0]))))
	s.points = append(s.points, point{at[:8], target})
}

// texts is the address of a NULL-terminated list of texts, as execve wants it.
func texts(list []string) (Arg, error) {
	pointers, err := syscall.SlicePtrFromStrings(list)
	if err != nil {
		return Arg{}, err
	}
	return Arg{addr: unsafe.Pointer(&pointers[0])}, nil
}

// Result is what an earlier call returned.
func Result(r Ref) Arg { return Arg{value: uintptr(r), isRef: true} }

// Call adds a system call. what completes the sentence "… failed".
func (s *Script) Call(what string, nr uintptr, args ...Arg) Ref {
	c := call{what: what, nr: nr}
	copy(c.args[:], args)
	s.calls = append(s.calls, c)
	return Ref(len(s.calls) - 1)
}

// Grow makes room for n more calls, of which a launch has hundreds.
func (s *Script) Grow(n int) { s.calls = slices.Grow(s.calls, n) }

// Ignore lets the last call fail with errno.
func (s *Script) Ignore(errno syscall.Errno) { s.calls[len(s.calls)-1].ignore = errno }

// Patch stores the result of the last call as an int32 at the start of b, so
// that a later call can point to it.
func (s *Script) Patch(b []byte) { s.calls[len(s.calls)-1].patch = b }

// Expect makes the last call fail with ESTALE unless got equals want after it.
func (s *Script) Expect(got, want []byte) {
	c := &s.calls[len(s.calls)-1]
	c.compare, c.want = got, want
}

// Append adds the calls of another script and returns what has to be added to
// its references.
func (s *Script) Append(other *Script) Ref {
	base := Ref(len(s.calls))
	s.Grow(len(other.calls))
	for _, c := range other.calls {
		for i := range c.args {
			if c.args[i].isRef {
				c.args[i].value += uintptr(base)
			}
		}
		s.calls = append(s.calls, c)
	}
	s.points = append(s.points, other.points...)
	return base
}

// StepError says which call of a launch failed.
type StepError struct {
	Step  string
	Errno syscall.Errno
}

func (e *StepError) Error() string {
	if e.Errno == syscall.ESTALE {
		return fmt.Sprintf("%s: it is not what was declared or granted (it was replaced); reopen the folder, or ask again", e.Step)
	}
	return fmt.Sprintf("%s: %v", e.Step, e.Errno)
}

func (e *StepError) Unwrap() error { return e.Errno }

// op is a call as the child executes it: only numbers and pointers, so that
// running it allocates and calls nothing.
type op struct {
	nr     uintptr
	a      [6]uintptr
	ref    uint8 // bit i: argument i is the index of an earlier op
	ignore uintptr
	patch  *int32
	got    *byte
	want   *byte
	size   uintptr
	result uintptr
}

// ops compiles the script, which must be kept as long as they are used: they do not
// keep what arguments point to.
func (s *Script) ops() []op {
	out := make([]op, len(s.calls))
	for i, c := range s.calls {
		o := &out[i]
		o.nr, o.ignore = c.nr, uintptr(c.ignore)
		for j, a := range c.args {
			switch {
			case a.isRef:
				o.a[j], o.ref = a.value, o.ref|1<<j
			case a.addr != nil:
				o.a[j] = uintptr(a.addr)
			default:
				o.a[j] = a.value
			}
		}
		if c.patch != nil {
			o.patch = (*int32)(unsafe.Pointer(&c.patch[0]))
		}
		if c.compare != nil {
			o.got, o.want, o.size = &c.compare[0], &c.want[0], uintptr(len(c.want))
		}
	}
	return out
}
