package observe

import (
	"maps"
	"runtime"
	"slices"
	"testing"

	"golang.org/x/sys/unix"
)

// called is a use of a call and whether it is observed, by the number that the
// kernel's table has.
type called struct {
	name     string
	nr       uint32
	args     args
	observed bool
}

const (
	pointer  = 0x7f0012345678 // some address
	cwdArg   = 0xffffff9c     // AT_FDCWD, as compilers pass it
	wronly   = 1
	rdwr     = 2
	creat    = 0o100
	trunc    = 0o1000
	appended = 0o2000
	tmpfile  = 0o20000000
)

// fileCalls are the calls that change files and have a number of their own on each
// architecture, which calledHere gives.
func openUses(name string, nr uint32, flags int) []called {
	use := func(what string, value uint64, observed bool) called {
		c := called{name: name + " " + what, nr: nr, observed: observed}
		for i := range c.args {
			c.args[i] = pointer &^ 0xffffffff // other arguments say nothing
		}
		c.args[flags] = value
		return c
	}
	return []called{
		use("to read", 0, false), use("to read a folder", 0o2200000, false), use("to read with O_APPEND", appended, false),
		use("to write", wronly, true), use("to update", rdwr, true), use("to create", creat, true), use("to truncate", trunc, true),
		use("an unnamed file", tmpfile, true), use("to write, with high bits", 1<<32|wronly, true),
	}
}

// always is a call that is observed whatever it is told.
func always(numbers map[string]uint32) (list []called) {
	for _, name := range slices.Sorted(maps.Keys(numbers)) {
		list = append(list, called{name, numbers[name], args{}, true}, called{name, numbers[name], args{pointer, pointer, pointer, pointer, pointer, pointer}, true})
	}
	return list
}

// interpretFilter runs a filter of this package as the kernel does.
func interpretFilter(t *testing.T, program []unix.SockFilter, c called) bool {
	t.Helper()
	arch := map[string]uint32{"amd64": 0xC000003E, "arm64": 0xC00000B7}[runtime.GOARCH]
	data := map[uint32]uint32{0: c.nr, 4: arch}
	for i, a := range c.args {
		data[16+8*uint32(i)], data[20+8*uint32(i)] = uint32(a), uint32(a>>32)
	}
	var acc uint32
	for pc := 0; pc < len(program); pc++ {
		in := program[pc]
		jump := in.Jf
		switch in.Code {
		case unix.BPF_LD | unix.BPF_W | unix.BPF_ABS:
			acc = data[in.K]
			continue
		case unix.BPF_ALU | unix.BPF_AND | unix.BPF_K:
			acc &= in.K
			continue
		case unix.BPF_RET | unix.BPF_K:
			const notify, allow = 0x7fc00000, 0x7fff0000
			if in.K != notify && in.K != allow {
				t.Fatalf("%s: the filter answers %#x", c.name, in.K)
			}
			return in.K == notify
		case unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K:
			if acc == in.K {
				jump = in.Jt
			}
		case unix.BPF_JMP | unix.BPF_JGE | unix.BPF_K:
			if acc >= in.K {
				jump = in.Jt
			}
		default:
			t.Fatalf("unknown instruction %#x", in.Code)
		}
		pc += int(jump)
	}
	t.Fatalf("%s: the program runs off its end", c.name)
	return false
}

func TestFilter(t *testing.T) {
	o := New(Options{})
	list := slices.Concat(calledHere, always(changingNames), always(changingMetadata), always(reaching))
	known := map[uint32]bool{}
	for _, c := range list {
		known[c.nr] = true
		if got := interpretFilter(t, o.Filter(true), c); got != c.observed {
			t.Errorf("%s (%d): observed %t, want %t", c.name, c.nr, got, c.observed)
		}
	}
	for nr := range uint32(600) {
		for _, a := range []uint64{0, 1, pointer, ^uint64(0)} {
			if c := (called{"other", nr, args{a, a, a, a, a, a}, false}); !known[nr] && interpretFilter(t, o.Filter(true), c) {
				t.Errorf("call %d is observed, and no test speaks of it", nr)
			}
		}
	}
	if len(o.Filter(true)) > unix.BPF_MAXINSNS {
		t.Error("the filter is too long")
	}
}

// TestFilterWithoutNamespaces leaves out what is not refused there.
func TestFilterWithoutNamespaces(t *testing.T) {
	program := New(Options{}).Filter(false)
	for _, c := range slices.Concat(always(changingNames), always(changingMetadata), always(reaching)) {
		_, names := changingNames[c.name]
		if got := interpretFilter(t, program, c); got != names {
			t.Errorf("%s: observed %t", c.name, got)
		}
	}
}

// TestInitIsNotObserved: the observer may not answer yet when the init runs.
func TestInitIsNotObserved(t *testing.T) {
	for _, nr := range []uint32{unix.SYS_PRCTL, unix.SYS_CLONE, unix.SYS_WRITE, unix.SYS_READ, unix.SYS_CLOSE, unix.SYS_CLOSE_RANGE, unix.SYS_RT_SIGACTION,
		unix.SYS_RT_SIGPROCMASK, unix.SYS_RT_SIGTIMEDWAIT, unix.SYS_RT_SIGRETURN, unix.SYS_WAIT4, unix.SYS_WAITID, unix.SYS_KILL, unix.SYS_SETSID, unix.SYS_GETPID,
		unix.SYS_LANDLOCK_RESTRICT_SELF, unix.SYS_EXECVE, unix.SYS_EXECVEAT, unix.SYS_EXIT, unix.SYS_EXIT_GROUP, unix.SYS_SECCOMP, unix.SYS_DUP3, unix.SYS_FCNTL, unix.SYS_CHDIR} {
		for _, namespaces := range []bool{true, false} {
			for _, a := range []uint64{0, 1, pointer, ^uint64(0)} {
				if interpretFilter(t, New(Options{}).Filter(namespaces), called{name: "init", nr: nr, args: args{a, a, a, a, a, a}}) {
					t.Errorf("call %d is observed", nr)
				}
			}
		}
	}
}

// TestEveryTrapIsDecoded: what the filter stops must be understood.
func TestEveryTrapIsDecoded(t *testing.T) {
	for _, namespaces := range []bool{true, false} {
		known := decoders(namespaces)
		for _, trap := range traps(namespaces) {
			r := known[int32(trap.call)](args{cwdArg, 1, wronly, 0, 5, 6})
			if r.kind == nothing {
				t.Errorf("call %d means nothing", trap.call)
			}
		}
	}
}
