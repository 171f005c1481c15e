//go:build !linux

package config

import (
	"os"
	"time"
)

// keepOut keeps nobody out. It guesses: what changed a moment ago may change again.
func keepOut(file *os.File) (release func(), ok bool) {
	info, err := file.Stat()
	return func() {}, err != nil || time.Since(info.ModTime()).Abs() >= 100*time.Millisecond
}
