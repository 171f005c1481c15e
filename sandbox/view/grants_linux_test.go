package view

import (
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/confine-dev/confine/sandbox"
	"github.com/confine-dev/confine/sandbox/local"
)

// TestGrantsMeetWhatIsThere: how one grant appears in a view, by what lies
// around it.
func TestGrantsMeetWhatIsThere(t *testing.T) {
	const (
		none     = "none" // can be written, or read, without a mount
		writable = "writable"
		readOnly = "read-only"
	)
	both := []sandbox.Mode{sandbox.WorkspaceWrite, sandbox.ReadOnly}
	for _, test := range []struct {
		name     string
		modes    []sandbox.Mode
		writable string // granted
		readable string // granted
		want     map[string]string
	}{
		{"a file outside", both, "away/file", "", map[string]string{"away/file": writable, "away": none}},
		{"a folder outside", both, "away", "", map[string]string{"away": writable}},
		{"in a writable root", both[:1], "ws/deep/file", "", map[string]string{"ws/deep/file": none, "ws": writable}},
		{"in the root of a read-only run", both[1:], "ws/deep/file", "", map[string]string{"ws/deep/file": writable, "ws": none}},
		{"a root itself", both[:1], "ws", "", map[string]string{"ws": writable, "ws/config": readOnly}},
		{"the root of a read-only run", both[1:], "ws", "", map[string]string{"ws": writable, "ws/config": readOnly}},
		{"a protected file", both[:1], "ws/config", "", map[string]string{"ws/config": none, "ws/hooks": readOnly}},
		{"a protected file of a read-only run", both[1:], "ws/config", "", map[string]string{"ws/config": writable, "ws/hooks": none}},
		{"in a protected folder", both[:1], "ws/hooks/pre", "", map[string]string{"ws/hooks": readOnly, "ws/hooks/pre": writable}},
		{"a protected folder", both[:1], "ws/hooks", "", map[string]string{"ws/hooks": none, "ws/config": readOnly}},
		{"a hidden file", both, "runtime/note", "", map[string]string{"runtime/note": writable, "runtime": none}},
		{"a hidden folder's part", both, "runtime/ws", "", map[string]string{"runtime/ws": writable, "runtime": none}},
		{"in a cache", both[:1], "cache/go/entry", "", map[string]string{"cache/go": writable, "cache/go/entry": writable}},
		{"around a cache", both, "cache", "", map[string]string{"cache": writable, "cache/go": none}},
		{"a cache", both, "cache/go", "", map[string]string{"cache/go": writable}},
		{"reading a hidden file", both, "", "runtime/note", map[string]string{"runtime/note": readOnly}},
		{"reading part of a hidden folder", both, "", "runtime/socket-folder", map[string]string{"runtime/socket-folder": readOnly}},
		{"reading what can be read", both, "", "away/file", map[string]string{"away/file": none}},
		{"reading around a cache", both, "", "cache", map[string]string{"cache": none, "cache/go": writable}},
		{"reading and writing", both, "runtime/note", "runtime/note", map[string]string{"runtime/note": writable}},
	} {
		for _, mode := range test.modes {
			h := newHost(t)
			r := h.request(mode)
			if test.writable != "" {
				r.Policy.Writable = []*sandbox.Root{h.root(test.writable)}
			}
			if test.readable != "" {
				r.Policy.Readable = []*sandbox.Root{h.root(test.readable)}
			}
			p := h.plan(r)
			for name, want := range test.want {
				m, ok := h.mount(p, name)
				got := none
				switch {
				case ok && m.Writable:
					got = writable
				case ok:
					got = readOnly
				}
				if got != want {
					t.Errorf("%s, %s: %s is %s, want %s", test.name, mode, name, got, want)
				}
				if granted := name == test.writable || name == test.readable; granted && ok && (m.Root == nil || m.Source != m.Path || m.Root.Path != m.Path) {
					t.Errorf("%s, %s: %s is not compared or not the host's: %+v", test.name, mode, name, m)
				}
			}
		}
	}
}

// TestGrantBelowTmp: what commands see there is not the host's.
func TestGrantBelowTmp(t *testing.T) {
	h := newHost(t)
	dir, err := os.MkdirTemp("/tmp", "confine-view-")
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(dir)
	root := &sandbox.Root{Path: real(dir)}
	for _, mode := range []sandbox.Mode{sandbox.WorkspaceWrite, sandbox.ReadOnly} {
		r := h.request(mode)
		r.Policy.Writable = []*sandbox.Root{root}
		p := h.plan(r)
		i := slices.IndexFunc(p.Mounts, func(m Mount) bool { return m.Path == root.Path })
		if i < 0 || !p.Mounts[i].Writable || p.Mounts[i].Root != root {
			t.Errorf("%s: mounts are %+v", mode, p.Mounts)
		}
	}
}

// TestCacheThatMayBeRead: reading the host's is no reason to write to it.
func TestCacheThatMayBeRead(t *testing.T) {
	h := newHost(t)
	r := h.request(sandbox.WorkspaceWrite)
	r.Caches = []local.Cache{{Path: h.at("runtime/ws"), Layer: h.at("state/session/layer")}}
	r.Policy.Readable = []*sandbox.Root{h.root("runtime/ws")}
	if m, _ := h.mount(h.plan(r), "runtime/ws"); !m.Writable || m.Source != r.Caches[0].Layer {
		t.Errorf("the cache is %+v", m)
	}
}

// TestTwoGrantsOfOneTree: the inner one is part of the outer.
func TestTwoGrantsOfOneTree(t *testing.T) {
	h := newHost(t)
	r := h.request(sandbox.ReadOnly)
	r.Policy.Writable = []*sandbox.Root{h.root("away/sub/file"), h.root("away")}
	p := h.plan(r)
	if m, ok := h.mount(p, "away"); !ok || !m.Writable {
		t.Errorf("the folder is mounted: %v, %+v", ok, m)
	}
	if _, ok := h.mount(p, "away/sub/file"); ok {
		t.Error("a file in a writable folder became a mount, which nobody can rename")
	}
}

func TestRefusedGrants(t *testing.T) {
	h := newHost(t)
	for _, name := range []string{"away/socket", "runtime/sub/deep/socket"} {
		if err := os.MkdirAll(filepath.Dir(h.at(name)), 0o755); err != nil {
			t.Fatal(err)
		}
		socket, err := net.Listen("unix", h.at(name))
		if err != nil {
			t.Fatal(err)
		}
		defer socket.Close()
	}
	fifo := h.at("away/fifo")
	if err := syscall.Mkfifo(fifo, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(h.at("away/file"), h.at("away/link")); err != nil {
		t.Fatal(err)
	}
	file := func(path string) *sandbox.Root { return &sandbox.Root{Path: path, File: true} }
	folder := func(path string) *sandbox.Root { return &sandbox.Root{Path: path} }
	for name, root := range map[string]*sandbox.Root{
		"a socket":                         file(h.at("away/socket")),
		"a FIFO":                           file(fifo),
		"a device":                         file("/dev/null"),
		"shared memory as a whole":         folder("/dev/shm"),
		"a file that became a link":        file(h.at("away/link")),
		"a file that became a folder":      file(h.at("away/sub")),
		"a folder that became a file":      folder(h.at("away/file")),
		"what is gone":                     file(h.at("away/gone")),
		"a setting of the kernel":          file("/proc/sys/kernel/core_pattern"),
		"the kernel's file system":         folder("/sys"),
		"a hidden folder":                  folder(h.at("runtime")),
		"a folder with a hidden socket":    folder(h.at("runtime/sub")),
		"a folder that holds a hidden one": folder(h.base),
		"confine's own file":               file(h.at("state/own")),
		"confine's own folder":             folder(h.at("state")),
		"/tmp":                             folder(real("/tmp")),
	} {
		for _, grant := range []func(*sandbox.Policy){
			func(p *sandbox.Policy) { p.Writable = []*sandbox.Root{root} },
			func(p *sandbox.Policy) { p.Readable = []*sandbox.Root{root} },
		} {
			r := h.request(sandbox.ReadOnly)
			grant(&r.Policy)
			if _, err := Of(r); err == nil || !strings.Contains(err.Error(), root.Path) {
				t.Errorf("%s is granted, or the reason does not name it: %v", name, err)
			}
		}
	}
}

// TestSocketsThatAreNotHidden: who can be reached anyway is no reason to refuse
// a folder.
func TestSocketsThatAreNotHidden(t *testing.T) {
	h := newHost(t)
	socket, err := net.Listen("unix", h.at("away/sub/socket"))
	if err != nil {
		t.Fatal(err)
	}
	defer socket.Close()
	r := h.request(sandbox.ReadOnly)
	r.Policy.Writable = []*sandbox.Root{h.root("away")}
	h.plan(r)
}

// TestRefusesANestedRuntimeFolder: what is not covered by itself because it
// lies in a hidden folder is hidden all the same.
func TestRefusesANestedRuntimeFolder(t *testing.T) {
	h := newHost(t)
	t.Setenv("XDG_RUNTIME_DIR", h.at("runtime/ws"))
	inTmp := t.TempDir()
	for _, path := range []string{h.at("runtime/ws"), h.at("runtime")} {
		r := h.request(sandbox.ReadOnly)
		r.Policy.Readable = []*sandbox.Root{{Path: path}}
		if _, err := Of(r); err == nil {
			t.Errorf("%s is granted", path)
		}
	}
	t.Setenv("XDG_RUNTIME_DIR", inTmp)
	r := h.request(sandbox.ReadOnly)
	r.Policy.Readable = []*sandbox.Root{{Path: filepath.Dir(real(inTmp))}}
	if _, err := Of(r); err == nil {
		t.Error("the folder around one in /tmp is granted")
	}
}

func TestRefusedPolicies(t *testing.T) {
	h := newHost(t)
	for name, change := range map[string]func(*local.Request){
		"danger-full-access":              func(r *local.Request) { r.Policy.Mode = sandbox.DangerFullAccess },
		"external-sandbox":                func(r *local.Request) { r.Policy.Mode = sandbox.ExternalSandbox },
		"an unreadable /proc":             func(r *local.Request) { r.Policy.Unreadable = []string{"/etc/shadow", "/proc"} },
		"an unreadable file system":       func(r *local.Request) { r.Policy.Unreadable = []string{"/"} },
		"an unreadable relative path":     func(r *local.Request) { r.Policy.Unreadable = []string{"secret"} },
		"a grant in confine's own folder": func(r *local.Request) { r.Policy.Writable = []*sandbox.Root{h.root("state/own")} },
		"a grant around it":               func(r *local.Request) { r.Policy.Writable = []*sandbox.Root{h.root(".")} },
	} {
		r := h.request(sandbox.WorkspaceWrite)
		change(&r)
		if _, err := Of(r); err == nil {
			t.Errorf("%s: a plan was made", name)
		}
		r.Namespaces = false
		if err := Check(r); err == nil {
			t.Errorf("%s: nothing is wrong with it where there are no namespaces", name)
		}
	}
}
