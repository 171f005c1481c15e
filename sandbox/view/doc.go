// Package view decides what a confined command sees of the file system: the
// host's, read-only, with the roots and what was granted writable, its own /dev,
// /proc and /tmp, and the folders of host services hidden.
//
// A Plan is a value that several providers write in their own way, one as system
// calls, another as the arguments of a program. Nothing here makes a mount.
package view
