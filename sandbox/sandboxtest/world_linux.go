package sandboxtest

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// world is a kind of host.
type world struct {
	uid  int  // 0 or plainUser
	bare bool // the host refuses user namespaces
}

// plainUser is the unprivileged user that root runs the suite as.
const plainUser = 65534

var allWorlds = []world{{0, false}, {0, true}, {plainUser, false}, {plainUser, true}}

func (w world) name() string {
	user, kind := "root", "namespaces"
	if w.uid != 0 {
		user = "plain"
	}
	if w.bare {
		kind = "none"
	}
	return user + "-" + kind
}

// worldsOf are the worlds of a user. Root makes those of a plain user too if the
// test may be slow: otherwise whoever runs it as another user sees to them.
func worldsOf(uid int, slow bool) []world {
	var worlds []world
	for _, w := range allWorlds {
		if (uid == 0) == (w.uid == 0) || uid == 0 && slow {
			worlds = append(worlds, w)
		}
	}
	return worlds
}

// slowVar, if not empty, lets tests be slow: with all worlds, and many operations.
const slowVar = "CONFINE_SLOW"

func slow() bool { return os.Getenv(slowVar) != "" }

// Environment variables by which the suite speaks with its own children.
const (
	worldVar = "CONFINE_SUITE_WORLD" // name of the world
	baseVar  = "CONFINE_SUITE_BASE"  // folder of the world
)

// noSleep keeps a program built with the race detector from sleeping for a
// second before it ends.
const noSleep = "GORACE=atexit_sleep_ms=0"

// theatre is where worlds are set up: a folder that is visible in a sandbox,
// which those below /tmp are not, and readable for every user.
type theatre struct {
	dir     string
	program string // copy of this binary
}

func newTheatre(t *testing.T) *theatre {
	dir, err := os.MkdirTemp("/var/tmp", "confine-suite-")
	if err != nil {
		t.Fatalf("making the suite's folder: %v", err)
	}
	t.Cleanup(func() {
		if err := os.RemoveAll(dir); err != nil {
			t.Errorf("a row left something that cannot be removed: %v", err)
		}
	})
	s := &theatre{dir: dir, program: filepath.Join(dir, "suite")}
	if err := errors.Join(os.Chmod(dir, 0o755), copyFile("/proc/self/exe", s.program, 0o755)); err != nil {
		t.Fatalf("preparing the suite's folder: %v", err)
	}
	return s
}

func copyFile(from, to string, mode os.FileMode) error {
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := os.OpenFile(to, os.O_CREATE|os.O_EXCL|os.O_WRONLY, mode)
	if err != nil {
		return err
	}
	_, err = io.Copy(out, in)
	return errors.Join(err, out.Chmod(mode), out.Close())
}

// withMounts lets a world begin with the places of mountShapes, if root makes it. base
// is the world's folder.
func withMounts(cmd *exec.Cmd, w world, base string) {
	if os.Geteuid() != 0 {
		return
	}
	cmd.Args = append([]string{cmd.Args[0], entryMounted, strconv.Itoa(w.uid), base}, cmd.Args[1:]...)
	cmd.SysProcAttr.Cloneflags, cmd.SysProcAttr.Credential = unix.CLONE_NEWNS, nil
}

// play runs the calling test again in a world and passes on what it says.
func (s *theatre) play(t *testing.T, w world, changes ...func(cmd *exec.Cmd, w world, base string)) {
	base := filepath.Join(s.dir, strconv.Itoa(slices.Index(allWorlds, w))) // short: sockets are made below
	folders := []string{base}
	for _, name := range []string{"home", "tmp", "runtime", "state"} {
		folders = append(folders, filepath.Join(base, name))
	}
	for _, dir := range folders {
		if err := os.Mkdir(dir, 0o700); err != nil {
			t.Fatal(err)
		}
		if os.Geteuid() != w.uid && os.Geteuid() == 0 {
			if err := os.Chown(dir, w.uid, w.uid); err != nil {
				t.Fatal(err)
			}
		}
	}
	args := []string{"-test.run=" + innerPattern(t), "-test.timeout=" + flag.Lookup("test.timeout").Value.String(),
		"-test.parallel=" + flag.Lookup("test.parallel").Value.String()}
	if testing.Verbose() {
		args = append(args, "-test.v")
	}
	cmd := exec.Command(s.program, args...)
	if w.bare {
		cmd.Args = append([]string{s.program, entryBare}, args...)
	}
	cmd.Dir = base
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + filepath.Join(base, "home"), "TMPDIR=" + filepath.Join(base, "tmp"),
		"XDG_RUNTIME_DIR=" + filepath.Join(base, "runtime"), "CI=" + os.Getenv("CI"), slowVar + "=" + os.Getenv(slowVar), noSleep, worldVar + "=" + w.name(), baseVar + "=" + base}
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if os.Geteuid() != w.uid && os.Geteuid() == 0 {
		cmd.SysProcAttr.Credential = &syscall.Credential{Uid: uint32(w.uid), Gid: uint32(w.uid)}
	}
	for _, change := range changes {
		change(cmd, w, base)
	}
	runtime.LockOSThread() // the death signal is bound to this thread
	defer runtime.UnlockOSThread()
	out, err := cmd.CombinedOutput()
	out = bytes.TrimSpace(out)
	switch {
	case errors.Is(err, unix.EPERM) && cmd.Process == nil:
		skip(t, "this process may not become user %d: %v", w.uid, err)
	case err != nil:
		t.Errorf("%v\n%s", err, out)
	case bytes.Contains(out, []byte("no tests to run")):
		t.Errorf("no row ran: %s", out)
	case testing.Verbose():
		t.Logf("\n%s", out)
	}
}

// innerPattern is the pattern that selects in a world what the caller's
// pattern selects behind the world's name.
func innerPattern(t *testing.T) string {
	top, _, _ := strings.Cut(t.Name(), "/")
	pattern := "^" + top + "$"
	if parts := strings.SplitN(flag.Lookup("test.run").Value.String(), "/", 3); len(parts) == 3 {
		pattern += "/" + parts[2]
	}
	return pattern
}

// bareMain goes on with this program in a place that refuses user namespaces
// for real. It takes two steps: make a user namespace of the user's own, and
// in there forbid new ones and give up every capability.
func bareMain(args []string) int {
	cmd := exec.Command("/proc/self/exe", append([]string{entryBareInside}, args...)...)
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: unix.CLONE_NEWUSER, Pdeathsig: syscall.SIGKILL,
		AmbientCaps: []uintptr{unix.CAP_SYS_RESOURCE, unix.CAP_SETPCAP}}
	cmd.SysProcAttr.UidMappings, cmd.SysProcAttr.GidMappings = ownIDs("/proc/self/uid_map", os.Geteuid()), ownIDs("/proc/self/gid_map", os.Getegid())
	cmd.SysProcAttr.GidMappingsEnableSetgroups = os.Geteuid() == 0
	runtime.LockOSThread() // never unlocked: the death signal is bound to it
	if err := cmd.Run(); err != nil {
		fmt.Fprintln(os.Stderr, "in the world without namespaces:", err)
		return 1
	}
	return 0
}

// ownIDs maps the ids of a user namespace: all that exist here for root, one's
// own for anybody else.
func ownIDs(path string, id int) []syscall.SysProcIDMap {
	if id != 0 {
		return []syscall.SysProcIDMap{{ContainerID: id, HostID: id, Size: 1}}
	}
	var ids []syscall.SysProcIDMap
	data, _ := os.ReadFile(path) // an empty map makes the start fail
	for line := range strings.Lines(string(data)) {
		var inside, outside, size int
		if n, _ := fmt.Sscan(line, &inside, &outside, &size); n == 3 {
			ids = append(ids, syscall.SysProcIDMap{ContainerID: inside, HostID: inside, Size: size})
		}
	}
	return ids
}

func bareInsideMain(args []string) int {
	runtime.LockOSThread() // capabilities are a thread's; it is the one that executes
	err := os.WriteFile("/proc/sys/user/max_user_namespaces", []byte("0"), 0)
	if err == nil {
		err = dropEverything()
	}
	if err == nil {
		err = unix.Exec("/proc/self/exe", append([]string{os.Args[0]}, args...), os.Environ())
	}
	fmt.Fprintln(os.Stderr, "making a world without namespaces:", err)
	return 1
}

func dropEverything() error {
	last := 63
	if data, err := os.ReadFile("/proc/sys/kernel/cap_last_cap"); err == nil {
		last, _ = strconv.Atoi(strings.TrimSpace(string(data)))
	}
	for c := range last + 1 {
		if err := unix.Prctl(unix.PR_CAPBSET_DROP, uintptr(c), 0, 0, 0); err != nil {
			return fmt.Errorf("dropping capability %d: %w", c, err)
		}
	}
	if err := unix.Prctl(unix.PR_CAP_AMBIENT, unix.PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0); err != nil {
		return err
	}
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var none [2]unix.CapUserData
	return unix.Capset(&header, &none[0])
}

// check makes sure that this process is where it believes to be.
func (w world) check(t *testing.T) {
	if (os.Geteuid() == 0) != (w.uid == 0) {
		t.Fatalf("this world is not for user %d", os.Geteuid())
	}
	probe := exec.Command("/proc/self/exe", entryNothing)
	probe.SysProcAttr = &syscall.SysProcAttr{Cloneflags: unix.CLONE_NEWUSER}
	err := probe.Run()
	if !w.bare {
		if err != nil {
			skip(t, "this host refuses user namespaces: %v", err)
		}
		return
	}
	if err == nil {
		t.Fatal("user namespaces are possible in the world without them")
	}
	mounts := make(chan error)
	go func() {
		runtime.LockOSThread() // never unlocked: what unshare may do ends with the thread
		mounts <- unix.Unshare(unix.CLONE_NEWNS)
	}()
	if err := <-mounts; err != unix.EPERM {
		t.Fatalf("making a mount namespace: got %v, want EPERM in the world without namespaces", err)
	}
}

// skip skips what this host cannot show. On CI that is a failure.
func skip(t *testing.T, format string, args ...any) {
	t.Helper()
	if os.Getenv("CI") != "" {
		t.Fatalf("nothing may be skipped on CI: "+format, args...)
	}
	t.Skipf(format, args...)
}
