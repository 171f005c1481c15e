package local

import (
	"os"
	"path/filepath"
	"testing"
)

// A cache is a folder of its own: not the home folder under another name, and
// nothing that only the server's working directory would make one.
func TestWhatIsNoCache(t *testing.T) {
	for _, name := range []string{"XDG_CACHE_HOME", "GOCACHE", "GOMODCACHE", "GOPATH", "npm_config_cache", "PIP_CACHE_DIR", "CCACHE_DIR", "CARGO_HOME", "YARN_CACHE_FOLDER"} {
		t.Setenv(name, "")
	}
	base, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	home, link := filepath.Join(base, "home"), filepath.Join(base, "link")
	cache := filepath.Join(home, ".cache", "go-build")
	if err := os.MkdirAll(cache, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(home, link); err != nil {
		t.Fatal(err)
	}
	t.Setenv("HOME", link)
	if got := overlayable(nil); len(got) != 1 || got[0] != cache {
		t.Errorf("the caches are %q, want %q", got, cache)
	}
	t.Setenv("GOCACHE", home)
	if got := overlayable(nil); len(got) != 0 {
		t.Errorf("the home folder is a cache: %q", got)
	}
	t.Setenv("GOCACHE", "")
	t.Setenv("HOME", "")
	t.Chdir(home)
	if got := overlayable(nil); len(got) != 0 {
		t.Errorf("without HOME the caches are %q", got)
	}
}
