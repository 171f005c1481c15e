package sandbox

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
)

// tree makes folders in a new folder whose path has no links.
func tree(t *testing.T, dirs ...string) string {
	t.Helper()
	base, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	for _, dir := range dirs {
		if err := os.MkdirAll(filepath.Join(base, dir), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	return base
}

func symlink(t *testing.T, target, link string) {
	t.Helper()
	if err := os.Symlink(target, link); err != nil {
		t.Skipf("no symbolic links here: %v", err)
	}
}

func declare(t *testing.T, path string) *Root {
	t.Helper()
	root, err := DeclareRoot(path, Forbidden{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = root.Close() })
	return root
}

func TestDeclareRootForbidden(t *testing.T) {
	base := tree(t, "home/u/project/sub", "home/u/.config/confine", "home/u/bin", "state/confine/deep", "other", "linked", "elsewhere")
	at := func(path string) string { return filepath.Join(base, path) }
	if err := os.WriteFile(at("home/u/bin/confine"), nil, 0o755); err != nil {
		t.Fatal(err)
	}
	symlink(t, at("home/u"), at("alias"))
	symlink(t, at("state"), at("other/to-state"))
	symlink(t, "/", at("other/to-root"))
	symlink(t, at("linked/on-the-way/confine.toml"), at("settings.toml")) // the end is in no folder that is refused
	symlink(t, at("elsewhere"), at("linked/on-the-way"))
	forbidden := Forbidden{Home: at("alias"), Own: []string{
		at("alias/.config/confine"), at("state/confine"), at("home/u/bin/confine"), at("runtime/not/there/yet"), at("settings.toml"), ""}}

	for _, path := range []string{"home/u/project", "home/u/project/sub", "other", "alias/project"} {
		root, err := DeclareRoot(at(path), forbidden)
		if err != nil {
			t.Errorf("%s: %v", path, err)
			continue
		}
		if want := at(strings.Replace(path, "alias", "home/u", 1)); root.Path != want {
			t.Errorf("%s resolved to %q", path, root.Path)
		}
		_ = root.Close()
	}
	refused := map[string]string{
		"home/u":                 "home folder",
		"home":                   "home folder",
		"alias":                  "home folder",
		"":                       "home folder",
		"home/u/project/..":      "home folder",
		"other/to-root":          "root of the file system",
		"state":                  "own files",
		"state/confine":          "own files",
		"state/confine/deep":     "own files",
		"other/to-state":         "own files",
		"linked":                 "own files",
		"home/u/.config":         "own files",
		"home/u/.config/confine": "own files",
		"home/u/bin":             "own files", // the binary itself lies there
	}
	for path, reason := range refused {
		_, err := DeclareRoot(at(path), forbidden)
		var refusal *RootError
		if !errors.As(err, &refusal) || !strings.Contains(err.Error(), reason) {
			t.Errorf("%q: %v; want a RootError about the %s", path, err, reason)
		}
	}
	if err := os.MkdirAll(at("runtime"), 0o755); err != nil {
		t.Fatal(err)
	}
	if _, err := DeclareRoot(at("runtime"), forbidden); err == nil {
		t.Error("a folder that will hold our files was taken")
	}
}

// TestDeclareRootRefusesPlaces: a root there would bring back, as a whole, what
// commands have of their own or see empty.
func TestDeclareRootRefusesPlaces(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("these paths are Linux's")
	}
	base := tree(t, "runtime/sub")
	t.Setenv("XDG_RUNTIME_DIR", filepath.Join(base, "runtime"))
	for path, says := range map[string]string{
		"/proc": "/proc of their own", "/proc/sys": "/proc of their own", "/sys": "/sys of their own", "/dev": "/dev of their own", "/dev/shm": "/dev of their own",
		"/tmp": "sockets", "/run": "sockets", base: "sockets", filepath.Join(base, "runtime"): "sockets",
	} {
		root, err := DeclareRoot(path, Forbidden{})
		if err == nil {
			root.Close()
		}
		var refusal *RootError
		if !errors.As(err, &refusal) || !strings.Contains(err.Error(), says) {
			t.Errorf("%s: %v, want a RootError with %q", path, err, says)
		}
	}
	declare(t, filepath.Join(base, "runtime", "sub"))
	shared, err := os.MkdirTemp("/dev/shm", "confine-test-")
	if err != nil {
		t.Skipf("no shared memory here: %v", err)
	}
	defer os.RemoveAll(shared)
	declare(t, shared)
	grant, err := DeclareGrant(shared, Forbidden{}, GrantWrite)
	if err != nil {
		t.Fatal(err)
	}
	grant.Close()
}

func TestDeclareRootOddPaths(t *testing.T) {
	base := tree(t, "dir")
	file := filepath.Join(base, "file")
	if err := os.WriteFile(file, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	symlink(t, filepath.Join(base, "loop"), filepath.Join(base, "loop"))
	symlink(t, filepath.Join(base, "gone"), filepath.Join(base, "dangling"))
	for _, path := range []string{"", ".", "dir", "../dir", "~", "/"} {
		var refusal *RootError
		if _, err := DeclareRoot(path, Forbidden{}); !errors.As(err, &refusal) {
			t.Errorf("%q: %v", path, err)
		}
	}
	for _, name := range []string{"missing", "dangling", "dir/missing"} {
		if _, err := DeclareRoot(filepath.Join(base, name), Forbidden{}); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%s: %v; want one that is ErrNotExist", name, err)
		}
	}
	for _, path := range []string{file, filepath.Join(base, "loop"), base + "/dir\x00"} {
		if _, err := DeclareRoot(path, Forbidden{}); err == nil || errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%q: %v", path, err)
		}
	}
}

// TestDeclareRootSwapped: what takes the place of a root is another root.
func TestDeclareRootSwapped(t *testing.T) {
	base := tree(t, "ws", "secret")
	ws := filepath.Join(base, "ws")
	before := declare(t, ws)
	again := declare(t, ws)
	policy := func(r *Root) Policy { return Policy{Mode: WorkspaceWrite, Roots: []*Root{r}} }
	if !policy(before).Equal(policy(again)) {
		t.Error("one folder makes two policies")
	}
	if err := os.Rename(ws, ws+".old"); err != nil {
		t.Fatal(err)
	}
	symlink(t, filepath.Join(base, "secret"), ws)
	if link := declare(t, ws); link.Path == ws || policy(link).Equal(policy(before)) {
		t.Errorf("a link in the root's place passes for it: %+v", link)
	}
	if err := os.Remove(ws); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(ws, 0o755); err != nil {
		t.Fatal(err)
	}
	if fresh := declare(t, ws); runtime.GOOS != "windows" && (fresh.Path != ws || policy(fresh).Equal(policy(before))) {
		t.Errorf("a new folder in the root's place passes for it: %+v", fresh)
	}
}

// TestRootPinKeepsInode: without the pin, the number of a removed folder may
// be used again, and a new folder would pass for the old.
func TestRootPinKeepsInode(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("nothing pins a folder here")
	}
	base := tree(t)
	ws := filepath.Join(base, "ws")
	for range 20 {
		if err := os.Mkdir(ws, 0o755); err != nil {
			t.Fatal(err)
		}
		old := declare(t, ws)
		if err := os.Remove(ws); err != nil {
			t.Fatal(err)
		}
		if err := os.Mkdir(ws, 0o755); err != nil {
			t.Fatal(err)
		}
		if fresh := declare(t, ws); fresh.identity() == old.identity() {
			t.Fatalf("a new folder has the identity of the removed: %s", fresh.identity())
		}
		if err := os.Remove(ws); err != nil {
			t.Fatal(err)
		}
	}
}

func TestRootClose(t *testing.T) {
	root, err := DeclareRoot(tree(t), Forbidden{})
	if err != nil {
		t.Fatal(err)
	}
	hash := Policy{Mode: WorkspaceWrite, Roots: []*Root{root}}.Hash()
	if err := root.Close(); err != nil {
		t.Error(err)
	}
	if hash != (Policy{Mode: WorkspaceWrite, Roots: []*Root{root}}).Hash() {
		t.Error("closing changed the identity")
	}
	if err := (&Root{}).Close(); err != nil {
		t.Errorf("closing what is not pinned: %v", err)
	}
}

func TestWithin(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("paths have another form here")
	}
	for _, test := range []struct {
		path, folder string
		want         bool
	}{
		{"/a", "/a", true}, {"/a/b", "/a", true}, {"/a/b/c", "/a", true}, {"/ab", "/a", false}, {"/a", "/a/b", false},
		{"/", "/", true}, {"/a", "/", true}, {"/a.b", "/a", false}, {"/a-b/c", "/a", false}, {"/b/a", "/a", false},
		{"/A/b", "/a", false}, {"/a\x00b", "/a", false}, {"/a//b", "/a", true}, {"", "/a", false},
	} {
		if got := Within(test.path, test.folder); got != test.want {
			t.Errorf("Within(%q, %q) = %v", test.path, test.folder, got)
		}
	}
}
