package local

import (
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"github.com/confine-dev/confine/sandbox"
	"golang.org/x/sys/unix"
)

// toolCache is a folder in which a tool keeps what it can make again, and
// without which it fails or starts from nothing.
type toolCache struct {
	name     string
	variable string // moves the cache elsewhere; empty if nothing but an overlay helps
	path     string // where it is
}

// toolCaches lists the caches of common tools as this process's environment
// places them.
func toolCaches() []toolCache {
	home := os.Getenv("HOME")
	env := func(name string, otherwise ...string) string {
		if value := os.Getenv(name); filepath.IsAbs(value) {
			return value
		}
		return filepath.Join(otherwise...)
	}
	caches := env("XDG_CACHE_HOME", home, ".cache")
	gopath, _, _ := strings.Cut(env("GOPATH", home, "go"), string(filepath.ListSeparator))
	cargo := env("CARGO_HOME", home, ".cargo")
	return []toolCache{
		{"go-build", "GOCACHE", env("GOCACHE", caches, "go-build")},
		{"go-telemetry", "", filepath.Join(env("XDG_CONFIG_HOME", home, ".config"), "go", "telemetry")},
		{"go-mod", "", env("GOMODCACHE", gopath, "pkg", "mod")},
		{"npm", "npm_config_cache", env("npm_config_cache", home, ".npm")},
		{"pip", "PIP_CACHE_DIR", env("PIP_CACHE_DIR", caches, "pip")},
		{"ccache", "CCACHE_DIR", env("CCACHE_DIR", caches, "ccache")},
		{"yarn", "YARN_CACHE_FOLDER", env("YARN_CACHE_FOLDER", caches, "yarn")},
		{"cargo-registry", "", filepath.Join(cargo, "registry")},
		{"cargo-git", "", filepath.Join(cargo, "git")},
	}
}

// overlayable lists the caches that a session can lay a writable layer over:
// existing folders of ours that neither hold a root nor lie in one, where the
// command's writes shall be kept.
func overlayable(roots []*sandbox.Root) []string {
	home := os.Getenv("HOME")
	if real, err := filepath.EvalSymlinks(home); err == nil {
		home = real
	}
	var paths []string
	for _, c := range toolCaches() {
		real, err := filepath.EvalSymlinks(c.path)
		// Without HOME the paths are relative: to nothing that has a meaning.
		if err != nil || !filepath.IsAbs(real) || strings.ContainsAny(real, ":,\\\n") || sandbox.Within(home, real) {
			continue // mount options know no such names; nor is home a cache
		}
		info, err := os.Stat(real)
		if err != nil || !info.IsDir() {
			continue
		}
		if st, ok := info.Sys().(*syscall.Stat_t); !ok || int(st.Uid) != os.Geteuid() {
			continue
		}
		if !meetsRoot(real, roots) {
			paths = append(paths, real)
		}
	}
	return paths
}

// meetsRoot reports whether a path holds a root or lies in one.
func meetsRoot(path string, roots []*sandbox.Root) bool {
	return slices.ContainsFunc(roots, func(r *sandbox.Root) bool { return sandbox.Within(path, r.Path) || sandbox.Within(r.Path, path) })
}

// cacheLayer is where the i-th cache is mounted with the session's layer. That
// is not over the cache itself: a mount falls off when the host removes or moves
// what is below it, and the next run would find the host's folder there.
func cacheLayer(store string, i int) string { return filepath.Join(store, strconv.Itoa(i), "merged") }

// mountCaches lays a layer over each folder that lets it, kept in a file system
// of the session's, and returns those. It runs in the session's namespaces. A
// kernel that does not allow it (before Linux 5.11, or without extended
// attributes in tmpfs) leaves the caches read-only.
func mountCaches(store, size string, paths []string) []string {
	if len(paths) == 0 || unix.Mount("tmpfs", store, "tmpfs", unix.MS_NOSUID|unix.MS_NODEV, "mode=700,size="+size) != nil {
		return nil
	}
	var mounted []string
	for i, path := range paths {
		upper := filepath.Join(store, strconv.Itoa(i), "upper")
		work := filepath.Join(store, strconv.Itoa(i), "work")
		merged := cacheLayer(store, i)
		if os.MkdirAll(upper, 0o700) != nil || os.MkdirAll(work, 0o700) != nil || os.MkdirAll(merged, 0o700) != nil {
			continue
		}
		options := "lowerdir=" + path + ",upperdir=" + upper + ",workdir=" + work + ",userxattr"
		if unix.Mount("overlay", merged, "overlay", unix.MS_NOSUID|unix.MS_NODEV, options) == nil {
			mounted = append(mounted, path)
		}
	}
	return mounted
}

// usable lists the caches that are still where they were and that the roots of a
// run, which may be others than those of the session's first, leave alone.
func usable(caches []Cache, roots []*sandbox.Root) []Cache {
	return slices.DeleteFunc(slices.Clone(caches), func(c Cache) bool {
		info, err := os.Lstat(c.Path)
		return err != nil || !info.IsDir() || meetsRoot(c.Path, roots)
	})
}

// cacheVariables move the caches that cannot be written to where they are below
// tmp, which can.
func cacheVariables(writable []Cache, tmp string) map[string]string {
	variables := map[string]string{}
	for _, c := range toolCaches() {
		if c.variable == "" {
			continue
		}
		real, err := filepath.EvalSymlinks(c.path)
		if err != nil || !slices.ContainsFunc(writable, func(w Cache) bool { return w.Path == real }) {
			variables[c.variable] = filepath.Join(tmp, ".cache", c.name)
		}
	}
	return variables
}
