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

// overlayable lists the caches that a session can lay a writable layer over:
// existing folders of ours in which nothing else has its place. Such a place is a
// root, where the command's writes shall be kept; what is to be hidden, which not
// every provider can put into a layer; another mount, which a layer would not show;
// a folder of PATH, whose programs no run shall replace for the next; and our own
// state, where the layers are. Of a folder and one in it the outer is enough.
func overlayable(getenv func(string) string, policy sandbox.Policy, state string) []string {
	home := realPath(getenv("HOME"))
	others := slices.Concat(policy.Unreadable, filepath.SplitList(getenv("PATH")), []string{state})
	for i, path := range others {
		others[i] = realPath(path)
	}
	table, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return nil
	}
	var paths []string
	for _, c := range toolCaches(getenv) {
		if c.when == alwaysMoved {
			continue
		}
		real, err := filepath.EvalSymlinks(c.path)
		// Without HOME the paths are relative: to nothing that has a meaning.
		if err != nil || !filepath.IsAbs(real) || strings.ContainsAny(real, ":,\\\n") || sandbox.Within(home, real) {
			continue // mount options know no such names; nor is home a cache
		}
		layered := slices.ContainsFunc(paths, func(outer string) bool { return sandbox.Within(real, outer) })
		taken := slices.ContainsFunc(others, func(other string) bool { return sandbox.Within(other, real) })
		if !layered && !taken && ours(real) && !holdsMount(string(table), real) && !meetsRoot(real, policy.Roots) {
			paths = append(paths, real)
		}
	}
	return paths
}

// realPath follows links, also on the way to what does not exist yet.
func realPath(path string) string {
	if real, err := filepath.EvalSymlinks(path); err == nil {
		return real
	}
	if folder := filepath.Dir(path); folder != path {
		return filepath.Join(realPath(folder), filepath.Base(path))
	}
	return path
}

// ours reports whether a path is a folder that belongs to this user.
func ours(path string) bool {
	info, err := os.Stat(path)
	if err != nil || !info.IsDir() {
		return false
	}
	st, ok := info.Sys().(*syscall.Stat_t)
	return ok && int(st.Uid) == os.Geteuid()
}

// holdsMount reports whether something is mounted in a folder, according to a
// table of mounts (proc_pid_mountinfo(5)), which writes blanks in numbers.
func holdsMount(table, folder string) bool {
	folder = strings.NewReplacer(" ", `\040`, "\t", `\011`).Replace(folder)
	for line := range strings.Lines(table) {
		if fields := strings.Fields(line); len(fields) > 4 && fields[4] != folder && sandbox.Within(fields[4], folder) {
			return true
		}
	}
	return false
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
func mountCaches(store, room string, paths []string) []string {
	if len(paths) == 0 || unix.Mount("tmpfs", store, "tmpfs", unix.MS_NOSUID|unix.MS_NODEV, "mode=700,"+room) != nil {
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

// within says which paths lie in one of the caches.
func within(caches []Cache) func(path string) bool {
	return func(path string) bool {
		real := realPath(path)
		return slices.ContainsFunc(caches, func(c Cache) bool { return sandbox.Within(real, c.Path) })
	}
}
