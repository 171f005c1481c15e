package view

import (
	"slices"
	"testing"

	"github.com/confine-dev/confine/sandbox"
)

// TestAliases: the table has the form of proc_pid_mountinfo(5).
func TestAliases(t *testing.T) {
	table := parseMounts(`21 1 8:1 / / rw,relatime - ext4 /dev/sda1 rw
22 21 0:20 / /proc rw - proc proc rw
30 21 8:2 / /home rw,relatime shared:1 - ext4 /dev/sda2 rw
31 21 8:2 / /mnt/all\040homes rw - ext4 /dev/sda2 rw
32 21 8:2 /me/work /srv/work rw - ext4 /dev/sda2 rw
33 21 8:2 /me/.ssh/keys /srv/keys rw - ext4 /dev/sda2 rw
34 21 8:1 /etc /srv/etc rw - ext4 /dev/sda1 rw
35 30 0:40 / /home/other rw - tmpfs tmpfs rw
36 21 8:2 /me/.ss /srv/similar rw - ext4 /dev/sda2 rw
37 30 8:2 /me/.ssh/keys /home/me/.ssh/again rw - ext4 /dev/sda2 rw
broken
`)
	for path, want := range map[string][]string{
		"/home/me/.ssh":       {"/mnt/all homes/me/.ssh", "/srv/keys"},
		"/home/me/.ssh/keys":  {"/mnt/all homes/me/.ssh/keys", "/srv/keys", "/home/me/.ssh/again"},
		"/home/me/work/token": {"/mnt/all homes/me/work/token", "/srv/work/token"},
		"/srv/work/token":     {"/home/me/work/token", "/mnt/all homes/me/work/token"},
		"/etc/shadow":         {"/srv/etc/shadow"},
		"/home/other/x":       nil,
		"/opt/x":              nil,
	} {
		if got := aliases(path, table); !slices.Equal(got, want) {
			t.Errorf("%s: got %q, want %q", path, got, want)
		}
	}
	if got := aliases("/x", nil); got != nil {
		t.Errorf("without a table: %q", got)
	}
	roots := []*sandbox.Root{{Path: "/srv/keys"}, {Path: "/mnt/all homes/me/.ssh/deep"}}
	if got, want := withAliases([]string{"/home/me/.ssh"}, table, roots), []string{"/home/me/.ssh", "/mnt/all homes/me/.ssh"}; !slices.Equal(got, want) {
		t.Errorf("with roots: got %q, want %q", got, want)
	}
}

func TestUnescape(t *testing.T) {
	for text, want := range map[string]string{`/a\040b`: "/a b", `/a\134040`: `/a\040`, `/a\`: `/a\`, `/a\9999`: `/a\9999`, `\011\012`: "\t\n", "": ""} {
		if got := unescape(text); got != want {
			t.Errorf("%q: got %q, want %q", text, got, want)
		}
	}
}

// TestStrayKernel: a file system of the kernel is hidden wherever it is shown besides
// its own place, and its own place is not taken for another name of it.
func TestStrayKernel(t *testing.T) {
	folder := t.TempDir()
	table := parseMounts(`21 1 8:1 / / rw - ext4 /dev/sda1 rw
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
