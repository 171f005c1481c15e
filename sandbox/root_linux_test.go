package sandbox

import (
	"errors"
	"net"
	"os"
	"path/filepath"
	"slices"
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

// TestDeclareGrantSpecial: what is neither file nor folder is refused at once;
// opening one of these in earnest would wait or do something.
func TestDeclareGrantSpecial(t *testing.T) {
	t.Setenv("TMPDIR", "/tmp") // before the first folder is made: only there sockets count
	base := tree(t, "dir")
	fifo, link, socket := filepath.Join(base, "fifo"), filepath.Join(base, "link"), filepath.Join(base, "s")
	if err := syscall.Mkfifo(fifo, 0o600); err != nil {
		t.Fatal(err)
	}
	symlink(t, fifo, link)
	listener, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	for _, path := range []string{fifo, link, socket, "/dev/tty", fifo + "/x"} {
		grant, err := DeclareGrant(path, Forbidden{}, GrantWrite)
		if err == nil {
			grant.Close()
			t.Errorf("%q was granted", path)
		}
	}
	hidden := tree(t, "sub/deep", "plain")
	pipe := filepath.Join(hidden, "sub", "deep", "pipe")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	for path, refused := range map[string]bool{hidden: true, hidden + "/sub": true, hidden + "/sub/new": true, hidden + "/plain": false} {
		grant, err := DeclareGrant(path, Forbidden{}, GrantWrite)
		if err == nil {
			grant.Close()
		}
		if refused && (err == nil || !strings.Contains(err.Error(), pipe)) || !refused && err != nil {
			t.Errorf("%s below /tmp: %v", path, err)
		}
	}
	if got := Perils(&Root{Path: base}, GrantRead); !slices.Equal(got, []Peril{PerilServices}) {
		t.Errorf("a folder with sockets: %q", got)
	}
	if got := Perils(&Root{Path: fifo}, GrantRead); len(got) != 0 { // swapped since it was pinned
		t.Errorf("a FIFO in a folder's place: %q", got)
	}
}

// TestPinGrantRefusesLinks calls pinGrant as if the file had become a link
// after the path was resolved and judged.
func TestPinGrantRefusesLinks(t *testing.T) {
	base := tree(t, "real/sub")
	symlink(t, filepath.Join(base, "real"), filepath.Join(base, "link"))
	for _, path := range []string{"link", "link/sub"} {
		if root, err := pinGrant(filepath.Join(base, path)); err == nil || !strings.Contains(err.Error(), "changed while it was opened") {
			t.Errorf("%s: %+v, %v", path, root, err)
		}
	}
}
