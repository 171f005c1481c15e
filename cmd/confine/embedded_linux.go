package main

import (
	"github.com/confine-dev/confine/sandbox/landlock"
	"github.com/confine-dev/confine/sandbox/local"
)

// embedded is the provider that needs nothing installed; nil where there is
// none.
func embedded() local.Wrapper { return landlock.New() }
