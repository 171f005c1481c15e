package protect

import (
	"errors"
	"os"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/confine-dev/confine/sandbox"
)

// later is a clock for which all that was changed by now is settled.
func later() time.Time { return time.Now().Add(time.Hour) }

// protects reports whether the configuration of a repository in a root is protected in
// the run that begins now.
func (w tree) protects(f *Finder, root *sandbox.Root, git string) bool {
	return slices.Contains(f.Find([]*sandbox.Root{root}, sandbox.Forbidden{}).Protected, w.at(git+"/config"))
}

// A repository that somebody else makes is protected from the next run on, however
// deep it lies and by whatever way it came there.
func TestLateRepositories(t *testing.T) {
	type step func(w tree, run func()) error
	for name, test := range map[string]struct {
		before, make step // make: nil for a repository that is made in place
		git          string
		settable     bool // by times that commands can set it would not be noticed
	}{
		"in a folder that was there": {git: "ws/a/b/late/.git"},
		"in new folders":             {git: "ws/new/x/y/late/.git"},
		"right below the root":       {git: "ws/late/.git"},
		"a bare one":                 {git: "ws/a/bare"},
		"in a link's target only":    {before: func(w tree, _ func()) error { w.link("a", "ws/link"); return nil }, git: "ws/a/late/.git"},
		"moved into place": {make: func(w tree, _ func()) error {
			w.repository("away/x/late/.git", "")
			return os.Rename(w.at("away/x"), w.at("ws/a/x"))
		}, git: "ws/a/x/late/.git"},
		"a folder in the place of another": {before: func(w tree, _ func()) error {
			w.folder("ws/a/x/late/deep")
			return nil
		}, make: func(w tree, _ func()) error {
			w.repository("away/late/deep/.git", "")
			return errors.Join(os.Rename(w.at("ws/a/x"), w.at("old")), os.Rename(w.at("away"), w.at("ws/a/x")))
		}, git: "ws/a/x/late/deep/.git"},
		"the folder came back": {before: func(w tree, _ func()) error {
			w.folder("ws/a/x/late")
			return nil
		}, make: func(w tree, run func()) error {
			err := os.RemoveAll(w.at("ws/a/x"))
			run()
			w.repository("ws/a/x/late/.git", "")
			return err
		}, git: "ws/a/x/late/.git"},
		"in one that is not bare any more": {before: func(w tree, _ func()) error {
			w.repository("ws/a/bare", "")
			return nil
		}, make: func(w tree, _ func()) error {
			w.repository("ws/a/bare/in/.git", "")
			return os.Remove(w.at("ws/a/bare/HEAD"))
		}, git: "ws/a/bare/in/.git"},
		"and the folder's times are set back": {settable: true, make: func(w tree, _ func()) error {
			before, err := os.Stat(w.at("ws/a/b"))
			if err != nil {
				return err
			}
			w.repository("ws/a/b/late/.git", "")
			return os.Chtimes(w.at("ws/a/b"), before.ModTime(), before.ModTime())
		}, git: "ws/a/b/late/.git"},
	} {
		for clock, now := range map[string]func() time.Time{"long after": later, "a moment after": time.Now} {
			t.Run(name+" "+clock, func(t *testing.T) {
				if test.settable && runtime.GOOS != "linux" {
					t.Skip("only the next walk finds it")
				}
				w := newTree(t)
				w.folder("ws/a/b")
				f, root := &Finder{now: now}, w.root("ws")
				run := func() { w.protects(f, root, "") }
				if test.before != nil {
					if err := test.before(w, run); err != nil {
						t.Fatal(err)
					}
				}
				if w.protects(f, root, test.git) {
					t.Fatal("it is there before it is made")
				}
				if test.make == nil {
					w.repository(test.git, "")
				} else if err := test.make(w, run); err != nil {
					t.Fatal(err)
				}
				if !w.protects(f, root, test.git) {
					t.Error("it is not protected in the next run")
				}
			})
		}
	}
}

// What a run has noted is protected in the next as well, found or not: its name is no
// folder's of the walk.
func TestNotedRepositories(t *testing.T) {
	w := newTree(t)
	w.repository("ws/node_modules/x/.git", "")
	w.repository("ws/node_modules/bare", "")
	f, root := new(Finder), w.root("ws")
	if w.protects(f, root, "ws/node_modules/x/.git") {
		t.Fatal("folders of packages are walked")
	}
	f.Note([]string{w.at("ws/node_modules/x/.git"), w.at("ws/node_modules/bare/HEAD"), w.at("ws/.git"), w.at("away/.git")})
	for _, git := range []string{"ws/node_modules/x/.git", "ws/node_modules/bare"} {
		if !w.protects(f, root, git) {
			t.Errorf("%s is not protected", git)
		}
	}
	if repositories := f.walks[root.Path].repositories; len(repositories) != 2 {
		t.Errorf("repositories are %q", repositories)
	}
}

// What could not be looked at in time is said of the run, and looked at in the next.
func TestRefreshIsCutOff(t *testing.T) {
	w := newTree(t)
	w.folder("ws/a")
	root := w.root("ws")
	var slow bool
	now := time.Unix(1000, 0)
	f := &Finder{now: func() time.Time {
		if slow {
			now = now.Add(time.Second)
		}
		return now
	}}
	missed := func() string { return f.Find([]*sandbox.Root{root}, sandbox.Forbidden{}).Missed }
	if reason := missed(); reason != "" {
		t.Fatal(reason)
	}
	w.repository("ws/a/late/.git", "")
	slow = true
	if reason := missed(); !strings.Contains(reason, w.at("ws")) {
		t.Errorf("nothing is missed, it says %q", reason)
	}
	slow = false
	if !w.protects(f, root, "ws/a/late/.git") || missed() != "" {
		t.Errorf("it is not made up for; missed: %q", missed())
	}
}

// Folders beyond those that every run looks at are told of, except in the run that
// walked.
func TestMoreFoldersThanAreWatched(t *testing.T) {
	w := newTree(t)
	w.folder("ws/a/b")
	root := w.root("ws")
	now := time.Now().Add(time.Hour)
	f := &Finder{now: func() time.Time { return now }}
	missed := func() string { return f.Find([]*sandbox.Root{root}, sandbox.Forbidden{}).Missed }
	for _, when := range []string{"first", "again"} {
		if reason := missed(); reason != "" {
			t.Errorf("%s: %s", when, reason)
		}
	}
	known := f.walks[root.Path]
	for len(known.watched) < maxWatched {
		known.watched = append(known.watched, known.watched[0])
	}
	w.folder("ws/a/b/c")
	for range 2 {
		if reason := missed(); !strings.Contains(reason, "every run") {
			t.Errorf("it is not told: %q", reason)
		}
	}
	now = now.Add(walkHolds + time.Second)
	if reason := missed(); reason != "" {
		t.Errorf("after a walk: %s", reason)
	}
}
