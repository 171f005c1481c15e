//go:build !unix

package config

import (
	"errors"
	"testing"
)

func requireUnix(t *testing.T) {
	t.Helper()
	t.Skip("file modes and links as on Unix are needed")
}

func makeFIFO(string) error { return errors.ErrUnsupported }
