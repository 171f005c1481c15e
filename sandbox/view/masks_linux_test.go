package view

import (
	"fmt"
	"net"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/confine-dev/confine/sandbox"
	"github.com/confine-dev/confine/sandbox/local"
)

// TestMasks: how what is to be unreadable appears in a view, by what lies around
// it and in it.
func TestMasks(t *testing.T) {
	const (
		none     = "none"
		writable = "writable"
		readOnly = "read-only"
		file     = "hidden file"
		folder   = "hidden folder"
		roomy    = "hidden folder with places"
	)
	for _, test := range []struct {
		name   string
		hide   []string
		change func(h host, r *local.Request)
		want   map[string]string
	}{
		{"a file", []string{"away/file"}, nil, map[string]string{"away/file": file, "away": none}},
		{"a folder", []string{"away/sub"}, nil, map[string]string{"away/sub": folder}},
		{"a folder and what is in it", []string{"away/sub/file", "away/sub", "away/sub"}, nil, map[string]string{"away/sub": folder, "away/sub/file": none}},
		{"what does not exist", []string{"away/gone"}, nil, map[string]string{"away/gone": none}},
		{"what is hidden anyway", []string{"runtime/note", "runtime", "state/own"}, nil, map[string]string{"runtime/note": none, "runtime": none, "state/own": none}},
		{"a file in the workspace", []string{"ws/deep/file"}, nil, map[string]string{"ws/deep/file": file, "ws": writable}},
		{"a protected file", []string{"ws/config"}, nil, map[string]string{"ws/config": file}},
		{"deep in the workspace", []string{"ws/nested/deep/file"}, func(h host, _ *local.Request) {
			if err := os.MkdirAll(h.at("ws/nested/deep"), 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(h.at("ws/nested/deep/file"), nil, 0o644); err != nil {
				t.Fatal(err)
			}
		}, map[string]string{"ws/nested": writable, "ws/nested/deep": writable, "ws/nested/deep/file": file}},
		{"around something protected", []string{"ws/deep"}, func(h host, r *local.Request) {
			r.Policy.Protected = []string{h.at("ws/deep/file"), h.at("ws/hooks/pre")}
		}, map[string]string{"ws/deep": folder, "ws/deep/file": none, "ws/hooks": writable, "ws/hooks/pre": readOnly}},
		{"around the workspace", []string{"ws"}, func(h host, r *local.Request) {
			r.Policy.Roots = []*sandbox.Root{h.root("ws/deep")}
		}, map[string]string{"ws": roomy, "ws/deep": writable}},
		{"around a workspace with its protected path", []string{"ws"}, func(h host, r *local.Request) {
			r.Policy.Roots, r.Policy.Protected = []*sandbox.Root{h.root("ws/deep")}, []string{h.at("ws/deep/file"), h.at("ws/config")}
		}, map[string]string{"ws": roomy, "ws/deep": writable, "ws/deep/file": readOnly, "ws/config": none}},
		{"around a workspace of a read-only run", []string{"ws"}, func(h host, r *local.Request) {
			r.Policy.Mode, r.Policy.Roots = sandbox.ReadOnly, []*sandbox.Root{h.root("ws/deep")}
		}, map[string]string{"ws": roomy, "ws/deep": readOnly, "ws/config": none}},
		{"a file that was granted", []string{"away/file"}, reading("away/file"), map[string]string{"away/file": readOnly}},
		{"a folder that was granted", []string{"away"}, reading("away"), map[string]string{"away": readOnly}},
		{"a folder of which a file was granted", []string{"away"}, reading("away/sub/file"), map[string]string{"away": roomy, "away/sub": none, "away/sub/file": readOnly}},
		{"a file in a folder that was granted", []string{"away/sub/file"}, reading("away"), map[string]string{"away": none, "away/sub/file": file}},
		{"a file that may be written", []string{"away/file"}, writing("away/file"), map[string]string{"away/file": writable}},
		{"a file of the workspace that may be written", []string{"ws/deep"}, writing("ws/deep/file"), map[string]string{"ws/deep": roomy, "ws/deep/file": writable}},
		{"a file in a cache", []string{"cache/go/entry"}, nil, map[string]string{"cache/go": writable, "cache/go/entry": file}},
		{"a cache", []string{"cache/go"}, nil, map[string]string{"cache/go": folder}},
		{"around a cache", []string{"cache"}, nil, map[string]string{"cache": folder, "cache/go": none}},
		{"around confine's own folder", []string{"state"}, nil, map[string]string{"state": none, "state/spill": readOnly}},
		{"a program", []string{"away"}, func(h host, r *local.Request) { r.Program = h.at("away/program") }, map[string]string{"away": folder, "away/program": none}},
	} {
		h := newHost(t)
		r := h.request(sandbox.WorkspaceWrite)
		for _, name := range test.hide {
			r.Policy.Unreadable = append(r.Policy.Unreadable, h.at(name))
		}
		if test.change != nil {
			test.change(h, &r)
		}
		p := h.plan(r)
		for name, want := range test.want {
			m, ok := h.mount(p, name)
			got := none
			switch {
			case !ok:
			case m.Writable:
				got = writable
			case !m.Hides():
				got = readOnly
			case m.File:
				got = file
			case p.Holds(m):
				got = roomy
			default:
				got = folder
			}
			if got != want {
				t.Errorf("%s: %s is %s, want %s", test.name, name, got, want)
			}
		}
	}
}

func reading(name string) func(host, *local.Request) {
	return func(h host, r *local.Request) { r.Policy.Readable = []*sandbox.Root{h.root(name)} }
}

func writing(name string) func(host, *local.Request) {
	return func(h host, r *local.Request) { r.Policy.Writable = []*sandbox.Root{h.root(name)} }
}

// TestMaskThroughALink: it is the target that holds the secret.
func TestMaskThroughALink(t *testing.T) {
	h := newHost(t)
	if err := os.Symlink(h.at("away/file"), h.at("away/link")); err != nil {
		t.Fatal(err)
	}
	r := h.request(sandbox.ReadOnly)
	r.Policy.Unreadable = []string{h.at("away/link")}
	p := h.plan(r)
	if m, ok := h.mount(p, "away/file"); !ok || !m.Hides() {
		t.Errorf("the target is %+v", m)
	}
}

// TestMaskAroundAHiddenFolder: no cover can be put where nothing is shown.
func TestMaskAroundAHiddenFolder(t *testing.T) {
	h := newHost(t)
	r := h.request(sandbox.ReadOnly)
	r.Policy.Roots = nil
	r.Policy.Unreadable = []string{h.base}
	p := h.plan(r)
	for _, folder := range p.Hidden {
		if sandbox.Within(folder, h.base) {
			t.Errorf("%s is covered inside of what is hidden", folder)
		}
	}
	if m, ok := h.mount(p, "."); !ok || !m.Hides() || !p.Holds(m) {
		t.Errorf("the folder is %+v", m)
	}
}

// TestSocketsElsewhere: those of host services are hidden wherever they lie.
func TestSocketsElsewhere(t *testing.T) {
	h := newHost(t)
	for _, name := range []string{"away/service", "away/sub/granted", "ws/own", "runtime/bus", "cache/hidden"} {
		l, err := net.Listen("unix", h.at(name))
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close()
	}
	for _, mode := range []sandbox.Mode{sandbox.WorkspaceWrite, sandbox.ReadOnly} {
		r := h.request(mode)
		r.Policy.Writable = []*sandbox.Root{h.root("away/sub")}
		r.Policy.Unreadable = []string{h.at("cache")}
		p := h.plan(r)
		for name, want := range map[string]bool{"away/service": true, "away/sub/granted": false, "ws/own": false, "runtime/bus": false, "cache/hidden": false} {
			if m, ok := h.mount(p, name); ok != want || ok && !(m.Hides() && m.File && m.Fleeting) {
				t.Errorf("%s: %s is %v, %+v", mode, name, ok, m)
			}
		}
	}
}

// TestListOfSockets: names are taken as the kernel writes them, and as no more
// than names.
func TestListOfSockets(t *testing.T) {
	h := newHost(t)
	l, err := net.Listen("unix", h.at("away/a socket"))
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	if err := os.Symlink(h.at("away"), h.at("to-away")); err != nil {
		t.Fatal(err)
	}
	line := func(name string) string {
		return fmt.Sprintf("0000000000000000: 00000002 00000000 00010000 0001 01 1234 %s\n", name)
	}
	list := "Num       RefCount Protocol Flags    Type St Inode Path\n" + "0000000000000000: 00000003 00000000 00000000 0001 03 1235\n" +
		line(h.at("to-away/a socket")) + line(h.at("away/a socket")) + line("@"+h.at("away/a socket")) + line("relative"+h.at("away/a socket")) +
		line(h.at("away/file")) + line(h.at("away/gone")) + line(h.at("gone/gone")) + line("/") + line("/skipped/socket")
	skipped := 0
	got := boundSockets([]byte(list), func(path string) bool {
		if strings.HasPrefix(path, "/skipped") {
			skipped++
			return true
		}
		return false
	})
	if want := []string{h.at("away/a socket")}; !slices.Equal(got, want) || skipped != 1 {
		t.Errorf("got %q, want %q; %d were skipped", got, want, skipped)
	}
}
