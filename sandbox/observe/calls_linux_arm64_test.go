package observe

import "slices"

// Numbers from the kernel's table (include/uapi/asm-generic/unistd.h).
var (
	changingNames = map[string]uint32{"bind": 200, "mknodat": 33, "mkdirat": 34, "unlinkat": 35, "symlinkat": 36, "linkat": 37, "renameat": 38, "truncate": 45, "renameat2": 276}

	changingMetadata = map[string]uint32{"fchmodat": 53, "fchownat": 54, "setxattr": 5, "lsetxattr": 6, "removexattr": 14, "lremovexattr": 15,
		"fchmodat2": 452, "setxattrat": 463, "removexattrat": 466}
	reaching = map[string]uint32{"connect": 203, "sendmmsg": 269}

	calledHere = slices.Concat(openUses("openat", 56, 2), []called{
		{"utimensat of a path", 88, args{cwdArg, pointer, pointer, 0}, true},
		{"utimensat of a descriptor", 88, args{3, 0, pointer, 0}, false},
		{"sendto an address", 206, args{3, pointer, 1, 0, pointer, 16}, true},
		{"send", 206, args{3, pointer, 1, 0, 0, 0}, false},
	})
)
