package sandboxtest

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"syscall"

	"golang.org/x/sys/unix"
)

// mounts is the folder with the places that root mounted before the world began.
func (p *place) mounts() string { return filepath.Join(p.base, "m") }

// own are files that a server calls its own; one does not exist. A mount shows their
// folder in a workspace.
func (p *place) own() []string {
	return []string{filepath.Join(p.mounts(), "own/confine/settings"), filepath.Join(p.mounts(), "own/confine/new")}
}

func (p *place) hasMounts() bool {
	_, err := os.Stat(p.mounts())
	return err == nil
}

// mountedMain goes on with this program, as another user, in a mount namespace in
// which there are places that only root can make. Nothing of them is left outside.
func mountedMain(args []string) int {
	runtime.LockOSThread() // never unlocked: it executes
	uid, err := strconv.Atoi(args[0])
	if err == nil {
		err = mountShapes(filepath.Join(args[1], "m"), uid)
	}
	if err == nil && uid != 0 {
		err = errors.Join(syscall.Setgroups(nil), syscall.Setgid(uid), syscall.Setuid(uid))
	}
	if err == nil {
		// A change of user takes the signal away.
		err = unix.Prctl(unix.PR_SET_PDEATHSIG, uintptr(unix.SIGKILL), 0, 0, 0)
	}
	if err == nil {
		err = unix.Exec("/proc/self/exe", append([]string{os.Args[0]}, args[2:]...), os.Environ())
	}
	fmt.Fprintln(os.Stderr, "mounting what the shapes need:", err)
	return 1
}

// mountShapes makes the places, as a user's own.
func mountShapes(base string, uid int) error {
	at := func(path string) string { return filepath.Join(base, path) }
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return err
	}
	var err error
	folder := func(paths ...string) {
		for _, path := range paths {
			err = errors.Join(err, os.MkdirAll(at(path), 0o755), os.Chown(at(path), uid, uid))
		}
	}
	mount := func(source, path, kind string, flags uintptr, options string) {
		if e := unix.Mount(source, at(path), kind, flags, options); e != nil {
			err = errors.Join(err, fmt.Errorf("mounting %s at %s: %w", kind, path, e))
		}
	}
	owned := fmt.Sprintf("mode=755,uid=%d,gid=%d", uid, uid)
	folder("", "tmpfs", "mount", "mount/ws", "bind", "bind/source", "bind/ws", "overlay")
	for _, path := range []string{"tmpfs", "mount/ws", "overlay"} {
		mount("tmpfs", path, "tmpfs", 0, owned)
	}
	mount(at("bind/source"), "bind/ws", "", unix.MS_BIND, "")
	folder("overlay/lower", "overlay/lower/ws", "overlay/upper", "overlay/work", "overlay/merged")
	mount("overlay", "overlay/merged", "overlay", 0, fmt.Sprintf("lowerdir=%s,upperdir=%s,workdir=%s", at("overlay/lower"), at("overlay/upper"), at("overlay/work")))

	folder("holding", "holding/memory", "holding/bound", "holding/elsewhere", "holding/kernel", "shown", "closed", "closed/ws")
	mount("tmpfs", "holding/memory", "tmpfs", 0, owned)
	mount(at("shown"), "holding/bound", "", unix.MS_BIND, "")
	mount("proc", "holding/kernel", "proc", 0, "")
	mount("tmpfs", "closed", "tmpfs", 0, owned)
	folder("closed/ws")
	err = errors.Join(err, os.WriteFile(at("closed/ws/file"), []byte("host"), 0o644))
	mount("", "closed", "", unix.MS_REMOUNT|unix.MS_RDONLY, "")

	folder("own", "own/confine")
	err = errors.Join(err, os.WriteFile(at("own/confine/settings"), []byte("host"), 0o644), os.Chown(at("own/confine/settings"), uid, uid))
	mount(at("own"), "holding/elsewhere", "", unix.MS_BIND, "")

	folder("others")
	err = errors.Join(err, os.WriteFile(at("others/file"), []byte("host"), 0o644), os.Chown(at("others"), othersID, othersID), os.Chown(at("others/file"), othersID, othersID))
	return err
}

// othersID is neither root nor the plain user.
const othersID = 1234
