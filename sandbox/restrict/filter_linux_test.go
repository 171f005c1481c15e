package restrict

import (
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// The kernel's numbers (linux/audit.h), not those of the code.
const (
	archAMD64 = 0xC000003E
	archARM64 = 0xC00000B7
	archI386  = 0x40000003
	archARM   = 0x40000028
)

var archHere = map[string]uint32{"amd64": archAMD64, "arm64": archARM64}[runtime.GOARCH]

// interpret runs a filter as the kernel does (seccomp(2), bpf in
// Documentation/networking/filter.rst), as far as this package's filters go. It
// fails for what the kernel would not load.
func interpret(program []unix.SockFilter, arch uint32, nr uint32, args [6]uint64) (verdict uint32, err error) {
	data := map[uint32]uint32{0: nr, 4: arch} // struct seccomp_data, little-endian
	for i, a := range args {
		data[16+8*uint32(i)], data[20+8*uint32(i)] = uint32(a), uint32(a>>32)
	}
	var acc uint32
	for pc := 0; pc < len(program); pc++ {
		in := program[pc]
		jump := in.Jf
		switch in.Code {
		case unix.BPF_LD | unix.BPF_W | unix.BPF_ABS:
			value, ok := data[in.K]
			if !ok {
				return 0, fmt.Errorf("instruction %d loads from offset %d", pc, in.K)
			}
			acc = value
			continue
		case unix.BPF_ALU | unix.BPF_AND | unix.BPF_K:
			acc &= in.K
			continue
		case unix.BPF_RET | unix.BPF_K:
			return in.K, nil
		case unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K:
			if acc == in.K {
				jump = in.Jt
			}
		case unix.BPF_JMP | unix.BPF_JGE | unix.BPF_K:
			if acc >= in.K {
				jump = in.Jt
			}
		default:
			return 0, fmt.Errorf("instruction %d has the unknown code %#x", pc, in.Code)
		}
		pc += int(jump)
	}
	return 0, fmt.Errorf("the program runs off its end")
}

// ask interprets a filter for this architecture and returns the errno that a
// call gets, 0 if it is allowed.
func ask(t *testing.T, program []unix.SockFilter, nr uintptr, args ...uint64) syscall.Errno {
	t.Helper()
	return askAs(t, program, archHere, uint32(nr), args...)
}

func askAs(t *testing.T, program []unix.SockFilter, arch, nr uint32, args ...uint64) syscall.Errno {
	t.Helper()
	var six [6]uint64
	copy(six[:], args)
	verdict, err := interpret(program, arch, nr, six)
	switch {
	case err != nil:
		t.Fatal(err)
	case verdict == unix.SECCOMP_RET_ALLOW:
		return 0
	case verdict&0xffff0000 == unix.SECCOMP_RET_ERRNO && verdict&0xffff != 0:
		return syscall.Errno(verdict & 0xffff)
	}
	t.Fatalf("the filter answers %#x", verdict)
	return 0
}

// asked is a call and the answer it must get.
type asked struct {
	name string
	nr   uintptr
	args []uint64
	want syscall.Errno
}

const (
	high    = 1 << 32  // a bit of the half that the kernel ignores
	threads = 0x3d0f00 // the flags of pthread_create
	forking = uint64(unix.SIGCHLD)
	vforks  = unix.CLONE_VM | unix.CLONE_VFORK | forking
)

// conditional are the calls that depend on their arguments.
var conditional = []asked{
	{"limits of the init", unix.SYS_PRLIMIT64, []uint64{1, 0, 0x1000}, unix.EPERM},
	{"limits of the init with high bits", unix.SYS_PRLIMIT64, []uint64{high | 1, 0, 0x1000}, unix.EPERM},
	{"limits of a child", unix.SYS_PRLIMIT64, []uint64{2, 0, 0x1000}, 0},
	{"limits of its own", unix.SYS_PRLIMIT64, []uint64{0, 0, 0x1000}, 0},
	{"unshare nothing", unix.SYS_UNSHARE, []uint64{0}, 0},
	{"unshare the file system's state", unix.SYS_UNSHARE, []uint64{unix.CLONE_FS | unix.CLONE_FILES}, 0},
	{"unshare the user namespace", unix.SYS_UNSHARE, []uint64{0x10000000}, unix.EPERM},
	{"unshare the mount namespace", unix.SYS_UNSHARE, []uint64{0x00020000}, unix.EPERM},
	{"unshare the cgroup namespace", unix.SYS_UNSHARE, []uint64{0x02000000}, unix.EPERM},
	{"unshare the uts namespace", unix.SYS_UNSHARE, []uint64{0x04000000}, unix.EPERM},
	{"unshare the ipc namespace", unix.SYS_UNSHARE, []uint64{0x08000000}, unix.EPERM},
	{"unshare the pid namespace", unix.SYS_UNSHARE, []uint64{0x20000000}, unix.EPERM},
	{"unshare the network namespace", unix.SYS_UNSHARE, []uint64{0x40000000}, unix.EPERM},
	{"unshare the time namespace", unix.SYS_UNSHARE, []uint64{0x80}, unix.EPERM},
	{"unshare with high bits", unix.SYS_UNSHARE, []uint64{high | 0x10000000}, unix.EPERM},
	{"fork", unix.SYS_CLONE, []uint64{forking}, 0},
	{"vfork", unix.SYS_CLONE, []uint64{vforks}, 0},
	{"start a thread", unix.SYS_CLONE, []uint64{threads}, 0},
	{"clone with the exit signal 0x80", unix.SYS_CLONE, []uint64{0x80}, 0},
	{"clone into a user namespace", unix.SYS_CLONE, []uint64{forking | 0x10000000}, unix.EPERM},
	{"clone into a pid namespace", unix.SYS_CLONE, []uint64{vforks | 0x20000000}, unix.EPERM},
	{"clone with high bits", unix.SYS_CLONE, []uint64{high | 0x00020000}, unix.EPERM},
	{"ask for a terminal's state", unix.SYS_IOCTL, []uint64{1, unix.TCGETS}, 0},
	{"type into a terminal", unix.SYS_IOCTL, []uint64{1, 0x5412}, unix.EPERM},
	{"set a line discipline", unix.SYS_IOCTL, []uint64{1, 0x5423}, unix.EPERM},
	{"type into a terminal with high bits", unix.SYS_IOCTL, []uint64{1, high | 0x5412}, unix.EPERM},
	{"paste into a console", unix.SYS_IOCTL, []uint64{1, 0x541C}, unix.EPERM},
	{"a unix socket", unix.SYS_SOCKET, []uint64{unix.AF_UNIX, unix.SOCK_STREAM}, 0},
	{"an internet socket", unix.SYS_SOCKET, []uint64{unix.AF_INET, unix.SOCK_STREAM}, 0},
	{"an internet socket of version 6", unix.SYS_SOCKET, []uint64{10, unix.SOCK_DGRAM}, 0},
	{"a packet socket", unix.SYS_SOCKET, []uint64{17, unix.SOCK_RAW}, 0},
	{"a netlink socket", unix.SYS_SOCKET, []uint64{16, unix.SOCK_RAW}, 0},
	{"a socket of the kernel's ciphers", unix.SYS_SOCKET, []uint64{38, 5}, unix.EAFNOSUPPORT},
	{"a Bluetooth socket with high bits", unix.SYS_SOCKET, []uint64{high | 31, unix.SOCK_RAW}, unix.EAFNOSUPPORT},
	{"a pair of unix sockets", unix.SYS_SOCKETPAIR, []uint64{1, unix.SOCK_STREAM}, 0},
	{"a pair of cluster sockets", unix.SYS_SOCKETPAIR, []uint64{30, unix.SOCK_STREAM}, unix.EAFNOSUPPORT},
	{"a socket of virtual machines", unix.SYS_SOCKET, []uint64{40, unix.SOCK_STREAM}, unix.EPERM},
	{"a socket of virtual machines with high bits", unix.SYS_SOCKET, []uint64{high | 40, unix.SOCK_STREAM}, unix.EPERM},
	{"open", unix.SYS_OPENAT, []uint64{0, 0, unix.O_RDONLY, 0}, 0},
	{"open with a mode that is not looked at", unix.SYS_OPENAT, []uint64{0, 0, unix.O_RDONLY | unix.O_DIRECTORY, 0o6755}, 0},
	{"create", unix.SYS_OPENAT, []uint64{0, 0, unix.O_CREAT | unix.O_WRONLY, 0o666}, 0},
	{"create with the sticky bit", unix.SYS_OPENAT, []uint64{0, 0, unix.O_CREAT | unix.O_WRONLY, 0o1777}, 0},
	{"create with the user id bit", unix.SYS_OPENAT, []uint64{0, 0, unix.O_CREAT | unix.O_WRONLY, 0o4755}, unix.EPERM},
	{"create with the group id bit", unix.SYS_OPENAT, []uint64{0, 0, unix.O_CREAT | unix.O_WRONLY, 0o2755}, unix.EPERM},
	{"create with both", unix.SYS_OPENAT, []uint64{0, 0, high | unix.O_CREAT, high | 0o6755}, unix.EPERM},
	{"an unnamed file", unix.SYS_OPENAT, []uint64{0, 0, unix.O_TMPFILE | unix.O_RDWR, 0o600}, 0},
	{"an unnamed file with the user id bit", unix.SYS_OPENAT, []uint64{0, 0, unix.O_TMPFILE | unix.O_RDWR, 0o4700}, unix.EPERM},
	{"change a mode", unix.SYS_FCHMODAT, []uint64{0, 0, 0o755}, 0},
	{"set the user id bit", unix.SYS_FCHMODAT, []uint64{0, 0, 0o4755}, unix.EPERM},
	{"set the group id bit", unix.SYS_FCHMODAT, []uint64{0, 0, 0o2755}, unix.EPERM},
	{"set the sticky bit", unix.SYS_FCHMODAT, []uint64{0, 0, 0o1755}, 0},
	{"change a mode by fchmodat2", unix.SYS_FCHMODAT2, []uint64{0, 0, 0o755}, 0},
	{"set the user id bit by fchmodat2", unix.SYS_FCHMODAT2, []uint64{0, 0, 0o4755}, unix.EPERM},
	{"change a mode by descriptor", unix.SYS_FCHMOD, []uint64{3, 0o755}, 0},
	{"set the user id bit by descriptor", unix.SYS_FCHMOD, []uint64{0o6000, 0o4755}, unix.EPERM},
	{"a descriptor is no mode", unix.SYS_FCHMOD, []uint64{0o4000, 0o755}, 0},
	{"make a FIFO", unix.SYS_MKNODAT, []uint64{0, 0, unix.S_IFIFO | 0o644}, 0},
	{"make a file with the user id bit", unix.SYS_MKNODAT, []uint64{0, 0, unix.S_IFREG | 0o4755}, unix.EPERM},
}

// unconditional are the calls that are refused whatever they are told.
var unconditional = map[syscall.Errno][]uintptr{
	unix.ENOSYS: {unix.SYS_CLONE3, unix.SYS_OPENAT2, unix.SYS_IO_URING_SETUP, unix.SYS_IO_URING_ENTER, unix.SYS_IO_URING_REGISTER},
	unix.EPERM: {unix.SYS_SETNS, unix.SYS_KEYCTL, unix.SYS_ADD_KEY, unix.SYS_REQUEST_KEY, unix.SYS_BPF, unix.SYS_PERF_EVENT_OPEN,
		unix.SYS_USERFAULTFD, unix.SYS_MOUNT, unix.SYS_UMOUNT2, unix.SYS_PIVOT_ROOT, unix.SYS_CHROOT, unix.SYS_OPEN_TREE, unix.SYS_OPEN_TREE_ATTR, unix.SYS_MOVE_MOUNT,
		unix.SYS_FSOPEN, unix.SYS_FSMOUNT, unix.SYS_FSCONFIG, unix.SYS_FSPICK, unix.SYS_MOUNT_SETATTR, unix.SYS_OPEN_BY_HANDLE_AT,
		unix.SYS_INIT_MODULE, unix.SYS_FINIT_MODULE, unix.SYS_DELETE_MODULE, unix.SYS_KEXEC_LOAD, unix.SYS_KEXEC_FILE_LOAD, unix.SYS_REBOOT,
		unix.SYS_SWAPON, unix.SYS_SWAPOFF, unix.SYS_ACCT, unix.SYS_SETTIMEOFDAY, unix.SYS_CLOCK_SETTIME},
}

// ordinary are calls that honest programs cannot do without.
var ordinary = []uintptr{unix.SYS_READ, unix.SYS_WRITE, unix.SYS_EXECVE, unix.SYS_EXIT_GROUP, unix.SYS_MMAP, unix.SYS_MPROTECT, unix.SYS_FUTEX,
	unix.SYS_KILL, unix.SYS_TGKILL, unix.SYS_PTRACE, unix.SYS_WAIT4, unix.SYS_CONNECT, unix.SYS_SENDTO, unix.SYS_MEMFD_CREATE,
	unix.SYS_INOTIFY_ADD_WATCH, unix.SYS_STATX, unix.SYS_RENAMEAT2, unix.SYS_LINKAT, unix.SYS_PRCTL, unix.SYS_SECCOMP, unix.SYS_LANDLOCK_RESTRICT_SELF,
	unix.SYS_PERSONALITY, unix.SYS_SETPRIORITY, unix.SYS_SCHED_SETAFFINITY, unix.SYS_GETRANDOM, unix.SYS_PIDFD_OPEN, unix.SYS_FCHOWNAT, unix.SYS_UTIMENSAT}

func TestFilterAnswers(t *testing.T) {
	program := Assemble(Refusals())
	for _, c := range conditional {
		if got := ask(t, program, c.nr, c.args...); got != c.want {
			t.Errorf("%s: got %q, want %q", c.name, unix.ErrnoName(got), unix.ErrnoName(c.want))
		}
	}
	for want, numbers := range unconditional {
		for _, nr := range numbers {
			for _, a := range []uint64{0, 1, ^uint64(0)} {
				if got := ask(t, program, nr, a, a, a, a, a, a); got != want {
					t.Errorf("call %d with %#x: got %q, want %q", nr, a, unix.ErrnoName(got), unix.ErrnoName(want))
				}
			}
		}
	}
	for _, nr := range ordinary {
		if got := ask(t, program, nr, 1, 1, 1, 1, 1, 1); got != 0 {
			t.Errorf("call %d: got %q, want it allowed", nr, unix.ErrnoName(got))
		}
	}
}

// TestEveryRefusalIsAsked keeps the tables above complete.
func TestEveryRefusalIsAsked(t *testing.T) {
	var known []uintptr
	for _, c := range slices.Concat(conditional, conditionalHere) {
		if c.want != 0 {
			known = append(known, c.nr)
		}
	}
	known = slices.Concat(known, unconditional[unix.EPERM], unconditional[unix.ENOSYS], unconditionalHere)
	for _, r := range Refusals() {
		if !slices.Contains(known, r.Call) {
			t.Errorf("call %d is refused, and no test asks for it", r.Call)
		}
	}
}

func TestFilterOfThisArchitecture(t *testing.T) {
	program := Assemble(Refusals())
	for _, c := range conditionalHere {
		if got := ask(t, program, c.nr, c.args...); got != c.want {
			t.Errorf("%s: got %q, want %q", c.name, unix.ErrnoName(got), unix.ErrnoName(c.want))
		}
	}
	for _, nr := range unconditionalHere {
		if got := ask(t, program, nr); got != unix.EPERM {
			t.Errorf("call %d: got %q, want EPERM", nr, unix.ErrnoName(got))
		}
	}
}

func TestFilterWithoutNamespaces(t *testing.T) {
	closed := Assemble(slices.Concat(Refusals(), NoLimits(), NoInternet()))
	granted := Assemble(slices.Concat(Refusals(), NoLimits()))
	for family := range uint64(64) {
		want, free := unix.EAFNOSUPPORT, unix.EAFNOSUPPORT
		switch family {
		case unix.AF_UNIX, unix.AF_NETLINK:
			want, free = 0, 0
		case unix.AF_INET, unix.AF_INET6, unix.AF_PACKET:
			want, free = unix.EACCES, 0
		case unix.AF_VSOCK:
			want, free = unix.EPERM, unix.EPERM
		}
		if got := ask(t, closed, unix.SYS_SOCKET, family); got != want {
			t.Errorf("a socket of family %d: got %q, want %q", family, unix.ErrnoName(got), unix.ErrnoName(want))
		}
		if got := ask(t, granted, unix.SYS_SOCKET, family); got != free {
			t.Errorf("with the network granted, a socket of family %d: got %q, want %q", family, unix.ErrnoName(got), unix.ErrnoName(free))
		}
	}
	for _, c := range []asked{
		{"a socket of no known family", unix.SYS_SOCKET, []uint64{high | 0xffffffff}, unix.EAFNOSUPPORT},
		{"an internet socket with high bits", unix.SYS_SOCKET, []uint64{high | unix.AF_INET}, unix.EACCES},
		{"own limits", unix.SYS_PRLIMIT64, []uint64{0, 7, 0x1000}, 0},
		{"limits of another process", unix.SYS_PRLIMIT64, []uint64{1, 7, 0x1000}, unix.EPERM},
		// The low half of the address of new limits can be 0.
		{"limits of another process from an odd address", unix.SYS_PRLIMIT64, []uint64{1, 7, 0x7f00000000}, unix.EPERM},
		{"a pair of sockets", unix.SYS_SOCKETPAIR, []uint64{unix.AF_UNIX}, 0},
	} {
		if got := ask(t, closed, c.nr, c.args...); got != c.want {
			t.Errorf("%s: got %q, want %q", c.name, unix.ErrnoName(got), unix.ErrnoName(c.want))
		}
	}
}

func TestFilterKnowsItsArchitecture(t *testing.T) {
	if auditArch["amd64"] != archAMD64 || auditArch["arm64"] != archARM64 {
		t.Errorf("the architectures are %#x", auditArch)
	}
	// setns on each, by the numbers of the kernel's tables.
	for arch, setns := range map[uint32]uint32{archAMD64: 308, archARM64: 268} {
		program := assemble([]Case{{Call: uintptr(setns), Do: Refuse(unix.EPERM)}}, arch)
		if got := askAs(t, program, arch, setns); got != unix.EPERM {
			t.Errorf("%#x: setns: got %q", arch, unix.ErrnoName(got))
		}
		if got := askAs(t, program, arch, setns+1); got != 0 {
			t.Errorf("%#x: the call after setns: got %q", arch, unix.ErrnoName(got))
		}
		for _, foreign := range []uint32{archAMD64, archARM64, archI386, archARM, 0, ^uint32(0)} {
			for _, nr := range []uint32{0, 1, setns, setns + 1} {
				if got := askAs(t, program, foreign, nr); foreign != arch && got != unix.ENOSYS {
					t.Errorf("a filter of %#x: call %d of %#x: got %q, want ENOSYS", arch, nr, foreign, unix.ErrnoName(got))
				}
			}
		}
		for _, nr := range []uint32{0x40000000, 0x40000000 | setns, 0x40000000 | 512, 0x7fffffff, 0x80000000, 0xffffffff} {
			if got := askAs(t, program, arch, nr); got != unix.ENOSYS {
				t.Errorf("%#x: x32 call %#x: got %q, want ENOSYS", arch, nr, unix.ErrnoName(got))
			}
		}
	}
}

// TestConditionsJumpRight tries every truth of up to four conditions of both
// kinds, with a call behind that must still be reached.
func TestConditionsJumpRight(t *testing.T) {
	const nr, next = 10, 11
	for count := range 5 {
		for kinds := range 1 << count {
			var when []Condition
			for i := range count {
				when = append(when, Condition{arg: i, mask: 0xf0, value: 0x30, not: kinds&(1<<i) != 0})
			}
			program := Assemble([]Case{{nr, when, Refuse(unix.EPERM)}, {next, nil, Refuse(unix.EACCES)}, {nr, nil, Refuse(unix.ENOSYS)}})
			for truth := range 1 << count {
				args := make([]uint64, 6)
				for i := range count {
					equal := truth&(1<<i) != 0 != (kinds&(1<<i) != 0)
					args[i] = 0x5f // differs from value in what the mask lets see
					if equal {
						args[i] = 0x3f
					}
				}
				want := unix.ENOSYS // the later refusal of the same call
				if truth == 1<<count-1 {
					want = unix.EPERM
				}
				if got := ask(t, program, nr, args...); got != want {
					t.Errorf("%d conditions of kinds %b with truth %b: got %q, want %q", count, kinds, truth, unix.ErrnoName(got), unix.ErrnoName(want))
				}
			}
			if got := ask(t, program, next); got != unix.EACCES {
				t.Errorf("%d conditions: the call behind gets %q", count, unix.ErrnoName(got))
			}
		}
	}
}

// TestFilterIsItsList compares the program with a plain reading of the list,
// for many calls.
func TestFilterIsItsList(t *testing.T) {
	list := slices.Concat(Refusals(), NoLimits(), NoInternet())
	program := Assemble(list)
	if len(program) > unix.BPF_MAXINSNS {
		t.Fatalf("the kernel does not load %d instructions", len(program))
	}
	random := rand.New(rand.NewPCG(1, 2))
	for range 20000 {
		nr := uintptr(random.UintN(480))
		if random.UintN(2) == 0 {
			nr = list[random.IntN(len(list))].Call
		}
		var args [6]uint64
		for i := range args {
			args[i] = random.Uint64() >> random.UintN(64) << random.UintN(32)
			if when := list[random.IntN(len(list))].When; len(when) > 0 && random.UintN(2) == 0 {
				args[i] = args[i]&^0xffffffff | uint64(when[0].value) // near what matters
			}
		}
		want := syscall.Errno(0)
		if i := slices.IndexFunc(list, func(r Case) bool { return r.Call == nr && holds(r.When, args) }); i >= 0 {
			want = syscall.Errno(list[i].Do & 0xffff)
		}
		if got := ask(t, program, nr, args[:]...); got != want {
			t.Fatalf("call %d with %#x: got %q, want %q", nr, args, unix.ErrnoName(got), unix.ErrnoName(want))
		}
	}
}

func holds(when []Condition, args [6]uint64) bool {
	for _, c := range when {
		if (uint32(args[c.arg])&c.mask == c.value) == c.not {
			return false
		}
	}
	return true
}
