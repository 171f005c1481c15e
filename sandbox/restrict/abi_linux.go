package restrict

import (
	"syscall"

	"golang.org/x/sys/unix"
)

// Rights are what a Landlock rule allows: LANDLOCK_ACCESS_FS_… that write.
// confine leaves reading and executing ungoverned.
type Rights uint64

// Rights of rules. What a kernel does not know is left out when the rule is made.
const (
	// OnFile are the rights that mean something for what is not a folder; a
	// rule for a file with any other right is EINVAL.
	OnFile Rights = unix.LANDLOCK_ACCESS_FS_WRITE_FILE | unix.LANDLOCK_ACCESS_FS_TRUNCATE | unix.LANDLOCK_ACCESS_FS_IOCTL_DEV

	// OnContent changes what files hold, and makes or removes none.
	OnContent Rights = unix.LANDLOCK_ACCESS_FS_WRITE_FILE | unix.LANDLOCK_ACCESS_FS_TRUNCATE

	// InFolder is everything below a folder, save making device nodes.
	InFolder = ^Rights(unix.LANDLOCK_ACCESS_FS_MAKE_CHAR | unix.LANDLOCK_ACCESS_FS_MAKE_BLOCK)
)

// ABI is what one version of Landlock can govern.
type ABI struct {
	Version int    // as the kernel says, which may know more than confine; 0: no Landlock
	Files   Rights // all writes that it knows
	Network bool   // TCP bind and connect
	Scopes  bool   // signals and abstract unix sockets
}

// Versions of Landlock by what they brought.
const (
	TruncateVersion = 3 // truncating files; Linux 6.2
	DevicesVersion  = 5 // ioctl on devices; Linux 6.10. Nothing that later versions brought is needed for files
	ScopesVersion   = 6 // signals and abstract unix sockets; Linux 6.12
)

// Rights of the Landlock versions that confine knows
// (Documentation/userspace-api/landlock.rst, "Kernel support").
const (
	writeV1 Rights = unix.LANDLOCK_ACCESS_FS_WRITE_FILE | unix.LANDLOCK_ACCESS_FS_REMOVE_DIR | unix.LANDLOCK_ACCESS_FS_REMOVE_FILE |
		unix.LANDLOCK_ACCESS_FS_MAKE_CHAR | unix.LANDLOCK_ACCESS_FS_MAKE_DIR | unix.LANDLOCK_ACCESS_FS_MAKE_REG |
		unix.LANDLOCK_ACCESS_FS_MAKE_SOCK | unix.LANDLOCK_ACCESS_FS_MAKE_FIFO | unix.LANDLOCK_ACCESS_FS_MAKE_BLOCK |
		unix.LANDLOCK_ACCESS_FS_MAKE_SYM
	writeV2 = writeV1 | unix.LANDLOCK_ACCESS_FS_REFER
	writeV3 = writeV2 | unix.LANDLOCK_ACCESS_FS_TRUNCATE
	writeV5 = writeV3 | unix.LANDLOCK_ACCESS_FS_IOCTL_DEV
)

// abis has an entry for each version that brought something that confine uses.
var abis = []ABI{
	{Version: 1, Files: writeV1},
	{Version: 2, Files: writeV2},
	{Version: TruncateVersion, Files: writeV3},
	{Version: 4, Files: writeV3, Network: true},
	{Version: DevicesVersion, Files: writeV5, Network: true},
	{Version: ScopesVersion, Files: writeV5, Network: true, Scopes: true},
}

// ABIOf is what a kernel of the given version can govern; the zero ABI for
// version 0.
func ABIOf(version int) ABI {
	var known ABI
	for _, a := range abis {
		if a.Version <= version {
			known = a
		}
	}
	known.Version = version
	return known
}

// Lacks names what this version cannot refuse and a later one can, each with the
// kernel that can; nil if nothing is missing that confine uses.
func (a ABI) Lacks() []string {
	var lacks []string
	for _, right := range []struct {
		has  bool
		name string
	}{
		{a.Files&unix.LANDLOCK_ACCESS_FS_TRUNCATE != 0, "truncating files (ABI 3, Linux 6.2)"},
		{a.Network, "TCP connections by port (ABI 4, Linux 6.7)"},
		{a.Files&unix.LANDLOCK_ACCESS_FS_IOCTL_DEV != 0, "ioctl on devices (ABI 5, Linux 6.10)"},
		{a.Scopes, "signals and abstract sockets (ABI 6, Linux 6.12)"},
	} {
		if !right.has {
			lacks = append(lacks, right.name)
		}
	}
	return lacks
}

// Version asks the kernel (landlock_create_ruleset(2)) which version of Landlock
// it has; 0 is none.
func Version() int {
	const versionFlag = 1 // LANDLOCK_CREATE_RULESET_VERSION
	n, _, errno := syscall.RawSyscall(unix.SYS_LANDLOCK_CREATE_RULESET, 0, 0, versionFlag)
	if errno != 0 {
		return 0
	}
	return int(n)
}
