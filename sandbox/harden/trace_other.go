//go:build !linux && !darwin

package harden

import (
	"errors"
	"runtime"
)

var errNotHere = errors.New("not available on " + runtime.GOOS)

// What a system does not have is not a failure to be logged; State says so.

func forbidTracing() error      { return nil }
func dumpable() (int, error)    { return 0, errNotHere }
func forbidPrivileges() error   { return nil }
func noNewPrivs() (bool, error) { return false, errNotHere }
