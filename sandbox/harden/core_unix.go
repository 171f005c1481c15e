//go:build unix

package harden

import (
	"math"
	"syscall"
)

// forbidCores lowers the hard limit, which nothing without privileges can raise
// again. Programs that are given cores by a pipe are told the limit and are not
// bound by it; that no core is made at all is forbidTracing's to see to.
func forbidCores() error {
	return syscall.Setrlimit(syscall.RLIMIT_CORE, &syscall.Rlimit{Cur: 0, Max: 0})
}

func coreLimit() (int64, error) {
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_CORE, &limit); err != nil {
		return 0, err
	}
	if uint64(limit.Max) >= math.MaxInt64 {
		return -1, nil // RLIM_INFINITY is the largest number of 63 or 64 bits
	}
	return int64(limit.Max), nil
}
