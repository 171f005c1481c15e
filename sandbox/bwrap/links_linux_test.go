package bwrap_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/confine-dev/confine/sandbox"
	"github.com/confine-dev/confine/sandbox/bwrap"
	"github.com/confine-dev/confine/sandbox/local"
)

// stage is an engine and folders on the host: one outside /tmp, which a view
// covers, and one below it.
type stage struct {
	engine           *local.Engine
	outside, covered string
}

// readOnly are paths below outside that the person wants read-only.
func newStage(t *testing.T, o local.Options, readOnly ...string) *stage {
	t.Helper()
	needBubblewrap(t)
	s := &stage{outside: folder(t, "/var/tmp"), covered: folder(t, "/tmp")}
	o.StateDir = filepath.Join(s.outside, "state")
	if err := os.Mkdir(o.StateDir, 0o700); err != nil {
		t.Fatal(err)
	}
	var options bwrap.Options
	for _, path := range readOnly {
		options.ReadOnly = append(options.ReadOnly, filepath.Join(s.outside, path))
	}
	var err error
	if s.engine, err = local.New(bwrap.New(options), o); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.engine.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

func folder(t *testing.T, parent string) string {
	t.Helper()
	dir, err := os.MkdirTemp(parent, "confine-bwrap-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	return dir
}

// run runs a command that may write below one root, made if it is missing.
func (s *stage) run(t *testing.T, root, command string) (sandbox.Result, error) {
	t.Helper()
	if err := os.MkdirAll(root, 0o755); err != nil {
		t.Fatal(err)
	}
	declared, err := sandbox.DeclareRoot(root, sandbox.Forbidden{})
	if err != nil {
		t.Fatal(err)
	}
	defer declared.Close()
	p, err := s.engine.Start(t.Context(), sandbox.Spec{RunID: "run", Session: "s", Command: command, Dir: declared.Path, Env: []string{"PATH=/usr/bin:/bin"},
		Policy: sandbox.Policy{Mode: sandbox.WorkspaceWrite, Roots: []*sandbox.Root{declared}}})
	if err != nil {
		return sandbox.Result{}, err
	}
	return p.Wait()
}

// TestLinksLeftInTmp lets one command leave links in the session's /tmp where the
// next one's workspace has its place. Bubblewrap follows them, through the host's
// files that it still has while it builds the view: nothing may be made there. A
// quick run tries every third way, each target and each depth among them.
func TestLinksLeftInTmp(t *testing.T) {
	way := -1
	for _, level := range []local.Options{{}, {NoNamespaces: true}} {
		for _, depth := range []string{"", "/deeper/down"} {
			for _, target := range []string{"/oldroot%s", "../oldroot%s", "%s", "/newroot%s", "/nowhere"} {
				if way++; way%3 != 0 && os.Getenv("CONFINE_SLOW") == "" {
					continue
				}
				t.Run(fmt.Sprintf("namespaces=%v%s%s", !level.NoNamespaces, depth, target), func(t *testing.T) {
					s := newStage(t, level)
					victim := filepath.Join(s.outside, "victim")
					if err := os.Mkdir(victim, 0o755); err != nil {
						t.Fatal(err)
					}
					link := target
					if target != "/nowhere" {
						link = fmt.Sprintf(target, victim)
					}
					result, err := s.run(t, filepath.Join(s.outside, "work"), fmt.Sprintf("ln -s %q %q", link, s.covered))
					if err != nil || result.ExitCode != 0 {
						t.Fatalf("leaving the link: %+v, %v", result, err)
					}
					result, err = s.run(t, s.covered+depth, "touch written")
					var unavailable *sandbox.UnavailableError
					if err == nil && (result.ExitCode != 0 || !exists(s.covered+depth+"/written")) || err != nil && !errors.As(err, &unavailable) {
						t.Errorf("got %+v, %v", result, err)
					}
					if made, _ := os.ReadDir(victim); len(made) > 0 {
						t.Errorf("the host has got %v", made)
					}
				})
			}
		}
	}
}

func exists(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}

// TestRootsBelowTmp has its workspace where the session's own files are, with a
// second command that finds what the first one left.
func TestRootsBelowTmp(t *testing.T) {
	for _, level := range []local.Options{{}, {NoNamespaces: true}} {
		s := newStage(t, level)
		for _, root := range []string{s.covered, s.covered + "/deeper/down"} {
			for _, command := range []string{"echo mine > /tmp/left && touch written", "test -e written && test \"$(cat /tmp/left)\" = mine"} {
				if result, err := s.run(t, root, command); err != nil || result.ExitCode != 0 {
					t.Errorf("namespaces %v, %s: %s: got %+v, %v", !level.NoNamespaces, root, command, result, err)
				}
			}
			if !exists(root + "/written") {
				t.Errorf("nothing was written to %s", root)
			}
		}
	}
}

// TestPathsThatThePersonNarrows tries to write to them, also by moving away the
// folder that holds them.
func TestPathsThatThePersonNarrows(t *testing.T) {
	for _, level := range []local.Options{{}, {NoNamespaces: true}} {
		s := newStage(t, level, "work/a/b/vendor")
		vendor := filepath.Join(s.outside, "work/a/b/vendor")
		if err := errors.Join(os.MkdirAll(vendor, 0o755), os.WriteFile(vendor+"/file", []byte("host"), 0o644)); err != nil {
			t.Fatal(err)
		}
		result, err := s.run(t, filepath.Join(s.outside, "work"), "for f in a a/b a/b/vendor; do mv $f other; done; echo gone > a/b/vendor/file; rm -r a/b/vendor; rm -rf a; echo done > a/new && echo done > a/b/new && mv a/b/new new")
		if err != nil || result.ExitCode != 0 {
			t.Fatalf("%+v, %v", result, err)
		}
		if data, err := os.ReadFile(vendor + "/file"); err != nil || string(data) != "host" {
			t.Errorf("namespaces %v: the file holds %q, %v", !level.NoNamespaces, data, err)
		}
		if !exists(filepath.Join(s.outside, "work/a/new")) {
			t.Error("the folders around cannot be written to")
		}
	}
}
