package restrict

import (
	"encoding/binary"
	"runtime"
	"syscall"

	"github.com/confine-dev/confine/sandbox/local"
	"golang.org/x/sys/unix"
)

// Case is a system call, or some uses of it, and what a filter does with it.
// Several cases may name one call: the first whose conditions hold decides.
type Case struct {
	Call uintptr     // SYS_…
	When []Condition // all must hold; none means always. At most one for each of six arguments
	Do   Action
}

// Action is what a filter does with a call. The kernel takes the strictest of
// all filters: a refusal before a notice.
type Action uint32

// Notify stops the caller until who holds the filter's listener has answered
// (seccomp_unotify(2)).
const Notify Action = unix.SECCOMP_RET_USER_NOTIF

// Refuse makes the call fail with errno.
func Refuse(errno syscall.Errno) Action { return unix.SECCOMP_RET_ERRNO | Action(errno) }

// Condition looks at the low 32 bits of an argument, which is counted from 0.
// What it is for is never told by the high bits.
type Condition struct {
	arg   int
	mask  uint32
	value uint32
	not   bool // holds when (arg & mask) != value
}

// AnyOf holds if one of the bits is set.
func AnyOf(arg int, bits uint32) Condition {
	return Condition{arg: arg, mask: bits, value: 0, not: true}
}

// Equals compares the whole low half.
func Equals(arg int, value uint32) Condition {
	return Condition{arg: arg, mask: ^uint32(0), value: value}
}

// Differs is the opposite of Equals.
func Differs(arg int, value uint32) Condition {
	return Condition{arg: arg, mask: ^uint32(0), value: value, not: true}
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

// Refusals are what no honest command needs and no mount stops.
func Refusals() []Case {
	eperm, enosys := Refuse(unix.EPERM), Refuse(unix.ENOSYS)
	list := []Case{
		// New namespaces would bring all capabilities back inside. A filter
		// cannot see the flags of clone3; programs fall back to clone.
		{unix.SYS_UNSHARE, []Condition{AnyOf(0, newNamespaces|newTime)}, eperm},
		{unix.SYS_CLONE, []Condition{AnyOf(0, newNamespaces)}, eperm},
		{unix.SYS_CLONE3, nil, enosys},
		// A limit on its processor time would end PID 1 of a namespace, confine's
		// init, and with it the run: it would look as if the sandbox had failed.
		{unix.SYS_PRLIMIT64, []Condition{Equals(0, 1)}, eperm},
		// Terminal injection.
		{unix.SYS_IOCTL, []Condition{Equals(1, unix.TIOCSTI)}, eperm},
		{unix.SYS_IOCTL, []Condition{Equals(1, unix.TIOCLINUX)}, eperm},
		// Virtual machine sockets pass every network namespace.
		{unix.SYS_SOCKET, []Condition{Equals(0, unix.AF_VSOCK)}, eperm},
		// A filter cannot see the mode that openat2 creates a file with.
		{unix.SYS_OPENAT2, nil, enosys},
		{unix.SYS_OPENAT, []Condition{AnyOf(2, creates), AnyOf(3, setID)}, eperm},
		{unix.SYS_FCHMOD, []Condition{AnyOf(1, setID)}, eperm},
		{unix.SYS_FCHMODAT, []Condition{AnyOf(2, setID)}, eperm},
		{unix.SYS_FCHMODAT2, []Condition{AnyOf(2, setID)}, eperm},
		{unix.SYS_MKNODAT, []Condition{AnyOf(2, setID)}, eperm},
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
		list = append(list, Case{nr, nil, eperm})
	}
	return append(list, archRefusals()...)
}

// NoLimits refuses setting limits of other processes, where they can be seen: a
// limit on processor time kills. pid_t has 32 bits.
func NoLimits() []Case {
	return []Case{{unix.SYS_PRLIMIT64, []Condition{Differs(0, 0)}, Refuse(unix.EPERM)}}
}

// NoInternet refuses every socket that could leave the machine, where no
// network namespace does. unix sockets and reading the network's state stay.
func NoInternet() []Case {
	return []Case{{unix.SYS_SOCKET, []Condition{Differs(0, unix.AF_UNIX), Differs(0, unix.AF_NETLINK)}, Refuse(unix.EACCES)}}
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

// Assemble makes the program of a filter for this machine, which allows what no
// case speaks of. Calls of another architecture do not exist (ENOSYS): their
// numbers mean other things.
func Assemble(list []Case) []unix.SockFilter { return assemble(list, auditArch[runtime.GOARCH]) }

func assemble(list []Case, arch uint32) []unix.SockFilter {
	const (
		load = unix.BPF_LD | unix.BPF_W | unix.BPF_ABS
		eq   = unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K
		ge   = unix.BPF_JMP | unix.BPF_JGE | unix.BPF_K
		and  = unix.BPF_ALU | unix.BPF_AND | unix.BPF_K
		ret  = unix.BPF_RET | unix.BPF_K
	)
	absent := unix.SockFilter{Code: ret, K: uint32(Refuse(unix.ENOSYS))}
	program := []unix.SockFilter{
		{Code: load, K: dataArch},
		{Code: eq, K: arch, Jt: 1},
		absent,
		{Code: load, K: dataNumber},
		{Code: ge, K: x32Bit, Jf: 1},
		absent,
	}
	for _, r := range list {
		var block []unix.SockFilter
		left := 3 * len(r.When) // instructions up to the action
		for _, c := range r.When {
			left -= 3
			test := unix.SockFilter{Code: eq, K: c.value}
			if skip := uint8(left + 1); c.not {
				test.Jt = skip
			} else {
				test.Jf = skip
			}
			block = append(block, unix.SockFilter{Code: load, K: argument(c.arg)}, unix.SockFilter{Code: and, K: c.mask}, test)
		}
		block = append(block, unix.SockFilter{Code: ret, K: uint32(r.Do)})
		if len(r.When) > 0 {
			block = append(block, unix.SockFilter{Code: load, K: dataNumber})
		}
		program = append(program, unix.SockFilter{Code: eq, K: uint32(r.Call), Jf: uint8(len(block))})
		program = append(program, block...)
	}
	return append(program, unix.SockFilter{Code: ret, K: unix.SECCOMP_RET_ALLOW})
}

// argument is the offset of the low half of an argument on little-endian
// machines, which all supported ones are.
func argument(n int) uint32 { return dataArgs + 8*uint32(n) }

// Code is a program as the kernel reads it: struct sock_filter, one after the
// other.
func Code(program []unix.SockFilter) []byte {
	code := make([]byte, 0, len(program)*unix.SizeofSockFilter)
	for _, in := range program {
		code = binary.NativeEndian.AppendUint16(code, in.Code)
		code = append(code, in.Jt, in.Jf)
		code = binary.NativeEndian.AppendUint32(code, in.K)
	}
	return code
}

// InstallFilter adds the call that installs a filter for good. Without
// CAP_SYS_ADMIN it needs no_new_privs, which DropPrivileges sets.
func InstallFilter(s *local.Script, list []Case) {
	program := Assemble(list)
	code := Code(program)
	fprog := make([]byte, 16) // struct sock_fprog: how many instructions, and where they are
	binary.NativeEndian.PutUint16(fprog, uint16(len(program)))
	s.Point(fprog[8:], code)
	s.Call("installing the seccomp filter", unix.SYS_SECCOMP, local.Int(unix.SECCOMP_SET_MODE_FILTER), local.Int(0), local.Bytes(fprog))
}
