package restrict

import "golang.org/x/sys/unix"

// archRefusals are the older forms of calls, which arm64 never had.
func archRefusals() []Case {
	eperm := Refuse(unix.EPERM)
	return []Case{
		{unix.SYS_OPEN, []Condition{AnyOf(1, creates), AnyOf(2, setID)}, eperm},
		{unix.SYS_CREAT, []Condition{AnyOf(1, setID)}, eperm},
		{unix.SYS_CHMOD, []Condition{AnyOf(1, setID)}, eperm},
		{unix.SYS_MKNOD, []Condition{AnyOf(1, setID)}, eperm},
		{unix.SYS_IOPL, nil, eperm},
		{unix.SYS_IOPERM, nil, eperm},
	}
}
