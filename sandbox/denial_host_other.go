//go:build !linux

package sandbox

// listening is not known here, so nothing is claimed.
func listening(string) bool { return false }
