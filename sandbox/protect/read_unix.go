//go:build unix

package protect

import "syscall"

// Opening waits for nobody and follows no link in the last place.
const openFlags = syscall.O_NOFOLLOW | syscall.O_NONBLOCK
