//go:build unix

package opensandbox

import "syscall"

// openFlags keep a file that became a link or a FIFO from being followed or waited for.
const openFlags = syscall.O_NOFOLLOW | syscall.O_NONBLOCK
