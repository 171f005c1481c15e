package protect

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/confine-dev/confine/sandbox"
)

// TestPointersAreFiles: nothing else is followed, and nothing is waited for.
func TestPointersAreFiles(t *testing.T) {
	dir := t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }
	if err := errors.Join(
		os.WriteFile(at("file"), []byte("gitdir: .\nmore"), 0o600),
		os.WriteFile(at("large"), append([]byte("gitdir: ."), make([]byte, maxPointer)...), 0o600),
		syscall.Mkfifo(at("fifo"), 0o600),
		os.Symlink("file", at("link")),
	); err != nil {
		t.Fatal(err)
	}
	if _, err := readPointer(at("file"), "gitdir: ", dir); err != nil {
		t.Errorf("a file: %v", err)
	}
	for _, name := range []string{"large", "fifo", "link", "missing", "."} {
		if path, err := readPointer(at(name), "gitdir: ", dir); err == nil {
			t.Errorf("%s: %s", name, path)
		}
	}
}

// A second name of a protected file is a way to change it, which mounts do not
// close.
func TestSecondNames(t *testing.T) {
	w := newTree(t)
	w.repository("ws/.git", "")
	root := w.root("ws")
	missed := func() string { return new(Finder).Find([]*sandbox.Root{root}, sandbox.Forbidden{}).Missed }
	if reason := missed(); reason != "" {
		t.Fatalf("with one name of each file: %s", reason)
	}
	if err := os.Link(w.at("ws/.git/config"), w.at("ws/alias")); err != nil {
		t.Fatal(err)
	}
	if reason := missed(); !strings.Contains(reason, "hard link") {
		t.Errorf("with a second name of the configuration: %q", reason)
	}
}
