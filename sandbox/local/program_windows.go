package local

import (
	"io/fs"
	"path/filepath"
	"strings"
)

// shells is empty: bash has no place of the system's here, and everybody may make a
// folder such as /bin.
var shells []string

// usualPath is where programs are if no variable says so.
const usualPath = `C:\Windows\System32;C:\Windows`

// hasFolder reports whether a name says where the program is.
func hasFolder(name string) bool { return strings.ContainsAny(name, `/\:`) }

// fileOf is the file that a program's name means, which may be said without its ending.
// There are no batch files among them: what runs those takes arguments apart in a way
// of its own, so that one argument can be a second command.
func fileOf(path string) string {
	switch strings.ToLower(filepath.Ext(path)) {
	case ".exe", ".com":
		return path
	}
	return path + ".exe"
}

// runnable reports whether a file can be a program: its name has said so.
func runnable(fs.FileInfo) bool { return true }

// isPath reports whether a variable is the one with the folders of programs.
func isPath(name string) bool { return strings.EqualFold(name, "PATH") }
