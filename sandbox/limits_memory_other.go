//go:build !linux

package sandbox

// machineMemory is not asked: temporary files of a run are no file system in
// memory here.
func machineMemory() uint64 { return 0 }
