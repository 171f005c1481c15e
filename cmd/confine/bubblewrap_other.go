//go:build !linux

package main

import (
	"github.com/confine-dev/confine/cmd/confine/config"
	"github.com/confine-dev/confine/sandbox/local"
)

// bubblewrap is the provider that lets the system's bubblewrap make sandboxes;
// nil where there is none.
func bubblewrap(config.Settings) (wrapper local.Wrapper, skipped func() []skip) { return nil, nil }
