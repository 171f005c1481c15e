package protect

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/confine-dev/confine/sandbox"
)

// tree is a folder with a workspace, ws, in it.
type tree struct {
	t    *testing.T
	base string
}

func newTree(t *testing.T) tree {
	t.Helper()
	base, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv("HOME", filepath.Join(base, "home"))
	w := tree{t, base}
	w.folder("ws")
	return w
}

func (w tree) at(name string) string { return filepath.Join(w.base, filepath.FromSlash(name)) }

func (w tree) folder(names ...string) {
	w.t.Helper()
	for _, name := range names {
		if err := os.MkdirAll(w.at(name), 0o755); err != nil {
			w.t.Fatal(err)
		}
	}
}

func (w tree) file(name, text string) {
	w.t.Helper()
	if err := errors.Join(os.MkdirAll(filepath.Dir(w.at(name)), 0o755), os.WriteFile(w.at(name), []byte(text), 0o644)); err != nil {
		w.t.Fatal(err)
	}
}

func (w tree) link(target, name string) {
	w.t.Helper()
	if err := os.Symlink(target, w.at(name)); err != nil {
		w.t.Fatal(err)
	}
}

// repository makes a git folder.
func (w tree) repository(git, config string) {
	w.t.Helper()
	w.folder(git+"/objects", git+"/refs", git+"/hooks")
	w.file(git+"/HEAD", "ref: refs/heads/main\n")
	w.file(git+"/config", config)
}

func (w tree) root(name string) *sandbox.Root {
	w.t.Helper()
	root, err := sandbox.DeclareRoot(w.at(name), sandbox.Forbidden{})
	if err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(func() { root.Close() })
	return root
}

// find looks at the workspace and returns what is protected, from base.
func (w tree) find(names ...string) (protected []string, found Found) {
	w.t.Helper()
	if names == nil {
		names = []string{"ws"}
	}
	var roots []*sandbox.Root
	for _, name := range names {
		roots = append(roots, w.root(name))
	}
	found = new(Finder).Find(roots, sandbox.Forbidden{Home: w.at("home")})
	for _, r := range found.Metadata {
		w.t.Cleanup(func() { r.Close() })
	}
	for _, path := range found.Protected {
		name, err := filepath.Rel(w.base, path)
		if err != nil {
			w.t.Fatal(err)
		}
		protected = append(protected, filepath.ToSlash(name))
	}
	return protected, found
}

func TestFind(t *testing.T) {
	for name, test := range map[string]struct {
		make      func(w tree)
		want, not []string // not: neither these nor anything in them
	}{
		"no repository": {func(w tree) {}, []string{"ws/.vscode", "ws/.envrc", "ws/.mcp.json", "ws/.confine"}, []string{"ws/.git", "ws/.vimrc"}},
		"a repository": {func(w tree) { w.repository("ws/.git", "") },
			[]string{"ws/.git/config", "ws/.git/hooks", "ws/.git/commondir", "ws/.envrc"},
			[]string{"ws/.git/objects", "ws/.git/refs", "ws/.git/index", "ws/.git/config.worktree", "ws/.git/info"}},
		"configurations of worktrees": {func(w tree) { w.repository("ws/.git", "[extensions]\nworktreeConfig = true\n") }, []string{"ws/.git/config.worktree"}, nil},
		"what is seldom": {func(w tree) {
			w.file("ws/.vimrc", "")
			w.file("ws/.helix/languages.toml", "")
			w.file("ws/opencode.json", "")
		},
			[]string{"ws/.vimrc", "ws/.helix", "ws/opencode.json"}, []string{"ws/.zed", "ws/.opencode"}},
		"a repository in it": {func(w tree) { w.repository("ws/a/b/.git", "") },
			[]string{"ws/a/b/.git/config", "ws/a/b/.git/hooks", "ws/a/b/.vscode", "ws/.vscode"}, []string{"ws/a/.vscode"}},
		"packages": {func(w tree) { w.repository("ws/node_modules/x/.git", "") }, nil, []string{"ws/node_modules"}},
		"a bare repository": {func(w tree) { w.repository("ws/a/bare", "") },
			[]string{"ws/a/bare/config", "ws/a/bare/hooks", "ws/a/bare/commondir"}, []string{"ws/a/bare/objects"}},
		"a root that is one": {func(w tree) { w.repository("ws", "") }, []string{"ws/config", "ws/hooks"}, []string{"ws/refs"}},
		"a submodule": {func(w tree) {
			w.repository("ws/.git", "")
			w.repository("ws/.git/modules/a/b", "[core]\nhooksPath = tools\n")
			w.folder("ws/a/b/tools")
			w.file("ws/a/b/.git", "gitdir: ../../.git/modules/a/b\n")
		}, []string{"ws/a/b/.git", "ws/.git/modules/a/b/config", "ws/.git/modules/a/b/hooks", "ws/a/b/tools"}, nil},
		"worktrees": {func(w tree) {
			w.repository("ws/.git", "")
			w.file("ws/.git/worktrees/w/commondir", "../..\n")
			w.file("ws/.git/worktrees/w/gitdir", w.at("elsewhere/.git")+"\n")
		}, []string{"ws/.git/worktrees/w/commondir", "ws/.git/worktrees/w/gitdir"}, []string{"ws/.git/worktrees/w/HEAD"}},
		"links": {func(w tree) {
			w.file("ws/conf/real/settings", "")
			w.link("conf/real", "ws/.vscode")
			w.link("/etc/hosts", "ws/.envrc")
		}, []string{"ws/.vscode", "ws/conf/real", "ws/.envrc"}, nil},
		"a link to the workspace itself": {func(w tree) { w.link(".", "ws/.vscode") }, []string{"ws/.vscode"}, nil},
		"a git folder elsewhere inside": {func(w tree) {
			w.repository("ws/store/p", "")
			w.link("store/p", "ws/.git")
		}, []string{"ws/.git", "ws/store/p/config", "ws/store/p/hooks"}, nil},
		"odd names": {func(w tree) { w.repository("ws/a \n'\"*?\\/.git", "") }, []string{"ws/a \n'\"*?\\/.git/config"}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			w := newTree(t)
			test.make(w)
			protected, found := w.find()
			for _, want := range test.want {
				if !slices.Contains(protected, want) {
					t.Errorf("%s is not among %q", want, protected)
				}
			}
			for _, path := range protected {
				if path == "ws" || slices.ContainsFunc(test.not, func(not string) bool { return sandbox.Within(path, not) }) {
					t.Errorf("%s is protected", path)
				}
			}
			if found.Missed != "" || len(found.Metadata) > 0 {
				t.Errorf("missed %q, outside %v", found.Missed, found.Metadata)
			}
		})
	}
}

// TestFindWhatTheConfigurationNames: programs and files that git runs or reads
// because the repository says so.
func TestFindWhatTheConfigurationNames(t *testing.T) {
	for config, want := range map[string]string{
		"[core]\n\thooksPath = .husky/_\n":                                  "ws/.husky",
		"[CORE] HooksPath = tools # here\n":                                 "ws/tools",
		"[include]\npath = ../team.inc\n":                                   "ws/team.inc",
		"[includeIf \"onbranch:x\"]\npath = \"../team.inc\"\n":              "ws/team.inc",
		"[include]\npath = more\n":                                          "ws/tools/deep", // which more names
		"[filter \"x\"]\n\tclean = \"python3 tools/clean.py --x %f\"\n":     "ws/tools/clean.py",
		"[filter \"x\"]\n\tprocess = sh -c 'exec \\\"tools/clean.py\\\"'\n": "ws/tools/clean.py",
		"[filter.x]\nsmudge = cat | ./tools/clean.py\n":                     "ws/tools/clean.py",
		"[core]\nfsmonitor = tools/\\\nclean.py\n":                          "ws/tools/clean.py",
		"[core]\r\nsshCommand = tools/clean.py\r\n":                         "ws/tools/clean.py",
		"[alias]\nx = !tools/clean.py\n":                                    "ws/tools/clean.py",
		"[gpg \"ssh\"]\nprogram = tools/clean.py\n":                         "ws/tools/clean.py",
		"[diff \"pdf\"]\ntextconv = tools/clean.py\n":                       "ws/tools/clean.py",
		"[credential \"https://x\"]\nhelper = !tools/clean.py\n":            "ws/tools/clean.py",
	} {
		w := newTree(t)
		w.repository("ws/.git", config)
		w.file("ws/tools/clean.py", "")
		w.file("ws/team.inc", "")
		w.file("ws/.git/more", "[include]\npath = more\n[core]\nhooksPath = tools/deep\n[include]\npath = .. \n")
		protected, _ := w.find()
		if !slices.Contains(protected, want) {
			t.Errorf("%q: %s is not among %q", config, want, protected)
		}
	}
}

func TestNothingIsWaitedFor(t *testing.T) {
	w := newTree(t)
	w.repository("ws/.git", "")
	huge := w.at("ws/.git/config")
	if err := os.Truncate(huge, 1<<30); err != nil {
		t.Fatal(err)
	}
	if _, found := w.find(); !strings.Contains(found.Missed, "larger") {
		t.Errorf("a configuration of 1 GiB: missed %q", found.Missed)
	}
	var loop strings.Builder
	for i := range 200 {
		fmt.Fprintf(&loop, "[include]\npath = i%d\n[include]\npath = config\n", i)
	}
	w.file("ws/.git/config", loop.String())
	if _, found := w.find(); !strings.Contains(found.Missed, "more files than are looked at") {
		t.Errorf("200 includes: missed %q", found.Missed)
	}
}

func TestThousandsOfRepositories(t *testing.T) {
	w := newTree(t)
	for i := range 1500 {
		w.folder(fmt.Sprintf("ws/%d/.git", i))
	}
	protected, found := w.find()
	if len(protected) > maxProtected || found.Missed == "" {
		t.Errorf("%d paths, missed %q", len(protected), found.Missed)
	}
}

func TestWorkspaceInsideARepository(t *testing.T) {
	w := newTree(t)
	w.repository("repo/.git", "")
	w.folder("repo/a/b")
	protected, found := w.find("repo/a/b")
	if len(found.Metadata) != 1 || found.Metadata[0].Path != w.at("repo/.git") {
		t.Fatalf("outside is opened %v", found.Metadata)
	}
	for _, want := range []string{"repo/.git/config", "repo/.git/hooks", "repo/.git/commondir"} {
		if !slices.Contains(protected, want) {
			t.Errorf("%s is not among %q", want, protected)
		}
	}
	if slices.Contains(protected, "repo/.vscode") {
		t.Error("what cannot be written is protected")
	}
	// The home folder's own repository is not meant by every project in it.
	w.repository("home/.git", "")
	w.folder("home/project")
	if _, found := w.find("home/project"); len(found.Metadata) > 0 {
		t.Errorf("outside is opened %v", found.Metadata)
	}
	// A pointer that nobody answers for opens nothing.
	w.file("other/.git", "gitdir: "+w.at("repo/.git")+"\n")
	w.folder("other/sub")
	if _, found := w.find("other/sub"); len(found.Metadata) > 0 {
		t.Errorf("outside is opened %v", found.Metadata)
	}
}

// What commands may take away of a repository is no sign that it is none: they
// could bring it back in the run in which nothing of it is protected. Another run
// may cover what is absent meanwhile.
func TestHollowedRepositories(t *testing.T) {
	w := newTree(t)
	repositories := []string{"ws/.git", "ws/.git/modules/a/b", "ws/bare", "top"}
	for _, git := range repositories {
		w.repository(git, "")
	}
	roots := []*sandbox.Root{w.root("ws"), w.root("top")}
	f := new(Finder)
	for _, when := range []string{"before", "hollowed"} {
		protected := f.Find(roots, sandbox.Forbidden{}).Protected
		for _, git := range repositories {
			for _, name := range []string{"config", "hooks"} {
				if path := w.at(git + "/" + name); !slices.Contains(protected, path) {
					t.Errorf("%s: %s is not protected", when, path)
				}
			}
			for _, name := range []string{"HEAD", "objects", "refs"} {
				if err := os.RemoveAll(w.at(git + "/" + name)); err != nil {
					t.Fatal(err)
				}
			}
			w.file(git+"/commondir", CoverOf("commondir").Content)
		}
	}
}

// What a commondir names is git's configuration, wherever it is.
func TestCommonFolderInside(t *testing.T) {
	w := newTree(t)
	w.repository("ws/.git", "")
	w.file("ws/.git/commondir", "../common\n")
	w.folder("ws/common/objects", "ws/common/refs")
	protected, _ := w.find()
	for _, want := range []string{"ws/common/config", "ws/common/hooks"} {
		if !slices.Contains(protected, want) {
			t.Errorf("%s is not among %q", want, protected)
		}
	}
}

// A command may make repositories and files as it likes, and a repository of the
// person's is protected all the same.
func TestDecoysPushNothingOut(t *testing.T) {
	w := newTree(t)
	w.repository("ws/deep/mine/.git", "")
	w.repository("ws/deep/old/.git", "")
	root := w.root("ws")
	now := time.Unix(1000, 0)
	f := &Finder{now: func() time.Time { return now }}
	find := func() []string { return f.Find([]*sandbox.Root{root}, sandbox.Forbidden{}).Protected }
	if !slices.Contains(find(), w.at("ws/deep/old/.git/config")) {
		t.Fatal("nothing is protected")
	}
	for i := range maxRepositories + 1 {
		w.folder(fmt.Sprintf("ws/decoy%d/.git", i))
	}
	if err := os.RemoveAll(w.at("ws/deep/old/.git")); err != nil {
		t.Fatal(err)
	}
	now = now.Add(walkHolds + time.Second)
	found := find()
	if !slices.Contains(found, w.at("ws/deep/mine/.git/config")) {
		t.Error("it is not protected any more")
	}
	if slices.Contains(found, w.at("ws/deep/old/.git/config")) {
		t.Error("one that is gone is")
	}
}

func TestSnapshot(t *testing.T) {
	w := newTree(t)
	w.repository("ws/.git", "")
	w.file("ws/.vscode/tasks.json", "{}")
	w.folder("ws/deep/.vscode")
	root := w.root("ws")
	policy := func() sandbox.Policy {
		return sandbox.Policy{Mode: sandbox.WorkspaceWrite, Roots: []*sandbox.Root{root},
			Protected: new(Finder).Find([]*sandbox.Root{root}, sandbox.Forbidden{}).Protected}
	}
	for name, test := range map[string]struct {
		change func() error
		made   []string
		grant  string
		want   []string
	}{
		"nothing":           {change: func() error { return nil }},
		"ordinary work":     {change: func() error { return os.WriteFile(w.at("ws/.git/index"), []byte("x"), 0o600) }},
		"a hook, in place":  {change: func() error { return os.WriteFile(w.at("ws/.git/hooks/pre"), []byte("x"), 0o700) }, want: []string{"ws/.git/hooks"}},
		"the configuration": {change: func() error { return os.WriteFile(w.at("ws/.git/config"), []byte("[a]"), 0o600) }, want: []string{"ws/.git/config"}},
		"it was granted":    {change: func() error { return os.WriteFile(w.at("ws/.git/config"), []byte("[b]"), 0o600) }, grant: "ws/.git/config"},
		"a file of a folder": {change: func() error { return os.WriteFile(w.at("ws/.vscode/tasks.json"), []byte("[]"), 0o600) },
			want: []string{"ws/.vscode/tasks.json"}},
		"what was absent": {change: func() error { return os.Mkdir(w.at("ws/.idea"), 0o700) }, want: []string{"ws/.idea"}},
		"another git":     {change: func() error { return os.Rename(w.at("ws/.git"), w.at("ws/old")) }, want: []string{"ws/.git"}},
		"what was seen":   {change: func() error { return nil }, made: []string{"ws/deep/.vscode", "ws/gone/.vscode", "away/.vscode"}, want: []string{"ws/deep/.vscode"}},
		"a repository without a name": {change: func() error {
			return errors.Join(os.MkdirAll(w.at("ws/bare/objects"), 0o700), os.MkdirAll(w.at("ws/bare/refs"), 0o700), os.WriteFile(w.at("ws/bare/HEAD"), nil, 0o600))
		}, made: []string{"ws/bare/HEAD", "ws/bare/refs", "ws/.git/HEAD", "ws/deep/objects"}, want: []string{"ws/bare/HEAD"}},
		"the workspace as one": {change: func() error {
			return errors.Join(os.Mkdir(w.at("ws/objects"), 0o700), os.Mkdir(w.at("ws/refs"), 0o700), os.WriteFile(w.at("ws/HEAD"), nil, 0o600))
		}, made: []string{"ws/refs"}, want: []string{"ws/HEAD"}},
		"what was told off": {change: func() error { return nil }, made: []string{"ws/.vscode"}},
	} {
		p := policy()
		if test.grant != "" {
			p.Writable = []*sandbox.Root{{Path: w.at(test.grant), File: true}}
		}
		s := Take(p, true)
		if err := test.change(); err != nil {
			t.Fatal(err)
		}
		var made, want []string
		for _, m := range test.made {
			made = append(made, w.at(m))
		}
		for _, m := range test.want {
			want = append(want, w.at(m))
		}
		if got := s.Planted(made); !slices.Equal(got, want) {
			t.Errorf("%s: planted %q, want %q", name, got, want)
		}
		os.Rename(w.at("ws/old"), w.at("ws/.git"))
		for _, name := range []string{".idea", "HEAD", "objects", "refs"} {
			os.Remove(w.at("ws/" + name))
		}
	}
}
