package bwrap

import (
	"errors"

	"github.com/confine-dev/confine/sandbox"
	"github.com/confine-dev/confine/sandbox/local"
	"github.com/confine-dev/confine/sandbox/view"
)

// Claims implements local.Wrapper. It looks for bubblewrap anew.
func (w *Wrapper) Claims(policy sandbox.Policy, namespaces bool) local.Claims {
	p, err := w.refresh()
	if err != nil {
		c := local.Claims{Missing: err.Error()}
		if f, ok := errors.AsType[*fault](err); ok {
			c.Remedies = f.remedies
		}
		c.Unsure = len(c.Remedies) == 0
		return c
	}
	c := local.Claims{Version: p.version.String(), Layers: []string{"bwrap", "namespaces"}, Facets: view.Facets(policy, w.abi)}
	if w.abi.Version > 0 {
		c.Layers = append(c.Layers, "landlock")
		c.ABI, c.MissingRights = w.abi.Version, w.abi.Lacks()
	}
	c.Layers = append(c.Layers, "seccomp")
	if !namespaces {
		// What is governed is the same; what runs of a session share is not.
		c.Remedies = append(c.Remedies, "nothing is open because of it, but to let the runs of a session share their own network, a sized /tmp and caches, allow confine itself to make user namespaces")
	}
	for _, skipped := range w.Skipped() {
		c.Remedies = append(c.Remedies, "correct bwrap_ro_roots or bwrap_dev_roots: "+skipped.String())
	}
	return c
}
