package server

import (
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/confine-dev/confine/approval"
	"github.com/confine-dev/confine/rpc/proto"
	"github.com/confine-dev/confine/sandbox"
)

// Limits of what one request asks for beyond a mode.
const (
	maxAdditional     = 16   // paths
	maxAdditionalPath = 4096 // bytes of one
)

// checkAdditional looks at the params by themselves.
func checkAdditional(a proto.Additional, justification string) error {
	switch n := len(a.Write) + len(a.Read); {
	case n == 0 && !a.Network:
		return invalid("additional asks for nothing: name paths in write or read, or set network")
	case n > maxAdditional:
		return invalid("additional names %d paths, and at most %d can be asked for at once", n, maxAdditional)
	case strings.TrimSpace(justification) == "":
		return invalid("additional needs a justification: one sentence that tells the person why")
	}
	if err := checkPaths("additional.write", a.Write); err != nil {
		return err
	}
	return checkPaths("additional.read", a.Read)
}

func checkPaths(name string, paths []string) error {
	for i, path := range paths {
		switch {
		case !filepath.IsAbs(path):
			return invalid("%s[%d] must be an absolute path", name, i)
		case len(path) > maxAdditionalPath:
			return invalid("%s[%d] is longer than %d bytes", name, i, maxAdditionalPath)
		case hasNUL(path):
			return invalid("%s[%d] has a NUL byte", name, i)
		}
	}
	return nil
}

// enlarge adds to what a plan wants, in the same mode. What is added is resolved
// and pinned now, so that it is what the question shows and what the command
// gets. more is false if the earlier run had all of it.
func (c *client) enlarge(p *plan, a proto.Additional, denials []sandbox.Denial) (more bool, err error) {
	before := p.want
	if !before.Mode.Confined() {
		return false, nil
	}
	// A folder that was closed since then is no root any more.
	now := c.policy(p.settings, scope{mode: before.Mode, network: before.Network}, c.roots(p.settings))
	p.want.Roots = slices.DeleteFunc(slices.Clone(before.Roots), func(r *sandbox.Root) bool {
		return !slices.ContainsFunc(now.Roots, func(o *sandbox.Root) bool { return o.Path == r.Path && o.Dev == r.Dev && o.Ino == r.Ino })
	})
	if before.Mode == sandbox.WorkspaceWrite && len(p.want.Roots) == 0 {
		return false, errNoFolder()
	}
	if before.Mode == sandbox.ReadOnly && len(a.Write) > 0 {
		// Nothing had to be protected before.
		found := c.folders.guarded(p.want.Roots)
		p.want.Protected, p.want.Gaps = found.Protected, found.Missed
	}
	p.grants = slices.Clone(p.grants)
	p.want.Writable, p.want.Readable = nil, nil
	if err := p.pinAgain(before); err != nil {
		return false, err
	}
	for i, path := range a.Write {
		added, err := p.add(path, sandbox.GrantWrite, c.o.Forbidden, denials)
		if err != nil {
			return false, invalid("additional.write[%d]: %v", i, err)
		}
		more = more || added
	}
	for i, path := range a.Read {
		added, err := p.add(path, sandbox.GrantRead, c.o.Forbidden, denials)
		if err != nil {
			return false, invalid("additional.read[%d]: %v", i, err)
		}
		more = more || added
	}
	if a.Network && !before.Network {
		p.want.Network, more = true, true
		if len(denials) > 0 && !slices.ContainsFunc(denials, func(d sandbox.Denial) bool { return d.Address != "" && d.Address[0] != '@' }) {
			p.warnings = append(p.warnings, "No connection was refused when this command ran, as far as is known.")
		}
	}
	return more, nil
}

// add pins one more file or folder. added is false if the policy allows it
// already.
func (p *plan) add(path string, kind sandbox.GrantKind, forbidden sandbox.Forbidden, denials []sandbox.Denial) (added bool, err error) {
	grant, err := sandbox.DeclareGrant(path, forbidden, kind)
	if err != nil {
		return false, err
	}
	p.pins = append(p.pins, grant.Root)
	if kind == sandbox.GrantWrite && keptAbsent(grant, p.want) && p.lift(filepath.Join(grant.Path, grant.Missing), denials) {
		return true, nil
	}
	if grant.Missing != "" && p.noteMissing(grant) {
		return false, nil // another path in the same folder brought it in
	}
	list, allowed := &p.want.Writable, p.want.MayWrite(grant.Path)
	if kind == sandbox.GrantRead {
		list, allowed = &p.want.Readable, p.want.MayRead(grant.Path)
	}
	if allowed {
		return false, nil
	}
	// A folder stands for what was named in it.
	*list = slices.DeleteFunc(*list, func(r *sandbox.Root) bool { return sandbox.Within(r.Path, grant.Path) })
	*list = append(*list, grant.Root)
	described := approval.Grant{
		Path: grant.Path, Kind: kind, Perils: sandbox.Perils(grant.Root, kind),
		NotRefused: len(denials) > 0 && !slices.ContainsFunc(denials, func(d sandbox.Denial) bool { return touches(d, grant.Path) }),
	}
	if grant.Missing != "" {
		described.Missing = []string{grant.Missing}
	}
	p.grants = append(p.grants, described)
	return true, nil
}

// keptAbsent reports whether a grant is of something in a writable folder that does
// not exist, or of an empty folder that is protected: such a one may stand there
// only to keep the path absent, and nothing is lost if it is taken for that.
func keptAbsent(grant *sandbox.Grant, policy sandbox.Policy) bool {
	if grant.Missing != "" {
		return policy.MayWrite(grant.Path)
	}
	if grant.File || !policy.MayWrite(filepath.Dir(grant.Path)) || !slices.Contains(policy.Protected, grant.Path) {
		return false
	}
	list, err := os.ReadDir(grant.Path)
	return err == nil && len(list) == 0
}

// lift lets something be made in a writable folder that is protected by being kept
// absent. It reports whether it was.
func (p *plan) lift(path string, denials []sandbox.Denial) bool {
	kept := func(protected string) bool { return !sandbox.Within(path, protected) }
	if p.want.MayWrite(path) || !slices.ContainsFunc(p.want.Protected, func(protected string) bool { return !kept(protected) }) {
		return false
	}
	var rest []string
	for _, protected := range p.want.Protected {
		if kept(protected) {
			rest = append(rest, protected)
		}
	}
	p.want.Protected, p.want.Lifted = rest, append(slices.Clone(p.want.Lifted), path)
	p.grants = append(p.grants, approval.Grant{
		Path: path, Kind: sandbox.GrantWrite, Perils: sandbox.Perils(&sandbox.Root{Path: path}, sandbox.GrantWrite),
		NotRefused: len(denials) > 0 && !slices.ContainsFunc(denials, func(d sandbox.Denial) bool { return touches(d, path) }),
	})
	return true
}

// noteMissing adds to what is said of a folder that is opened in place of paths
// that do not exist, if it is opened for another one already.
func (p *plan) noteMissing(grant *sandbox.Grant) bool {
	for i, g := range p.grants {
		if g.Path == grant.Path && g.Kind == sandbox.GrantWrite && len(g.Missing) > 0 {
			if !slices.Contains(g.Missing, grant.Missing) {
				p.grants[i].Missing = append(slices.Clone(g.Missing), grant.Missing)
			}
			return true
		}
	}
	return false
}

// touches reports whether a denial was about a path, something in it or a folder
// that it is in.
func touches(d sandbox.Denial, path string) bool {
	return d.Path != "" && (sandbox.Within(d.Path, path) || sandbox.Within(path, d.Path))
}

// pinAgain carries over what the policy of the earlier run was granted one by
// one: its pins ended with that run.
func (p *plan) pinAgain(before sandbox.Policy) error {
	again := func(roots []*sandbox.Root) (pinned []*sandbox.Root, err error) {
		for _, root := range roots {
			r, err := root.Reopen()
			if err != nil {
				return nil, invalid("what run %q was granted cannot be granted again: %v; ask for it anew", p.id, err)
			}
			p.pins, pinned = append(p.pins, r), append(pinned, r)
		}
		return pinned, nil
	}
	var err error
	if p.want.Writable, err = again(before.Writable); err != nil {
		return err
	}
	p.want.Readable, err = again(before.Readable)
	return err
}

// replaced is why the command must not run: a file or folder that was granted is
// another one by now.
func (p plan) replaced() error {
	for _, root := range slices.Concat(p.want.Writable, p.want.Readable) {
		again, err := root.Reopen()
		if err != nil {
			return &grantChangedError{root.Path, err}
		}
		_ = again.Close()
	}
	return nil
}

// release lets go of what was pinned for the plan.
func (p plan) release() {
	for _, root := range p.pins {
		_ = root.Close()
	}
}
