package protect

import (
	"errors"
	"os"
	"path/filepath"
	"syscall"
	"testing"
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
