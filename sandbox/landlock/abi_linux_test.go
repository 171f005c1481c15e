package landlock

import (
	"encoding/binary"
	"testing"

	"github.com/confine-dev/confine/sandbox"
	"github.com/confine-dev/confine/sandbox/local"
	"golang.org/x/sys/unix"
)

// kernels are the rights of each version by the numbers of linux/landlock.h,
// reading and executing left out, and the size of struct landlock_ruleset_attr
// that the version knows.
var kernels = []struct {
	version int
	files   uint64
	network bool
	scopes  bool
	size    uint64
}{
	{0, 0, false, false, 8},
	{1, 0x1ff2, false, false, 8},
	{2, 0x3ff2, false, false, 8},
	{3, 0x7ff2, false, false, 8},
	{4, 0x7ff2, true, false, 16},
	{5, 0xfff2, true, false, 16},
	{6, 0xfff2, true, true, 24},
	{7, 0xfff2, true, true, 24},
	{100, 0xfff2, true, true, 24}, // of the future: what is known is used
}

func TestRightsOfEachVersion(t *testing.T) {
	for _, k := range kernels {
		a := abiOf(k.version)
		if a.files != k.files || a.network != k.network || a.scopes != k.scopes {
			t.Errorf("version %d: files %#x, network %v, scopes %v", k.version, a.files, a.network, a.scopes)
		}
	}
}

func wrapperOf(version int) *Wrapper { return &Wrapper{abi: abiOf(version), version: version} }

// TestClaimsOfEachVersion: an older kernel never promises more, and whatever
// is less than enforced has a reason.
func TestClaimsOfEachVersion(t *testing.T) {
	strength := map[sandbox.FacetState]int{sandbox.Open: 1, sandbox.Partial: 2, sandbox.Enforced: 3}
	for _, namespaces := range []bool{true, false} {
		for _, network := range []bool{true, false} {
			before := map[sandbox.Facet]int{}
			for _, k := range kernels[1:] {
				c := wrapperOf(k.version).Claims(sandbox.Policy{Mode: sandbox.WorkspaceWrite, Network: network}, namespaces)
				if c.Missing != "" {
					t.Fatalf("version %d: %s", k.version, c.Missing)
				}
				for _, f := range sandbox.Facets {
					report := c.Facets[f]
					if strength[report.State] == 0 || (report.State == sandbox.Enforced) != (report.Reason == "") {
						t.Errorf("version %d, namespaces %v: %s is %q because of %q", k.version, namespaces, f, report.State, report.Reason)
					}
					if strength[report.State] < before[f] {
						t.Errorf("version %d, namespaces %v: %s is %q, more than an older version", k.version, namespaces, f, report.State)
					}
					before[f] = strength[report.State]
				}
			}
		}
	}
}

func TestClaimsWithoutNamespaces(t *testing.T) {
	for _, test := range []struct {
		version int
		facet   sandbox.Facet
		want    sandbox.FacetState
	}{
		{1, sandbox.FileWrite, sandbox.Partial}, // truncate
		{2, sandbox.FileWrite, sandbox.Partial},
		{3, sandbox.FileWrite, sandbox.Enforced},
		{5, sandbox.Processes, sandbox.Open}, // signals
		{6, sandbox.Processes, sandbox.Partial},
		{7, sandbox.Metadata, sandbox.Open},
		{7, sandbox.UnixSockets, sandbox.Open},
		{7, sandbox.FileRead, sandbox.Open},
		{7, sandbox.Devices, sandbox.Partial},
		{1, sandbox.Network, sandbox.Enforced}, // by the filter alone
	} {
		c := wrapperOf(test.version).Claims(sandbox.Policy{Mode: sandbox.WorkspaceWrite}, false)
		if got := c.Facets[test.facet].State; got != test.want {
			t.Errorf("version %d: %s is %q, want %q", test.version, test.facet, got, test.want)
		}
	}
}

func TestKernelWithoutLandlock(t *testing.T) {
	w := wrapperOf(0)
	if c := w.Claims(sandbox.Policy{Mode: sandbox.ReadOnly}, true); c.Missing == "" || len(c.Remedies) == 0 || c.Facets != nil {
		t.Errorf("claims are %+v", c)
	}
	if _, err := w.Wrap(local.Request{Policy: sandbox.Policy{Mode: sandbox.ReadOnly}, Namespaces: true}); err == nil {
		t.Error("a launch was made")
	}
}

// TestRulesetOfEachVersion reads the calls that make a ruleset.
func TestRulesetOfEachVersion(t *testing.T) {
	root := &sandbox.Root{Path: "/ws", Dev: 7, Ino: 9}
	for _, k := range kernels[1:] {
		for _, tcp := range []bool{true, false} {
			var s local.Script
			r := ruleset{abi: abiOf(k.version), tcp: tcp, scoped: scopeSignal | scopeAbstract,
				rules: []rule{{path: "/tmp", rights: ^uint64(makeDevices)}, {path: "/dev/null", rights: onFiles}, {path: "/ws", rights: ^uint64(0), root: root}}}
			ref := r.create(&s)
			list := steps(t, &s)
			made := list[ref]
			if made.nr != unix.SYS_LANDLOCK_CREATE_RULESET || made.args[1].number != uintptr(k.size) || made.args[2].number != 0 {
				t.Fatalf("version %d: the ruleset is made by %+v", k.version, made)
			}
			if got := made.args[0].word(0); got != k.files {
				t.Errorf("version %d: governed are %#x, want %#x", k.version, got, k.files)
			}
			if want := map[bool]uint64{true: 3, false: 0}[tcp]; k.network && made.args[0].word(1) != want {
				t.Errorf("version %d, refusing TCP %v: got %d", k.version, tcp, made.args[0].word(1))
			}
			if k.scopes && made.args[0].word(2) != 3 {
				t.Errorf("version %d: scopes are %d", k.version, made.args[0].word(2))
			}
			checkRules(t, list, k.files)
		}
	}
}

// checkRules makes sure that each rule is for a descriptor of its own, allows
// no right that the ruleset does not govern (EINVAL), and compares roots.
func checkRules(t *testing.T, list []step, governed uint64) {
	t.Helper()
	rules := find(list, unix.SYS_LANDLOCK_ADD_RULE, always)
	if len(rules) == 0 {
		t.Error("there is no rule")
	}
	for _, r := range rules {
		if r.args[0].ref < 0 || list[r.args[0].ref].nr != unix.SYS_LANDLOCK_CREATE_RULESET || r.args[1].number != 1 {
			t.Errorf("%s: %+v", r.what, r)
		}
		if rights := r.args[2].word(0); rights == 0 || rights&^governed != 0 {
			t.Errorf("%s: the rights are %#x, of %#x", r.what, rights, governed)
		}
	}
}

func TestRuleComparesTheRoot(t *testing.T) {
	root := &sandbox.Root{Path: "/ws", Dev: 7, Ino: 9}
	var s local.Script
	ruleset{abi: abiOf(7), rules: []rule{{path: "/ws", rights: writeV1, root: root}, {path: "/tmp", rights: writeV1}}}.create(&s)
	list := steps(t, &s)
	opened := find(list, unix.SYS_OPENAT, func(st step) bool { return st.args[1].text() == "/ws" })
	if len(opened) != 1 {
		t.Fatalf("the root is opened by %d calls", len(opened))
	}
	compared := find(list, unix.SYS_FSTAT, always)
	if len(compared) != 1 || compared[0].args[0].ref != opened[0].index || string(compared[0].want) != string(identity(7, 9)) {
		t.Fatalf("the root is compared by %+v", compared)
	}
	if added := find(list, unix.SYS_LANDLOCK_ADD_RULE, always); compared[0].index > added[0].index {
		t.Error("the root is compared after its rule was added")
	}
}

// identity is the beginning of a struct stat.
func identity(dev, ino uint64) []byte {
	return binary.NativeEndian.AppendUint64(binary.NativeEndian.AppendUint64(nil, dev), ino)
}
