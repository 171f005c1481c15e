package restrict

import "golang.org/x/sys/unix"

// conditionalHere and unconditionalHere are calls that only amd64 has.
var conditionalHere = []asked{
	{"open", unix.SYS_OPEN, []uint64{0, unix.O_RDONLY, 0o4755}, 0},
	{"create by open", unix.SYS_OPEN, []uint64{0, unix.O_CREAT, 0o644}, 0},
	{"create with the user id bit by open", unix.SYS_OPEN, []uint64{0, unix.O_CREAT, 0o4755}, unix.EPERM},
	{"an unnamed file with the user id bit by open", unix.SYS_OPEN, []uint64{0, unix.O_TMPFILE, 0o4755}, unix.EPERM},
	{"create", unix.SYS_CREAT, []uint64{0, 0o644}, 0},
	{"create with the group id bit by creat", unix.SYS_CREAT, []uint64{0, 0o2755}, unix.EPERM},
	{"change a mode", unix.SYS_CHMOD, []uint64{0, 0o1755}, 0},
	{"set the user id bit by chmod", unix.SYS_CHMOD, []uint64{0, 0o4755}, unix.EPERM},
	{"make a FIFO by mknod", unix.SYS_MKNOD, []uint64{0, unix.S_IFIFO | 0o644}, 0},
	{"make a file with the user id bit by mknod", unix.SYS_MKNOD, []uint64{0, unix.S_IFREG | 0o4755}, unix.EPERM},
}

var unconditionalHere = []uintptr{unix.SYS_IOPL, unix.SYS_IOPERM}
