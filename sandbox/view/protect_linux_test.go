package view

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/confine-dev/confine/sandbox"
	"github.com/confine-dev/confine/sandbox/local"
)

// TestProtectedAtAnyDepth: the folders between stay in their places, and only what
// is protected is read-only.
func TestProtectedAtAnyDepth(t *testing.T) {
	for name, change := range map[string]func(h host, r *local.Request){
		"in a root": func(h host, r *local.Request) { r.Policy.Protected = []string{h.at("ws/a/b/file")} },
		"in a grant": func(h host, r *local.Request) {
			r.Policy.Mode, r.Policy.Protected = sandbox.ReadOnly, []string{h.at("ws/a/b/file")}
			r.Policy.Writable = []*sandbox.Root{h.root("ws")}
		},
	} {
		h := newHost(t)
		if err := errors.Join(os.MkdirAll(h.at("ws/a/b"), 0o755), os.WriteFile(h.at("ws/a/b/file"), nil, 0o644)); err != nil {
			t.Fatal(err)
		}
		r := h.request(sandbox.WorkspaceWrite)
		change(h, &r)
		p := h.plan(r)
		for place, writable := range map[string]bool{"ws": true, "ws/a": true, "ws/a/b": true, "ws/a/b/file": false} {
			if m, ok := h.mount(p, place); !ok || m.Writable != writable || m.Root == nil || m.Source != m.Path {
				t.Errorf("%s: %s: found %v, %+v", name, place, ok, m)
			}
		}
		for _, rule := range p.Rules() {
			if rule.Path == h.at("ws/a") || rule.Path == h.at("ws/a/b") {
				t.Errorf("%s: there is a rule for %s", name, rule.Path)
			}
		}
		for _, path := range p.Writable() {
			if path == h.at("ws/a") {
				t.Errorf("%s: %s counts as a place of its own", name, path)
			}
		}
	}
}

// TestProtectedInOddlyNamedFolders: the kernel adds to a path of what is nowhere any
// more what a folder can be called as well.
func TestProtectedInOddlyNamedFolders(t *testing.T) {
	for _, folder := range []string{"ws/a (deleted)", "ws/(unreachable)", "ws/two\nlines"} {
		h := newHost(t)
		if err := errors.Join(os.Mkdir(h.at(folder), 0o755), os.Mkdir(h.at(folder+"/hooks (deleted)"), 0o755)); err != nil {
			t.Fatal(err)
		}
		r := h.request(sandbox.WorkspaceWrite)
		r.Policy.Protected = []string{h.at(folder + "/hooks (deleted)")}
		p := h.plan(r)
		for _, path := range []string{folder, folder + "/hooks (deleted)"} {
			if m, ok := h.mount(p, path); !ok || m.Root == nil || m.Writable != (path == folder) {
				t.Errorf("%q: found %v, %+v", path, ok, m)
			}
		}
	}
}

// TestNoLinkIsProtected: a command can exchange what lies in a root for a link
// after it was looked for. Nothing that it leads to may be bound.
func TestNoLinkIsProtected(t *testing.T) {
	h := newHost(t)
	if err := errors.Join(os.Symlink(h.at("away"), h.at("ws/link")), os.Symlink(h.at("away/file"), h.at("ws/settings"))); err != nil {
		t.Fatal(err)
	}
	r := h.request(sandbox.WorkspaceWrite)
	r.Policy.Protected = []string{h.at("ws/link/sub/file"), h.at("ws/link"), h.at("ws/settings"), h.at("ws/link/absent")}
	for _, m := range h.plan(r).Mounts {
		if sandbox.Within(m.Path, h.at("ws")) && m.Path != h.at("ws") || sandbox.Within(m.Source, h.at("away")) {
			t.Errorf("bound: %+v", m)
		}
	}
}

// TestEmptyFoldersShowTheCover: what stands in for an absent path is empty.
func TestEmptyFoldersShowTheCover(t *testing.T) {
	h := newHost(t)
	if err := errors.Join(os.Mkdir(h.at("ws/.tasks"), 0o755), os.Mkdir(h.at("cover"), 0o755)); err != nil {
		t.Fatal(err)
	}
	r := h.request(sandbox.WorkspaceWrite)
	r.Policy.Protected, r.Cover = []string{h.at("ws/.tasks"), h.at("ws/hooks")}, h.at("cover")
	p := h.plan(r)
	if m, _ := h.mount(p, "ws/.tasks"); m.Source != h.at("cover") || m.Writable || m.Root == nil || filepath.Base(m.Root.Path) != "cover" {
		t.Errorf("the empty folder is %+v", m)
	}
	if m, _ := h.mount(p, "ws/hooks"); m.Source != m.Path {
		t.Errorf("the folder with files is %+v", m)
	}
}
