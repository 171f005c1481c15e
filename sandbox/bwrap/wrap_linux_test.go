package bwrap

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/confine-dev/confine/sandbox"
	"github.com/confine-dev/confine/sandbox/local"
	"github.com/confine-dev/confine/sandbox/restrict"
	"github.com/confine-dev/confine/sandbox/scripttest"
	"golang.org/x/sys/unix"
)

// wrapper is one for a bubblewrap that is never started, on a kernel with a
// version of Landlock.
func wrapper(t *testing.T, landlock int, o Options) *Wrapper {
	t.Helper()
	o.Path = filepath.Join(t.TempDir(), "bwrap")
	speaker(t, o.Path, "bubblewrap 0.8.0")
	w := New(o)
	w.abi = restrict.ABIOf(landlock)
	return w
}

// folder is one outside /tmp, which a view covers.
func folder(t *testing.T) string { return folderIn(t, "/var/tmp") }

func folderIn(t *testing.T, parent string) string {
	t.Helper()
	dir, err := os.MkdirTemp(parent, "confine-bwrap-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	return dir
}

func declare(t *testing.T, path string) *sandbox.Root {
	t.Helper()
	root, err := sandbox.DeclareRoot(path, sandbox.Forbidden{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { root.Close() })
	return root
}

// steps compiles and returns what the init does inside.
func steps(t *testing.T, w *Wrapper, r local.Request) (*local.Launch, []scripttest.Step) {
	t.Helper()
	l, err := w.Wrap(r)
	if err != nil {
		t.Fatal(err)
	}
	if l.Runner == nil {
		t.Fatal("there is no runner")
	}
	return l, scripttest.Steps(t, &l.Runner.Inside)
}

// TestInside reads what the init does to itself: what was declared is compared
// before anything is allowed, then Landlock, then the end of privileges, then
// the filter, which nothing follows.
func TestInside(t *testing.T) {
	for _, landlock := range []int{0, 1, 7} {
		for _, namespaces := range []bool{true, false} {
			root := declare(t, folder(t))
			l, list := steps(t, wrapper(t, landlock, Options{}), local.Request{Namespaces: namespaces, Dir: root.Path, Tmp: "/var/tmp",
				Policy: sandbox.Policy{Mode: sandbox.WorkspaceWrite, Roots: []*sandbox.Root{root}}})
			identity := scripttest.Identity(root.Dev, root.Ino)
			compared := scripttest.Find(list, unix.SYS_FSTAT, func(s scripttest.Step) bool { return string(s.Want) == identity })
			if len(compared) == 0 {
				t.Fatal("the root is not compared")
			}
			opened := list[compared[0].Args[0].Ref]
			if opened.Call != unix.SYS_OPENAT2 || opened.Args[1].Text() != root.Path || opened.Args[2].Word(2) != unix.RESOLVE_NO_SYMLINKS {
				t.Errorf("the root is opened by %+v", opened)
			}
			if l.HasRuleset != (landlock > 0) {
				t.Errorf("Landlock %d: a ruleset is there: %v", landlock, l.HasRuleset)
			}
			if l.HasRuleset && list[l.Ruleset].Call != unix.SYS_LANDLOCK_CREATE_RULESET {
				t.Errorf("the ruleset is kept by %+v", list[l.Ruleset])
			}
			last := list[len(list)-1]
			if last.Call != unix.SYS_SECCOMP || list[len(list)-2].Call != unix.SYS_CAPSET {
				t.Errorf("the last two calls are %q and %q", list[len(list)-2].What, last.What)
			}
			if l.Namespaces != namespaces || l.Env["TMPDIR"] != "/tmp" || len(scripttest.Steps(t, &l.Prepare)) > 0 {
				t.Errorf("the launch is %+v", l)
			}
		}
	}
}

// TestPrivileges compares what bubblewrap and the init leave a command.
func TestPrivileges(t *testing.T) {
	const rootsFour = 1<<0 | 1<<1 | 1<<3 | 1<<4 // CHOWN, DAC_OVERRIDE, FOWNER, FSETID in linux/capability.h
	for _, namespaces := range []bool{true, false} {
		root := declare(t, folder(t))
		l, list := steps(t, wrapper(t, 7, Options{}), local.Request{Namespaces: namespaces, Tmp: "/var/tmp",
			Policy: sandbox.Policy{Mode: sandbox.WorkspaceWrite, Roots: []*sandbox.Root{root}}})
		want := uint64(0)
		if namespaces && os.Geteuid() == 0 {
			want = rootsFour
		}
		set := scripttest.Find(list, unix.SYS_CAPSET, nil)
		if len(set) != 1 {
			t.Fatalf("privileges are set by %d calls", len(set))
		}
		effective, permitted := set[0].Args[1].Word(0)&(1<<32-1), set[0].Args[1].Word(0)>>32
		if effective != want || permitted != want {
			t.Errorf("namespaces %v: effective %#x, permitted %#x, want %#x", namespaces, effective, permitted, want)
		}
		if added := strings.Count(strings.Join(l.Runner.Args, " "), "--cap-add"); added != map[uint64]int{0: 0, rootsFour: 4}[want] {
			t.Errorf("namespaces %v: bubblewrap keeps %d capabilities", namespaces, added)
		}
	}
}

func TestWrapRefuses(t *testing.T) {
	missing := New(Options{Path: filepath.Join(t.TempDir(), "bwrap")})
	if _, err := missing.Wrap(local.Request{Policy: sandbox.Policy{Mode: sandbox.ReadOnly}}); err == nil {
		t.Error("a launch without bubblewrap was made")
	}
	for _, mode := range []sandbox.Mode{sandbox.DangerFullAccess, sandbox.ExternalSandbox} {
		if _, err := wrapper(t, 7, Options{}).Wrap(local.Request{Policy: sandbox.Policy{Mode: mode}}); err == nil {
			t.Errorf("a launch for mode %q was made", mode)
		}
	}
}

func TestClaims(t *testing.T) {
	missing := New(Options{Path: filepath.Join(t.TempDir(), "bwrap")}).Claims(sandbox.Policy{}, true)
	if missing.Missing == "" || len(missing.Remedies) == 0 || missing.Facets != nil {
		t.Errorf("missing: got %+v", missing)
	}
	for landlock, layers := range map[int][]string{0: {"bwrap", "namespaces", "seccomp"}, 7: {"bwrap", "namespaces", "landlock", "seccomp"}} {
		c := wrapper(t, landlock, Options{}).Claims(sandbox.Policy{Mode: sandbox.WorkspaceWrite}, true)
		if c.Missing != "" || c.Version != "0.8.0" || !slices.Equal(c.Layers, layers) || c.Facets[sandbox.FileWrite].State != sandbox.Enforced {
			t.Errorf("Landlock %d: got %+v", landlock, c)
		}
	}
	alone := wrapper(t, 7, Options{}).Claims(sandbox.Policy{Mode: sandbox.WorkspaceWrite, Network: true}, false)
	if alone.Facets[sandbox.Network].State != sandbox.Open || !strings.Contains(strings.Join(alone.Remedies, "\n"), "session") {
		t.Errorf("alone with network: got %+v", alone)
	}
}

// TestExtras gives paths of every kind: what a run gets, and what is listed as
// skipped.
func TestExtras(t *testing.T) {
	dir := folder(t)
	for _, name := range []string{"ro", "state/own"} {
		if err := os.MkdirAll(filepath.Join(dir, name), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	file, link, fifo := filepath.Join(dir, "file"), filepath.Join(dir, "link"), filepath.Join(dir, "fifo")
	if err := os.WriteFile(file, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("ro", link); err != nil {
		t.Fatal(err)
	}
	if err := unix.Mkfifo(fifo, 0o600); err != nil {
		t.Fatal(err)
	}
	covered := folderIn(t, "/tmp")
	for link, target := range map[string]string{dir + "/into": covered, dir + "/device": "/dev/zero"} {
		if err := os.Symlink(target, link); err != nil {
			t.Fatal(err)
		}
	}
	w := wrapper(t, 7, Options{
		ReadOnly: []string{dir + "/ro", file, link, dir + "/absent", fifo, "/", "/dev", "/proc/sys", "/tmp", dir + "/state/own", covered, dir + "/into"},
		Devices:  []string{"/dev/null", "/dev", file, "/dev/absent", "/dev/pts/0", dir + "/device"},
	})
	l, list := steps(t, w, local.Request{Namespaces: true, State: dir + "/state", Tmp: "/var/tmp", Policy: sandbox.Policy{Mode: sandbox.WorkspaceWrite}})
	args := " " + strings.Join(l.Runner.Args, " ") + " "
	for _, want := range []string{dir + "/ro", file, covered} {
		if !strings.Contains(args, " --ro-bind "+want+" "+want+" ") {
			t.Errorf("%s is not shown read-only", want)
		}
	}
	if n := strings.Count(args, " --ro-bind "+dir); n != 3 {
		t.Errorf("%d of the three usable paths are shown", n)
	}
	if !strings.Contains(args, " --dev-bind /dev/null /dev/null ") || strings.Count(args, "--dev-bind") != 1 {
		t.Error("the device is not the only one that is shown")
	}
	if !slices.Contains(l.Writable, "/dev/null") || len(scripttest.Find(list, unix.SYS_OPENAT, func(s scripttest.Step) bool { return s.Args[1].Text() == "/dev/null" })) < 2 {
		t.Error("the device may not be written to")
	}
	skipped := w.Skipped() // without confine's own folder, which it does not know
	if strings.Contains(args, "/dev/zero") {
		t.Errorf("a link in the workspace opened something: %s", args)
	}
	for _, want := range []string{dir + "/into: it leads into", dir + "/device: it is a link", dir + "/absent: it does not exist", fifo + ": it is neither", "/: it would show", "/dev: it would show", "/proc/sys: it belongs to the kernel",
		"/tmp: it would show", "/dev: it is not a device", file + ": it is not a device", "/dev/absent: it does not exist"} {
		if !slices.ContainsFunc(skipped, func(s Skip) bool { return strings.HasPrefix(s.String(), want) }) {
			t.Errorf("%q is not among the skipped: %q", want, skipped)
		}
	}
	if strings.Contains(args, dir+"/state/own") {
		t.Error("confine's own folder is shown")
	}
	if claims := w.Claims(sandbox.Policy{Mode: sandbox.WorkspaceWrite}, true); !strings.Contains(strings.Join(claims.Remedies, "\n"), dir+"/absent") {
		t.Errorf("the claims do not tell what was skipped: %q", claims.Remedies)
	}
}

// TestCachesWithPlaces gives or hides something in a cache: for such a run the
// cache is not the session's.
func TestCachesWithPlaces(t *testing.T) {
	dir := folder(t)
	granted := filepath.Join(dir, "a", "file")
	for _, cache := range []string{"a", "b", "c", "d", "d/secret"} {
		if err := os.Mkdir(filepath.Join(dir, cache), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(granted, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	r := local.Request{Namespaces: true, State: filepath.Join(dir, "state"), Tmp: "/var/tmp", Policy: sandbox.Policy{Mode: sandbox.WorkspaceWrite}}
	r.Policy.Unreadable = []string{filepath.Join(dir, "d", "secret")}
	for _, cache := range []string{"a", "b", "c", "d"} {
		r.Caches = append(r.Caches, local.Cache{Path: filepath.Join(dir, cache), Layer: "/layers/" + cache})
	}
	var st unix.Stat_t
	if err := unix.Stat(granted, &st); err != nil {
		t.Fatal(err)
	}
	r.Policy.Writable = []*sandbox.Root{{Path: granted, File: true, Dev: uint64(st.Dev), Ino: st.Ino}}
	l, err := wrapper(t, 7, Options{ReadOnly: []string{filepath.Join(dir, "b")}}).Wrap(r)
	if err != nil {
		t.Fatal(err)
	}
	args := " " + strings.Join(l.Runner.Args, " ") + " "
	for cache, layered := range map[string]bool{"a": false, "b": false, "c": true, "d": false} {
		if strings.Contains(args, " --bind /layers/"+cache+" ") != layered {
			t.Errorf("the session's layer over %s is there: %v", cache, !layered)
		}
		if slices.ContainsFunc(l.Caches, func(c local.Cache) bool { return filepath.Base(c.Path) == cache }) != layered {
			t.Errorf("the launch says of a layer over %s that it is there: %v", cache, !layered)
		}
	}
	if !strings.Contains(args, " --bind "+granted+" "+granted+" ") {
		t.Error("the file is not granted")
	}
}
