package sandbox

import "io/fs"

// Permissions for access. There is no sandbox here, so no denial either, and
// nobody asks.
const (
	mayRead  = 4
	mayWrite = 2
	mayEnter = 1
)

func access(string, uint32) bool { return false }

func owned(fs.FileInfo) bool { return false }

func sticky(string, fs.FileInfo) bool { return true }

func readOnlyMount(string) bool { return true }
