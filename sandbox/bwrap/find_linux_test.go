package bwrap

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// mode changes a mode whatever the umask is.
func mode(t *testing.T, path string, m os.FileMode) {
	t.Helper()
	if err := os.Chmod(path, m); err != nil {
		t.Fatal(err)
	}
}

func TestFind(t *testing.T) {
	t.Setenv("SECRET", "must not reach it")
	for _, test := range []struct {
		name string
		make func(t *testing.T, dir string) (configured string, places []string)
		want string // in the fault; empty: it is found
	}{
		{"in the first place", func(t *testing.T, dir string) (string, []string) {
			speaker(t, dir+"/a/bwrap", "bubblewrap 0.8.0")
			return "", []string{dir + "/a/bwrap", dir + "/b/bwrap"}
		}, ""},
		{"in a later place", func(t *testing.T, dir string) (string, []string) {
			speaker(t, dir+"/b/bwrap", "bubblewrap 0.11.1")
			return "", []string{dir + "/a/bwrap", dir + "/b/bwrap"}
		}, ""},
		{"behind one that is unfit", func(t *testing.T, dir string) (string, []string) {
			speaker(t, dir+"/a/bwrap", "bubblewrap 0.8.0")
			speaker(t, dir+"/b/bwrap", "bubblewrap 0.8.0")
			mode(t, dir+"/a/bwrap", 0o777)
			return "", []string{dir + "/a/bwrap", dir + "/b/bwrap"}
		}, ""},
		{"by a path", func(t *testing.T, dir string) (string, []string) {
			speaker(t, dir+"/mine", "bubblewrap 0.5.0")
			return dir + "/mine", nil
		}, ""},
		{"behind links", func(t *testing.T, dir string) (string, []string) {
			speaker(t, dir+"/store/bwrap", "bubblewrap 0.8.0")
			os.Symlink("store", dir+"/profile")
			os.Symlink("../"+filepath.Base(dir)+"/profile/bwrap", dir+"/bwrap")
			return dir + "/bwrap", nil
		}, ""},
		{"in a sticky folder", func(t *testing.T, dir string) (string, []string) {
			speaker(t, dir+"/a/bwrap", "bubblewrap 0.8.0")
			mode(t, dir+"/a", 0o777|os.ModeSticky)
			return dir + "/a/bwrap", nil
		}, ""},
		{"nowhere", func(t *testing.T, dir string) (string, []string) { return "", []string{dir + "/a/bwrap"} }, "not installed"},
		{"not at the path", func(t *testing.T, dir string) (string, []string) {
			speaker(t, dir+"/a/bwrap", "bubblewrap 0.8.0") // must not replace what was named
			return dir + "/mine", []string{dir + "/a/bwrap"}
		}, "does not exist"},
		{"by a relative path", func(t *testing.T, dir string) (string, []string) { return "bwrap", nil }, "not an absolute path"},
		{"a folder", func(t *testing.T, dir string) (string, []string) { return dir, nil }, "not a regular file"},
		{"not executable", func(t *testing.T, dir string) (string, []string) {
			speaker(t, dir+"/bwrap", "bubblewrap 0.8.0")
			mode(t, dir+"/bwrap", 0o644)
			return dir + "/bwrap", nil
		}, "not executable"},
		{"writable for everybody", func(t *testing.T, dir string) (string, []string) {
			speaker(t, dir+"/bwrap", "bubblewrap 0.8.0")
			mode(t, dir+"/bwrap", 0o757)
			return dir + "/bwrap", nil
		}, "lets other users change it"},
		{"in a folder that everybody can write to", func(t *testing.T, dir string) (string, []string) {
			speaker(t, dir+"/a/b/bwrap", "bubblewrap 0.8.0")
			mode(t, dir+"/a", 0o777)
			return dir + "/a/b/bwrap", nil
		}, "other users can change the folder"},
		{"behind a link in such a folder", func(t *testing.T, dir string) (string, []string) {
			speaker(t, dir+"/b/bwrap", "bubblewrap 0.8.0")
			os.Mkdir(dir+"/a", 0o777)
			mode(t, dir+"/a", 0o777)
			os.Symlink(dir+"/b", dir+"/a/link")
			return dir + "/a/link/bwrap", nil
		}, "other users can change the folder"},
		{"a circle of links", func(t *testing.T, dir string) (string, []string) {
			os.Symlink("b", dir+"/a")
			os.Symlink("a", dir+"/b")
			return dir + "/a", nil
		}, "too many links"},
		{"too old", func(t *testing.T, dir string) (string, []string) {
			speaker(t, dir+"/bwrap", "bubblewrap 0.4.1")
			return dir + "/bwrap", nil
		}, "too old"},
		{"something else", func(t *testing.T, dir string) (string, []string) {
			speaker(t, dir+"/bwrap", "ls (GNU coreutils) 9.1")
			return dir + "/bwrap", nil
		}, "does not answer as bubblewrap does"},
		{"broken", func(t *testing.T, dir string) (string, []string) {
			speaker(t, dir+"/bwrap", "")
			return dir + "/bwrap", nil
		}, "--version failed"},
		{"a script around it", func(t *testing.T, dir string) (string, []string) {
			os.WriteFile(dir+"/bwrap", []byte("#!/bin/sh\nexec /usr/bin/bwrap \"$@\"\n"), 0o755)
			return dir + "/bwrap", nil
		}, "it is a script"},
	} {
		t.Run(test.name, func(t *testing.T) {
			configured, places := test.make(t, t.TempDir())
			p, err := find(configured, places)
			if err == nil {
				defer p.file.Close()
				_, err = ask(p)
			}
			var f *fault
			switch {
			case test.want == "" && err != nil:
				t.Errorf("got %v", err)
			case test.want != "" && (!errors.As(err, &f) || !strings.Contains(err.Error(), test.want)):
				t.Errorf("got %v, want a fault with %q", err, test.want)
			case test.want != "" && len(f.remedies) == 0 && test.name != "a circle of links" && test.name != "broken":
				t.Errorf("nothing to do about: %v", f)
			}
		})
	}
}

// TestOwner needs root, who alone can give files away. Another user's are no
// different: root's and one's own are all that is accepted.
func TestOwner(t *testing.T) {
	if os.Geteuid() != 0 {
		p, err := open("/bin/sh") // root's
		if err != nil {
			t.Fatal(err)
		}
		p.file.Close()
		return
	}
	dir := t.TempDir()
	speaker(t, dir+"/a/bwrap", "bubblewrap 0.8.0")
	for _, theirs := range []string{dir + "/a/bwrap", dir + "/a"} {
		if err := os.Lchown(theirs, 4242, 4242); err != nil {
			t.Fatal(err)
		}
		var f *fault
		if _, err := open(dir + "/a/bwrap"); !errors.As(err, &f) {
			t.Errorf("%s of another user: got %v", theirs, err)
		}
		if err := os.Lchown(theirs, 0, 0); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Lchown(dir+"/a/bwrap", 0, 4242); err != nil {
		t.Fatal(err)
	}
	mode(t, dir+"/a/bwrap", 0o775)
	if _, err := open(dir + "/a/bwrap"); err == nil {
		t.Error("one that a group can write to was opened")
	}
	mode(t, dir+"/a/bwrap", 0o755)
	if p, err := open(dir + "/a/bwrap"); err != nil {
		t.Errorf("the same as root's: %v", err)
	} else {
		p.file.Close()
	}
}

func TestSetuidIsNotUsed(t *testing.T) {
	if os.Geteuid() == 0 {
		return // root gains nothing by it
	}
	dir := t.TempDir()
	speaker(t, dir+"/bwrap", "bubblewrap 0.8.0")
	mode(t, dir+"/bwrap", 0o755|os.ModeSetuid)
	if _, err := open(dir + "/bwrap"); err == nil || !strings.Contains(err.Error(), "setuid") {
		t.Errorf("got %v", err)
	}
}

// TestProgramIsPinned swaps the file after it was opened: the one that was
// looked at is executed.
func TestProgramIsPinned(t *testing.T) {
	dir := t.TempDir()
	speaker(t, dir+"/bwrap", "bubblewrap 0.8.0")
	p, err := find(dir+"/bwrap", nil)
	if err != nil {
		t.Fatal(err)
	}
	defer p.file.Close()
	if err := os.Rename(dir+"/bwrap", dir+"/former"); err != nil {
		t.Fatal(err)
	}
	speaker(t, dir+"/bwrap", "bubblewrap 6.6.6")
	if err := os.WriteFile(dir+"/former.says", []byte("bubblewrap 0.8.0"), 0o644); err != nil {
		t.Fatal(err)
	}
	if v, err := ask(p); err != nil || v != (version{0, 8, 0}) {
		t.Errorf("got %v, %v", v, err)
	}
}

// TestLookAgain follows an installation, an update and a removal.
func TestLookAgain(t *testing.T) {
	dir := t.TempDir()
	w := New(Options{Path: dir + "/bwrap"})
	if _, err := w.found(); err == nil {
		t.Fatal("found before it was there")
	}
	speaker(t, dir+"/bwrap", "bubblewrap 0.8.0")
	first, err := w.refresh()
	if err != nil || first.version != (version{0, 8, 0}) {
		t.Fatalf("installed: got %+v, %v", first, err)
	}
	if same, err := w.refresh(); same != first || err != nil {
		t.Errorf("unchanged: got %+v, %v", same, err)
	}
	if err := os.Remove(dir + "/bwrap"); err != nil {
		t.Fatal(err)
	}
	speaker(t, dir+"/bwrap", "bubblewrap 0.9.0")
	if second, err := w.refresh(); err != nil || second.version != (version{0, 9, 0}) {
		t.Errorf("updated: got %+v, %v", second, err)
	}
	if err := os.Remove(dir + "/bwrap"); err != nil {
		t.Fatal(err)
	}
	if gone, err := w.refresh(); err == nil || gone != nil {
		t.Errorf("removed: got %+v, %v", gone, err)
	}
	if _, err := first.file.Stat(); err != nil {
		t.Errorf("a run that starts could not use what it was given: %v", err)
	}
}

func TestVersions(t *testing.T) {
	for text, want := range map[string]version{
		"bubblewrap 0.8.0\n":     {0, 8, 0},
		"bubblewrap 0.11.1\n":    {0, 11, 1},
		"bubblewrap 1.2":         {1, 2, 0},
		"bubblewrap 0.9.0-rc1\n": {0, 9, 0},
	} {
		if v, ok := parseVersion(text); !ok || v != want {
			t.Errorf("%q: got %v, %v", text, v, ok)
		}
	}
	for _, text := range []string{"", "bubblewrap", "bubblewrap x.y", "bubblewrap 99999.1", " bubblewrap 0.8.0"} {
		if v, ok := parseVersion(text); ok {
			t.Errorf("%q: got %v", text, v)
		}
	}
	ordered := []version{{0, 4, 1}, {0, 5, 0}, {0, 10, 0}, {0, 11, 1}, {1, 0, 0}}
	for i, a := range ordered {
		for j, b := range ordered {
			if a.before(b) != (i < j) {
				t.Errorf("%v before %v: %v", a, b, a.before(b))
			}
		}
	}
}
