package mounts

import (
	"slices"
	"testing"
)

// TestAliases: the table has the form of proc_pid_mountinfo(5).
func TestAliases(t *testing.T) {
	table := Parse(`21 1 8:1 / / rw,relatime - ext4 /dev/sda1 rw
22 21 0:20 / /proc rw - proc proc rw
30 21 8:2 / /home rw,relatime shared:1 - ext4 /dev/sda2 rw
31 21 8:2 / /mnt/all\040homes rw - ext4 /dev/sda2 rw
32 21 8:2 /me/own /srv/own rw - ext4 /dev/sda2 rw
33 21 8:2 /me/.ssh/keys /srv/keys rw - ext4 /dev/sda2 rw
34 21 8:1 /etc /srv/etc rw - ext4 /dev/sda1 rw
35 30 0:40 / /home/other rw - tmpfs tmpfs rw
36 21 8:2 /me/.ss /srv/similar rw - ext4 /dev/sda2 rw
37 30 8:2 /me/.ssh/keys /home/me/.ssh/again rw - ext4 /dev/sda2 rw
broken
`)
	for path, want := range map[string][]string{
		"/home/me/.ssh":      {"/mnt/all homes/me/.ssh", "/srv/keys"},
		"/home/me/.ssh/keys": {"/mnt/all homes/me/.ssh/keys", "/srv/keys", "/home/me/.ssh/again"},
		"/home/me/own/token": {"/mnt/all homes/me/own/token", "/srv/own/token"},
		"/srv/own/token":     {"/home/me/own/token", "/mnt/all homes/me/own/token"},
		"/etc/shadow":        {"/srv/etc/shadow"},
		"/home/other/x":      nil,
		"/opt/x":             nil,
	} {
		if got := table.Aliases(path); !slices.Equal(got, want) {
			t.Errorf("%s: got %q, want %q", path, got, want)
		}
	}
	if got := Table(nil).Aliases("/x"); got != nil {
		t.Errorf("without a table: %q", got)
	}
}

func TestUnescape(t *testing.T) {
	for text, want := range map[string]string{`/a\040b`: "/a b", `/a\134040`: `/a\040`, `/a\`: `/a\`, `/a\9999`: `/a\9999`, `\011\012`: "\t\n", "": ""} {
		if got := unescape(text); got != want {
			t.Errorf("%q: got %q, want %q", text, got, want)
		}
	}
}
