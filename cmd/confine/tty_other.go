//go:build !linux

package main

import (
	"errors"
	"os"
)

const controllingTerminal = "/dev/tty"

// isTerminal takes every character device for a terminal: standard input is
// then not passed to the command, which is the safe side.
func isTerminal(file *os.File) bool {
	info, err := file.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0
}

// discardTyped always fails, so nobody is asked at the terminal here.
func discardTyped(*os.File) error { return errors.ErrUnsupported }
