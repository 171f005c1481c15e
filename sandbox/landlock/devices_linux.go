package landlock

import (
	"os"

	"github.com/confine-dev/confine/sandbox/local"
	"golang.org/x/sys/unix"
)

// deviceNodes are the devices of a command: everybody may use them.
var deviceNodes = []string{"null", "zero", "full", "random", "urandom", "tty"}

// deviceLinks are the names by which programs find their own descriptors.
var deviceLinks = [][2]string{{"/proc/self/fd", "/dev/fd"}, {"/proc/self/fd/0", "/dev/stdin"}, {"/proc/self/fd/1", "/dev/stdout"},
	{"/proc/self/fd/2", "/dev/stderr"}, {"pts/ptmx", "/dev/ptmx"}}

// sharedMemory is where programs share memory by files.
const sharedMemory = "/dev/shm"

// takeDevices takes the device nodes of the host: in a user namespace none can
// be made.
func (v *view) takeDevices() []mount {
	var devices []mount
	for _, name := range deviceNodes {
		path := "/dev/" + name
		if info, err := os.Stat(path); err == nil && info.Mode()&os.ModeCharDevice != 0 {
			devices = append(devices, mount{path: path, fd: v.take("taking "+path, path)})
		}
	}
	return devices
}

// device puts up a /dev of the run's own: the nodes, new pseudoterminals,
// shared memory.
func (v *view) device(devices []mount) {
	const what = "making /dev"
	v.mountNew(what, "tmpfs", "/dev", unix.MS_NOSUID|unix.MS_NOEXEC, "mode=755,"+devSize)
	for _, d := range devices {
		v.touch(what, d.path)
		v.move(what, d.fd, d.path)
	}
	for _, dir := range []string{"/dev/pts", sharedMemory} {
		v.s.Call(what, unix.SYS_MKDIRAT, local.Int(unix.AT_FDCWD), local.Text(dir), local.Int(0o755))
	}
	for _, link := range deviceLinks {
		v.s.Call(what, unix.SYS_SYMLINKAT, local.Text(link[0]), local.Int(unix.AT_FDCWD), local.Text(link[1]))
	}
	v.mountNew("making pseudoterminals", "devpts", "/dev/pts", unix.MS_NOSUID|unix.MS_NOEXEC, "newinstance,ptmxmode=0666,mode=620")
	v.mountNew("making shared memory", "tmpfs", sharedMemory, unix.MS_NOSUID|unix.MS_NODEV, "mode=1777,size=25%")
	v.setAttributes(what, unix.AT_FDCWD, "/dev", 0, unix.MOUNT_ATTR_RDONLY)
}

// kernelFolders are the parts of /proc that speak to the kernel instead of
// about processes. Root may write there without any capability, because the
// kernel compares owners.
var kernelFolders = []string{"/proc/sys", "/proc/sysrq-trigger", "/proc/irq", "/proc/bus", "/proc/fs", "/proc/acpi", "/proc/scsi",
	"/proc/asound", "/proc/driver", "/proc/mtrr", "/proc/pressure", "/proc/dynamic_debug"}

// process mounts the /proc of the run's PID namespace.
func (v *view) process() {
	v.mountNew("mounting /proc", "proc", "/proc", unix.MS_NOSUID|unix.MS_NODEV|unix.MS_NOEXEC, "")
	for _, path := range kernelFolders {
		if _, err := os.Lstat(path); err != nil {
			continue
		}
		what := "making " + path + " read-only"
		fd := v.take(what, path)
		v.setAttributesOf(what, fd, unix.AT_RECURSIVE, unix.MOUNT_ATTR_RDONLY|unix.MOUNT_ATTR_NOSUID|unix.MOUNT_ATTR_NODEV|unix.MOUNT_ATTR_NOEXEC)
		v.move(what, fd, path)
	}
}
