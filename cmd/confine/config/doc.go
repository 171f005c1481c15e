// Package config finds and reads the person's settings and the folders that
// confine keeps its own files in.
//
// Only the user file is read; nothing inside a workspace is. Reading is
// strict: a mistake in the file is an error with file and line, never a
// silent default, because a setting that is not what the person thinks it is
// can open what they meant to keep shut.
package config
