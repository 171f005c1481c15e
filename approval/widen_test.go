package approval

import (
	"reflect"
	"testing"

	"github.com/confine-dev/confine/sandbox"
)

func TestGained(t *testing.T) {
	other := &sandbox.Root{Path: "/home/me/other", Dev: 1, Ino: 3}
	swapped := &sandbox.Root{Path: project.Path, Dev: 1, Ino: 99}
	policy := func(m sandbox.Mode, change ...func(*sandbox.Policy)) sandbox.Policy {
		p := sandbox.Policy{Mode: m, Roots: []*sandbox.Root{project}}
		for _, c := range change {
			c(&p)
		}
		return p
	}
	network := func(p *sandbox.Policy) { p.Network = true }
	roots := func(r ...*sandbox.Root) func(*sandbox.Policy) { return func(p *sandbox.Policy) { p.Roots = r } }
	protected := func(paths ...string) func(*sandbox.Policy) {
		return func(p *sandbox.Policy) { p.Protected = paths }
	}
	hidden := func(paths ...string) func(*sandbox.Policy) {
		return func(p *sandbox.Policy) { p.Unreadable = paths }
	}
	const ro, ws, full, ext = sandbox.ReadOnly, sandbox.WorkspaceWrite, sandbox.DangerFullAccess, sandbox.ExternalSandbox
	for _, c := range []struct {
		name       string
		have, want sandbox.Policy
		gain       gain
	}{
		{"same", policy(ws), policy(ws), gain{}},
		{"narrower mode", policy(ws), policy(ro), gain{}},
		{"no sandbox to any", policy(full), policy(ws, network, roots(other)), gain{}},
		{"external to confined", policy(ext), policy(ws, network), gain{}},
		{"wider mode", policy(ro), policy(ws), gain{mode: true, writable: []string{"/home/me/project"}}},
		{"full access", policy(ws, network), policy(full), gain{mode: true}},
		{"external", policy(ws), policy(ext), gain{mode: true}},
		{"full access to external", policy(full), policy(ext), gain{mode: true}},
		{"network", policy(ro), policy(ro, network), gain{network: true}},
		{"network in a narrower mode", policy(ws), policy(ro, network), gain{network: true}},
		{"network given up", policy(ws, network), policy(ws), gain{}},
		{"another root", policy(ws), policy(ws, roots(project, other)), gain{writable: []string{"/home/me/other"}}},
		{"root replaced by another folder", policy(ws), policy(ws, roots(swapped)), gain{writable: []string{"/home/me/project"}}},
		{"fewer roots", policy(ws, roots(project, other)), policy(ws), gain{}},
		{"roots mean nothing in read-only", policy(ro), policy(ro, roots(other)), gain{}},
		{"protection dropped", policy(ws, protected("/home/me/project/.git/config")), policy(ws), gain{unguarded: []string{"/home/me/project/.git/config"}}},
		{"protection by its folder", policy(ws, protected("/home/me/project/.git/config")), policy(ws, protected("/home/me/project/.git")), gain{}},
		{"protection outside the roots", policy(ws, protected("/etc/x")), policy(ws), gain{}},
		{"protection added", policy(ws), policy(ws, protected("/home/me/project/x")), gain{}},
		{"hidden becomes readable", policy(ws, hidden("/k")), policy(ro), gain{readable: []string{"/k"}}},
		{"more hidden", policy(ws), policy(ws, hidden("/k")), gain{}},
	} {
		got := gained(c.have, c.want)
		if !reflect.DeepEqual(got, c.gain) {
			t.Errorf("%s: gains %+v, want %+v", c.name, got, c.gain)
		}
		if got.none() != reflect.DeepEqual(c.gain, gain{}) {
			t.Errorf("%s: none() is %v for %+v", c.name, got.none(), got)
		}
	}
}
