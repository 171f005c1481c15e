package observe

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/confine-dev/confine/sandbox/local"
	"golang.org/x/sys/unix"
)

// What is made beyond the bound is not listed, and that is said.
func TestMoreIsMadeThanListed(t *testing.T) {
	root, err := unix.Open("/", unix.O_PATH|unix.O_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(root)
	w := &watch{root: root, unseen: map[string]int{}, run: local.Watched{Namespaces: true, Progress: &local.Progress{},
		Notable: func(name string, last bool) bool { return strings.HasPrefix(name, ".note") }}}
	folder := t.TempDir()
	makes := func(called string) {
		r := request{kind: making, first: name{dir: unix.AT_FDCWD}, mode: unix.S_IFDIR}
		w.noteMade(unix.Gettid(), r, text(filepath.Join(folder, called)), nil)
	}
	for i := range maxMade {
		makes(fmt.Sprintf(".note%d", i))
	}
	makes(".note0")
	if list := w.reasons(0); len(list) > 0 || len(w.made) != maxMade {
		t.Errorf("%d are listed, and %q may be missing", len(w.made), list)
	}
	makes(".note-one-more")
	if list := w.reasons(0); len(list) != 1 || !strings.Contains(list[0], "made") {
		t.Errorf("nothing is said of what is not listed: %q", list)
	}
}

// What makes a folder a repository counts by its own name only, and not in git's
// own folder.
func TestNotablePaths(t *testing.T) {
	w := &watch{run: local.Watched{Notable: func(name string, last bool) bool {
		return name == ".auto" || last && (name == ".git" || name == "HEAD")
	}}}
	for path, want := range map[string]string{
		"a/.auto/x": "a/.auto", ".auto": ".auto", "a/.git": "a/.git", "a/.git/": "a/.git", "a/.git/config": "", "HEAD": "HEAD", "b/HEAD": "b/HEAD",
		"HEAD/x": "", ".git/HEAD": "", "a/.git/modules/b/HEAD": "", "a/b": "", "": "", "/": "",
	} {
		if got := path[:w.notable(path)]; got != want {
			t.Errorf("%q: %q is listed, want %q", path, got, want)
		}
	}
}
