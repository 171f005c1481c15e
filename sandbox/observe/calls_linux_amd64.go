package observe

import "golang.org/x/sys/unix"

// archFileTraps are the older forms of calls, which arm64 never had.
func archFileTraps() []trap {
	return []trap{
		{unix.SYS_OPEN, writes(1), func(a args) request { return open(plain(a[0]), a[1]) }},
		{unix.SYS_CREAT, nil, func(a args) request { return open(plain(a[0]), unix.O_CREAT|unix.O_WRONLY|unix.O_TRUNC) }},
		{unix.SYS_UNLINK, nil, func(a args) request { return request{kind: removing, first: plain(a[0])} }},
		{unix.SYS_RMDIR, nil, func(a args) request { return request{kind: removing, first: plain(a[0]), folder: true} }},
		{unix.SYS_RENAME, nil, func(a args) request { return rename(plain(a[0]), plain(a[1]), 0) }},
		{unix.SYS_MKDIR, nil, func(a args) request { return create(plain(a[0]), unix.S_IFDIR) }},
		{unix.SYS_MKNOD, nil, func(a args) request { return create(plain(a[0]), a[1]) }},
		{unix.SYS_SYMLINK, nil, func(a args) request { return create(plain(a[1]), unix.S_IFLNK) }},
		{unix.SYS_LINK, nil, func(a args) request {
			return request{kind: linking, first: plain(a[0]), second: plain(a[1])}
		}},
	}
}

// archMetadataTraps are the same for what is known of a file.
func archMetadataTraps() []trap {
	return []trap{
		{unix.SYS_CHMOD, nil, func(a args) request { return request{kind: chmoding, first: followed(a[0])} }},
		{unix.SYS_CHOWN, nil, func(a args) request { return chown(followed(a[0]), a[1], a[2]) }},
		{unix.SYS_LCHOWN, nil, func(a args) request { return chown(plain(a[0]), a[1], a[2]) }},
		{unix.SYS_UTIME, nil, func(a args) request { return request{kind: timing, first: followed(a[0]), now: a[1] == 0} }},
		{unix.SYS_UTIMES, nil, func(a args) request { return request{kind: timing, first: followed(a[0]), now: a[1] == 0} }},
		{unix.SYS_FUTIMESAT, given(1), func(a args) request {
			return request{kind: timing, first: at(a[0], a[1]).flags(0), now: a[2] == 0}
		}},
	}
}
