package observe

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"os"
	"runtime"
	"testing"
	"unsafe"

	"github.com/confine-dev/confine/sandbox/ramtest"
	"github.com/confine-dev/confine/sandbox/restrict"
	"golang.org/x/sys/unix"
)

// The test binary is also the confined child: it confines itself as orders say,
// hands the listener over and executes what is to be observed.

// orders are what a child is told.
type orders struct {
	Namespaces bool
	Writable   []string // can be written
	Covered    []string // files and folders that are mounted on themselves, read-only
	Hidden     []string // folders that an empty file system covers
	Nulled     []string // files that /dev/null covers
	Unwatched  bool     // without the filter, to compare
	Observed   bool
	Dir        string
	Argv       []string
}

const (
	childVariable = "OBSERVE_TEST_CHILD"
	actorVariable = "OBSERVE_TEST_ACTOR"
)

func init() {
	// The filter is put on the first thread, which must be the one that executes.
	if os.Getenv(childVariable) != "" || os.Getenv(actorVariable) != "" {
		runtime.LockOSThread()
	}
}

func TestMain(m *testing.M) {
	if text := os.Getenv(childVariable); text != "" {
		fmt.Fprintln(os.Stderr, "child:", childMain(text))
		os.Exit(125)
	}
	if os.Getenv(actorVariable) != "" {
		actorMain(os.Args[1:])
		os.Exit(0)
	}
	ramtest.Begin()
	os.Exit(m.Run())
}

func childMain(text string) error {
	const socket = 3
	var o orders
	if err := json.Unmarshal([]byte(text), &o); err != nil {
		return err
	}
	if o.Namespaces {
		if err := makeView(o); err != nil {
			return err
		}
	}
	if err := dropPrivileges(o.Namespaces); err != nil {
		return err
	}
	if err := restrictWrites(o.Writable); err != nil {
		return err
	}
	if !o.Unwatched {
		fd, err := installFilter(o.Namespaces)
		if err != nil {
			return err
		}
		if err := unix.Sendmsg(socket, []byte{0}, unix.UnixRights(fd), nil, 0); err != nil {
			return fmt.Errorf("sending the listener: %w", err)
		}
		unix.Close(fd)
	}
	unix.CloseOnExec(socket)
	if err := unix.Chdir(o.Dir); err != nil {
		return err
	}
	env := []string{"PATH=" + os.Getenv("PATH"), "HOME=" + o.Dir, actorVariable + "=1", "TMPDIR=" + o.Dir}
	return unix.Exec(o.Argv[0], o.Argv, env)
}

func makeView(o orders) error {
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return fmt.Errorf("private: %w", err)
	}
	for _, path := range append(append([]string{}, o.Writable...), o.Covered...) {
		if err := unix.Mount(path, path, "", unix.MS_BIND|unix.MS_REC, ""); err != nil {
			return fmt.Errorf("binding %s: %w", path, err)
		}
	}
	if err := unix.MountSetattr(unix.AT_FDCWD, "/", unix.AT_RECURSIVE, &unix.MountAttr{Attr_set: unix.MOUNT_ATTR_RDONLY}); err != nil {
		return fmt.Errorf("read-only: %w", err)
	}
	for _, path := range o.Writable {
		if err := unix.MountSetattr(unix.AT_FDCWD, path, 0, &unix.MountAttr{Attr_clr: unix.MOUNT_ATTR_RDONLY}); err != nil {
			return fmt.Errorf("writable %s: %w", path, err)
		}
	}
	for _, path := range o.Nulled {
		if err := unix.Mount("/dev/null", path, "", unix.MS_BIND, ""); err != nil {
			return fmt.Errorf("hiding %s: %w", path, err)
		}
	}
	for _, path := range o.Hidden {
		if err := unix.Mount("tmpfs", path, "tmpfs", unix.MS_RDONLY, ""); err != nil {
			return fmt.Errorf("hiding %s: %w", path, err)
		}
	}
	if err := unix.Mount("proc", "/proc", "proc", 0, ""); err != nil {
		return fmt.Errorf("proc: %w", err)
	}
	return loopbackUp()
}

func loopbackUp() error {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	request, err := unix.NewIfreq("lo")
	if err != nil {
		return err
	}
	request.SetUint16(unix.IFF_UP | unix.IFF_RUNNING)
	return unix.IoctlIfreq(fd, unix.SIOCSIFFLAGS, request)
}

// dropPrivileges leaves a view's root what it has in a real run.
func dropPrivileges(view bool) error {
	var keep uint64
	if view && os.Geteuid() == 0 {
		keep = 1<<unix.CAP_CHOWN | 1<<unix.CAP_DAC_OVERRIDE | 1<<unix.CAP_FOWNER | 1<<unix.CAP_FSETID
	}
	for c := range 41 {
		if keep&(1<<c) == 0 {
			unix.Prctl(unix.PR_CAPBSET_DROP, uintptr(c), 0, 0, 0)
		}
	}
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	data := [2]unix.CapUserData{{Effective: uint32(keep), Permitted: uint32(keep)}, {Effective: uint32(keep >> 32), Permitted: uint32(keep >> 32)}}
	if err := unix.Capset(&header, &data[0]); err != nil {
		return fmt.Errorf("capset: %w", err)
	}
	return unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
}

// restrictWrites is a Landlock ruleset that allows writing to some places, of
// version 3 at most. A view does without where the kernel has no Landlock.
func restrictWrites(paths []string) error {
	all := uint64(restrict.ABIOf(min(restrict.Version(), restrict.TruncateVersion)).Files)
	if all == 0 {
		return nil
	}
	attr := binary.NativeEndian.AppendUint64(nil, all)
	ruleset, _, errno := unix.Syscall(unix.SYS_LANDLOCK_CREATE_RULESET, uintptr(unsafe.Pointer(&attr[0])), 8, 0)
	if errno != 0 {
		return fmt.Errorf("ruleset: %w", errno)
	}
	for _, path := range append([]string{"/dev/null"}, paths...) {
		fd, err := unix.Open(path, unix.O_PATH|unix.O_CLOEXEC, 0)
		if err != nil {
			return err
		}
		rights := all &^ (unix.LANDLOCK_ACCESS_FS_MAKE_CHAR | unix.LANDLOCK_ACCESS_FS_MAKE_BLOCK)
		if info, err := os.Stat(path); err == nil && !info.IsDir() {
			rights = all & uint64(restrict.OnContent)
		}
		rule := binary.NativeEndian.AppendUint64(nil, rights)
		rule = binary.NativeEndian.AppendUint32(rule, uint32(fd))
		if _, _, errno := unix.Syscall6(unix.SYS_LANDLOCK_ADD_RULE, ruleset, 1, uintptr(unsafe.Pointer(&rule[0])), 0, 0, 0); errno != 0 {
			return fmt.Errorf("rule for %s: %w", path, errno)
		}
	}
	if _, _, errno := unix.Syscall(unix.SYS_LANDLOCK_RESTRICT_SELF, ruleset, 0, 0); errno != 0 {
		return fmt.Errorf("restricting: %w", errno)
	}
	return nil
}

func installFilter(namespaces bool) (int, error) {
	program := New(Options{}).Filter(namespaces)
	prog := unix.SockFprog{Len: uint16(len(program)), Filter: &program[0]}
	const flags = unix.SECCOMP_FILTER_FLAG_NEW_LISTENER | unix.SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV
	fd, _, errno := unix.Syscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, flags, uintptr(unsafe.Pointer(&prog)))
	if errno != 0 {
		return -1, fmt.Errorf("filter: %w", errno)
	}
	return int(fd), nil
}
