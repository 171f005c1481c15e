//go:build unix && !linux

package sandbox

import "syscall"

// access asks the system whether this process has all the permissions in mode
// on a file.
func access(path string, mode uint32) bool { return syscall.Access(path, mode) == nil }
