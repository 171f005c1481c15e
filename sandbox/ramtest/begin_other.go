//go:build !linux

package ramtest

// Begin does nothing here.
func Begin() {}
