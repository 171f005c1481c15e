package observe

import "slices"

// Numbers from the kernel's table (arch/x86/entry/syscalls/syscall_64.tbl).
var (
	changingNames = map[string]uint32{"bind": 49, "rename": 82, "mkdir": 83, "rmdir": 84, "creat": 85, "link": 86, "unlink": 87, "symlink": 88, "mknod": 133, "truncate": 76,
		"mkdirat": 258, "mknodat": 259, "unlinkat": 263, "renameat": 264, "linkat": 265, "symlinkat": 266, "renameat2": 316}
	changingMetadata = map[string]uint32{"chmod": 90, "chown": 92, "lchown": 94, "utime": 132, "utimes": 235, "fchownat": 260, "fchmodat": 268, "fchmodat2": 452,
		"setxattr": 188, "lsetxattr": 189, "removexattr": 197, "lremovexattr": 198, "setxattrat": 463, "removexattrat": 466}
	reaching = map[string]uint32{"connect": 42, "sendmmsg": 307}

	calledHere = slices.Concat(openUses("open", 2, 1), openUses("openat", 257, 2), []called{
		{"utimensat of a path", 280, args{cwdArg, pointer, pointer, 0}, true},
		{"utimensat of a descriptor", 280, args{3, 0, pointer, 0}, false},
		{"futimesat of a path", 261, args{cwdArg, pointer, pointer}, true},
		{"futimesat of a descriptor", 261, args{3, 0, pointer}, false},
		{"sendto an address", 44, args{3, pointer, 1, 0, pointer, 16}, true},
		{"send", 44, args{3, pointer, 1, 0, 0, 0}, false},
	})
)
