//go:build unix

package opensandbox

import (
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"syscall"
	"testing"
	"time"
)

// inWorkspace makes files in a new folder, and returns it.
func inWorkspace(t *testing.T, names ...string) string {
	t.Helper()
	work, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		if err := os.MkdirAll(filepath.Join(work, filepath.Dir(name)), 0o700); err != nil {
			t.Skip(err) // not every system has every name
		}
		if err := os.WriteFile(filepath.Join(work, name), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return work
}

// walked are the names that a walk comes by. look is called at each.
func walked(t *testing.T, k *pack, work string, look func(name string)) (names []string) {
	t.Helper()
	err := k.walk(t.Context(), work, func(_ *os.Root, name string, _ fs.FileInfo) error {
		names = append(names, name)
		look(name)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return names
}

// TestWalkOfMovingFolders: no name that changes during an upload leads it into what is
// hidden.
func TestWalkOfMovingFolders(t *testing.T) {
	for name, swap := range map[string]func(work string) error{
		"a link to what is hidden":       func(work string) error { return os.Symlink("z", filepath.Join(work, "a")) },
		"what is hidden, itself":         func(work string) error { return os.Rename(filepath.Join(work, "z"), filepath.Join(work, "a")) },
		"a folder, moved, that has it":   func(work string) error { return os.Rename(filepath.Join(work, "y"), filepath.Join(work, "a")) },
		"a link to a folder that has it": func(work string) error { return os.Symlink("y", filepath.Join(work, "a")) },
	} {
		t.Run(name, func(t *testing.T) {
			work := inWorkspace(t, "a/f", "z/key", "y/in/key")
			k := newPack(Config{}, nil, []string{filepath.Join(work, "z"), filepath.Join(work, "y/in")})
			names := walked(t, k, work, func(name string) {
				if name != "a" {
					return
				}
				if err := os.Rename(filepath.Join(work, "a"), filepath.Join(work, "was")); err != nil {
					t.Fatal(err)
				}
				if err := swap(work); err != nil {
					t.Fatal(err)
				}
			})
			if slices.ContainsFunc(names, func(name string) bool { return filepath.Base(name) == "key" }) || names[0] != "a" {
				t.Errorf("it came by %q", names)
			}
		})
	}
}

// TestWalkOfOddNames: a folder whose name is no text is uploaded with what is in it.
func TestWalkOfOddNames(t *testing.T) {
	work := inWorkspace(t, "\xff/f")
	if names := walked(t, &pack{}, work, func(string) {}); !slices.Equal(names, []string{"\xff", "\xff/f"}) {
		t.Errorf("it came by %q", names)
	}
}

// TestSweepOfOddFiles: what somebody laid among the notes is neither waited for nor
// followed, nor removed.
func TestSweepOfOddFiles(t *testing.T) {
	state := t.TempDir()
	p, err := New(Config{URL: "http://127.0.0.1:1", StateDir: state})
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	folder := filepath.Join(state, journalFolder)
	old := filepath.Join(state, "old")
	for _, err := range []error{
		os.Mkdir(folder, 0o700), syscall.Mkfifo(filepath.Join(folder, "fifo"), 0o600),
		os.WriteFile(old, []byte("service 60 http://127.0.0.1:1\n"), 0o600),
		os.Chtimes(old, time.Unix(0, 0), time.Unix(0, 0)), os.Symlink(old, filepath.Join(folder, "link")),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	p.sweepNow(t.Context())
	for _, name := range []string{"fifo", "link"} {
		if _, err := os.Lstat(filepath.Join(folder, name)); err != nil {
			t.Error(err)
		}
	}
}
