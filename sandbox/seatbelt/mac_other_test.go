//go:build !darwin

package seatbelt

import "testing"

// TestOnAMac is in mac_darwin_test.go.
func TestOnAMac(t *testing.T) { t.Skip("sandbox-exec confines on macOS only") }
