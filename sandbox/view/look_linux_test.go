package view

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"
)

// TestRealIsEvalSymlinks: what is looked up by the kernel is what a walk finds.
func TestRealIsEvalSymlinks(t *testing.T) {
	h := newHost(t)
	if err := errors.Join(os.Symlink("away", h.at("link")), os.Symlink(h.at("link/file"), h.at("ws/chain")), os.Symlink("nowhere", h.at("ws/dangling")),
		os.Symlink("loop", h.at("loop")), os.Mkdir(h.at("ws/gone (deleted)"), 0o755)); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{"ws", "link", "link/file", "ws/chain", "ws/dangling", "loop", "absent", "away/file/below", "ws/gone (deleted)", "ws/../link", "ws/"} {
		path = h.at("") + "/" + path
		want, err := filepath.EvalSymlinks(path)
		if err != nil {
			want = path
		}
		if got := real(path); got != want {
			t.Errorf("%s: got %s, want %s", path, got, want)
		}
	}
}

// TestIsEmpty: a name of any length counts, however many of them there are.
func TestIsEmpty(t *testing.T) {
	dir := t.TempDir()
	if !isEmpty(unix.AT_FDCWD, dir) {
		t.Error("a new folder is not empty")
	}
	long := filepath.Join(dir, fmt.Sprintf("%0255d", 1))
	if err := os.WriteFile(long, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{dir, long, filepath.Join(dir, "absent")} {
		if isEmpty(unix.AT_FDCWD, path) {
			t.Errorf("%s is an empty folder", path)
		}
	}
}
