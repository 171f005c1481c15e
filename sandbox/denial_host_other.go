//go:build !linux

package sandbox

// listeningPorts is not known here, so nothing is claimed.
func listeningPorts() map[string]bool { return nil }
