package local

import "golang.org/x/sys/unix"

const mkdirNumber = unix.SYS_MKDIR
