package ramtest

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
)

// tmpfsMagic is how statfs tells that files lie in memory, from statfs(2).
const tmpfsMagic = 0x01021994

// Begin starts this program again where the folders for temporary files lie in
// memory and end with it. TestMain calls it once it knows that it is to run tests.
//
// Only root can do that. It is not done in slow runs (CONFINE_SLOW), which try
// what a disk does as well, for benchmarks, which measure it, nor with a folder in
// which something else lies that tests need.
func Begin() {
	if os.Geteuid() != 0 || os.Getenv("CONFINE_SLOW") != "" || slices.ContainsFunc(os.Args, measures) {
		return
	}
	folders := slices.DeleteFunc(slices.Compact([]string{os.TempDir(), "/var/tmp"}), func(folder string) bool { return inMemory(folder) || inUse(folder) })
	if len(folders) == 0 {
		return
	}
	failed := make(chan error)
	go func() {
		runtime.LockOSThread() // never unlocked: if this fails, what it changed ends with the thread
		failed <- startIn(folders)
	}()
	if err := <-failed; !errors.Is(err, syscall.EPERM) { // a container's root may not mount
		fmt.Fprintln(os.Stderr, "temporary files stay on the disk:", err)
	}
}

// measures says that an argument asks for benchmarks. Flags are not parsed yet.
func measures(arg string) bool { return strings.HasPrefix(arg, "-test.bench=") }

// inMemory says that nothing is to be gained by covering a folder: its files are in
// memory, or it is not there.
func inMemory(folder string) bool {
	var fs syscall.Statfs_t
	return syscall.Statfs(folder, &fs) != nil || fs.Type == tmpfsMagic
}

// homes are the variables that name what tests, and programs they start, may need.
var homes = []string{"TMPDIR", "PWD", "HOME", "PATH", "GOROOT", "GOPATH", "GOCACHE", "GOMODCACHE"}

// inUse says that a folder cannot be covered without loss.
func inUse(folder string) bool {
	var used []string
	for _, name := range homes {
		used = append(used, filepath.SplitList(os.Getenv(name))...)
	}
	return slices.ContainsFunc(used, func(path string) bool { return path != folder && below(path, folder) })
}

func below(path, folder string) bool {
	return strings.HasPrefix(filepath.Clean(path)+"/", filepath.Clean(folder)+"/")
}

// startIn covers the folders in a mount namespace of its own and executes this
// program there. It returns only if that fails.
func startIn(folders []string) error {
	program, err := os.Executable()
	if err != nil {
		return err
	}
	if err := syscall.Unshare(syscall.CLONE_NEWNS); err != nil {
		return fmt.Errorf("making a mount namespace: %w", err)
	}
	if err := syscall.Mount("", "/", "", syscall.MS_REC|syscall.MS_PRIVATE, ""); err != nil {
		return fmt.Errorf("keeping mounts from the host: %w", err)
	}
	for _, folder := range folders {
		if err := cover(folder, filepath.Dir(program)); err != nil {
			return fmt.Errorf("covering %s: %w", folder, err)
		}
	}
	return fmt.Errorf("starting %s: %w", program, syscall.Exec(program, os.Args, os.Environ()))
}

// cover mounts an empty folder over another one; kept, if it lies there, stays. The go
// command builds test programs, and has them write a log, below the folder for temporary files.
func cover(folder, kept string) error {
	from, err := syscall.Open(kept, syscall.O_RDONLY|syscall.O_DIRECTORY|syscall.O_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer syscall.Close(from)
	if err := syscall.Mount("tmpfs", folder, "tmpfs", 0, "mode=1777"); err != nil {
		return err
	}
	if !below(kept, folder) {
		return nil
	}
	if err := os.MkdirAll(kept, 0o755); err != nil {
		return err
	}
	// Not /proc/self: that is the process's first thread, which is outside.
	return syscall.Mount(fmt.Sprintf("/proc/thread-self/fd/%d", from), kept, "", syscall.MS_BIND, "")
}
