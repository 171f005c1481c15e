//go:build !linux

package config

import (
	"os"
	"time"
)

// beingWritten guesses: what changed a moment ago may change again.
func beingWritten(file *os.File) bool {
	info, err := file.Stat()
	return err == nil && time.Since(info.ModTime()).Abs() < 100*time.Millisecond
}
