package bwrap

import (
	"slices"
	"strings"
	"testing"

	"github.com/confine-dev/confine/sandbox"
	"github.com/confine-dev/confine/sandbox/local"
	"github.com/confine-dev/confine/sandbox/view"
)

// example is a view as one would be planned for a workspace with a protected
// file, a cache, a program below /run and a root below /tmp.
var example = view.Plan{
	Hidden: []string{"/home/me/.local/state/confine", "/run"},
	Kernel: []string{"/proc/sys", "/proc/irq"},
	Room:   sandbox.Room{Bytes: 1000},
	Mounts: []view.Mount{
		{Path: "/home/me/.cache/go", Source: "/state/s/1/merged", Writable: true},
		{Path: "/home/me/project", Source: "/home/me/project", Writable: true, Root: &sandbox.Root{}},
		{Path: "/home/me/project/.envrc", Source: "/home/me/project/.envrc", File: true},
		{Path: "/run/current-system", Source: "/run/current-system"},
		{Path: "/tmp", Source: "/state/s/tmp", Writable: true},
		{Path: "/tmp/other", Source: "/tmp/other", Writable: true, Root: &sandbox.Root{}},
	},
}

const (
	begin      = "--as-pid-1 --die-with-parent --new-session --json-status-fd 11 "
	dropped    = "--cap-drop ALL "
	rootsOwn   = "--cap-add CAP_CHOWN --cap-add CAP_DAC_OVERRIDE --cap-add CAP_FOWNER --cap-add CAP_FSETID "
	hidden     = "--ro-bind / / --perms 0755 --size 65536 --tmpfs /home/me/.local/state/confine --perms 0755 --size 65536 --tmpfs /run "
	devAndProc = "--dev /dev --perms 1777 --size 1000 --tmpfs /dev/shm --proc /proc --ro-bind /proc/sys /proc/sys --ro-bind /proc/irq /proc/irq "
	mounted    = "--bind /state/s/1/merged /home/me/.cache/go --bind /home/me/project /home/me/project --ro-bind /home/me/project/.envrc /home/me/project/.envrc " +
		"--ro-bind /run/current-system /run/current-system --bind /state/s/tmp /tmp --bind /tmp/other /tmp/other "
	closed = "--remount-ro /home/me/.local/state/confine --remount-ro /run --remount-ro /dev --"
)

func TestArguments(t *testing.T) {
	inSession := local.Request{Namespaces: true}
	granted := local.Request{Policy: sandbox.Policy{Network: true}}
	for _, test := range []struct {
		name string
		args arguments
		want string
	}{
		{"a plain user in the session's namespaces", arguments{request: inSession, plan: &example},
			begin + "--unshare-all --share-net " + dropped + hidden + devAndProc + mounted + closed},
		{"root in the session's namespaces", arguments{request: inSession, plan: &example, root: true, keep: kept(true)},
			begin + "--unshare-pid --unshare-ipc --unshare-uts --unshare-cgroup-try " + dropped + rootsOwn + hidden + devAndProc + mounted + closed},
		{"alone", arguments{plan: &example},
			begin + "--unshare-all --unshare-user " + dropped + hidden + devAndProc + mounted + closed},
		{"root alone", arguments{plan: &example, root: true, keep: kept(false)},
			begin + "--unshare-all --unshare-user " + dropped + hidden + devAndProc + mounted + closed},
		{"alone with network", arguments{request: granted, plan: &example},
			begin + "--unshare-all --unshare-user --share-net " + dropped + hidden + devAndProc + mounted + closed},
		{"before --size", arguments{request: inSession, plan: &example, version: version{0, 6, 2}},
			begin + "--unshare-all --share-net " + dropped +
				"--ro-bind / / --perms 0755 --tmpfs /home/me/.local/state/confine --perms 0755 --tmpfs /run " +
				"--dev /dev --perms 1777 --tmpfs /dev/shm --proc /proc --ro-bind /proc/sys /proc/sys --ro-bind /proc/irq /proc/irq " + mounted + closed},
		{"read-only", arguments{request: inSession, plan: &view.Plan{Kernel: example.Kernel, Room: example.Room, Mounts: []view.Mount{{Path: "/tmp", Writable: true}}}},
			begin + "--unshare-all --share-net " + dropped + "--ro-bind / / " + devAndProc +
				"--perms 1777 --size 1000 --tmpfs /tmp --remount-ro /dev --"},
		{"with the person's own paths", arguments{request: inSession, plan: &example,
			extra: extras{readOnly: []shown{{"/home/me/project/vendor", false}}, devices: []string{"/dev/kvm"}}},
			begin + "--unshare-all --share-net " + dropped + hidden +
				"--dev /dev --perms 1777 --size 1000 --tmpfs /dev/shm --dev-bind /dev/kvm /dev/kvm " +
				"--proc /proc --ro-bind /proc/sys /proc/sys --ro-bind /proc/irq /proc/irq " + mounted +
				"--ro-bind /home/me/project/vendor /home/me/project/vendor " + closed},
		{"with a path of the person's deeper down", arguments{request: inSession, plan: &example,
			extra: extras{readOnly: []shown{{"/home/me/project/a/b/vendor", false}, {"/home/me/project/a/c", true}, {"/opt/a/b", false}}}},
			begin + "--unshare-all --share-net " + dropped + hidden + devAndProc +
				"--bind /state/s/1/merged /home/me/.cache/go --bind /home/me/project /home/me/project --ro-bind /home/me/project/.envrc /home/me/project/.envrc " +
				"--bind /home/me/project/a /home/me/project/a --bind /home/me/project/a/b /home/me/project/a/b " +
				"--ro-bind /run/current-system /run/current-system --bind /state/s/tmp /tmp --bind /tmp/other /tmp/other " +
				"--ro-bind /home/me/project/a/b/vendor /home/me/project/a/b/vendor --ro-bind /home/me/project/a/c /home/me/project/a/c --ro-bind /opt/a/b /opt/a/b " + closed},
	} {
		t.Run(test.name, func(t *testing.T) {
			if test.args.version == (version{}) {
				test.args.version = version{0, 8, 0}
			}
			list, err := test.args.list()
			if got := strings.Join(list, " "); got != test.want || err != nil {
				t.Errorf("got %v\n%s\nwant\n%s", err, got, test.want)
			}
		})
	}
}

// TestPathsAreNeverOptions makes sure that a path that looks like an option is
// an operand, and stays one argument.
func TestPathsAreNeverOptions(t *testing.T) {
	strange := "/home/me/--dev-bind / /\n--share-net"
	plan := &view.Plan{Mounts: []view.Mount{{Path: strange, Source: strange, Writable: true}}}
	list, err := (&arguments{request: local.Request{Namespaces: true}, plan: plan}).list()
	if err != nil {
		t.Fatal(err)
	}
	i := slices.Index(list, strange)
	if i < 1 || list[i-1] != "--bind" || list[i+1] != strange || list[len(list)-1] != "--" {
		t.Errorf("got %q", list)
	}
}

// TestPlaces puts things below the session's /tmp, where commands can leave links:
// at most one folder is made there by name, and never a file.
func TestPlaces(t *testing.T) {
	tmp := view.Mount{Path: "/tmp", Source: "/state/s/tmp", Writable: true}
	mount := func(path string) view.Mount { return view.Mount{Path: path, Source: path} }
	for _, test := range []struct {
		name   string
		mounts []view.Mount
		want   string
	}{
		{"a folder at the top", []view.Mount{tmp, mount("/tmp/a")}, "--bind /state/s/tmp /tmp --ro-bind /tmp/a /tmp/a"},
		{"a folder deeper down", []view.Mount{tmp, mount("/tmp/a/b/c")},
			"--bind /state/s/tmp /tmp --perms 0755 --size 400 --tmpfs /tmp/a --ro-bind /tmp/a/b/c /tmp/a/b/c"},
		{"two below one folder", []view.Mount{tmp, mount("/tmp/a/b"), mount("/tmp/a/c"), mount("/tmp/d/e")},
			"--bind /state/s/tmp /tmp --perms 0755 --size 400 --tmpfs /tmp/a --ro-bind /tmp/a/b /tmp/a/b --ro-bind /tmp/a/c /tmp/a/c " +
				"--perms 0755 --size 400 --tmpfs /tmp/d --ro-bind /tmp/d/e /tmp/d/e"},
		{"within what the host has there", []view.Mount{tmp, mount("/tmp/a"), mount("/tmp/a/b/c")},
			"--bind /state/s/tmp /tmp --ro-bind /tmp/a /tmp/a --ro-bind /tmp/a/b/c /tmp/a/b/c"},
		{"in a /tmp of the run's own", []view.Mount{{Path: "/tmp", Writable: true}, mount("/tmp/a/b")},
			"--perms 1777 --size 400 --tmpfs /tmp --ro-bind /tmp/a/b /tmp/a/b"},
		{"elsewhere", []view.Mount{mount("/run/a/b"), tmp}, "--ro-bind /run/a/b /run/a/b --bind /state/s/tmp /tmp"},
		{"a file deeper down", []view.Mount{tmp, {Path: "/tmp/a/f", Source: "/tmp/a/f", File: true}},
			"--bind /state/s/tmp /tmp --perms 0755 --size 400 --tmpfs /tmp/a --ro-bind /tmp/a/f /tmp/a/f"},
		{"a file at the top", []view.Mount{tmp, {Path: "/tmp/f", Source: "/tmp/f", File: true}}, ""},
		{"a file in a cache", []view.Mount{{Path: "/home/me/.npm", Source: "/state/s/1", Writable: true}, {Path: "/home/me/.npm/f", Source: "/home/me/.npm/f", File: true}}, ""},
	} {
		a := arguments{plan: &view.Plan{Mounts: test.mounts, Room: sandbox.Room{Bytes: 400}}, version: version{0, 8, 0}}
		args, err := a.mounts()
		if got := strings.Join(args, " "); got != test.want || (err != nil) != (test.want == "") {
			t.Errorf("%s: got %v\n%s\nwant\n%s", test.name, err, got, test.want)
		}
	}
	a := arguments{plan: &view.Plan{Mounts: []view.Mount{tmp}, Room: sandbox.Room{Bytes: 400}}, extra: extras{readOnly: []shown{{"/tmp/a/b", false}}}, version: version{0, 8, 0}}
	if args, _ := a.mounts(); strings.Join(args, " ") != "--bind /state/s/tmp /tmp --perms 0755 --size 400 --tmpfs /tmp/a --ro-bind /tmp/a/b /tmp/a/b" {
		t.Errorf("the person's own path: got %q", args)
	}
}
