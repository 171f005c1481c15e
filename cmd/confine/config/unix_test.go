//go:build unix

package config

import (
	"syscall"
	"testing"
)

func requireUnix(*testing.T) {}

func makeFIFO(path string) error { return syscall.Mkfifo(path, 0o600) }
