package landlock

import (
	"syscall"

	"golang.org/x/sys/unix"
)

// Rights of the Landlock versions that confine knows
// (Documentation/userspace-api/landlock.rst, "Kernel support").
const (
	writeV1 = unix.LANDLOCK_ACCESS_FS_WRITE_FILE | unix.LANDLOCK_ACCESS_FS_REMOVE_DIR | unix.LANDLOCK_ACCESS_FS_REMOVE_FILE |
		unix.LANDLOCK_ACCESS_FS_MAKE_CHAR | unix.LANDLOCK_ACCESS_FS_MAKE_DIR | unix.LANDLOCK_ACCESS_FS_MAKE_REG |
		unix.LANDLOCK_ACCESS_FS_MAKE_SOCK | unix.LANDLOCK_ACCESS_FS_MAKE_FIFO | unix.LANDLOCK_ACCESS_FS_MAKE_BLOCK |
		unix.LANDLOCK_ACCESS_FS_MAKE_SYM

	// onFiles are the rights that mean something for what is not a folder; a
	// rule for a file with any other right is EINVAL.
	onFiles = unix.LANDLOCK_ACCESS_FS_WRITE_FILE | unix.LANDLOCK_ACCESS_FS_TRUNCATE | unix.LANDLOCK_ACCESS_FS_IOCTL_DEV

	makeDevices = unix.LANDLOCK_ACCESS_FS_MAKE_CHAR | unix.LANDLOCK_ACCESS_FS_MAKE_BLOCK
)

// abi is what one version of Landlock can govern.
type abi struct {
	version int
	files   uint64 // write rights
	network bool   // TCP bind and connect
	scopes  bool   // signals and abstract unix sockets
}

// abis has an entry for each version that brought something that confine uses.
var abis = []abi{
	{version: 1, files: writeV1},
	{version: 2, files: writeV1 | unix.LANDLOCK_ACCESS_FS_REFER},
	{version: 3, files: writeV1 | unix.LANDLOCK_ACCESS_FS_REFER | unix.LANDLOCK_ACCESS_FS_TRUNCATE},
	{version: 4, files: writeV1 | unix.LANDLOCK_ACCESS_FS_REFER | unix.LANDLOCK_ACCESS_FS_TRUNCATE, network: true},
	{version: 5, files: writeV1 | unix.LANDLOCK_ACCESS_FS_REFER | unix.LANDLOCK_ACCESS_FS_TRUNCATE | unix.LANDLOCK_ACCESS_FS_IOCTL_DEV, network: true},
	{version: 6, files: writeV1 | unix.LANDLOCK_ACCESS_FS_REFER | unix.LANDLOCK_ACCESS_FS_TRUNCATE | unix.LANDLOCK_ACCESS_FS_IOCTL_DEV, network: true, scopes: true},
}

// fullVersion is the first version that misses nothing confine claims.
const fullVersion = 5

// abiOf is what a kernel of the given version can govern; the zero abi for
// version 0, a kernel without Landlock.
func abiOf(version int) abi {
	var known abi
	for _, a := range abis {
		if a.version <= version {
			known = a
		}
	}
	return known
}

// kernelVersion asks the kernel (landlock_create_ruleset(2)); 0 is none.
func kernelVersion() int {
	const versionFlag = 1 // LANDLOCK_CREATE_RULESET_VERSION
	n, _, errno := syscall.RawSyscall(unix.SYS_LANDLOCK_CREATE_RULESET, 0, 0, versionFlag)
	if errno != 0 {
		return 0
	}
	return int(n)
}
