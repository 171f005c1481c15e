package restrict

import (
	"encoding/binary"
	"sync"
	"syscall"

	"github.com/confine-dev/confine/sandbox/local"
	"golang.org/x/sys/unix"
)

// Case is a system call, or some uses of it, and what a filter does with it.
// Several cases may name one call: the first whose conditions hold decides.
type Case struct {
	Call uintptr     // SYS_…
	When []Condition // all must hold; none means always
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

// uncommon are all families of sockets but those that ordinary programs use.
// Packet sockets need a capability that no command has, and say so.
var uncommon = []Condition{Differs(0, unix.AF_UNIX), Differs(0, unix.AF_INET), Differs(0, unix.AF_INET6), Differs(0, unix.AF_NETLINK), Differs(0, unix.AF_PACKET)}

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
		// A line discipline: seldom used code of the kernel, which it loads for whoever
		// has a terminal.
		{unix.SYS_IOCTL, []Condition{Equals(1, unix.TIOCSETD)}, eperm},
		// Virtual machine sockets pass every network namespace.
		{unix.SYS_SOCKET, []Condition{Equals(0, unix.AF_VSOCK)}, eperm},
		// Some other families do not know of network namespaces, and most are code of
		// the kernel that is seldom looked at. Programs do without them.
		{unix.SYS_SOCKET, uncommon, Refuse(unix.EAFNOSUPPORT)},
		{unix.SYS_SOCKETPAIR, uncommon, Refuse(unix.EAFNOSUPPORT)},
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

// InstallRefusals adds the call that installs a filter of Refusals for good. It is
// that of every run with namespaces, and assembled once.
func InstallRefusals(s *local.Script) { install(s, refusals()) }

var refusals = sync.OnceValue(func() []unix.SockFilter { return Assemble(Refusals()) })

// InstallFilter does the same with other cases.
func InstallFilter(s *local.Script, list []Case) { install(s, Assemble(list)) }

// install needs no_new_privs, which DropPrivileges sets, where there is no
// CAP_SYS_ADMIN.
func install(s *local.Script, program []unix.SockFilter) {
	code := Code(program)
	fprog := make([]byte, 16) // struct sock_fprog: how many instructions, and where they are
	binary.NativeEndian.PutUint16(fprog, uint16(len(program)))
	s.Point(fprog[8:], code)
	s.Call("installing the seccomp filter", unix.SYS_SECCOMP, local.Int(unix.SECCOMP_SET_MODE_FILTER), local.Int(0), local.Bytes(fprog))
}
