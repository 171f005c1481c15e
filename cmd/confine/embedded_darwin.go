package main

import (
	"github.com/confine-dev/confine/sandbox/local"
	"github.com/confine-dev/confine/sandbox/seatbelt"
)

// embedded is the provider that needs nothing installed.
func embedded() local.Wrapper { return seatbelt.Wrapper{} }

// observed changes nothing where nothing can be observed.
func observed(o local.Options) local.Options { return o }
