//go:build linux || darwin

package approval

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
)

func TestAuditIsPrivate(t *testing.T) {
	defer syscall.Umask(syscall.Umask(0))
	path := auditPath(t)
	openAudit(t, path, AuditOptions{})
	for p, want := range map[string]os.FileMode{path: 0o600, filepath.Dir(path): 0o700} {
		if info, err := os.Stat(p); err != nil || info.Mode().Perm() != want {
			t.Errorf("%s: %v, %v, want %o", p, info.Mode(), err, want)
		}
	}
}

// TestAuditRefusesWhatOthersMade prepares a place as somebody else might, and
// expects neither a record nor harm there.
func TestAuditRefusesWhatOthersMade(t *testing.T) {
	type test struct {
		name    string
		prepare func(folder, path string) error
		says    string
	}
	tests := []test{
		{"link", func(folder, path string) error {
			target := filepath.Join(folder, "target")
			if err := os.WriteFile(target, nil, 0o600); err != nil {
				return err
			}
			return os.Symlink(target, path)
		}, ""},
		{"dangling link", func(folder, path string) error { return os.Symlink(filepath.Join(folder, "target"), path) }, ""},
		{"second name", func(folder, path string) error {
			if err := os.WriteFile(path, nil, 0o600); err != nil {
				return err
			}
			return os.Link(path, filepath.Join(folder, "target"))
		}, "second name"},
		{"FIFO", func(_, path string) error { return syscall.Mkfifo(path, 0o600) }, "regular"},
		{"folder", func(_, path string) error { return os.Mkdir(path, 0o700) }, ""},
		{"file that others may read", func(_, path string) error { return os.WriteFile(path, nil, 0o644) }, "chmod"},
		{"folder that others may read", func(folder, _ string) error { return os.Chmod(folder, 0o755) }, "chmod"},
	}
	if os.Geteuid() == 0 {
		tests = append(tests,
			test{"file of another user", func(_, path string) error {
				if err := os.WriteFile(path, nil, 0o600); err != nil {
					return err
				}
				return os.Chown(path, 65534, 65534)
			}, "another user"},
			test{"folder of another user", func(folder, _ string) error { return os.Chown(folder, 65534, 65534) }, "another user"})
	} else {
		tests = append(tests,
			test{"folder without permission", func(folder, _ string) error { return os.Chmod(folder, 0o500) }, "permission denied"},
			test{"file without permission", func(_, path string) error { return os.WriteFile(path, nil, 0o400) }, "permission denied"},
			test{"folder of another user", nil, "another user"})
	}
	for _, c := range tests {
		t.Run(c.name, func(t *testing.T) {
			folder := filepath.Join(t.TempDir(), "state")
			path := filepath.Join(folder, "audit.jsonl")
			if c.prepare == nil {
				folder, path = "/etc", "/etc/audit.jsonl" // root's, everywhere
			} else {
				if err := os.Mkdir(folder, 0o700); err != nil {
					t.Fatal(err)
				}
				t.Cleanup(func() { os.Chmod(folder, 0o700) })
				if err := c.prepare(folder, path); err != nil {
					t.Fatal(err)
				}
			}
			a, err := OpenAudit(path, AuditOptions{})
			if err == nil {
				a.Close()
				t.Fatal("it is taken")
			}
			if !strings.Contains(err.Error(), c.says) {
				t.Errorf("%q does not say %q", err, c.says)
			}
			if info, err := os.Stat(filepath.Join(folder, "target")); err == nil && info.Size() > 0 {
				t.Error("the target was written")
			}
		})
	}
}

// TestFileReplacedByALink: what was right at the start must not be trusted for
// ever.
func TestFileReplacedByALink(t *testing.T) {
	path := auditPath(t)
	g := newGate(t, Options{Audit: openAudit(t, path, AuditOptions{})})
	target := filepath.Join(t.TempDir(), "target")
	if err := os.Rename(path, target); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(target, path); err != nil {
		t.Fatal(err)
	}
	p := picks("allow-once")
	if d, err := g.Decide(t.Context(), p, request()); err == nil || d.Outcome != "" || p.asked != 0 {
		t.Errorf("got %v, %v, asked %d times", d, err, p.asked)
	}
	if info, err := os.Stat(target); err != nil || info.Size() != 0 {
		t.Errorf("the target was written: %v %v", info, err)
	}
}

// TestLockedFile: another server that hangs with the lock must not hang us.
func TestLockedFile(t *testing.T) {
	path := auditPath(t)
	a := openAudit(t, path, AuditOptions{})
	other, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	if err := tryLock(other); err != nil {
		t.Fatal(err)
	}
	synctest.Test(t, func(t *testing.T) { // so that the wait takes no time
		if err := a.append(1); err == nil || !strings.Contains(err.Error(), "another process") {
			t.Errorf("got %v", err)
		}
	})
	unlock(other)
	if err := a.append(1); err != nil {
		t.Error(err)
	}
}

// hookedFile calls hook once, between the look at the name and the lock.
type hookedFile struct {
	auditFile
	hook func()
}

func (f *hookedFile) Fd() uintptr {
	if f.hook != nil {
		f.hook()
		f.hook = nil
	}
	return f.auditFile.Fd()
}

func TestRotatedWhileWaitingForTheLock(t *testing.T) {
	path := auditPath(t)
	a := openAudit(t, path, AuditOptions{})
	a.file = &hookedFile{a.file, func() {
		if err := os.Rename(path, path+".1"); err != nil {
			t.Error(err)
		}
	}}
	if err := a.append(1); err != nil {
		t.Fatal(err)
	}
	if data, err := os.ReadFile(path); string(data) != "1\n" {
		t.Errorf("the new file holds %q, %v", data, err)
	}
}

// TestServersShareRotation: nothing is lost but what the old file held, and no
// line is torn.
func TestServersShareRotation(t *testing.T) {
	path := auditPath(t)
	done := make(chan error)
	const servers = 3
	for s := range servers {
		a := openAudit(t, path, AuditOptions{MaxBytes: 4 << 10})
		go func() {
			for i := range 60 {
				if err := a.append(map[string]any{"s": s, "n": i, "pad": strings.Repeat("x", 60)}); err != nil {
					done <- err
					return
				}
			}
			done <- nil
		}()
	}
	for range servers {
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
	last := map[any]any{}
	total := 0
	for _, p := range []string{path + ".1", path} {
		for _, line := range readLines(t, p) {
			if n, ok := last[line["s"]].(float64); ok && line["n"] != n+1 {
				t.Fatalf("server %v: %v after %v", line["s"], line["n"], n)
			}
			last[line["s"]] = line["n"]
			total++
		}
		if info, err := os.Stat(p); err != nil || info.Size() > 4<<10 {
			t.Errorf("%s: %v %v", p, info, err)
		}
	}
	if total < 4<<10/100 {
		t.Errorf("only %d lines are left", total)
	}
}
