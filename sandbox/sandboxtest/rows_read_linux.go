package sandboxtest

import (
	"os"
	"path/filepath"
	"syscall"

	"github.com/confine-dev/confine/sandbox"
	"golang.org/x/sys/unix"
)

// fileReads are ways of reading what is hidden, or is known not to be.
var fileReads = []refusal{
	{name: "read a file outside", facet: sandbox.FileRead, gap: everywhere, try: func(s stage) error { return readHost(s.out("file")) }},
	{name: "read a file in the runtime folder", facet: sandbox.FileRead, gap: withoutNamespaces, errnos: []syscall.Errno{unix.ENOENT},
		try: func(s stage) error { return readHost(s.RuntimeFile) }},
	{name: "list confine's own folder", facet: sandbox.FileRead, gap: withoutNamespaces, errnos: []syscall.Errno{unix.ENOENT},
		try: func(s stage) error {
			return closing(unix.Open(filepath.Join(s.State, "servers"), unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0))
		}},
}

func readHost(path string) error {
	fd, err := unix.Open(path, unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return err
	}
	buffer := make([]byte, 16)
	n, err := unix.Read(fd, buffer)
	if err == nil && string(buffer[:n]) != "host" {
		return unix.ENODATA
	}
	return err
}

// metadata makes a row about metadata outside. Landlock alone cannot refuse it.
func metadata(name string, try func(stage) error) refusal {
	return refusal{name: name, facet: sandbox.Metadata, modes: bothModes, gap: withoutNamespaces, try: try}
}

// metadataChanges are ways of changing owner, mode, times and attributes.
var metadataChanges = []refusal{
	metadata("change the mode", func(s stage) error { return unix.Chmod(s.out("file"), 0o600) }),
	metadata("change the mode by a read descriptor", func(s stage) error {
		return onDescriptor(s, func(fd int) error { return unix.Fchmod(fd, 0o600) })
	}),
	metadata("change the mode by fchmodat2", func(s stage) error {
		return unix.Fchmodat(unix.AT_FDCWD, s.out("file"), 0o600, unix.AT_SYMLINK_NOFOLLOW)
	}).with(func(r *refusal) { r.control.optional = []syscall.Errno{unix.EOPNOTSUPP} }),
	metadata("change the owner to oneself", func(s stage) error { return unix.Chown(s.out("file"), os.Getuid(), os.Getgid()) }),
	metadata("change the owner by a read descriptor", func(s stage) error {
		return onDescriptor(s, func(fd int) error { return unix.Fchown(fd, os.Getuid(), os.Getgid()) })
	}),
	metadata("change the owner of a link", func(s stage) error { return unix.Lchown(s.out("link"), os.Getuid(), os.Getgid()) }),
	metadata("change the times", func(s stage) error {
		return unix.UtimesNanoAt(unix.AT_FDCWD, s.out("file"), make([]unix.Timespec, 2), 0)
	}),
	metadata("change the times by a read descriptor", func(s stage) error {
		return onDescriptor(s, func(fd int) error { return unix.Futimes(fd, make([]unix.Timeval, 2)) })
	}),
	metadata("set an attribute", func(s stage) error { return unix.Setxattr(s.out("file"), "user.suite", []byte("gone"), 0) }).with(noAttributes),
	metadata("set an attribute by a read descriptor", func(s stage) error {
		return onDescriptor(s, func(fd int) error { return unix.Fsetxattr(fd, "user.suite", []byte("gone"), 0) })
	}).with(noAttributes),
	metadata("remove an attribute", func(s stage) error { return unix.Removexattr(s.out("file"), "user.suite") }).with(noAttributes),
	metadata("set an inode flag", func(s stage) error {
		return onDescriptor(s, func(fd int) error { return unix.IoctlSetPointerInt(fd, unix.FS_IOC_SETFLAGS, 0x40) }) // FS_NODUMP_FL
	}).with(func(r *refusal) { r.control.optional = []syscall.Errno{unix.EOPNOTSUPP, unix.ENOTTY} }),
}

func noAttributes(r *refusal) { r.control.optional = []syscall.Errno{unix.EOPNOTSUPP} }

func onDescriptor(s stage, change func(fd int) error) error {
	fd, err := unix.Open(s.out("file"), unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return need(err)
	}
	defer unix.Close(fd)
	return change(fd)
}
