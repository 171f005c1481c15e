package sandbox

import (
	"bytes"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"sync"
	"testing"
)

// filled is a finished capture of n bytes with a spill file.
func filled(dir string, quota *SpillQuota, n int) *Capture {
	c := NewCapture(CaptureOptions{Keep: 4, SpillDir: dir, Quota: quota})
	writeAll(c, strings.Repeat("x", n))
	c.Finish()
	return c
}

func entries(t *testing.T, dir string) []os.DirEntry {
	t.Helper()
	list, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	return list
}

// mustLoseFile checks what every failure must leave behind: the tail, a
// reason, no path and no file.
func mustLoseFile(t *testing.T, c *Capture, dir, tail, reason string) {
	t.Helper()
	if text, truncated := c.Tail(); text != tail || !truncated {
		t.Errorf("Tail() = %q, %v; want %q, true", text, truncated, tail)
	}
	if path := c.SpillPath(); path != "" {
		t.Errorf("path %q was not withheld", path)
	}
	if err := c.SpillError(); err == nil || !strings.Contains(err.Error(), reason) {
		t.Errorf("SpillError() = %v; want …%s…", err, reason)
	}
	if data, at := c.ReadAt(0, 100); string(data) != tail || at != c.Total()-int64(len(tail)) {
		t.Errorf("ReadAt(0) = %q, %d", data, at)
	}
	if list, err := os.ReadDir(dir); err == nil && len(list) > 0 {
		t.Errorf("file %q was left behind", list[0].Name())
	}
}

func TestSpillIsLazyPrivateAndUnpredictable(t *testing.T) {
	dir := privateDir(t)
	a := NewCapture(CaptureOptions{Keep: 4, SpillDir: dir, Name: "run-1-stdout"})
	writeAll(a, "abcd")
	if a.SpillPath() != "" || len(entries(t, dir)) != 0 {
		t.Fatal("a file was made before the memory was full")
	}
	writeAll(a, "e")
	name := filepath.Base(a.SpillPath())
	if !regexp.MustCompile(`^run-1-stdout-[A-Z2-7]{26}\.log$`).MatchString(name) {
		t.Errorf("name %q", name)
	}
	info, err := os.Lstat(a.SpillPath())
	if err != nil {
		t.Fatal(err)
	}
	if runtime.GOOS != "windows" && info.Mode() != 0o600 {
		t.Errorf("mode %v, want -rw-------", info.Mode())
	}
	if a.SpillError() != nil {
		t.Errorf("SpillError() = %v", a.SpillError())
	}
	b := filled(dir, nil, 9)
	c := filled(dir, nil, 9)
	if b.SpillPath() == c.SpillPath() {
		t.Error("two streams share a file")
	}
}

func TestSpillNameIsHarmless(t *testing.T) {
	dir := privateDir(t)
	for _, name := range []string{"../../etc/x", "-rf", "a\x1b[2Jb", "..", "", strings.Repeat("n", 5000), "€"} {
		c := NewCapture(CaptureOptions{Keep: 1, SpillDir: dir, Name: name})
		writeAll(c, "abc")
		base, err := filepath.Rel(dir, c.SpillPath())
		if err != nil || !regexp.MustCompile(`^[A-Za-z0-9_][A-Za-z0-9_-]*\.log$`).MatchString(base) {
			t.Errorf("name %q made file %q: %v %v", name, base, err, c.SpillError())
		}
	}
}

func TestSpillLimit(t *testing.T) {
	dir := privateDir(t)
	c := NewCapture(CaptureOptions{Keep: 4, SpillDir: dir, SpillMax: 10})
	writeAll(c, "0123456789")
	if c.SpillPath() == "" {
		t.Fatalf("no file at the limit: %v", c.SpillError())
	}
	writeAll(c, "a", "bc")
	mustLoseFile(t, c, dir, "9abc", "longer than 10 bytes")
	c.Finish()
	mustLoseFile(t, c, dir, "9abc", "longer than 10 bytes")
}

func TestSpillFolderIsChecked(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("modes mean nothing here")
	}
	base := t.TempDir()
	open := filepath.Join(base, "open")
	if err := os.Mkdir(open, 0o700); err != nil {
		t.Fatal(err)
	}
	for _, mode := range []os.FileMode{0o701, 0o710, 0o720, 0o777} {
		if err := os.Chmod(open, mode); err != nil {
			t.Fatal(err)
		}
		mustLoseFile(t, filled(open, nil, 9), open, "xxxx", "mode must be 0700")
	}
	missing := filepath.Join(base, "missing")
	mustLoseFile(t, filled(missing, nil, 9), missing, "xxxx", "keeping the complete output")
	file := filepath.Join(base, "file")
	if err := os.WriteFile(file, nil, 0o700); err != nil {
		t.Fatal(err)
	}
	mustLoseFile(t, filled(file, nil, 9), file, "xxxx", "keeping the complete output")
}

func TestSpillFolderOfAnotherUser(t *testing.T) {
	dir := privateDir(t)
	if os.Geteuid() == 0 {
		if err := os.Chown(dir, 65534, 65534); err != nil {
			t.Skipf("cannot give a folder away: %v", err)
		}
		mustLoseFile(t, filled(dir, nil, 9), dir, "xxxx", "belongs to another user")
		return
	}
	// A plain user cannot open a private folder of somebody else at all, so
	// take one that all may open.
	c := filled("/", nil, 9)
	if c.SpillPath() != "" || c.SpillError() == nil {
		t.Errorf("a file in /: %q, %v", c.SpillPath(), c.SpillError())
	}
}

// TestSpillWriteErrors puts other files in the place of the real one.
func TestSpillWriteErrors(t *testing.T) {
	swap := func(t *testing.T, c *Capture, file *os.File) {
		t.Helper()
		t.Cleanup(func() { _ = file.Close() })
		_ = c.spill.file.Close()
		c.spill.file = file
	}
	t.Run("full disk", func(t *testing.T) {
		full, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
		if err != nil {
			t.Skipf("no /dev/full: %v", err)
		}
		dir, quota := privateDir(t), &SpillQuota{}
		c := NewCapture(CaptureOptions{Keep: 4, SpillDir: dir, Quota: quota})
		writeAll(c, "abcdefgh")
		swap(t, c, full)
		writeAll(c, "ijk", "lm")
		mustLoseFile(t, c, dir, "jklm", "no space left")
		if quota.Used() != 0 {
			t.Errorf("%d bytes are still counted", quota.Used())
		}
	})
	t.Run("close fails", func(t *testing.T) {
		dir := privateDir(t)
		c := NewCapture(CaptureOptions{Keep: 4, SpillDir: dir})
		writeAll(c, "abcdefgh")
		closed, err := os.Open(dir)
		if err != nil {
			t.Fatal(err)
		}
		_ = closed.Close()
		swap(t, c, closed)
		c.Finish()
		mustLoseFile(t, c, dir, "efgh", "closed")
	})
	t.Run("short file", func(t *testing.T) {
		dir := privateDir(t)
		c := NewCapture(CaptureOptions{Keep: 4, SpillDir: dir})
		writeAll(c, "abcdefgh")
		if err := os.Truncate(c.SpillPath(), 3); err != nil {
			t.Fatal(err)
		}
		c.Finish()
		mustLoseFile(t, c, dir, "efgh", "short write")
	})
}

func TestSpillReadRefusesWhatIsNotTheFile(t *testing.T) {
	secret := filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(secret, bytes.Repeat([]byte("s"), 100), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, plant := range map[string]func(path string) error{
		"link":    func(path string) error { return os.Symlink(secret, path) },
		"file":    func(path string) error { return os.WriteFile(path, []byte("ssssssss"), 0o600) },
		"folder":  func(path string) error { return os.Mkdir(path, 0o700) },
		"nothing": func(string) error { return nil },
	} {
		t.Run(name, func(t *testing.T) {
			c := NewCapture(CaptureOptions{Keep: 4, SpillDir: privateDir(t)})
			writeAll(c, "abcdefgh")
			c.Finish()
			// Keep the real file's inode number taken.
			if err := os.Rename(c.SpillPath(), c.SpillPath()+".real"); err != nil {
				t.Fatal(err)
			}
			if err := plant(c.SpillPath()); err != nil {
				t.Fatal(err)
			}
			if data, at := c.ReadAt(0, 8); string(data) != "efgh" || at != 4 {
				t.Errorf("ReadAt(0, 8) = %q, %d", data, at)
			}
		})
	}
}

func TestSpillDiscard(t *testing.T) {
	dir, quota := privateDir(t), &SpillQuota{}
	for _, finished := range []bool{false, true} {
		c := NewCapture(CaptureOptions{Keep: 4, SpillDir: dir, Quota: quota})
		writeAll(c, "abcdefgh")
		if finished {
			c.Finish()
		}
		c.Discard()
		c.Discard()
		mustLoseFile(t, c, dir, "efgh", "was removed")
		if quota.Used() != 0 {
			t.Errorf("%d bytes are still counted", quota.Used())
		}
	}
	early := NewCapture(CaptureOptions{Keep: 4, SpillDir: dir})
	early.Discard()
	writeAll(early, "abcdefgh")
	mustLoseFile(t, early, dir, "efgh", "was removed")
}

func TestSpillQuotaRemovesOldestFinished(t *testing.T) {
	dir, quota := privateDir(t), &SpillQuota{Max: 30}
	running := NewCapture(CaptureOptions{Keep: 4, SpillDir: dir, Quota: quota})
	writeAll(running, "0123456789")
	oldest, newer := filled(dir, quota, 10), filled(dir, quota, 10)
	if quota.Used() != 30 || len(entries(t, dir)) != 3 {
		t.Fatalf("used %d, files %d", quota.Used(), len(entries(t, dir)))
	}

	writeAll(running, "a")
	if oldest.SpillPath() != "" || oldest.SpillError() == nil {
		t.Errorf("the oldest stayed: %q, %v", oldest.SpillPath(), oldest.SpillError())
	}
	if data, at := oldest.ReadAt(0, 10); string(data) != "xxxx" || at != 6 {
		t.Errorf("ReadAt of the removed = %q, %d", data, at)
	}
	if newer.SpillPath() == "" || running.SpillPath() == "" || quota.Used() != 21 {
		t.Errorf("newer %v, running %v, used %d", newer.SpillError(), running.SpillError(), quota.Used())
	}

	// The oldest of all is the running one, which must not be removed.
	writeAll(running, strings.Repeat("b", 19))
	if newer.SpillPath() != "" || running.SpillPath() == "" || quota.Used() != 30 {
		t.Errorf("newer %q, running %v, used %d", newer.SpillPath(), running.SpillError(), quota.Used())
	}
	writeAll(running, "c")
	if running.SpillPath() != "" || !strings.Contains(running.SpillError().Error(), "running commands") {
		t.Errorf("over the quota: %q, %v", running.SpillPath(), running.SpillError())
	}
	if quota.Used() != 0 || len(entries(t, dir)) != 0 {
		t.Errorf("used %d, files %v", quota.Used(), entries(t, dir))
	}
	oldest.Discard()
	if quota.Used() != 0 {
		t.Errorf("discarding a removed file counted twice: %d", quota.Used())
	}
}

func TestSpillQuotaConcurrent(t *testing.T) {
	dir, quota := privateDir(t), &SpillQuota{Max: 1000}
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for range 50 {
				c := filled(dir, quota, 100)
				c.ReadAt(0, 10)
				c.Discard()
				filled(dir, quota, 50)
			}
		})
	}
	wg.Wait()
	var size int64
	for _, entry := range entries(t, dir) {
		info, err := entry.Info()
		if err != nil {
			t.Fatal(err)
		}
		size += info.Size()
	}
	if size != quota.Used() || size > 1000 {
		t.Errorf("%d bytes in files, %d counted, 1000 allowed", size, quota.Used())
	}
}
