package main

import (
	"github.com/confine-dev/confine/cmd/confine/config"
	"github.com/confine-dev/confine/sandbox/bwrap"
	"github.com/confine-dev/confine/sandbox/local"
)

// bubblewrap is the provider that lets the system's bubblewrap make sandboxes;
// nil where there is none. skipped lists the paths of the settings that its
// commands do not get, with the reason.
func bubblewrap(s config.Settings) (wrapper local.Wrapper, skipped func() []skip) {
	w := bwrap.New(bwrap.Options{Path: s.BwrapPath, ReadOnly: s.BwrapReadOnly, Devices: s.BwrapDevices})
	return w, func() []skip {
		var list []skip
		for _, s := range w.Skipped() {
			list = append(list, skip{s.Path, s.Reason})
		}
		return list
	}
}
