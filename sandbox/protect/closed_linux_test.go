package protect

import (
	"os"
	"runtime"
	"slices"
	"syscall"
	"testing"
	"unsafe"

	"github.com/confine-dev/confine/sandbox"
)

// What a command closes in one run it could open in the next, if nobody kept it
// because nobody could look into it.
func TestClosedFoldersAreKept(t *testing.T) {
	for name, folder := range map[string]string{
		"git folder":           ".git",
		"hooks elsewhere":      "tools",
		"inner repository":     "inner",
		"around a repository":  "around",
		"worktrees":            ".git/worktrees",
		"submodules":           ".git/modules",
		"submodule":            ".git/modules/m",
		"cannot be listed":     ".git/worktrees/w",
		"inner git folder":     "inner/.git",
		"ordinary, but closed": "other",
	} {
		t.Run(name, func(t *testing.T) {
			obeyPermissions(t)
			w := newTree(t)
			for _, git := range []string{"top/.git", "top/inner/.git", "top/around/repository/.git", "top/.git/modules/m"} {
				w.repository(git, "[core]\n\thooksPath = tools/hooks\n")
			}
			w.folder("top/tools/hooks", "top/other", "top/.git/worktrees/w")
			closed := w.at("top/" + folder)
			if err := os.Chmod(closed, 0); err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { os.Chmod(closed, 0o700) })
			found := new(Finder).Find([]*sandbox.Root{w.root("top")}, sandbox.Forbidden{})
			if want := w.at("top/" + folder); !slices.Contains(found.Protected, want) {
				t.Errorf("%s is not protected:\n%q", want, found.Protected)
			}
		})
	}
}

// A folder that somebody else closed stays closed, and nothing is needed.
func TestClosedFoldersOfOthers(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root can give folders away")
	}
	obeyPermissions(t)
	w := newTree(t)
	w.folder("top/theirs")
	if err := os.Chmod(w.at("top/theirs"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Chown(w.at("top/theirs"), 65534, 65534); err != nil {
		t.Fatal(err)
	}
	found := new(Finder).Find([]*sandbox.Root{w.root("top")}, sandbox.Forbidden{})
	if slices.Contains(found.Protected, w.at("top/theirs")) || found.Missed != "" {
		t.Errorf("got %q, missed %q", found.Protected, found.Missed)
	}
}

// A fault must not make a repository look like none.
func TestNoDescriptorsLeft(t *testing.T) {
	w := newTree(t)
	w.folder("top/inner/.git")
	root := w.root("top")
	var before syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &before); err != nil {
		t.Fatal(err)
	}
	none := before
	none.Cur = 0
	if err := syscall.Setrlimit(syscall.RLIMIT_NOFILE, &none); err != nil {
		t.Fatal(err)
	}
	found := new(Finder).Find([]*sandbox.Root{root}, sandbox.Forbidden{})
	if err := syscall.Setrlimit(syscall.RLIMIT_NOFILE, &before); err != nil {
		t.Fatal(err)
	}
	if found.Missed == "" {
		t.Error("nothing is said to be missed")
	}
}

// obeyPermissions lets permissions count for a test that root runs. The thread
// ends with the test.
func obeyPermissions(t *testing.T) {
	runtime.LockOSThread()
	const version, override, search = 0x20080522, 1 << 1, 1 << 2 // capget(2)
	header := struct {
		version uint32
		pid     int32
	}{version, 0}
	var sets [2]struct{ effective, permitted, inheritable uint32 }
	if _, _, errno := syscall.RawSyscall(syscall.SYS_CAPGET, uintptr(unsafe.Pointer(&header)), uintptr(unsafe.Pointer(&sets)), 0); errno != 0 {
		t.Fatal(errno)
	}
	sets[0].effective &^= override | search
	if _, _, errno := syscall.RawSyscall(syscall.SYS_CAPSET, uintptr(unsafe.Pointer(&header)), uintptr(unsafe.Pointer(&sets)), 0); errno != 0 {
		t.Fatal(errno)
	}
}
