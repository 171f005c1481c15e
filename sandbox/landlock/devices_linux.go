package landlock

import (
	"fmt"

	"github.com/confine-dev/confine/sandbox/local"
	"github.com/confine-dev/confine/sandbox/view"
	"golang.org/x/sys/unix"
)

// takeDevices takes the device nodes of the host: in a user namespace none can
// be made.
func (w writer) takeDevices() []local.Ref {
	var taken []local.Ref
	for _, path := range w.plan.Devices {
		taken = append(taken, w.take("taking "+path, path))
	}
	return taken
}

// device puts up a /dev of the run's own: the nodes, new pseudoterminals,
// shared memory.
func (w writer) device(nodes []local.Ref) {
	const what = "making /dev"
	w.mountNew(what, "tmpfs", "/dev", unix.MS_NOSUID|unix.MS_NOEXEC, "mode=755,"+devSize)
	for i, path := range w.plan.Devices {
		w.touch(what, path)
		w.move(what, nodes[i], path)
	}
	for _, dir := range []string{"/dev/pts", view.SharedMemory} {
		w.s.Call(what, unix.SYS_MKDIRAT, local.Int(unix.AT_FDCWD), local.Text(dir), local.Int(0o755))
	}
	for _, link := range view.DeviceLinks {
		w.s.Call(what, unix.SYS_SYMLINKAT, local.Text(link[0]), local.Int(unix.AT_FDCWD), local.Text(link[1]))
	}
	w.mountNew("making pseudoterminals", "devpts", "/dev/pts", unix.MS_NOSUID|unix.MS_NOEXEC, "newinstance,ptmxmode=0666,mode=620")
	w.mountNew("making shared memory", "tmpfs", view.SharedMemory, unix.MS_NOSUID|unix.MS_NODEV, fmt.Sprintf("mode=1777,size=%d,nr_inodes=%d", w.plan.Room.Bytes, w.plan.Room.Files))
	w.setAttributes(what, unix.AT_FDCWD, "/dev", 0, unix.MOUNT_ATTR_RDONLY)
}

// process mounts the /proc of the run's PID namespace.
func (w writer) process() {
	w.mountNew("mounting /proc", "proc", "/proc", unix.MS_NOSUID|unix.MS_NODEV|unix.MS_NOEXEC, "")
	for _, path := range w.plan.Kernel {
		what := "making " + path + " read-only"
		fd := w.take(what, path)
		w.setAttributesOf(what, fd, unix.AT_RECURSIVE, unix.MOUNT_ATTR_RDONLY|unix.MOUNT_ATTR_NOSUID|unix.MOUNT_ATTR_NODEV|unix.MOUNT_ATTR_NOEXEC)
		w.move(what, fd, path)
	}
}
