//go:build !unix

package config

import "io/fs"

const openNonblock = 0

// Owners and access are not in the mode bits here; the folder inherits those
// of the person's profile.
func foreign(fs.FileInfo) bool          { return false }
func readableByOthers(fs.FileInfo) bool { return false }
func ownerOf(fs.FileInfo) (int, bool)   { return 0, false }
