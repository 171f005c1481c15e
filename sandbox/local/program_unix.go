//go:build !windows

package local

import (
	"io/fs"
	"strings"
)

// shells are the places of bash, in the order tried before PATH.
var shells = []string{"/bin/bash", "/usr/bin/bash", "/usr/local/bin/bash"}

// usualPath is where programs are if no variable says so.
const usualPath = "/usr/local/bin:/usr/bin:/bin"

// hasFolder reports whether a name says where the program is.
func hasFolder(name string) bool { return strings.ContainsRune(name, '/') }

// fileOf is the file that a program's name means.
func fileOf(path string) string { return path }

// runnable reports whether a file can be a program.
func runnable(info fs.FileInfo) bool { return info.Mode()&0o111 != 0 }

// isPath reports whether a variable is the one with the folders of programs.
func isPath(name string) bool { return name == "PATH" }
