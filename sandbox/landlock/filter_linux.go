package landlock

import (
	"runtime"

	"github.com/confine-dev/confine/sandbox/local"
	"golang.org/x/sys/unix"
)

// refusal is a system call, or some uses of it, that the filter answers with
// errno.
type refusal struct {
	nr    uintptr
	when  []condition // all must hold; none means always
	errno uintptr
}

// condition looks at the low 32 bits of an argument. What it refuses is never
// told by the high bits.
type condition struct {
	arg   int
	mask  uint32
	value uint32
	not   bool // refuse when (arg & mask) != value
}

// anyOf holds if one of the bits is set.
func anyOf(arg int, bits uint32) condition {
	return condition{arg: arg, mask: bits, value: 0, not: true}
}

// equals compares the whole low half.
func equals(arg int, value uint32) condition {
	return condition{arg: arg, mask: ^uint32(0), value: value}
}

const (
	newNamespaces = unix.CLONE_NEWUSER | unix.CLONE_NEWNS | unix.CLONE_NEWPID | unix.CLONE_NEWNET | unix.CLONE_NEWIPC |
		unix.CLONE_NEWUTS | unix.CLONE_NEWCGROUP
	newTime = unix.CLONE_NEWTIME // shares its bit with clone's exit signal; unshare only
	setID   = unix.S_ISUID | unix.S_ISGID

	// creates are the flags with which openat looks at its mode. Of O_TMPFILE
	// only the bit that no other flag has: an unnamed file can get a name.
	creates = unix.O_CREAT | unix.O_TMPFILE&^unix.O_DIRECTORY
)

// refusals are what no honest command needs and no mount stops.
func refusals() []refusal {
	const eperm, enosys = uintptr(unix.EPERM), uintptr(unix.ENOSYS)
	list := []refusal{
		// New namespaces would bring all capabilities back inside. A filter
		// cannot see the flags of clone3; programs fall back to clone.
		{unix.SYS_UNSHARE, []condition{anyOf(0, newNamespaces|newTime)}, eperm},
		{unix.SYS_CLONE, []condition{anyOf(0, newNamespaces)}, eperm},
		{unix.SYS_CLONE3, nil, enosys},
		// Terminal injection.
		{unix.SYS_IOCTL, []condition{equals(1, unix.TIOCSTI)}, eperm},
		{unix.SYS_IOCTL, []condition{equals(1, unix.TIOCLINUX)}, eperm},
		// Virtual machine sockets pass every network namespace.
		{unix.SYS_SOCKET, []condition{equals(0, unix.AF_VSOCK)}, eperm},
		// A filter cannot see the mode that openat2 creates a file with.
		{unix.SYS_OPENAT2, nil, enosys},
		{unix.SYS_OPENAT, []condition{anyOf(2, creates), anyOf(3, setID)}, eperm},
		{unix.SYS_FCHMOD, []condition{anyOf(1, setID)}, eperm},
		{unix.SYS_FCHMODAT, []condition{anyOf(2, setID)}, eperm},
		{unix.SYS_FCHMODAT2, []condition{anyOf(2, setID)}, eperm},
		{unix.SYS_MKNODAT, []condition{anyOf(2, setID)}, eperm},
		// Unfiltered ways to the same calls.
		{unix.SYS_IO_URING_SETUP, nil, enosys},
		{unix.SYS_IO_URING_ENTER, nil, enosys},
		{unix.SYS_IO_URING_REGISTER, nil, enosys},
	}
	for _, nr := range []uintptr{
		unix.SYS_SETNS,
		unix.SYS_KEYCTL, unix.SYS_ADD_KEY, unix.SYS_REQUEST_KEY, // keys pass every namespace
		unix.SYS_BPF, unix.SYS_PERF_EVENT_OPEN, unix.SYS_USERFAULTFD,
		unix.SYS_MOUNT, unix.SYS_UMOUNT2, unix.SYS_PIVOT_ROOT, unix.SYS_CHROOT,
		unix.SYS_OPEN_TREE, unix.SYS_OPEN_TREE_ATTR, unix.SYS_MOVE_MOUNT, unix.SYS_FSOPEN, unix.SYS_FSMOUNT, unix.SYS_FSCONFIG, unix.SYS_FSPICK, unix.SYS_MOUNT_SETATTR,
		unix.SYS_OPEN_BY_HANDLE_AT,
		unix.SYS_INIT_MODULE, unix.SYS_FINIT_MODULE, unix.SYS_DELETE_MODULE, unix.SYS_KEXEC_LOAD, unix.SYS_KEXEC_FILE_LOAD,
		unix.SYS_REBOOT, unix.SYS_SWAPON, unix.SYS_SWAPOFF, unix.SYS_ACCT, unix.SYS_SETTIMEOFDAY, unix.SYS_CLOCK_SETTIME,
	} {
		list = append(list, refusal{nr, nil, eperm})
	}
	return append(list, archRefusals()...)
}

// noLimits refuses setting limits of other processes, where they can be seen: a
// limit on processor time kills. pid_t has 32 bits.
func noLimits() []refusal {
	return []refusal{{unix.SYS_PRLIMIT64, []condition{{arg: 0, mask: ^uint32(0), value: 0, not: true}}, uintptr(unix.EPERM)}}
}

// noInternet refuses every socket that could leave the machine, where no
// network namespace does.
func noInternet() []refusal {
	// unix sockets and reading the network's state stay.
	return []refusal{{unix.SYS_SOCKET, []condition{
		{arg: 0, mask: ^uint32(0), value: unix.AF_UNIX, not: true},
		{arg: 0, mask: ^uint32(0), value: unix.AF_NETLINK, not: true},
	}, uintptr(unix.EACCES)}}
}

// Offsets in struct seccomp_data (seccomp(2)).
const (
	dataNumber = 0
	dataArch   = 4
	dataArgs   = 16
)

// auditArch are the values of seccomp_data.arch (linux/audit.h).
var auditArch = map[string]uint32{"amd64": unix.AUDIT_ARCH_X86_64, "arm64": unix.AUDIT_ARCH_AARCH64}

// x32Bit marks calls of the x32 ABI on amd64; no call of arm64 has it.
const x32Bit = 0x40000000

// assemble makes the filter program. Calls of another architecture do not
// exist: their numbers mean other things.
func assemble(list []refusal, arch uint32) []unix.SockFilter {
	const (
		load = unix.BPF_LD | unix.BPF_W | unix.BPF_ABS
		eq   = unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K
		ge   = unix.BPF_JMP | unix.BPF_JGE | unix.BPF_K
		and  = unix.BPF_ALU | unix.BPF_AND | unix.BPF_K
		ret  = unix.BPF_RET | unix.BPF_K
	)
	answer := func(errno uintptr) unix.SockFilter {
		return unix.SockFilter{Code: ret, K: unix.SECCOMP_RET_ERRNO | uint32(errno)}
	}
	program := []unix.SockFilter{
		{Code: load, K: dataArch},
		{Code: eq, K: arch, Jt: 1},
		answer(uintptr(unix.ENOSYS)),
		{Code: load, K: dataNumber},
		{Code: ge, K: x32Bit, Jf: 1},
		answer(uintptr(unix.ENOSYS)),
	}
	for _, r := range list {
		var block []unix.SockFilter
		left := 3 * len(r.when) // instructions up to the answer
		for _, c := range r.when {
			left -= 3
			test := unix.SockFilter{Code: eq, K: c.value}
			if skip := uint8(left + 1); c.not {
				test.Jt = skip
			} else {
				test.Jf = skip
			}
			block = append(block, unix.SockFilter{Code: load, K: argument(c.arg)}, unix.SockFilter{Code: and, K: c.mask}, test)
		}
		block = append(block, answer(r.errno))
		if len(r.when) > 0 {
			block = append(block, unix.SockFilter{Code: load, K: dataNumber})
		}
		program = append(program, unix.SockFilter{Code: eq, K: uint32(r.nr), Jf: uint8(len(block))})
		program = append(program, block...)
	}
	return append(program, unix.SockFilter{Code: ret, K: unix.SECCOMP_RET_ALLOW})
}

// argument is the offset of the low half of an argument on little-endian
// machines, which all supported ones are.
func argument(n int) uint32 { return dataArgs + 8*uint32(n) }

// installFilter adds the call that installs the filter.
func installFilter(s *local.Script, list []refusal) {
	program := assemble(list, auditArch[runtime.GOARCH])
	s.Call("installing the seccomp filter", unix.SYS_SECCOMP, local.Int(unix.SECCOMP_SET_MODE_FILTER), local.Int(0),
		local.Struct(&unix.SockFprog{Len: uint16(len(program)), Filter: &program[0]}))
}
