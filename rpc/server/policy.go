package server

import (
	"slices"
	"strings"

	"github.com/confine-dev/confine/rpc/proto"
	"github.com/confine-dev/confine/sandbox"
)

// scope is how much a command may do, before folders are looked at.
type scope struct {
	mode    sandbox.Mode
	network bool
}

// beyond reports whether s allows anything that o does not.
func (s scope) beyond(o scope) bool {
	both := s.mode.Confined() && o.mode.Confined()
	return modeBeyond(s.mode, o.mode) || both && s.network && !o.network
}

// modeBeyond is WiderThan with a place for external-sandbox: whatever confines
// is no wider than it, and it is wider than whatever confines.
func modeBeyond(m, o sandbox.Mode) bool {
	switch {
	case m == o:
		return false
	case m == sandbox.ExternalSandbox:
		return true
	case o == sandbox.ExternalSandbox:
		return !m.Confined()
	}
	return m.WiderThan(o)
}

// standing is what is configured, as far as it can be had: without a folder
// there is nothing that workspace-write could make writable.
func (s *Settings) standing(roots []*sandbox.Root) scope {
	have := scope{mode: s.Mode, network: s.Network}
	if have.mode == sandbox.WorkspaceWrite && len(roots) == 0 {
		have.mode = sandbox.ReadOnly
	}
	return have
}

// scopes reads what a request says about policy: have needs no question, want
// is what it would run under. A request narrows have freely; it widens want
// only by sandboxPermissions with a justification.
func (s *Settings) scopes(p proto.RunCommandParams, roots []*sandbox.Root) (have, want scope, err error) {
	asks, err := asksFor(p.SandboxPermissions, p.Justification)
	if err != nil {
		return have, want, err
	}
	have = s.standing(roots)
	mayNetwork := have.network || !have.mode.Confined()
	if p.Mode != "" {
		if _, err := sandbox.ParseMode(string(p.Mode)); err != nil {
			return have, want, invalid("mode: %v", err)
		}
		switch {
		case !modeBeyond(p.Mode, have.mode):
			have.mode = p.Mode
		case p.Mode == sandbox.WorkspaceWrite && len(roots) == 0:
			return have, want, errNoFolder()
		case !asks:
			return have, want, invalid("mode %q is wider than what is configured: name it in sandboxPermissions, with a justification, to ask the person", p.Mode)
		case modeBeyond(p.Mode, p.SandboxPermissions):
			return have, want, invalid("mode %q is wider than sandboxPermissions %q", p.Mode, p.SandboxPermissions)
		}
	}
	if p.Network != nil {
		have.network = *p.Network && mayNetwork
	}
	want = have
	if p.Network != nil && *p.Network && !mayNetwork {
		if !asks {
			return have, want, invalid("network is not configured: give sandboxPermissions and a justification to ask the person")
		}
		want.network = true
	}
	if asks && modeBeyond(p.SandboxPermissions, have.mode) {
		if p.SandboxPermissions == sandbox.WorkspaceWrite && len(roots) == 0 {
			return have, want, errNoFolder()
		}
		want.mode = p.SandboxPermissions
	}
	if p.Network != nil && !*p.Network && !want.mode.Confined() {
		return have, want, invalid("network cannot be withheld in mode %q, where nothing is confined", want.mode)
	}
	return have, want, nil
}

func errNoFolder() error {
	return invalid("mode %q needs an open workspace folder that can be a root", sandbox.WorkspaceWrite)
}

// asksFor checks the two fields that go together.
func asksFor(target sandbox.Mode, justification string) (bool, error) {
	blank := strings.TrimSpace(justification) == ""
	switch {
	case target == "" && blank:
		return false, nil
	case target == "":
		return false, invalid("justification goes with sandboxPermissions only")
	case target != sandbox.WorkspaceWrite && target != sandbox.DangerFullAccess:
		return false, invalid("sandboxPermissions must be %q or %q", sandbox.WorkspaceWrite, sandbox.DangerFullAccess)
	case blank:
		return false, invalid("sandboxPermissions needs a justification: one sentence that tells the person why")
	}
	return true, nil
}

// policy is a scope with these roots, and with what the settings say besides.
func (c *client) policy(settings *Settings, s scope, roots []*sandbox.Root) sandbox.Policy {
	p := sandbox.Policy{
		Mode:    s.mode,
		Roots:   roots,
		Network: s.network || !s.mode.Confined(), // nothing confined includes it
		Skipped: c.folders.skipped(),
	}
	if s.mode.Confined() {
		p.Limits = settings.Limits
		for _, extra := range c.folders.extras(settings.WritableRoots) {
			if extra.root == nil {
				p.Skipped = append(p.Skipped, extra.path)
			}
		}
	}
	if settings.Unreadable != nil && s.mode.Confined() {
		p.Unreadable = settings.Unreadable(roots)
	}
	if settings.Skipped != nil && s.mode.Confined() {
		p.Skipped = append(p.Skipped, settings.Skipped()...)
	}
	if s.mode == sandbox.WorkspaceWrite {
		found := c.folders.guarded(roots)
		p.Roots, p.Protected, p.Gaps = slices.Concat(roots, found.Metadata), found.Protected, found.Missed
	}
	return p
}
