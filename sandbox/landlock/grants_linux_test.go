package landlock

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/confine-dev/confine/sandbox"
	"github.com/confine-dev/confine/sandbox/local"
	"github.com/confine-dev/confine/sandbox/scripttest"
	"golang.org/x/sys/unix"
)

// declare is what a granted file or folder looks like.
func declare(t *testing.T, path string) *sandbox.Root {
	t.Helper()
	var st unix.Stat_t
	if err := unix.Lstat(path, &st); err != nil {
		t.Fatal(err)
	}
	return &sandbox.Root{Path: path, File: st.Mode&unix.S_IFMT == unix.S_IFREG, Dev: st.Dev, Ino: st.Ino}
}

// compared reports whether what a step opened is compared with a root.
func compared(list []scripttest.Step, opened scripttest.Step, root *sandbox.Root) bool {
	return len(scripttest.Find(list, unix.SYS_FSTAT, func(s scripttest.Step) bool {
		return s.Args[0].Ref == opened.Index && string(s.Want) == scripttest.Identity(root.Dev, root.Ino)
	})) == 1
}

// TestGrantsAreAllowed: the rule of a file has the rights to its content alone
// (WRITE_FILE and TRUNCATE by linux/landlock.h), that of a folder all but devices.
func TestGrantsAreAllowed(t *testing.T) {
	h := newHost(t)
	away := filepath.Join(filepath.Dir(h.runtime), "away")
	if err := os.Mkdir(away, 0o755); err != nil {
		t.Fatal(err)
	}
	file, folder := declare(t, h.protected), declare(t, away)
	for _, namespaces := range []bool{true, false} {
		for _, mode := range modes {
			r := h.request(mode, namespaces)
			r.Policy.Roots = r.Policy.Roots[:1] // without the one that holds the file
			r.Policy.Writable = []*sandbox.Root{file, folder}
			l := wrap(t, r)
			list := scripttest.Steps(t, &l.Prepare)
			for root, want := range map[*sandbox.Root]uint64{file: 1<<1 | 1<<14, folder: 0xfff2 &^ (1<<6 | 1<<11)} {
				opened := scripttest.Find(list, unix.SYS_OPENAT, func(s scripttest.Step) bool { return s.Args[1].Text() == root.Path })
				if len(opened) != 1 || !compared(list, opened[0], root) {
					t.Fatalf("namespaces %v, %s: %s is opened by %+v", namespaces, mode, root.Path, opened)
				}
				added := scripttest.Find(list[opened[0].Index:], unix.SYS_LANDLOCK_ADD_RULE, nil)[0]
				if got := added.Args[2].Word(0); got != want {
					t.Errorf("namespaces %v, %s: %s gets the rights %#x, want %#x", namespaces, mode, root.Path, got, want)
				}
				if !slices.Contains(l.Writable, root.Path) {
					t.Errorf("namespaces %v, %s: writing to %s would be called a denial", namespaces, mode, root.Path)
				}
			}
		}
	}
}

func TestGrantsArePlaced(t *testing.T) {
	h := newHost(t)
	file := declare(t, h.protected)
	r := h.request(sandbox.ReadOnly, true)
	r.Policy.Writable = []*sandbox.Root{file}
	list := scripttest.Steps(t, &wrap(t, r).Prepare)
	paths, mounts, moves := placed(list)
	i := slices.Index(paths, file.Path)
	if i < 0 || !compared(list, list[mounts[i]], file) {
		t.Fatalf("placed are %q", paths)
	}
	set := scripttest.Find(list[:moves[i].Index], unix.SYS_MOUNT_SETATTR, func(s scripttest.Step) bool { return s.Args[0].Ref == mounts[i] })
	if len(set) != 1 || attributesSet(t, set[0]) != unix.MOUNT_ATTR_NOSUID|unix.MOUNT_ATTR_NODEV {
		t.Errorf("the granted file gets its attributes by %+v", set)
	}
}

// TestPlaceInACache: a cache may have lost, in this session, the file that was
// granted in the host's.
func TestPlaceInACache(t *testing.T) {
	h := newHost(t)
	r := h.request(sandbox.WorkspaceWrite, true)
	r.Caches = []local.Cache{{Path: filepath.Dir(h.protected) + "-cache", Layer: filepath.Join(h.state, "layer")}}
	file := filepath.Join(r.Caches[0].Path, "a", "file")
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	r.Policy.Writable = []*sandbox.Root{declare(t, file)}
	list := scripttest.Steps(t, &wrap(t, r).Prepare)
	folders := scripttest.Find(list, unix.SYS_MKDIRAT, func(s scripttest.Step) bool { return s.Args[1].Text() == filepath.Dir(file) })
	files := scripttest.Find(list, unix.SYS_MKNODAT, func(s scripttest.Step) bool { return s.Args[1].Text() == file })
	if len(folders) != 1 || len(files) != 1 || folders[0].Ignores != uintptr(unix.EEXIST) || files[0].Ignores != uintptr(unix.EEXIST) {
		t.Errorf("the place is made by %+v and %+v", folders, files)
	}
}
