package view

import (
	"os"
	"path/filepath"
	"slices"

	"github.com/confine-dev/confine/sandbox"
)

// deviceNodes are the devices of a command: everybody may use them.
var deviceNodes = []string{"/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom", "/dev/tty"}

// Devices are the device nodes that a command may use and that this host has.
func Devices() []string {
	return slices.DeleteFunc(slices.Clone(deviceNodes), func(path string) bool {
		info, err := os.Stat(path)
		return err != nil || info.Mode()&os.ModeCharDevice == 0
	})
}

// DeviceLinks are the names, each with its target before it, by which programs
// find their own descriptors in /dev.
var DeviceLinks = [][2]string{{"/proc/self/fd", "/dev/fd"}, {"/proc/self/fd/0", "/dev/stdin"}, {"/proc/self/fd/1", "/dev/stdout"},
	{"/proc/self/fd/2", "/dev/stderr"}, {"pts/ptmx", "/dev/ptmx"}}

// kernelFolders are the parts of /proc that speak to the kernel instead of
// about processes. Root may write there without any capability, because the
// kernel compares owners.
var kernelFolders = []string{"/proc/sys", "/proc/sysrq-trigger", "/proc/irq", "/proc/bus", "/proc/fs", "/proc/acpi", "/proc/scsi",
	"/proc/asound", "/proc/driver", "/proc/mtrr", "/proc/pressure", "/proc/dynamic_debug"}

// systemPaths are files and programs that some systems keep below /run.
var systemPaths = []string{"/etc/resolv.conf", "/run/current-system", "/run/opengl-driver", "/run/opengl-driver-32", "/run/booted-system"}

// serviceFolders are the folders in which host services keep their sockets, and
// confine's own, state. A link is followed: its target is meant.
func serviceFolders(state string) []string {
	candidates := []string{"/run", "/var/run", state}
	if dir := os.Getenv("XDG_RUNTIME_DIR"); filepath.IsAbs(dir) {
		candidates = append(candidates, dir)
	}
	var folders []string
	for _, c := range candidates {
		path, err := filepath.EvalSymlinks(c)
		if err != nil || path == "/" {
			continue
		}
		if info, err := os.Stat(path); err == nil && info.IsDir() {
			folders = append(folders, path)
		}
	}
	return folders
}

// outermost are the folders that lie neither in another one nor in one that is
// exchanged as a whole: what lies there is hidden with it.
func outermost(folders []string, exchanged ...string) []string {
	var outer []string
	for _, folder := range slices.Sorted(slices.Values(folders)) { // behind those that hold it
		holds := func(o string) bool { return sandbox.Within(folder, o) }
		if !slices.ContainsFunc(outer, holds) && !slices.ContainsFunc(exchanged, holds) {
			outer = append(outer, folder)
		}
	}
	return outer
}

func existing(paths []string) []string {
	return slices.DeleteFunc(slices.Clone(paths), func(path string) bool {
		_, err := kindOf(path)
		return err != nil
	})
}
