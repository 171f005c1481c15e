package sandbox

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// TestPinRootRefusesWhatChanged calls pinRoot as if a folder on the way had
// become a link after the path was resolved and judged.
func TestPinRootRefusesWhatChanged(t *testing.T) {
	base := tree(t, "real/sub")
	symlink(t, filepath.Join(base, "real"), filepath.Join(base, "link"))
	root, err := pinRoot(filepath.Join(base, "link", "sub"))
	if err == nil || !strings.Contains(err.Error(), "changed while it was opened") {
		t.Errorf("pinRoot = %+v, %v", root, err)
	}
	if _, err := pinRoot(filepath.Join(base, "link")); err == nil {
		t.Error("a link in the last place was followed")
	}
}

// TestDeclareRootBindMounted: the home folder is the home folder under every
// name.
func TestDeclareRootBindMounted(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("mounting needs root")
	}
	base := tree(t, "home/u/project", "elsewhere", "state/confine")
	at := func(path string) string { return filepath.Join(base, path) }
	onOwnThread(func() {
		if err := syscall.Unshare(syscall.CLONE_NEWNS); err != nil {
			t.Logf("no mount namespace here: %v", err)
			return
		}
		if err := syscall.Mount("", "/", "", syscall.MS_REC|syscall.MS_PRIVATE, ""); err != nil {
			t.Logf("no mounts here: %v", err)
			return
		}
		for _, source := range []string{"home", "home/u", "state", "state/confine"} {
			if err := syscall.Mount(at(source), at("elsewhere"), "", syscall.MS_BIND, ""); err != nil {
				t.Errorf("bind: %v", err)
				return
			}
			_, err := DeclareRoot(at("elsewhere"), Forbidden{Home: at("home/u"), Own: []string{at("state/confine")}})
			var refusal *RootError
			if !errors.As(err, &refusal) {
				t.Errorf("%s under another name: %v", source, err)
			}
			if err := syscall.Unmount(at("elsewhere"), 0); err != nil {
				t.Errorf("unmount: %v", err)
			}
		}
	})
}
