package hide

import (
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"syscall"
	"testing"
	"unsafe"
)

// A command could close a folder of its workspace in one run to open it in the
// next, where nobody could see what it holds.
func TestClosedFoldersAreHidden(t *testing.T) {
	obeyPermissions(t)
	top, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	closed := filepath.Join(top, "closed")
	if err := os.MkdirAll(filepath.Join(closed, "inner"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("closed/inner/secret", filepath.Join(top, "link")); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(closed, 0); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.Chmod(closed, 0o700) })
	for _, name := range []string{"closed/secret", "closed/inner/secret", "link"} {
		found := New(Rules{More: []string{filepath.Join(top, name)}}, nil).Find(nil)
		if !slices.Equal(found, []string{closed}) {
			t.Errorf("for %s: got %q, want %q", name, found, closed)
		}
	}
}

// A fault must not make a home folder look like one without credentials, least of
// all for longer than it lasts.
func TestNoDescriptorsLeft(t *testing.T) {
	home, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	ssh := filepath.Join(home, ".ssh")
	if err := os.MkdirAll(ssh, 0o700); err != nil {
		t.Fatal(err)
	}
	key := filepath.Join(ssh, "id_ed25519")
	if err := os.WriteFile(key, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	f := New(Rules{Home: home, Defaults: true}, nil)
	var before syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &before); err != nil {
		t.Fatal(err)
	}
	none := before
	none.Cur = 0
	if err := syscall.Setrlimit(syscall.RLIMIT_NOFILE, &none); err != nil {
		t.Fatal(err)
	}
	during := f.Find(nil)
	if err := syscall.Setrlimit(syscall.RLIMIT_NOFILE, &before); err != nil {
		t.Fatal(err)
	}
	if !slices.Contains(during, ssh) && !slices.Contains(during, key) {
		t.Errorf("meanwhile only %q is hidden", during)
	}
	if after := f.Find(nil); !slices.Contains(after, ssh) && !slices.Contains(after, key) {
		t.Errorf("afterwards only %q is hidden", after)
	}
}

// obeyPermissions lets permissions count for a test that root runs. The thread
// ends with the test.
func obeyPermissions(t *testing.T) {
	runtime.LockOSThread()
	const version, override, search = 0x20080522, 1 << 1, 1 << 2 // capget(2)
	header := struct {
		version uint32
		pid     int32
	}{version, 0}
	var sets [2]struct{ effective, permitted, inheritable uint32 }
	if _, _, errno := syscall.RawSyscall(syscall.SYS_CAPGET, uintptr(unsafe.Pointer(&header)), uintptr(unsafe.Pointer(&sets)), 0); errno != 0 {
		t.Fatal(errno)
	}
	sets[0].effective &^= override | search
	if _, _, errno := syscall.RawSyscall(syscall.SYS_CAPSET, uintptr(unsafe.Pointer(&header)), uintptr(unsafe.Pointer(&sets)), 0); errno != 0 {
		t.Fatal(errno)
	}
}
