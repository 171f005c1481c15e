package view

import (
	"fmt"
	"math"
	"os"
	"slices"
	"strconv"

	"github.com/confine-dev/confine/sandbox"
	"github.com/confine-dev/confine/sandbox/mounts"
)

// kernelKinds are the file systems that speak to the kernel, or about every
// process of the host. Root may write there without any capability.
var kernelKinds = []string{"proc", "sysfs", "cgroup", "cgroup2", "debugfs", "tracefs", "securityfs", "selinuxfs", "configfs", "bpf",
	"efivarfs", "pstore", "binfmt_misc", "fusectl", "resctrl", "mqueue"}

// kernelPlaces are where such file systems belong: of /proc and /dev a command
// has its own, and the host's /sys is read-only.
var kernelPlaces = []string{"/proc", "/sys", "/dev"}

func ofKernel(m mounts.Mount) bool { return slices.Contains(kernelKinds, m.Kind) }

// mounted is what is mounted here.
func mounted() (mounts.Table, error) {
	list, err := listed(mounts.File, math.MaxInt)
	return mounts.Parse(string(list)), err
}

// strayKernel are the places at which the host shows such a file system
// elsewhere, as in the folder of another system that somebody works in by chroot.
// What this user cannot reach, its commands cannot either.
func strayKernel(table mounts.Table) []string {
	var places []string
	for _, m := range table {
		home := slices.ContainsFunc(kernelPlaces, func(place string) bool { return sandbox.Within(m.Place, place) })
		if home || !ofKernel(m) {
			continue
		}
		if _, err := os.Lstat(m.Place); err == nil {
			places = append(places, m.Place)
		}
	}
	return places
}

// checkRoots refuses roots and grants that lie in such a file system, wherever it
// is mounted.
func checkRoots(table mounts.Table, p sandbox.Policy) error {
	for _, root := range slices.Concat(p.Roots, grants(p)) {
		if home := table.Of(root.Path); ofKernel(home) {
			return fmt.Errorf("%s cannot be opened to commands: it belongs to the kernel (%s); open another folder", strconv.Quote(root.Path), home.Kind)
		}
	}
	return nil
}

// CheckBare refuses a policy if, without a view that hides them, file systems of
// the kernel would be writable.
func CheckBare(p sandbox.Policy) error {
	writable := slices.Clone(p.Writable)
	if p.Mode == sandbox.WorkspaceWrite {
		writable = append(writable, p.Roots...)
	}
	if len(writable) == 0 {
		return nil
	}
	table, err := mounted()
	if err != nil {
		return fmt.Errorf("finding what is mounted in writable folders: %w", err)
	}
	if err := checkRoots(table, p); err != nil {
		return err
	}
	for _, place := range strayKernel(table) {
		if slices.ContainsFunc(writable, func(r *sandbox.Root) bool { return sandbox.Within(place, r.Path) }) {
			return fmt.Errorf("%s is a file system of the kernel and would be writable: unmount it, or allow user namespaces, with which it can be hidden", strconv.Quote(place))
		}
	}
	return nil
}
