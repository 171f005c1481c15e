package restrict

import (
	"strings"
	"testing"

	"github.com/confine-dev/confine/sandbox"
	"github.com/confine-dev/confine/sandbox/local"
	"github.com/confine-dev/confine/sandbox/scripttest"
	"golang.org/x/sys/unix"
)

// kernels are the rights of each version by the numbers of linux/landlock.h,
// reading and executing left out, and the size of struct landlock_ruleset_attr
// that the version knows.
var kernels = []struct {
	version int
	files   Rights
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
		a := ABIOf(k.version)
		if a.Version != k.version || a.Files != k.files || a.Network != k.network || a.Scopes != k.scopes {
			t.Errorf("version %d: got %+v", k.version, a)
		}
	}
}

// TestRulesetOfEachVersion reads the calls that make a ruleset.
func TestRulesetOfEachVersion(t *testing.T) {
	root := &sandbox.Root{Path: "/ws", Dev: 7, Ino: 9}
	for _, k := range kernels[1:] {
		for _, tcp := range []bool{true, false} {
			var s local.Script
			r := Ruleset{ABI: ABIOf(k.version), RefuseTCP: tcp, Scopes: ScopeSignal | ScopeAbstract,
				Rules: []Rule{{Path: "/tmp", Rights: InFolder}, {Path: "/dev/null", Rights: OnFile}, {Path: "/ws", Rights: ^Rights(0), Root: root}}}
			ref := r.Create(&s)
			list := scripttest.Steps(t, &s)
			made := list[ref]
			if made.Call != unix.SYS_LANDLOCK_CREATE_RULESET || made.Args[1].Number != uintptr(k.size) || made.Args[2].Number != 0 {
				t.Fatalf("version %d: the ruleset is made by %+v", k.version, made)
			}
			if got := made.Args[0].Word(0); Rights(got) != k.files {
				t.Errorf("version %d: governed are %#x, want %#x", k.version, got, k.files)
			}
			if want := map[bool]uint64{true: 3, false: 0}[tcp]; k.network && made.Args[0].Word(1) != want {
				t.Errorf("version %d, refusing TCP %v: got %d", k.version, tcp, made.Args[0].Word(1))
			}
			if k.scopes && made.Args[0].Word(2) != 3 {
				t.Errorf("version %d: scopes are %d", k.version, made.Args[0].Word(2))
			}
			checkRules(t, list, k.files)
		}
	}
}

// checkRules makes sure that each rule is for a descriptor of its own, allows
// no right that the ruleset does not govern (EINVAL), and compares roots.
func checkRules(t *testing.T, list []scripttest.Step, governed Rights) {
	t.Helper()
	rules := scripttest.Find(list, unix.SYS_LANDLOCK_ADD_RULE, nil)
	if len(rules) == 0 {
		t.Error("there is no rule")
	}
	for _, r := range rules {
		if r.Args[0].Ref < 0 || list[r.Args[0].Ref].Call != unix.SYS_LANDLOCK_CREATE_RULESET || r.Args[1].Number != 1 {
			t.Errorf("%s: %+v", r.What, r)
		}
		if rights := Rights(r.Args[2].Word(0)); rights == 0 || rights&^governed != 0 {
			t.Errorf("%s: the rights are %#x, of %#x", r.What, rights, governed)
		}
	}
}

func TestRuleComparesTheRoot(t *testing.T) {
	root := &sandbox.Root{Path: "/ws", Dev: 7, Ino: 9}
	var s local.Script
	Ruleset{ABI: ABIOf(7), Rules: []Rule{{Path: "/ws", Rights: writeV1, Root: root}, {Path: "/tmp", Rights: writeV1}}}.Create(&s)
	list := scripttest.Steps(t, &s)
	opened := scripttest.Find(list, unix.SYS_OPENAT, func(st scripttest.Step) bool { return st.Args[1].Text() == "/ws" })
	if len(opened) != 1 {
		t.Fatalf("the root is opened by %d calls", len(opened))
	}
	compared := scripttest.Find(list, unix.SYS_FSTAT, nil)
	if len(compared) != 1 || compared[0].Args[0].Ref != opened[0].Index || string(compared[0].Want) != scripttest.Identity(7, 9) {
		t.Fatalf("the root is compared by %+v", compared)
	}
	if added := scripttest.Find(list, unix.SYS_LANDLOCK_ADD_RULE, nil); compared[0].Index > added[0].Index {
		t.Error("the root is compared after its rule was added")
	}
}

// TestLacks goes by the table of Documentation/userspace-api/landlock.rst.
func TestLacks(t *testing.T) {
	all := []string{"truncating files", "TCP connections", "ioctl on devices", "signals and abstract sockets"}
	for version, first := range map[int]int{1: 0, 2: 0, 3: 1, 4: 2, 5: 3, 6: 4, 7: 4} {
		lacks := strings.Join(ABIOf(version).Lacks(), "\n")
		for i, right := range all {
			if strings.Contains(lacks, right) != (i >= first) {
				t.Errorf("ABI %d: %q is said of %q", version, lacks, right)
			}
		}
	}
}
