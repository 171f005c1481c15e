package mounts

import (
	"slices"

	"github.com/confine-dev/confine/sandbox"
)

// kernelKinds are the file systems that speak to the kernel, or about every
// process of the host. Root may write there without any capability.
var kernelKinds = []string{"proc", "sysfs", "cgroup", "cgroup2", "debugfs", "tracefs", "securityfs", "selinuxfs", "configfs", "bpf",
	"efivarfs", "pstore", "binfmt_misc", "fusectl", "resctrl", "mqueue"}

// kernelPlaces are where such file systems belong: of /proc and /dev a command
// has its own, and the host's /sys is read-only.
var kernelPlaces = []string{"/proc", "/sys", "/dev"}

// Kernel reports whether a mount is of such a file system.
func (m Mount) Kernel() bool { return slices.Contains(kernelKinds, m.Kind) }

// StrayKernel are the places at which such a file system is shown elsewhere, as in
// the folder of another system that somebody works in by chroot.
func (t Table) StrayKernel() []string {
	var places []string
	for _, m := range t {
		home := slices.ContainsFunc(kernelPlaces, func(place string) bool { return sandbox.Within(m.Place, place) })
		if m.Kernel() && !home {
			places = append(places, m.Place)
		}
	}
	return places
}
