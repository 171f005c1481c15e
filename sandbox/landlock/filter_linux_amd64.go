package landlock

import "golang.org/x/sys/unix"

// archRefusals are the older forms of calls, which arm64 never had.
func archRefusals() []refusal {
	const eperm = uintptr(unix.EPERM)
	return []refusal{
		{unix.SYS_OPEN, []condition{anyOf(1, creates), anyOf(2, setID)}, eperm},
		{unix.SYS_CREAT, []condition{anyOf(1, setID)}, eperm},
		{unix.SYS_CHMOD, []condition{anyOf(1, setID)}, eperm},
		{unix.SYS_MKNOD, []condition{anyOf(1, setID)}, eperm},
		{unix.SYS_IOPL, nil, eperm},
		{unix.SYS_IOPERM, nil, eperm},
	}
}
