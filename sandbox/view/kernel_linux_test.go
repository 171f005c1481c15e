package view

import (
	"slices"
	"testing"

	"github.com/confine-dev/confine/sandbox"
	"github.com/confine-dev/confine/sandbox/mounts"
)

// TestAliasesOfHidden: a root that is another name of what is hidden stays.
func TestAliasesOfHidden(t *testing.T) {
	table := mounts.Parse(`21 1 8:1 / / rw - ext4 /dev/sda1 rw
30 21 8:2 / /home rw - ext4 /dev/sda2 rw
31 21 8:2 / /mnt/all\040homes rw - ext4 /dev/sda2 rw
33 21 8:2 /me/.ssh/keys /srv/keys rw - ext4 /dev/sda2 rw
`)
	roots := []*sandbox.Root{{Path: "/srv/keys"}, {Path: "/mnt/all homes/me/.ssh/deep"}}
	if got, want := withAliases([]string{"/home/me/.ssh"}, table, roots), []string{"/home/me/.ssh", "/mnt/all homes/me/.ssh"}; !slices.Equal(got, want) {
		t.Errorf("with roots: got %q, want %q", got, want)
	}
}

// TestStrayKernel: a file system of the kernel is hidden wherever it is shown besides
// its own place, and its own place is not taken for another name of it.
func TestStrayKernel(t *testing.T) {
	folder := t.TempDir()
	table := mounts.Parse(`21 1 8:1 / / rw - ext4 /dev/sda1 rw
22 21 0:20 / /proc rw - proc proc rw
23 22 0:21 / /proc/sys/fs/binfmt_misc rw - binfmt_misc none rw
24 21 0:22 / /sys/kernel/debug rw - debugfs none rw
25 21 0:20 / ` + folder + ` rw shared:7 master:1 - proc proc rw
26 21 0:23 / ` + folder + `/not-there rw - sysfs none rw
27 21 0:24 / /var rw - tmpfs proc rw
`)
	if got := strayKernel(table); !slices.Equal(got, []string{folder}) {
		t.Errorf("got %q", got)
	}
	for path, refused := range map[string]bool{folder: true, folder + "/1/root": true, "/var/ws": false, "/ws": false} {
		for name, p := range map[string]sandbox.Policy{
			"root": {Roots: []*sandbox.Root{{Path: path}}}, "written": {Writable: []*sandbox.Root{{Path: path}}}, "read": {Readable: []*sandbox.Root{{Path: path}}},
		} {
			if err := checkRoots(table, p); (err != nil) != refused {
				t.Errorf("%s %s: %v", name, path, err)
			}
		}
	}
}
