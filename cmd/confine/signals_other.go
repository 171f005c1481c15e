//go:build !unix

package main

import "syscall"

// signalNumbers are the signals that end a command, by name.
var signalNumbers = map[string]syscall.Signal{"SIGINT": syscall.SIGINT, "SIGKILL": syscall.SIGKILL, "SIGTERM": syscall.SIGTERM}
