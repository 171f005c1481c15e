package main

import (
	"github.com/confine-dev/confine/sandbox/landlock"
	"github.com/confine-dev/confine/sandbox/local"
	"github.com/confine-dev/confine/sandbox/observe"
)

// embedded is the provider that needs nothing installed; nil where there is
// none.
func embedded() local.Wrapper { return landlock.New() }

// observed makes an engine see what commands are refused.
func observed(o local.Options) local.Options {
	o.Observer = observe.New(observe.Options{})
	return o
}
