package landlock

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/confine-dev/confine/sandbox"
	"github.com/confine-dev/confine/sandbox/local"
	"github.com/confine-dev/confine/sandbox/scripttest"
	"golang.org/x/sys/unix"
)

// host is what the launches of these tests are compiled for.
type host struct {
	state, runtime string
	plain, nested  *sandbox.Root // nested lies in plain
	hidden         *sandbox.Root // below the user's runtime folder
	protected      string        // file at the top of plain
	spill          string        // below state
}

func newHost(t *testing.T) host {
	t.Helper()
	base, err := os.MkdirTemp("/var/tmp", "confine-launch-") // not below /tmp, which is hidden
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(base) })
	if base, err = filepath.EvalSymlinks(base); err != nil {
		t.Fatal(err)
	}
	h := host{state: filepath.Join(base, "state"), runtime: filepath.Join(base, "runtime"), spill: filepath.Join(base, "state", "spill")}
	plain, nested, hidden := filepath.Join(base, "plain"), filepath.Join(base, "plain", "a", "nested"), filepath.Join(h.runtime, "ws")
	for _, dir := range []string{h.spill, nested, hidden} {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	h.protected = filepath.Join(plain, "config")
	if err := os.WriteFile(h.protected, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for path, root := range map[string]**sandbox.Root{plain: &h.plain, nested: &h.nested, hidden: &h.hidden} {
		if *root, err = sandbox.DeclareRoot(path, sandbox.Forbidden{}); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { (*root).Close() })
	}
	t.Setenv("XDG_RUNTIME_DIR", h.runtime)
	return h
}

func (h host) request(mode sandbox.Mode, namespaces bool) local.Request {
	return local.Request{Namespaces: namespaces, Dir: h.plain.Path, Tmp: filepath.Join(h.state, "tmp"), State: h.state, Visible: []string{h.spill},
		Policy: sandbox.Policy{Mode: mode, Roots: []*sandbox.Root{h.nested, h.plain, h.hidden}, Protected: []string{h.protected}}}
}

func wrap(t *testing.T, r local.Request) *local.Launch {
	t.Helper()
	l, err := wrapperOf(7).Wrap(r)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

var modes = []sandbox.Mode{sandbox.WorkspaceWrite, sandbox.ReadOnly}

// Calls that change mounts.
var mountCalls = []uintptr{unix.SYS_MOUNT, unix.SYS_MOVE_MOUNT, unix.SYS_MOUNT_SETATTR, unix.SYS_OPEN_TREE, unix.SYS_UMOUNT2, unix.SYS_FSMOUNT}

// attributesSet are the flags that a mount_setattr sets; it may clear none.
func attributesSet(t *testing.T, s scripttest.Step) uint64 {
	t.Helper()
	if s.Args[3].Word(1) != 0 {
		t.Errorf("%s: attributes %#x are cleared", s.What, s.Args[3].Word(1))
	}
	return s.Args[3].Word(0)
}

// everythingReadOnly is the step that makes the whole view read-only.
func everythingReadOnly(t *testing.T, list []scripttest.Step) scripttest.Step {
	t.Helper()
	found := scripttest.Find(list, unix.SYS_MOUNT_SETATTR, func(s scripttest.Step) bool { return s.Args[1].Text() == "/" })
	if len(found) != 1 || found[0].Args[2].Number&unix.AT_RECURSIVE == 0 || attributesSet(t, found[0])&unix.MOUNT_ATTR_RDONLY == 0 {
		t.Fatalf("/ is made read-only by %+v", found)
	}
	return found[0]
}

func TestViewTakesThenClosesThenPlaces(t *testing.T) {
	h := newHost(t)
	for _, mode := range modes {
		list := scripttest.Steps(t, &wrap(t, h.request(mode, true)).Prepare)
		private := list[0]
		if private.Call != unix.SYS_MOUNT || private.Args[1].Text() != "/" || private.Args[3].Number != unix.MS_REC|unix.MS_PRIVATE {
			t.Errorf("%s: the view begins with %q: mounts could come back from it or into it", mode, private.What)
		}
		closed := everythingReadOnly(t, list)
		for _, s := range list {
			switch {
			case s.Call == unix.SYS_OPEN_TREE && s.Index > closed.Index && !strings.HasPrefix(s.Args[1].Text(), "/proc/"):
				t.Errorf("%s: %q takes %s when it is read-only already", mode, s.What, s.Args[1].Text())
			case s.Call == unix.SYS_MOVE_MOUNT && s.Index < closed.Index, s.Call == unix.SYS_MOUNT && s.Index < closed.Index && s.Index > 0:
				t.Errorf("%s: %q comes before everything is read-only", mode, s.What)
			case s.Call == unix.SYS_UMOUNT2:
				t.Errorf("%s: %q uncovers something", mode, s.What)
			}
			socket := strings.HasPrefix(s.What, "hiding the socket ") // of this host: it may be gone
			if slices.Contains(mountCalls, s.Call) && s.Ignores != 0 && !socket {
				t.Errorf("%s: %q may fail", mode, s.What)
			}
		}
	}
}

// realTmp is where /tmp really is.
func realTmp(t *testing.T) string {
	t.Helper()
	path, err := filepath.EvalSymlinks("/tmp")
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// placed are the mounts that are put somewhere by path, in order.
func placed(list []scripttest.Step) (paths []string, mounts []int, moves []scripttest.Step) {
	for _, s := range scripttest.Find(list, unix.SYS_MOVE_MOUNT, func(s scripttest.Step) bool { return s.Args[2].Ref >= 0 }) {
		place := list[s.Args[2].Ref]
		paths, mounts, moves = append(paths, place.Args[1].Text()), append(mounts, s.Args[0].Ref), append(moves, s)
	}
	return paths, mounts, moves
}

func TestViewPlacesWithTheRightAttributes(t *testing.T) {
	h := newHost(t)
	for _, mode := range modes {
		list := scripttest.Steps(t, &wrap(t, h.request(mode, true)).Prepare)
		paths, mounts, moves := placed(list)
		want := map[string]bool{h.spill: false, h.hidden.Path: mode == sandbox.WorkspaceWrite} // path: writable
		if mode == sandbox.WorkspaceWrite {
			want[h.plain.Path], want[h.nested.Path], want[h.protected] = true, true, false
		}
		for path, writable := range want {
			i := slices.Index(paths, path)
			if i < 0 {
				t.Errorf("%s: %s is not placed; placed are %q", mode, path, paths)
				continue
			}
			attributes := scripttest.Find(list[:moves[i].Index], unix.SYS_MOUNT_SETATTR, func(s scripttest.Step) bool { return s.Args[0].Ref == mounts[i] })
			if len(attributes) != 1 || attributes[0].Args[2].Number&unix.AT_RECURSIVE == 0 {
				t.Errorf("%s: %s gets its attributes by %+v", mode, path, attributes)
				continue
			}
			set := attributesSet(t, attributes[0])
			if set&unix.MOUNT_ATTR_NOSUID == 0 || set&unix.MOUNT_ATTR_NODEV == 0 || set&unix.MOUNT_ATTR_RDONLY == 0 != writable {
				t.Errorf("%s: %s, writable %v, has attributes %#x", mode, path, writable, set)
			}
		}
		for i, path := range paths {
			if strings.HasPrefix(path, h.plain.Path) && mode == sandbox.ReadOnly {
				t.Errorf("read-only: %s is placed", path)
			}
			if slices.ContainsFunc(paths[i+1:], func(later string) bool { return sandbox.Within(path, later) }) {
				t.Errorf("%s: %s is covered by what is placed later: %q", mode, path, paths)
			}
		}
	}
}

func TestViewFollowsNoLinkToItsPlaces(t *testing.T) {
	h := newHost(t)
	list := scripttest.Steps(t, &wrap(t, h.request(sandbox.WorkspaceWrite, true)).Prepare)
	_, _, moves := placed(list)
	for _, m := range moves {
		place := list[m.Args[2].Ref]
		if place.Call != unix.SYS_OPENAT2 || place.Args[2].Word(2)&unix.RESOLVE_NO_SYMLINKS == 0 {
			t.Errorf("%s: the place is opened by %+v", m.What, place)
		}
	}
}

func TestViewComparesEachRoot(t *testing.T) {
	h := newHost(t)
	list := scripttest.Steps(t, &wrap(t, h.request(sandbox.WorkspaceWrite, true)).Prepare)
	_, mounts, moves := placed(list)
	for _, root := range []*sandbox.Root{h.plain, h.nested, h.hidden} {
		taken := scripttest.Find(list, unix.SYS_OPEN_TREE, func(s scripttest.Step) bool { return s.Args[1].Text() == root.Path })
		if len(taken) != 1 {
			t.Fatalf("%s is taken by %d calls", root.Path, len(taken))
		}
		compared := scripttest.Find(list, unix.SYS_FSTAT, func(s scripttest.Step) bool { return s.Args[0].Ref == taken[0].Index })
		if len(compared) != 1 || string(compared[0].Want) != scripttest.Identity(root.Dev, root.Ino) {
			t.Errorf("%s is compared by %+v", root.Path, compared)
			continue
		}
		if i := slices.Index(mounts, taken[0].Index); i < 0 || moves[i].Index < compared[0].Index {
			t.Errorf("%s is placed before it is compared", root.Path)
		}
	}
}

// TestViewHidesServices: what is hidden is covered before anything is placed
// in it and read-only in the end; /tmp is the session's.
func TestViewHidesServices(t *testing.T) {
	h := newHost(t)
	for _, mode := range modes {
		r := h.request(mode, true)
		list := scripttest.Steps(t, &wrap(t, r).Prepare)
		paths, mounts, moves := placed(list)
		run, err := filepath.EvalSymlinks("/run")
		if err != nil {
			t.Skip("this host has no /run")
		}
		for _, path := range []string{run, h.state, h.runtime} {
			covered := scripttest.Find(list, unix.SYS_MOUNT, func(s scripttest.Step) bool { return s.Args[1].Text() == path && s.Args[2].Text() == "tmpfs" })
			closed := scripttest.Find(list, unix.SYS_MOUNT_SETATTR, func(s scripttest.Step) bool {
				return s.Args[1].Text() == path && attributesSet(t, s)&unix.MOUNT_ATTR_RDONLY != 0
			})
			if len(covered) != 1 || len(closed) != 1 || covered[0].Index > moves[0].Index || closed[0].Index < moves[len(moves)-1].Index {
				t.Errorf("%s: %s is covered by %+v and closed by %+v", mode, path, covered, closed)
			}
		}
		i := slices.Index(paths, realTmp(t))
		if i < 0 {
			t.Fatalf("%s: /tmp is not covered: %q", mode, paths)
		}
		source := list[mounts[i]]
		session := source.Call == unix.SYS_OPEN_TREE && source.Args[1].Text() == r.Tmp
		if session != (mode == sandbox.WorkspaceWrite) || !session && source.Call != unix.SYS_FSMOUNT {
			t.Errorf("%s: /tmp is %q", mode, source.What)
		}
	}
}

func TestViewClosesTheKernelsFolders(t *testing.T) {
	h := newHost(t)
	list := scripttest.Steps(t, &wrap(t, h.request(sandbox.WorkspaceWrite, true)).Prepare)
	proc := scripttest.Find(list, unix.SYS_MOUNT, func(s scripttest.Step) bool { return s.Args[1].Text() == "/proc" })
	if len(proc) != 1 || proc[0].Args[2].Text() != "proc" {
		t.Fatalf("/proc is mounted by %+v", proc)
	}
	for _, path := range []string{"/proc/sys", "/proc/sysrq-trigger", "/proc/irq", "/proc/fs"} {
		if _, err := os.Lstat(path); err != nil {
			continue // the kernel has none
		}
		moved := scripttest.Find(list, unix.SYS_MOVE_MOUNT, func(s scripttest.Step) bool { return s.Args[3].Text() == path })
		if len(moved) != 1 || moved[0].Index < proc[0].Index {
			t.Errorf("%s is covered by %+v", path, moved)
			continue
		}
		closed := scripttest.Find(list[:moved[0].Index], unix.SYS_MOUNT_SETATTR, func(s scripttest.Step) bool { return s.Args[0].Ref == moved[0].Args[0].Ref })
		if len(closed) != 1 || attributesSet(t, closed[0])&unix.MOUNT_ATTR_RDONLY == 0 {
			t.Errorf("%s is closed by %+v", path, closed)
		}
	}
}

func TestNoMountsWithoutNamespaces(t *testing.T) {
	h := newHost(t)
	for _, mode := range modes {
		l := wrap(t, h.request(mode, false))
		if l.Namespaces {
			t.Error("the launch asks for namespaces")
		}
		for _, s := range append(scripttest.Steps(t, &l.Prepare), scripttest.Steps(t, &l.Confine)...) {
			if slices.Contains(mountCalls, s.Call) {
				t.Errorf("%s: %q", mode, s.What)
			}
		}
	}
}

// TestRulesOfALaunch: which paths may be written to, and by which scopes and
// network rules, in every combination.
func TestRulesOfALaunch(t *testing.T) {
	h := newHost(t)
	for _, mode := range modes {
		for _, namespaces := range []bool{true, false} {
			for _, network := range []bool{true, false} {
				t.Run(fmt.Sprintf("%s namespaces %v network %v", mode, namespaces, network), func(t *testing.T) {
					r := h.request(mode, namespaces)
					r.Policy.Network = network
					checkLaunchRules(t, h, r)
				})
			}
		}
	}
}

func checkLaunchRules(t *testing.T, h host, r local.Request) {
	l := wrap(t, r)
	list := scripttest.Steps(t, &l.Prepare)
	if !l.HasRuleset || list[l.Ruleset].Call != unix.SYS_LANDLOCK_CREATE_RULESET {
		t.Fatalf("the ruleset is %+v", list[l.Ruleset])
	}
	attr := list[l.Ruleset].Args[0]
	if tcp := attr.Word(1); (tcp == 3) != (!r.Namespaces && !r.Policy.Network) {
		t.Errorf("the rules of TCP are %d", tcp)
	}
	if scoped := attr.Word(2); scoped&2 == 0 || (scoped&1 != 0) != (!r.Namespaces || r.Policy.Network) {
		t.Errorf("the scopes are %d", scoped)
	}
	allowed := map[string]uint64{}
	for _, add := range scripttest.Find(list, unix.SYS_LANDLOCK_ADD_RULE, nil) {
		opened := list[:add.Index]
		for i := len(opened) - 1; ; i-- {
			if opened[i].Call == unix.SYS_OPENAT {
				allowed[opened[i].Args[1].Text()] = add.Args[2].Word(0)
				break
			}
		}
	}
	devices := uint64(1<<6 | 1<<11)
	roots := []string{}
	for path, rights := range allowed {
		switch {
		case rights&devices != 0:
			t.Errorf("%s: devices can be made", path)
		case strings.HasPrefix(path, "/dev/"), path == "/proc", path == realTmp(t), path == r.Tmp:
		default:
			roots = append(roots, path)
		}
	}
	slices.Sort(roots)
	want := []string{}
	if r.Policy.Mode != sandbox.ReadOnly {
		want = []string{h.plain.Path, h.nested.Path, h.hidden.Path}
	}
	if !slices.Equal(roots, want) {
		t.Errorf("writable are %q, want %q", roots, want)
	}
	if _, open := allowed[r.Tmp]; open == r.Namespaces {
		t.Errorf("the session's folder on the host, %s, is open: %v", r.Tmp, open)
	}
	if _, open := allowed["/dev/pts"]; open && !r.Namespaces {
		t.Error("the terminals of the host are open")
	}
	if _, open := allowed["/proc"]; open && !r.Namespaces {
		t.Error("/proc of the host is open")
	}
}

// TestPrivilegesGoFirst: no_new_privs, then capabilities, then the filter and
// nothing after it.
func TestPrivilegesGoFirst(t *testing.T) {
	h := newHost(t)
	for _, namespaces := range []bool{true, false} {
		list := scripttest.Steps(t, &wrap(t, h.request(sandbox.WorkspaceWrite, namespaces)).Confine)
		last := list[len(list)-1]
		if list[0].Call != unix.SYS_PRCTL || list[0].Args[0].Number != unix.PR_SET_NO_NEW_PRIVS || list[0].Args[1].Number != 1 {
			t.Errorf("it begins with %+v", list[0])
		}
		if last.Call != unix.SYS_SECCOMP || last.Args[0].Number != unix.SECCOMP_SET_MODE_FILTER || last.Ignores != 0 {
			t.Errorf("it ends with %+v", last)
		}
		capset := scripttest.Find(list, unix.SYS_CAPSET, nil)
		if len(capset) != 1 || capset[0].Ignores != 0 {
			t.Fatalf("capabilities are set by %+v", capset)
		}
		// struct __user_cap_data_struct twice: effective, permitted, inheritable.
		effective, permitted := uint32(capset[0].Args[1].Word(0)), uint32(capset[0].Args[1].Word(0)>>32)
		most := uint32(0)
		if namespaces && os.Geteuid() == 0 {
			most = 1<<0 | 1<<1 | 1<<3 | 1<<4 // CHOWN, DAC_OVERRIDE, FOWNER, FSETID
		}
		if effective != most || permitted != most || uint32(capset[0].Args[1].Word(1)) != 0 || capset[0].Args[1].Word(1)>>32 != 0 || capset[0].Args[1].Word(2) != 0 {
			t.Errorf("namespaces %v: kept are %#x and %#x", namespaces, effective, permitted)
		}
		for c := range uintptr(41) {
			dropped := len(scripttest.Find(list, unix.SYS_PRCTL, func(s scripttest.Step) bool { return s.Args[0].Number == unix.PR_CAPBSET_DROP && s.Args[1].Number == c })) == 1
			if dropped == (most&(1<<c) != 0) {
				t.Errorf("namespaces %v: capability %d is dropped: %v", namespaces, c, dropped)
			}
		}
	}
}

func TestWrapRefuses(t *testing.T) {
	h := newHost(t)
	for name, change := range map[string]func(*sandbox.Policy){
		"danger-full-access":  func(p *sandbox.Policy) { p.Mode = sandbox.DangerFullAccess },
		"external-sandbox":    func(p *sandbox.Policy) { p.Mode = sandbox.ExternalSandbox },
		"an unreadable /proc": func(p *sandbox.Policy) { p.Unreadable = []string{"/proc"} },
	} {
		r := h.request(sandbox.WorkspaceWrite, true)
		change(&r.Policy)
		if _, err := wrapperOf(7).Wrap(r); err == nil {
			t.Errorf("%s: a launch was made", name)
		}
	}
}
