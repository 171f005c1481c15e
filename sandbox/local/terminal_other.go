//go:build !linux

package local

import (
	"errors"

	"github.com/confine-dev/confine/sandbox"
)

// hasTerminals says that no command gets a terminal on this system.
const hasTerminals = false

// terminal is what no run has on this system.
type terminal struct{}

func (*terminal) resize(sandbox.TerminalSize) error { return errors.New("there are no terminals") }

func (*terminal) release() {}
