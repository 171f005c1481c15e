package local

import "github.com/confine-dev/confine/sandbox"

const hasTerminals = false

type terminal struct{}

func (t *terminal) resize(sandbox.TerminalSize) error { return nil }
