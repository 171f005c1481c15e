//go:build linux && !amd64

package sandboxtest

// opsOlderCalls is empty where the older system calls never were.
var opsOlderCalls map[string]uintptr
