package local

import "golang.org/x/sys/unix"

const mkdirNumber = unix.SYS_MKDIRAT // there is no older form
