package sandbox

import (
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
)

// onOwnThread runs f on a thread that ends with it, so that f may change what
// belongs to the thread.
func onOwnThread(f func()) {
	done := make(chan struct{}) // closed when f has returned
	go func() {
		defer close(done)
		runtime.LockOSThread() // never unlocked: the thread is thrown away
		f()
	}()
	<-done
}

// asPlainUser runs f with the file permissions of a user who is not root.
func asPlainUser(t *testing.T, f func()) {
	t.Helper()
	if os.Geteuid() != 0 {
		f()
		return
	}
	onOwnThread(func() {
		// The kernel takes root's file capabilities away with the user id.
		if err := syscall.Setfsuid(65534); err != nil {
			t.Errorf("setfsuid: %v", err)
			return
		}
		f()
	})
}

// TestDenialsNeedPlainPermission: what the person's own shell could not do
// either is no denial.
func TestDenialsNeedPlainPermission(t *testing.T) {
	w := newDenialWorld(t, WorkspaceWrite)
	ro, file := filepath.Join(w.out, "ro"), filepath.Join(w.out, "readable")
	if err := os.Mkdir(ro, 0o755); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{file, filepath.Join(ro, "in")} {
		if err := os.WriteFile(path, nil, 0o444); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Chmod(ro, 0o555); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.Chmod(ro, 0o755) })
	for _, line := range []string{
		"tee: @OUT@/readable: Permission denied",
		"tee: @OUT@/readable: Read-only file system",
		"tee: @OUT@/ro/new: Permission denied",
		"tee: @OUT@/ro/new: Read-only file system",
		"rm: cannot remove '@OUT@/ro/in': Permission denied",
		"mv: cannot move 'mine' to '@OUT@/ro/mine': Permission denied",
	} {
		asPlainUser(t, func() {
			if got := summary(scanned(w.expand(line)).Denials(w.context())); len(got) != 0 {
				t.Errorf("%s\n is a denial of %q", line, got)
			}
		})
	}
	if os.Geteuid() == 0 {
		got := summary(scanned(w.expand("tee: @OUT@/ro/new: Permission denied")).Denials(w.context()))
		if len(got) != 1 {
			t.Errorf("root may write there, but got %q", got)
		}
	}
}

// TestDenialsReadOnlyHost: a file system that the host itself mounted read-only
// is no denial, not even for root.
func TestDenialsReadOnlyHost(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("mounting needs root")
	}
	w := newDenialWorld(t, WorkspaceWrite)
	onOwnThread(func() {
		if err := syscall.Unshare(syscall.CLONE_NEWNS); err != nil {
			t.Logf("no mount namespace here: %v", err)
			return
		}
		for _, m := range []struct {
			target string
			flags  uintptr
		}{{"/", syscall.MS_REC | syscall.MS_PRIVATE}, {w.out, syscall.MS_BIND}, {w.out, syscall.MS_BIND | syscall.MS_REMOUNT | syscall.MS_RDONLY}} {
			if err := syscall.Mount(m.target, m.target, "", m.flags, ""); err != nil {
				t.Logf("no mounts here: %v", err)
				return
			}
		}
		text := w.expand("tee: @OUT@/new: Read-only file system\ntee: @OUT@/file: Read-only file system\nrm: cannot remove '@OUT@/file': Read-only file system\n" +
			"chmod: changing permissions of '@OUT@/file': Read-only file system\nchown: changing ownership of '@OUT@/file': Read-only file system\n" +
			"touch: setting times of '@OUT@/file': Read-only file system\n")
		if got := summary(scanned(text).Denials(w.context())); len(got) != 0 {
			t.Errorf("denials on a read-only host: %q", got)
		}
	})
	if got := summary(scanned(w.expand("tee: @OUT@/new: Read-only file system")).Denials(w.context())); len(got) != 1 {
		t.Errorf("the same outside the mount: %q", got)
	}
}

// TestDenialsSticky: in a folder like /tmp nobody removes what others own.
func TestDenialsSticky(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("giving files away needs root")
	}
	w := newDenialWorld(t, WorkspaceWrite)
	if err := os.Chmod(w.out, 0o777|os.ModeSticky); err != nil {
		t.Fatal(err)
	}
	info, err := os.Lstat(filepath.Join(w.out, "file"))
	if err != nil {
		t.Fatal(err)
	}
	if sticky(w.out, info) {
		t.Error("root is kept from removing")
	}
	if sticky(w.out, nil) {
		t.Error("creating in a sticky folder is refused")
	}
	if !sticky(filepath.Join(w.out, "none"), info) {
		t.Error("a folder that cannot be looked at is taken for a good one")
	}
}

func TestListeningPorts(t *testing.T) {
	for _, address := range []string{"127.0.0.1:0", "[::1]:0", "[::]:0", "0.0.0.0:0"} {
		listener, err := net.Listen("tcp", address)
		if err != nil {
			if strings.HasPrefix(address, "[") {
				t.Logf("no IPv6 here: %v", err)
				continue
			}
			t.Fatal(err)
		}
		_, port, err := net.SplitHostPort(listener.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		if !listeningPorts()[port] {
			t.Errorf("nobody seems to listen on %s", listener.Addr())
		}
		_ = listener.Close()
		if listeningPorts()[port] {
			t.Errorf("somebody still seems to listen on %s", address)
		}
	}
	for _, line := range []string{
		"0: 0100007F:1F90 00000000:0000 01", // connected
		"0: 0101A8C0:1F90 00000000:0000 0A", // listens on 192.168.1.1
		"0: 0100007F 00000000:0000 0A", "0: :1F90", "",
	} {
		if port, ok := localListener(strings.Fields(line)); ok {
			t.Errorf("%q gives port %q", line, port)
		}
	}
}

func TestReachable(t *testing.T) {
	if !reachable(netip.MustParseAddr("127.0.0.1")) {
		t.Error("no route to loopback")
	}
	if reachable(netip.Addr{}) {
		t.Error("a route to nowhere")
	}
}
