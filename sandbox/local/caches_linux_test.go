package local_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/confine-dev/confine/sandbox"
)

// hostCache makes a home with a Go build cache, and the engine's environment
// point there.
func hostCache(t *testing.T) (cache string) {
	t.Helper()
	home := realDir(t)
	for _, name := range []string{"XDG_CACHE_HOME", "GOCACHE", "GOMODCACHE", "GOPATH", "npm_config_cache", "PIP_CACHE_DIR", "CCACHE_DIR"} {
		t.Setenv(name, "")
	}
	t.Setenv("HOME", home)
	cache = filepath.Join(home, ".cache", "go-build")
	if err := os.MkdirAll(cache, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(cache, "entry"), []byte("host"), 0o644); err != nil {
		t.Fatal(err)
	}
	return cache
}

func requireUntouched(t *testing.T, cache string) {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(cache, "entry"))
	entries, dirErr := os.ReadDir(cache)
	if err != nil || dirErr != nil || string(data) != "host" || len(entries) != 1 {
		t.Errorf("the host's cache changed: %q, %v, %v, %v", data, entries, err, dirErr)
	}
}

func TestCachesAreWritableForTheSessionAlone(t *testing.T) {
	cache := hostCache(t)
	f := newFixture(t, namespaces)
	script := "cd " + cache + " && cat entry && echo -n changed >entry && echo x >added && ln entry other && mv added moved && rm other"
	if got := f.succeed(t, script); got != "host" {
		t.Errorf("the first run read %q", got)
	}
	requireUntouched(t, cache)
	if got := f.succeed(t, "cd "+cache+" && cat entry && ls"); got != "changedentry\nmoved" {
		t.Errorf("the session's next run saw %q", got)
	}
	other := f.spec("cat " + cache + "/entry")
	other.Session = "another"
	if o := finish(t, f.start(t, other)); o.stdout != "host" {
		t.Errorf("another session saw %q", o.stdout)
	}
	requireUntouched(t, cache)
}

func TestCachesInReadOnlyMode(t *testing.T) {
	cache := hostCache(t)
	f := newFixture(t, namespaces)
	f.policy.Mode = sandbox.ReadOnly
	if o := f.run(t, "echo x >"+cache+"/added"); o.ExitCode == 0 {
		t.Error("a read-only run wrote to a cache")
	}
	requireUntouched(t, cache)
	if got := f.succeed(t, `mkdir -p "$GOCACHE" && echo x >"$GOCACHE/x" && echo "$GOCACHE"`); got != "/tmp/.cache/go-build" {
		t.Errorf("GOCACHE is %q", got)
	}
}

func TestCacheVariables(t *testing.T) {
	hostCache(t)
	for _, level := range []level{namespaces, noNamespaces} {
		t.Run(string(level), func(t *testing.T) {
			f := newFixture(t, level)
			// No npm cache exists, so it is moved to where the session can write.
			if got := f.succeed(t, `mkdir -p "$npm_config_cache" && touch "$npm_config_cache/x" && echo "$npm_config_cache"`); !strings.HasSuffix(got, "/.cache/npm") {
				t.Errorf("npm_config_cache is %q", got)
			}
			spec := f.spec(`echo "$npm_config_cache"`)
			spec.Env = append(spec.Env, "npm_config_cache=/chosen")
			if o := finish(t, f.start(t, spec)); o.stdout != "/chosen\n" {
				t.Errorf("a variable that the command sets became %q", o.stdout)
			}
		})
	}
	f := newFixture(t, unconfined)
	if got := f.succeed(t, `echo "$GOCACHE$npm_config_cache"`); got != "" {
		t.Errorf("an unconfined command got %q", got)
	}
}

func TestACacheInTheWorkspaceIsTheWorkspaces(t *testing.T) {
	hostCache(t)
	f := newFixture(t, namespaces)
	cache := filepath.Join(f.dir, "cache")
	if err := os.Mkdir(cache, 0o755); err != nil {
		t.Fatal(err)
	}
	t.Setenv("GOCACHE", cache)
	f.succeed(t, "echo kept >cache/entry")
	if data, err := os.ReadFile(filepath.Join(cache, "entry")); err != nil || string(data) != "kept\n" {
		t.Errorf("what the command wrote to its workspace is %q, %v", data, err)
	}
}
