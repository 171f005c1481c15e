package view

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/confine-dev/confine/sandbox"
	"github.com/confine-dev/confine/sandbox/local"
	"github.com/confine-dev/confine/sandbox/restrict"
)

// host is a tree of files that plans are made for.
type host struct {
	t    *testing.T
	base string // neither hidden nor below /tmp
}

// The tree: what ends in / is a folder.
var tree = []string{
	"state/spill/", "state/own",
	"runtime/ws/", "runtime/socket-folder/", "runtime/note", "runtime/program", "away/program",
	"ws/config", "ws/hooks/pre", "ws/deep/file", "ws/nested/file",
	"cache/go/entry", "cache/other", "away/file", "away/sub/file",
}

func newHost(t *testing.T) host {
	t.Helper()
	base, err := os.MkdirTemp("/var/tmp", "confine-view-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(base) })
	h := host{t, real(base)}
	for _, name := range tree {
		dir := h.at(name)
		if !strings.HasSuffix(name, "/") {
			dir = filepath.Dir(dir)
		}
		if err := os.MkdirAll(dir, 0o755); err != nil {
			t.Fatal(err)
		}
		if dir != h.at(name) {
			if err := os.WriteFile(h.at(name), nil, 0o644); err != nil {
				t.Fatal(err)
			}
		}
	}
	for _, name := range []string{"runtime/program", "away/program"} {
		if err := os.Chmod(h.at(name), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	t.Setenv("XDG_RUNTIME_DIR", h.at("runtime"))
	return h
}

func (h host) at(name string) string { return filepath.Join(h.base, name) }

// root declares a file or folder of the tree.
func (h host) root(name string) *sandbox.Root {
	h.t.Helper()
	var st syscall.Stat_t
	if err := syscall.Lstat(h.at(name), &st); err != nil {
		h.t.Fatal(err)
	}
	return &sandbox.Root{Path: h.at(name), File: st.Mode&syscall.S_IFMT != syscall.S_IFDIR, Dev: st.Dev, Ino: st.Ino}
}

func (h host) request(mode sandbox.Mode) local.Request {
	return local.Request{Namespaces: true, Tmp: h.at("state/session/tmp"), State: h.at("state"), Visible: []string{h.at("state/spill")},
		Policy: sandbox.Policy{Mode: mode, Roots: []*sandbox.Root{h.root("ws")}, Protected: []string{h.at("ws/config"), h.at("ws/hooks"), h.at("ws/absent")}},
		Caches: []local.Cache{{Path: h.at("cache/go"), Layer: h.at("state/session/layer")}}}
}

func (h host) plan(r local.Request) *Plan {
	h.t.Helper()
	p, err := Of(r)
	if err != nil {
		h.t.Fatal(err)
	}
	return p
}

// mount is the one at a path of the tree.
func (h host) mount(p *Plan, name string) (Mount, bool) {
	i := slices.IndexFunc(p.Mounts, func(m Mount) bool { return m.Path == h.at(name) })
	if i < 0 {
		return Mount{}, false
	}
	return p.Mounts[i], true
}

func TestMountsAreInOrderAndOnlyOneAtAPath(t *testing.T) {
	h := newHost(t)
	r := h.request(sandbox.WorkspaceWrite)
	r.Policy.Roots = append(r.Policy.Roots, h.root("runtime/ws"), h.root("ws/nested"), h.root("ws"))
	r.Policy.Writable = []*sandbox.Root{h.root("away/sub"), h.root("away/sub/file"), h.root("away")}
	p := h.plan(r)
	for i, m := range p.Mounts {
		for _, later := range p.Mounts[i+1:] {
			if sandbox.Within(m.Path, later.Path) {
				t.Errorf("%s is put in place before %s, which covers it", m.Path, later.Path)
			}
		}
	}
}

func TestModesDecideWhatIsWritable(t *testing.T) {
	h := newHost(t)
	for mode, want := range map[sandbox.Mode]map[string]bool{ // path: writable
		sandbox.WorkspaceWrite: {"ws": true, "runtime/ws": true, "ws/config": false, "ws/hooks": false, "state/spill": false},
		sandbox.ReadOnly:       {"runtime/ws": false, "state/spill": false},
	} {
		r := h.request(mode)
		r.Policy.Roots = append(r.Policy.Roots, h.root("runtime/ws"))
		p := h.plan(r)
		for name, writable := range want {
			if m, ok := h.mount(p, name); !ok || m.Writable != writable || m.Source != m.Path {
				t.Errorf("%s: %s: found %v, %+v", mode, name, ok, m)
			}
		}
		for _, root := range r.Policy.Roots {
			for _, m := range p.Mounts {
				if m.Path == root.Path && m.Root != root {
					t.Errorf("%s: %s is not compared", mode, m.Path)
				}
			}
		}
		if _, ok := h.mount(p, "ws/absent"); ok {
			t.Errorf("%s: what does not exist is mounted", mode)
		}
		if _, ok := h.mount(p, "ws"); ok && mode == sandbox.ReadOnly {
			t.Error("the workspace of a read-only run is mounted")
		}
	}
}

// TestProtectedLink: nothing can be mounted over a link, and over what it leads
// to would be another place.
func TestProtectedLink(t *testing.T) {
	h := newHost(t)
	if err := os.Symlink("nested/file", h.at("ws/link")); err != nil {
		t.Fatal(err)
	}
	r := h.request(sandbox.WorkspaceWrite)
	r.Policy.Protected = []string{h.at("ws/link")}
	if _, ok := h.mount(h.plan(r), "ws/link"); ok {
		t.Error("a link is mounted")
	}
}

// TestRootAroundWhatIsHidden: its mount would lie over the cover.
func TestRootAroundWhatIsHidden(t *testing.T) {
	h := newHost(t)
	r := h.request(sandbox.WorkspaceWrite)
	r.Policy.Roots, r.Policy.Protected = []*sandbox.Root{h.root(".")}, nil
	if _, err := Of(r); err == nil || !strings.Contains(err.Error(), "hidden") {
		t.Errorf("got %v", err)
	}
	r.Policy.Mode = sandbox.ReadOnly // where it needs no mount
	h.plan(r)
	r.Policy.Mode, r.Policy.Roots = sandbox.WorkspaceWrite, []*sandbox.Root{{Path: "/dev"}}
	if _, err := Of(r); err == nil {
		t.Error("the host's devices are shown")
	}
}

func TestTemporaryFilesOfEachMode(t *testing.T) {
	h := newHost(t)
	for mode, source := range map[sandbox.Mode]string{sandbox.WorkspaceWrite: h.at("state/session/tmp"), sandbox.ReadOnly: ""} {
		p := h.plan(h.request(mode))
		i := slices.IndexFunc(p.Mounts, func(m Mount) bool { return m.Path == real("/tmp") })
		if i < 0 || p.Mounts[i].Source != source || !p.Mounts[i].Writable {
			t.Errorf("%s: %+v", mode, p.Mounts)
		}
	}
}

func TestHiddenFolders(t *testing.T) {
	h := newHost(t)
	hidden := h.plan(h.request(sandbox.ReadOnly)).Hidden
	for _, want := range []string{h.at("state"), h.at("runtime"), real("/run")} {
		if info, err := os.Stat(want); err == nil && info.IsDir() && !slices.Contains(hidden, want) {
			t.Errorf("%s is not hidden", want)
		}
	}
	if slices.Contains(hidden, real("/tmp")) {
		t.Error("/tmp is hidden and mounted")
	}
	t.Setenv("XDG_RUNTIME_DIR", h.at("state/spill")) // in another one
	if hidden := h.plan(h.request(sandbox.ReadOnly)).Hidden; slices.Contains(hidden, h.at("state/spill")) {
		t.Errorf("a folder in a hidden one is among %q", hidden)
	}
	t.Setenv("XDG_RUNTIME_DIR", t.TempDir()) // in /tmp
	for _, folder := range h.plan(h.request(sandbox.ReadOnly)).Hidden {
		if sandbox.Within(folder, real("/tmp")) {
			t.Errorf("%s would be covered after /tmp was", folder)
		}
	}
}

// TestWhatIsShownThoughHidden: of the program only a program, and nothing that
// comes along with another mount.
func TestWhatIsShownThoughHidden(t *testing.T) {
	h := newHost(t)
	for name, want := range map[string]bool{"runtime/program": true, "runtime/note": false, "runtime/socket-folder": false, "away/program": false} {
		r := h.request(sandbox.WorkspaceWrite)
		r.Program = h.at(name)
		if m, ok := h.mount(h.plan(r), name); ok != want || ok && (m.Writable || !m.File) {
			t.Errorf("the program %s is shown: %v, %+v", name, ok, m)
		}
	}
	r := h.request(sandbox.WorkspaceWrite)
	r.Policy.Roots = append(r.Policy.Roots, h.root("runtime/ws"))
	r.Visible = []string{h.at("runtime/ws"), h.at("runtime"), h.at("runtime/note")}
	p := h.plan(r)
	if m, _ := h.mount(p, "runtime/ws"); !m.Writable {
		t.Error("a root became read-only because it is to be visible")
	}
	if _, ok := h.mount(p, "runtime"); ok {
		t.Error("a hidden folder is shown as a whole")
	}
	if m, ok := h.mount(p, "runtime/note"); !ok || m.Writable || !m.File {
		t.Errorf("what shall be visible is shown: %v, %+v", ok, m)
	}
}

func TestPlacesThatMustBeMade(t *testing.T) {
	h := newHost(t)
	p := h.plan(h.request(sandbox.WorkspaceWrite))
	tmp := real("/tmp")
	for path, want := range map[string]string{ // "": it is there
		h.at("ws"):                        "",
		h.at("ws/config"):                 "",
		h.at("state/spill"):               h.at("state"),
		h.at("runtime/a/b"):               h.at("runtime"),
		h.at("cache/go/entry"):            h.at("cache/go"),
		h.at("cache/go"):                  "",
		filepath.Join(tmp, "project"):     tmp,
		tmp:                               "",
		filepath.Join(SharedMemory, "it"): SharedMemory,
	} {
		base, missing := p.Place(Mount{Path: path})
		if missing != (want != "") || missing && base != want {
			t.Errorf("%s: missing %v below %q, want %q", path, missing, base, want)
		}
	}
	r := h.request(sandbox.WorkspaceWrite)
	r.Policy.Roots = append(r.Policy.Roots, h.root("runtime/ws"))
	if base, missing := h.plan(r).Place(Mount{Path: h.at("runtime/ws/file")}); missing {
		t.Errorf("in a root that shows the host's files a place is made below %s", base)
	}
}

// TestRulesRepeatTheView: no rule for what the view shows read-only, and every
// declared one compared.
func TestRulesRepeatTheView(t *testing.T) {
	h := newHost(t)
	r := h.request(sandbox.WorkspaceWrite)
	file, folder := h.root("away/file"), h.root("away/sub")
	r.Policy.Writable = []*sandbox.Root{file, folder}
	r.Policy.Readable = []*sandbox.Root{h.root("runtime/note")}
	rules := map[string]restrict.Rule{}
	for _, rule := range h.plan(r).Rules() {
		rules[rule.Path] = rule
	}
	want := map[string]restrict.Rule{
		h.at("ws"):       {Root: r.Policy.Roots[0], Rights: restrict.InFolder},
		h.at("cache/go"): {Rights: restrict.InFolder},
		file.Path:        {Root: file, Rights: restrict.OnContent},
		folder.Path:      {Root: folder, Rights: restrict.InFolder},
		real("/tmp"):     {Rights: restrict.InFolder},
		"/dev/shm":       {Rights: restrict.InFolder},
		"/dev/pts":       {Rights: restrict.OnFile},
		"/dev/null":      {Rights: restrict.OnFile},
		"/proc":          {Rights: restrict.OnContent},
	}
	for path, rule := range want {
		if got := rules[path]; got.Root != rule.Root || got.Rights != rule.Rights {
			t.Errorf("%s: the rule is %+v, want %+v", path, got, rule)
		}
	}
	for path := range rules {
		if _, ok := want[path]; !ok && !strings.HasPrefix(path, "/dev/") {
			t.Errorf("%s may be written", path)
		}
	}
}

func TestWritablePlacesBesideTheRoots(t *testing.T) {
	h := newHost(t)
	r := h.request(sandbox.WorkspaceWrite)
	r.Policy.Writable = []*sandbox.Root{h.root("away/file")}
	got := h.plan(r).Writable()
	slices.Sort(got)
	want := []string{"/dev", "/proc", "/tmp", h.at("away/file"), h.at("cache/go")}
	slices.Sort(want)
	if !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}
