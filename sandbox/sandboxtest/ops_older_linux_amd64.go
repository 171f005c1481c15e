package sandboxtest

import "golang.org/x/sys/unix"

// opsOlderCalls are system calls that newer ones replaced and that this machine
// still has.
var opsOlderCalls = map[string]uintptr{
	"open": unix.SYS_OPEN, "creat": unix.SYS_CREAT, "rename": unix.SYS_RENAME, "link": unix.SYS_LINK, "symlink": unix.SYS_SYMLINK,
	"mkdir": unix.SYS_MKDIR, "mknod": unix.SYS_MKNOD, "unlink": unix.SYS_UNLINK, "rmdir": unix.SYS_RMDIR,
	"chmod": unix.SYS_CHMOD, "chown": unix.SYS_CHOWN, "lchown": unix.SYS_LCHOWN, "utimes": unix.SYS_UTIMES,
}
