package sandbox

import (
	"crypto/sha256"
	"encoding/hex"
	"testing"
)

func testPolicy() Policy {
	return Policy{
		Mode:       WorkspaceWrite,
		Roots:      []*Root{{Path: "/w/b", Dev: 3, Ino: 4}, {Path: "/w/a", Dev: 1, Ino: 2}},
		Protected:  []string{"/w/b/.git", "/w/a/.git"},
		Unreadable: []string{"/home/u/.ssh"},
	}
}

// TestPolicyHashFormat pins the form that is digested: stored grants would
// silently stop to apply if it changed.
func TestPolicyHashFormat(t *testing.T) {
	for _, test := range []struct {
		policy Policy
		form   string
	}{
		{testPolicy(), `{"mode":"workspace-write","roots":["1:2:/w/a","3:4:/w/b"],"protected":["/w/a/.git","/w/b/.git"],"unreadable":["/home/u/.ssh"],"network":false}`},
		{Policy{Mode: ReadOnly, Network: true}, `{"mode":"read-only","roots":[],"protected":[],"unreadable":[],"network":true}`},
		{Policy{Mode: ReadOnly, Limits: Limits{Processes: 1, Memory: 2, OpenFiles: 3, FileSize: 4, TempSize: 5}},
			`{"mode":"read-only","roots":[],"protected":[],"unreadable":[],"network":false,"limits":{"processes":1,"memory":2,"openFiles":3,"fileSize":4,"tmpSize":5}}`},
	} {
		sum := sha256.Sum256([]byte(test.form))
		if got, want := test.policy.Hash(), hex.EncodeToString(sum[:]); got != want {
			t.Errorf("Hash() = %s, want the digest of %s", got, test.form)
		}
	}
}

func TestPolicyEqual(t *testing.T) {
	same := map[string]func(*Policy){
		"order of roots":     func(p *Policy) { p.Roots[0], p.Roots[1] = p.Roots[1], p.Roots[0] },
		"order of protected": func(p *Policy) { p.Protected[0], p.Protected[1] = p.Protected[1], p.Protected[0] },
		"a root twice":       func(p *Policy) { p.Roots = append(p.Roots, p.Roots[0]) },
		"a path twice":       func(p *Policy) { p.Protected = append(p.Protected, p.Protected[0]) },
		"what was skipped":   func(p *Policy) { p.Skipped = []string{"/none"} },
		"the pin":            func(p *Policy) { p.Roots[0] = &Root{Path: "/w/b", Dev: 3, Ino: 4} },
	}
	for name, change := range same {
		p := testPolicy()
		change(&p)
		if !p.Equal(testPolicy()) {
			t.Errorf("%s makes another policy", name)
		}
	}
	different := map[string]func(*Policy){
		"mode":            func(p *Policy) { p.Mode = ReadOnly },
		"network":         func(p *Policy) { p.Network = true },
		"a root less":     func(p *Policy) { p.Roots = p.Roots[:1] },
		"path of a root":  func(p *Policy) { p.Roots[0] = &Root{Path: "/w/c", Dev: 3, Ino: 4} },
		"inode of a root": func(p *Policy) { p.Roots[0] = &Root{Path: "/w/b", Dev: 3, Ino: 5} },
		"device":          func(p *Policy) { p.Roots[0] = &Root{Path: "/w/b", Dev: 4, Ino: 4} },
		"protected":       func(p *Policy) { p.Protected = p.Protected[:1] },
		"unreadable":      func(p *Policy) { p.Unreadable = nil },
		"limit":           func(p *Policy) { p.Limits.Memory = 1 },
		"list":            func(p *Policy) { p.Protected, p.Unreadable = p.Unreadable, p.Protected },
	}
	for name, change := range different {
		p := testPolicy()
		change(&p)
		if p.Equal(testPolicy()) {
			t.Errorf("another %s makes no other policy", name)
		}
	}
}

// TestPolicyHashOfOddPaths: bytes that are no UTF-8 must not be mixed up.
func TestPolicyHashOfOddPaths(t *testing.T) {
	seen := map[string]string{}
	for _, path := range []string{"/w/\xff", "/w/\xfe", "/w/\uFFFD", `/w/\xff`, "/w/<", `/w/\u003c`} {
		hash := Policy{Mode: ReadOnly, Protected: []string{path}}.Hash()
		if other, ok := seen[hash]; ok {
			t.Errorf("%q and %q have one hash", path, other)
		}
		seen[hash] = path
	}
}

func TestPolicyHashLeavesPolicyAlone(t *testing.T) {
	p := testPolicy()
	p.Hash()
	if p.Protected[0] != "/w/b/.git" || p.Roots[0].Path != "/w/b" {
		t.Errorf("hashing sorted the policy's own lists: %v", p)
	}
}

func TestPolicyString(t *testing.T) {
	for _, test := range []struct {
		policy Policy
		want   string
	}{
		{testPolicy(), `workspace-write +"/w/b" +"/w/a" -"/w/b/.git" -"/w/a/.git" !"/home/u/.ssh"`},
		{Policy{Mode: ReadOnly, Roots: testPolicy().Roots, Network: true}, "read-only +network"},
		{Policy{Mode: WorkspaceWrite, Roots: []*Root{{Path: "/w/a\nb\x1b[2J"}}}, `workspace-write +"/w/a\nb\x1b[2J"`},
		{Policy{Mode: DangerFullAccess}, "danger-full-access"},
	} {
		if got := test.policy.String(); got != test.want {
			t.Errorf("String() = %s, want %s", got, test.want)
		}
	}
}

func TestSum(t *testing.T) {
	all := func(except Facet, state FacetState) map[Facet]FacetReport {
		facets := map[Facet]FacetReport{}
		for _, f := range Facets {
			facets[f] = FacetReport{State: Enforced}
		}
		if except != "" {
			facets[except] = FacetReport{State: state}
		}
		return facets
	}
	hidden := Policy{Mode: ReadOnly, Unreadable: []string{"/x"}}
	for _, test := range []struct {
		name   string
		policy Policy
		facets map[Facet]FacetReport
		want   Enforcement
	}{
		{"all", Policy{Mode: ReadOnly}, all("", ""), EnforcementFull},
		{"none known", Policy{Mode: ReadOnly}, nil, EnforcementPartial},
		{"metadata open", Policy{Mode: ReadOnly}, all(Metadata, Open), EnforcementPartial},
		{"processes vouched for", Policy{Mode: ReadOnly}, all(Processes, Unverified), EnforcementPartial},
		{"write in part", Policy{Mode: WorkspaceWrite}, all(FileWrite, Partial), EnforcementPartial},
		{"reading not promised", Policy{Mode: ReadOnly}, all(FileRead, Open), EnforcementFull},
		{"reading promised", hidden, all(FileRead, Open), EnforcementPartial},
		{"network promised", Policy{Mode: ReadOnly}, all(Network, Open), EnforcementPartial},
		{"network granted", Policy{Mode: ReadOnly, Network: true}, all(Network, Open), EnforcementFull},
	} {
		if got := Sum(test.policy, test.facets); got != test.want {
			t.Errorf("%s: %s, want %s", test.name, got, test.want)
		}
	}
}
