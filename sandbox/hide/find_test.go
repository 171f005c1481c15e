package hide

import (
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/confine-dev/confine/sandbox"
)

// home is a home folder with files: what ends in / is a folder, what has = in
// it a file with content, and others are files with a text.
func home(t *testing.T, files ...string) string {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		name, content, _ := strings.Cut(file, "=")
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if strings.HasSuffix(name, "/") {
			err = os.Mkdir(path, 0o700)
		} else {
			err = os.WriteFile(path, []byte(content), 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// found is what Find lists, relative to a home folder.
func found(t *testing.T, r Rules, roots ...*sandbox.Root) []string {
	t.Helper()
	names := []string{}
	for _, path := range New(r, nil).Find(roots) {
		name, err := filepath.Rel(r.Home, path)
		if err != nil {
			t.Fatal(err)
		}
		names = append(names, filepath.ToSlash(name))
	}
	return names
}

func TestDefaults(t *testing.T) {
	for _, test := range []struct {
		name  string
		files []string
		want  []string // of files; all others stay readable
	}{
		{"keys and their surroundings",
			[]string{".ssh/id_ed25519", ".ssh/id_ed25519.pub", ".ssh/work", ".ssh/work.pem", ".ssh/config", ".ssh/config.d/a", ".ssh/known_hosts", ".ssh/known_hosts.old", ".ssh/authorized_keys", ".ssh/keys/a"},
			[]string{".ssh/id_ed25519", ".ssh/keys", ".ssh/work", ".ssh/work.pem"}},
		{"GnuPG", []string{".gnupg/gpg.conf", ".gnupg/pubring.kbx", ".gnupg/trustdb.gpg", ".gnupg/private-keys-v1.d/a", ".gnupg/secring.gpg"},
			[]string{".gnupg/private-keys-v1.d", ".gnupg/secring.gpg"}},
		{"accounts", []string{".aws/credentials", ".aws/config", ".kube/config", ".docker/config.json", ".docker/daemon.json", ".config/gcloud/a", ".git-credentials", ".netrc", ".config/gh/hosts.yml", ".config/gh/config.yml"},
			[]string{".aws", ".config/gcloud", ".config/gh/hosts.yml", ".docker/config.json", ".git-credentials", ".kube", ".netrc"}},
		{"agents", []string{".codex/auth.json", ".codex/AGENTS.md", ".claude/.credentials.json", ".claude/CLAUDE.md", ".claude.json", ".claude/settings.json={}"},
			[]string{".claude.json", ".claude/.credentials.json", ".codex/auth.json"}},
		{"histories, browsers, passwords", []string{".bash_history", ".bashrc", ".mozilla/firefox/x/cookies.sqlite", ".config/chromium/a", ".password-store/a.gpg", ".local/share/keyrings/a", ".local/share/applications/a"},
			[]string{".bash_history", ".config/chromium", ".local/share/keyrings", ".mozilla", ".password-store"}},
		{"configuration without credentials", []string{".npmrc=registry=http://localhost/\nprefix=/x\n", ".config/pip/pip.conf=[global]\nindex-url = https://host/simple\n", ".cargo/config.toml", ".gitconfig", ".config/git/config", ".m2/settings.xml=<settings/>"}, nil},
		{"configuration with credentials", []string{".npmrc=//host/:_authToken=x", ".config/pip/pip.conf=[global]\nindex-url = https://me:pw@host/simple\n", ".m2/settings.xml=<Password>x</Password>", ".gradle/gradle.properties=signing.password=x", ".cargo/credentials.toml"},
			[]string{".cargo/credentials.toml", ".config/pip/pip.conf", ".gradle/gradle.properties", ".m2/settings.xml", ".npmrc"}},
		{"too large to be sure", []string{".npmrc=" + strings.Repeat("#\n", maxMixed)}, []string{".npmrc"}},
		{"nothing", []string{".profile", "work/.npmrc=_authToken", "work/.ssh/id_rsa"}, nil},
	} {
		dir := home(t, test.files...)
		if got := found(t, Rules{Home: dir, Defaults: true}); !slices.Equal(got, test.want) && len(got)+len(test.want) > 0 {
			t.Errorf("%s: hidden are %q, want %q", test.name, got, test.want)
		}
		if got := found(t, Rules{Home: dir}); len(got) > 0 {
			t.Errorf("%s: without the defaults %q are hidden", test.name, got)
		}
	}
}

// TestWorkspaceIsNotHidden: who works on such a file opened its folder, but what
// was named by hand counts there too.
func TestWorkspaceIsNotHidden(t *testing.T) {
	dir := home(t, ".aws/credentials", ".config/gh/hosts.yml", ".netrc", "work/key")
	root := func(name string) *sandbox.Root { return &sandbox.Root{Path: filepath.Join(dir, name)} }
	r := Rules{Home: dir, Defaults: true, More: []string{filepath.Join(dir, "work/key"), filepath.Join(dir, ".aws/credentials"), filepath.Join(dir, "gone")}}
	if got, want := found(t, r, root(".config"), root(".aws"), root("work")), []string{".aws/credentials", ".netrc", "work/key"}; !slices.Equal(got, want) {
		t.Errorf("hidden are %q, want %q", got, want)
	}
	if got, want := found(t, r, root(".aws/deep")), []string{".aws", ".aws/credentials", ".config/gh/hosts.yml", ".netrc", "work/key"}; !slices.Equal(got, want) {
		t.Errorf("around a workspace hidden are %q, want %q", got, want)
	}
}

func TestLinks(t *testing.T) {
	dir := home(t, "dotfiles/netrc", "dotfiles/aws/credentials", ".config/x")
	for link, target := range map[string]string{".netrc": "dotfiles/netrc", ".aws": "dotfiles/aws", ".kube": ".", ".azure": "gone", ".pgpass": "/dev/null", ".mozilla": "/"} {
		if !filepath.IsAbs(target) {
			target = filepath.Join(dir, target)
		}
		if err := os.Symlink(target, filepath.Join(dir, link)); err != nil {
			t.Skip(err)
		}
	}
	if got, want := found(t, Rules{Home: dir, Defaults: true}), []string{"dotfiles/aws", "dotfiles/netrc"}; !slices.Equal(got, want) {
		t.Errorf("hidden are %q, want %q", got, want)
	}
}

// TestSocketsAreNotFiles: an agent's socket comes and goes, and is hidden in
// another way.
func TestSocketsAreNotFiles(t *testing.T) {
	dir := home(t, ".ssh/id_rsa")
	l, err := net.Listen("unix", filepath.Join(dir, ".ssh", "agent"))
	if err != nil {
		t.Skip(err)
	}
	defer l.Close()
	if got, want := found(t, Rules{Home: dir, Defaults: true}), []string{".ssh/id_rsa"}; !slices.Equal(got, want) {
		t.Errorf("hidden are %q, want %q", got, want)
	}
}

func TestCrowdedFolder(t *testing.T) {
	var files []string
	for i := range maxEntries + 1 {
		files = append(files, ".ssh/key"+strings.Repeat("x", i))
	}
	if got, want := found(t, Rules{Home: home(t, files...), Defaults: true}), []string{".ssh"}; !slices.Equal(got, want) {
		t.Errorf("hidden are %q, want %q", got, want)
	}
}

func TestEnvironment(t *testing.T) {
	dir := home(t, "a/kube", "b/kube", "codex/auth.json", "codex/other", "etc/gh/hosts.yml", "conf/rclone/x", "folder/x")
	at := func(name string) string { return filepath.Join(dir, name) }
	env := map[string]string{"KUBECONFIG": at("a/kube") + string(filepath.ListSeparator) + at("b/kube"), "CODEX_HOME": at("codex"), "GH_CONFIG_DIR": at("etc/gh"),
		"XDG_CONFIG_HOME": at("conf"), "NETRC": "relative", "HISTFILE": filepath.Dir(dir), "PGPASSFILE": at("gone")}
	r := Rules{Home: dir, Defaults: true, Getenv: func(name string) string { return env[name] }}
	if got, want := found(t, r), []string{"a/kube", "b/kube", "codex/auth.json", "conf/rclone", "etc/gh/hosts.yml"}; !slices.Equal(got, want) {
		t.Errorf("hidden are %q, want %q", got, want)
	}
}

func TestWithoutAHome(t *testing.T) {
	if got := New(Rules{Defaults: true}, nil).Find(nil); len(got) > 0 {
		t.Errorf("hidden are %q", got)
	}
}

// TestStoresAreOfOnePlace: the table has no place twice, and none that means
// another one than it says.
func TestStoresAreOfOnePlace(t *testing.T) {
	seen := map[string]string{}
	for _, s := range Stores {
		if s.What == "" || s.Reason == "" {
			t.Errorf("%+v says not what it is", s)
		}
		for _, name := range slices.Concat(s.Home, s.Mixed, s.Folders, s.System) {
			if before, ok := seen[name]; ok {
				t.Errorf("%s is among %s and %s", name, before, s.What)
			}
			seen[name] = s.What
			if filepath.ToSlash(filepath.Clean(name)) != name || filepath.IsAbs(name) != slices.Contains(s.System, name) {
				t.Errorf("%s: %q", s.What, name)
			}
		}
	}
}

// age makes everything in a folder old enough for its times to be trusted.
func age(t testing.TB, dir string) {
	old := time.Now().Add(-time.Hour)
	err := filepath.WalkDir(dir, func(path string, _ fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		return os.Chtimes(path, old, old)
	})
	if err != nil {
		t.Fatal(err)
	}
}

// TestChangesAreSeen: a credential that comes later is hidden from the next run.
func TestChangesAreSeen(t *testing.T) {
	const token, none = "_authToken=x", "registry= x "
	for name, test := range map[string]struct {
		change func(dir string) error
		want   []string
	}{
		"a file in the home folder": {func(dir string) error { return os.WriteFile(filepath.Join(dir, ".netrc"), nil, 0o600) }, []string{".aws", ".netrc"}},
		"a folder":                  {func(dir string) error { return os.Mkdir(filepath.Join(dir, ".kube"), 0o700) }, []string{".aws", ".kube"}},
		"deep down":                 {func(dir string) error { return os.WriteFile(filepath.Join(dir, ".config/gh/hosts.yml"), nil, 0o600) }, []string{".aws", ".config/gh/hosts.yml"}},
		"in a folder that was empty": {func(dir string) error {
			return os.MkdirAll(filepath.Join(dir, ".config/Code/User/globalStorage/state.vscdb"), 0o700)
		}, []string{".aws", ".config/Code/User/globalStorage/state.vscdb"}},
		"a key":               {func(dir string) error { return os.WriteFile(filepath.Join(dir, ".ssh/work"), nil, 0o600) }, []string{".aws", ".ssh/work"}},
		"a token":             {func(dir string) error { return os.WriteFile(filepath.Join(dir, ".npmrc"), []byte(token), 0o600) }, []string{".aws", ".npmrc"}},
		"what goes":           {func(dir string) error { return os.RemoveAll(filepath.Join(dir, ".aws")) }, []string{}},
		"nothing of interest": {func(dir string) error { return os.WriteFile(filepath.Join(dir, ".profile"), nil, 0o600) }, []string{".aws"}},
	} {
		dir := home(t, ".aws/credentials", ".ssh/config", ".npmrc="+none, ".config/gh/config.yml", ".config/Code/x")
		age(t, dir)
		f := New(Rules{Home: dir, Defaults: true}, nil)
		if got := f.Find(nil); len(got) != 1 || !f.looked {
			t.Fatalf("%s: at first hidden are %q", name, got)
		}
		if err := test.change(dir); err != nil {
			t.Fatal(err)
		}
		got := []string{}
		for _, path := range f.Find(nil) {
			rel, _ := filepath.Rel(dir, path)
			got = append(got, rel)
		}
		if !slices.Equal(got, test.want) {
			t.Errorf("%s: hidden are %q, want %q", name, got, test.want)
		}
	}
}

// TestYoungTimesAreNotTrusted: two changes can have one time.
func TestYoungTimesAreNotTrusted(t *testing.T) {
	f := New(Rules{Home: home(t, ".aws/credentials"), Defaults: true}, nil)
	if f.Find(nil); f.looked {
		t.Error("what was made a moment ago is taken for settled")
	}
}

func BenchmarkFind(b *testing.B) {
	dir := b.TempDir()
	for _, name := range []string{".ssh/id_rsa", ".ssh/config", ".aws/x", ".kube/config", ".netrc", ".bash_history", ".config/gh/hosts.yml", ".npmrc", ".mozilla/x", ".docker/config.json"} {
		if err := os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o700); err != nil {
			b.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name), []byte("x"), 0o600); err != nil {
			b.Fatal(err)
		}
	}
	r := Rules{Home: dir, Defaults: true, Getenv: os.Getenv, Root: os.Geteuid() == 0}
	age(b, dir)
	b.Run("first", func(b *testing.B) {
		for b.Loop() {
			New(r, nil).Find(nil)
		}
	})
	b.Run("again", func(b *testing.B) {
		f := New(r, nil)
		for b.Loop() {
			f.Find(nil)
		}
	})
}

// TestReplacedLink: what a path of the settings led to stays hidden when a command
// replaces the link, also by a finder that comes after.
func TestReplacedLink(t *testing.T) {
	top, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	vault, other, link := filepath.Join(top, "vault"), filepath.Join(top, "other"), filepath.Join(top, "link")
	for _, dir := range []string{vault, other} {
		if err := os.Mkdir(dir, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	relink := func(target string) {
		os.Remove(link)
		if err := os.Symlink(target, link); err != nil {
			t.Skip(err)
		}
	}
	rules := Rules{More: []string{link}}
	f := New(rules, nil)
	relink(vault)
	if got := f.Find(nil); !slices.Equal(got, []string{vault}) {
		t.Errorf("got %q", got)
	}
	relink(other)
	for _, f := range []*Finder{f, New(rules, f)} {
		if got := f.Find(nil); !slices.Equal(got, []string{other, vault}) {
			t.Errorf("replaced: got %q", got)
		}
	}
	if got := New(Rules{}, f).Find(nil); len(got) > 0 {
		t.Errorf("named no more: got %q", got)
	}
	if err := os.Remove(vault); err != nil {
		t.Fatal(err)
	}
	if got := f.Find(nil); !slices.Equal(got, []string{other}) {
		t.Errorf("gone: got %q", got)
	}
}
