package local

import (
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/confine-dev/confine/sandbox"
)

// cacheHome is a home folder with these folders in it, and an environment that
// knows nothing else.
func cacheHome(t *testing.T, folders ...string) (home string, env map[string]string) {
	t.Helper()
	home, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	for _, folder := range folders {
		if err := os.MkdirAll(filepath.Join(home, folder), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	return home, map[string]string{"HOME": home}
}

// layeredIn are the caches in a home folder that can be overlaid, relative to it;
// root's yarn has one elsewhere.
func layeredIn(home string, env map[string]string, policy sandbox.Policy, state string) []string {
	var paths []string
	for _, path := range overlayable(lookup(env), policy, state) {
		if rest, found := strings.CutPrefix(path, home); found {
			paths = append(paths, strings.TrimPrefix(rest, "/"))
		}
	}
	slices.Sort(paths)
	return paths
}

func lookup(env map[string]string) func(string) string {
	return func(name string) string { return env[name] }
}

func TestOverlayable(t *testing.T) {
	folders := []string{".cache/go-build", ".cache/pip", ".cache/unknown/bin", "go/pkg/mod", "go/bin", ".npm", ".cargo/registry", ".cargo/bin",
		".gradle/caches", ".gradle/other", ".m2/repository", ".local/share/pnpm/store/v10", ".local/share/other", "big/go"}
	usual := ".cache go/pkg .cargo/registry .npm .local/share/pnpm/store .gradle .m2"
	for name, test := range map[string]struct {
		env        map[string]string // values below the home folder
		unreadable []string
		root       string
		state      string
		want       string
	}{
		"as usual":                  {want: usual},
		"a credential in one":       {unreadable: []string{".gradle/gradle.properties", ".m2/settings.xml", ".cargo/credentials.toml"}, want: strings.NewReplacer(".gradle", ".gradle/caches", ".m2", ".m2/repository").Replace(usual)},
		"a credential in XDG's":     {unreadable: []string{".cache/huggingface/token"}, want: strings.Replace(usual, ".cache", ".cache/go-build .cache/pip", 1)},
		"programs of PATH in one":   {env: map[string]string{"PATH": ".cache/unknown/bin"}, want: strings.Replace(usual, ".cache", ".cache/go-build .cache/pip", 1)},
		"a root in one":             {root: ".cache/go-build", want: strings.Replace(usual, ".cache", ".cache/pip", 1)},
		"a root around them":        {root: ".cache", want: strings.Replace(usual, ".cache ", "", 1)},
		"confine's state in one":    {state: ".cache/state/confine", want: strings.Replace(usual, ".cache", ".cache/go-build .cache/pip", 1)},
		"elsewhere":                 {env: map[string]string{"GOCACHE": "big/go"}, want: strings.Replace(usual, ".cache", ".cache big/go", 1)},
		"the home folder":           {env: map[string]string{"XDG_CACHE_HOME": "."}, want: strings.Replace(usual, ".cache ", "", 1)},
		"a name that options split": {env: map[string]string{"GOCACHE": "a:b,c"}, want: usual},
	} {
		t.Run(name, func(t *testing.T) {
			home, env := cacheHome(t, folders...)
			below := func(path string) string { return filepath.Join(home, path) }
			for variable, value := range test.env {
				env[variable] = below(value)
			}
			var policy sandbox.Policy
			for _, path := range test.unreadable {
				policy.Unreadable = append(policy.Unreadable, below(path))
			}
			if test.root != "" {
				policy.Roots = []*sandbox.Root{{Path: below(test.root)}}
			}
			state := "/elsewhere"
			if test.state != "" {
				state = below(test.state)
			}
			got := layeredIn(home, env, policy, state)
			want := strings.Fields(test.want)
			slices.Sort(want)
			if !slices.Equal(got, want) {
				t.Errorf("the caches are %q, want %q", got, want)
			}
		})
	}
}

// A cache is a folder of its own: not the home folder under another name, and
// nothing that only the server's working directory would make one.
func TestWhatIsNoCache(t *testing.T) {
	home, env := cacheHome(t, ".cache/go-build")
	link := filepath.Join(t.TempDir(), "link")
	if err := os.Symlink(home, link); err != nil {
		t.Fatal(err)
	}
	env["HOME"] = link
	if got := layeredIn(home, env, sandbox.Policy{}, ""); !slices.Equal(got, []string{".cache"}) {
		t.Errorf("the caches are %q", got)
	}
	env["XDG_CACHE_HOME"] = home
	if got := layeredIn(home, env, sandbox.Policy{}, ""); len(got) != 0 {
		t.Errorf("the home folder is a cache: %q", got)
	}
	t.Chdir(home)
	if got := layeredIn(home, nil, sandbox.Policy{}, ""); len(got) != 0 {
		t.Errorf("without HOME the caches are %q", got)
	}
}

// A layer does not show what is mounted in the folder below it.
func TestHoldsMount(t *testing.T) {
	const table = `22 1 254:0 / / rw,relatime - ext4 /dev/vda rw
38 22 0:31 / /home/me/.cache/go-build rw - tmpfs tmpfs rw
39 22 0:32 / /home/me/with\040blank/in rw - tmpfs tmpfs rw
40 22 0:33 / /home/me/.npm rw - tmpfs tmpfs rw
`
	for folder, want := range map[string]bool{"/home/me/.cache": true, "/home/me/.cache/go-build": false, "/home/me/.cache/go": false,
		"/home/me/with blank": true, "/home/me/.npm": false, "/home/you": false} {
		if got := holdsMount(table, folder); got != want {
			t.Errorf("%s: %v", folder, got)
		}
	}
}

func TestCacheVariables(t *testing.T) {
	moved := map[string]string{"GOCACHE": "/t/.cache/go-build", "CCACHE_DIR": "/t/.cache/ccache", "UV_CACHE_DIR": "/t/.cache/uv", "npm_config_cache": "/t/.cache/npm",
		"BUN_INSTALL_CACHE_DIR": "/t/.cache/bun", "GRADLE_USER_HOME": "/t/.cache/gradle", "MAVEN_OPTS": "-Dmaven.repo.local=/t/.cache/maven",
		"CHROME_CONFIG_HOME": "/t/.cache/browser"}
	with := func(more map[string]string, without ...string) map[string]string {
		all := maps.Clone(moved)
		maps.Copy(all, more)
		for _, name := range without {
			delete(all, name)
		}
		return all
	}
	for name, test := range map[string]struct {
		folders []string
		layered []string
		want    map[string]string
	}{
		"nothing there": {want: with(map[string]string{"XDG_CACHE_HOME": "/t/.cache", "GOMODCACHE": "/t/.cache/go-mod", "CARGO_HOME": "/t/.cache/cargo"})},
		// Modules, crates and browsers are read all the same.
		"not writable": {folders: []string{".cache", "go/pkg/mod", ".cargo/registry", ".local/share/pnpm/store/v10"}, want: moved},
		// What is missing can be made in a layer.
		"layers": {folders: []string{".cache", "go/pkg", ".cargo/registry", ".npm", ".gradle"}, layered: []string{".cache", "go/pkg", ".cargo/registry", ".npm", ".gradle"},
			want: map[string]string{"BUN_INSTALL_CACHE_DIR": "/t/.cache/bun", "MAVEN_OPTS": moved["MAVEN_OPTS"], "CHROME_CONFIG_HOME": "/t/.cache/browser"}},
		"pnpm 10": {folders: []string{".local/share/pnpm/store/v10"}, layered: []string{".local/share/pnpm/store"},
			want: with(map[string]string{"XDG_CACHE_HOME": "/t/.cache", "GOMODCACHE": "/t/.cache/go-mod", "CARGO_HOME": "/t/.cache/cargo",
				"pnpm_config_store_dir": "HOME/.local/share/pnpm/store", "npm_config_store_dir": "HOME/.local/share/pnpm/store"})},
		"pnpm 11": {folders: []string{".cache", "go/pkg/mod", ".cargo/registry", ".local/share/pnpm/store/v11"}, layered: []string{".local/share/pnpm/store"},
			want: with(map[string]string{"pnpm_config_store_dir": "HOME/.local/share/pnpm/store"})},
	} {
		t.Run(name, func(t *testing.T) {
			home, env := cacheHome(t, test.folders...)
			var layered []Cache
			for _, path := range test.layered {
				layered = append(layered, Cache{Path: filepath.Join(home, path)})
			}
			got := cacheVariables(lookup(env), within(layered), "/t")
			for name, value := range got {
				got[name] = strings.Replace(value, home, "HOME", 1)
			}
			if !maps.Equal(got, test.want) {
				t.Errorf("got  %v\nwant %v", got, test.want)
			}
		})
	}
}
