package seatbelt

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/confine-dev/confine/sandbox"
)

var update = flag.Bool("update", false, "write the expected profiles anew")

func roots(paths ...string) (list []*sandbox.Root) {
	for _, p := range paths {
		list = append(list, &sandbox.Root{Path: p})
	}
	return list
}

// scene is a workspace with something of everything.
func scene(mode sandbox.Mode, network bool) (sandbox.Policy, Session) {
	return sandbox.Policy{
			Mode:       mode,
			Network:    network,
			Roots:      roots("/Users/ann/repo", "/Users/ann/.secret/open"),
			Protected:  []string{"/Users/ann/repo/.git/hooks", "/Users/ann/repo/.git/config", "/Users/ann/repo/sub/.vscode"},
			Unreadable: []string{"/Users/ann/.ssh", "/Users/ann/.secret", "/Users/ann/repo/deep/.env"},
			Writable:   []*sandbox.Root{{Path: "/Users/ann/notes.txt", File: true}, {Path: "/Users/ann/repo/.git/config", File: true}},
			Readable:   []*sandbox.Root{{Path: "/Users/ann/.ssh/config", File: true}},
		}, Session{
			Own:    []string{"/Users/ann/.local/state/confine/servers/1/tmp"},
			State:  []string{"/Users/ann/.local/state/confine"},
			Absent: []string{"/Users/ann/repo/sub/.vscode"},
		}
}

func build(t *testing.T, p sandbox.Policy, s Session) *evaluator {
	t.Helper()
	profile, err := Build(p, s)
	if err != nil {
		t.Fatal(err)
	}
	e, err := load(profile)
	if err != nil {
		t.Fatalf("%v in\n%s", err, profile.Text)
	}
	return e
}

// columns are the profiles that TestOperations asks.
var columns = []struct {
	name    string
	mode    sandbox.Mode
	network bool
}{
	{"read-only", sandbox.ReadOnly, false},
	{"workspace-write", sandbox.WorkspaceWrite, false},
	{"with network", sandbox.WorkspaceWrite, true},
}

const (
	never     = "..." // a letter for each column
	always    = "yyy"
	inWrite   = ".yy"
	ifNetwork = "..y"
)

var decisions = []struct {
	allowed string
	operation
}{
	// What can be read.
	{always, operation{name: "file-read-data", path: "/usr/bin/git"}},
	{always, operation{name: "file-read-data", path: "/Users/ann/repo/main.go"}},
	{always, operation{name: "file-read-data", path: "/Users/ann/.sshrc"}},
	{never, operation{name: "file-read-data", path: "/Users/ann/.ssh/id_ed25519"}},
	{never, operation{name: "file-read-data", path: "/System/Volumes/Data/Users/ann/.ssh/id_ed25519"}},
	{never, operation{name: "file-read-metadata", path: "/Users/ann/.ssh/id_ed25519"}},
	{never, operation{name: "file-read-xattr", path: "/Users/ann/.ssh/id_ed25519"}},
	{never, operation{name: "process-exec", path: "/Users/ann/.ssh/rc"}},
	{never, operation{name: "file-read-data", path: "/Users/ann/.ssh"}},
	{always, operation{name: "file-read-metadata", path: "/Users/ann/.ssh"}}, // on the way to config
	{always, operation{name: "file-read-data", path: "/Users/ann/.ssh/config"}},
	{never, operation{name: "file-read-data", path: "/Users/ann/.ssh/config2"}},
	{never, operation{name: "file-read-data", path: "/Users/ann/.secret/key"}},
	{always, operation{name: "file-read-data", path: "/Users/ann/.secret/open/file"}},
	{never, operation{name: "file-read-data", path: "/Users/ann/repo/deep/.env"}},
	{never, operation{name: "file-read-data", path: "/Users/ann/.local/state/confine/audit.jsonl"}},
	{always, operation{name: "file-read-data", path: "/Users/ann/.local/state/confine/servers/1/tmp/x"}},
	{never, operation{name: "file-read-data", path: "/Users/ann/.local/state/confine/servers/2/tmp/x"}},

	// What can be written.
	{never, operation{name: "file-write-data", path: "/Users/ann/.zshrc"}},
	{never, operation{name: "file-write-create", path: "/private/tmp/x"}},
	{never, operation{name: "file-write-create", path: "/private/var/folders/ab/cdef/T/xcrun_db"}},
	{never, operation{name: "file-write-data", path: "/private/etc/hosts"}},
	{inWrite, operation{name: "file-write-create", path: "/Users/ann/repo/new"}},
	{inWrite, operation{name: "file-write-unlink", path: "/Users/ann/repo/new"}},
	{inWrite, operation{name: "file-write-mode", path: "/Users/ann/repo/new"}},
	{never, operation{name: "file-write-create", path: "/Users/ann/repo2"}},
	{never, operation{name: "file-write-create", path: "/Users/ann/reposhop/x"}},
	{never, operation{name: "file-write-setugid", path: "/Users/ann/repo/new"}},
	{inWrite, operation{name: "file-write-create", path: "/Users/ann/.secret/open/file"}},
	{never, operation{name: "file-write-data", path: "/Users/ann/.secret/key"}},
	{never, operation{name: "file-write-data", path: "/Users/ann/repo/deep/.env"}},
	{always, operation{name: "file-write-data", path: "/Users/ann/notes.txt"}},
	{always, operation{name: "file-write-unlink", path: "/Users/ann/notes.txt"}},
	{never, operation{name: "file-write-data", path: "/Users/ann/notes.txt2"}},
	{always, operation{name: "file-write-create", path: "/Users/ann/.local/state/confine/servers/1/tmp/x"}},
	{never, operation{name: "file-write-unlink", path: "/Users/ann/.local/state/confine/servers/1/tmp"}},
	{never, operation{name: "file-write-create", path: "/Users/ann/.local/state/confine/x"}},
	{never, operation{name: "file-write-data", path: "/Users/ann/.ssh/config"}},

	// What stays as it is, and what is around it.
	{inWrite, operation{name: "file-write-create", path: "/Users/ann/repo/.git/index"}},
	{never, operation{name: "file-write-create", path: "/Users/ann/repo/.git/hooks/pre-commit"}},
	{never, operation{name: "file-write-create", path: "/System/Volumes/Data/Users/ann/repo/.git/hooks/pre-commit"}},
	{never, operation{name: "file-write-unlink", path: "/Users/ann/repo/.git/hooks"}},
	{never, operation{name: "file-write-unlink", path: "/Users/ann/repo/.git"}},
	{never, operation{name: "file-write-unlink", path: "/Users/ann/repo"}},
	{never, operation{name: "file-write-unlink", path: "/Users/ann/.secret/open"}},
	{never, operation{name: "file-write-unlink", path: "/Users/ann/repo/sub"}},
	{never, operation{name: "file-write-unlink", path: "/Users/ann/repo/deep"}},
	{inWrite, operation{name: "file-write-unlink", path: "/Users/ann/repo/other"}},
	{always, operation{name: "file-write-data", path: "/Users/ann/repo/.git/config"}}, // granted
	{always, operation{name: "file-write-unlink", path: "/Users/ann/repo/.git/config"}},
	{inWrite, operation{name: "file-write-create", path: "/Users/ann/repo/.git/config.lock"}},
	{never, operation{name: "file-write-create", path: "/Users/ann/repo/sub/.vscode"}},
	{never, operation{name: "file-write-create", path: "/Users/ann/repo/sub/.VSCode"}},
	{never, operation{name: "file-write-create", path: "/Users/ann/repo/sub/.VSCODE/tasks.json"}},
	{inWrite, operation{name: "file-write-create", path: "/Users/ann/repo/sub/xvscode"}},
	{inWrite, operation{name: "file-write-create", path: "/Users/ann/repo/sub/.vscode2"}},
	{inWrite, operation{name: "file-write-create", path: "/Users/ann/repo/sub/a/.vscode"}}, // nobody listed it

	// Devices.
	{always, operation{name: "file-write-data", path: "/dev/null"}},
	{always, operation{name: "file-read-data", path: "/dev/urandom"}},
	{always, operation{name: "file-read-data", path: "/dev"}},
	{always, operation{name: "file-write-data", path: "/dev/fd/2"}},
	{never, operation{name: "file-write-create", path: "/dev/null2"}},
	{never, operation{name: "file-write-unlink", path: "/dev/null"}},
	{never, operation{name: "file-read-data", path: "/dev/ttys001"}},
	{never, operation{name: "file-write-data", path: "/dev/ttys001"}},
	{never, operation{name: "file-ioctl", path: "/dev/ttys001"}},
	{always, operation{name: "file-write-data", path: "/dev/ttys001", extensions: []string{"com.apple.sandbox.pty"}}},
	{always, operation{name: "file-ioctl", path: "/dev/ptmx"}},
	{never, operation{name: "file-read-data", path: "/dev/rdisk0"}},
	{never, operation{name: "file-write-data", path: "/dev/rdisk0"}},
	{never, operation{name: "file-ioctl", path: "/dev/disk0"}},
	{never, operation{name: "iokit-open"}},

	// Other processes.
	{always, operation{name: "process-fork"}},
	{always, operation{name: "process-exec", path: "/usr/bin/git"}},
	{always, operation{name: "signal", same: true}},
	{never, operation{name: "signal"}},
	{always, operation{name: "process-info-pidinfo", same: true}},
	{never, operation{name: "process-info-pidinfo"}},
	{never, operation{name: "mach-priv-task-port"}},
	{always, operation{name: "sysctl-read", service: "hw.ncpu"}},
	{never, operation{name: "sysctl-read", service: "kern.procargs2.123"}},
	{never, operation{name: "sysctl-write", service: "kern.hostname"}},
	{never, operation{name: "job-creation"}},
	{never, operation{name: "nvram-set"}},

	// Services.
	{always, operation{name: "mach-lookup", service: "com.apple.system.opendirectoryd.libinfo"}},
	{never, operation{name: "mach-lookup", service: "com.apple.system.opendirectoryd.libinfo.more"}},
	{never, operation{name: "mach-lookup", service: "com.apple.SecurityServer"}},
	{never, operation{name: "mach-lookup", service: "com.apple.securityd.xpc"}},
	{never, operation{name: "mach-lookup", service: "com.apple.coreservices.launchservicesd"}},
	{never, operation{name: "mach-lookup", service: "com.apple.coreservices.appleevents"}},
	{never, operation{name: "mach-lookup", service: "com.apple.nsurlsessiond"}},
	{never, operation{name: "mach-lookup", service: "com.apple.pasteboard.1"}},
	{ifNetwork, operation{name: "mach-lookup", service: "com.apple.trustd.agent"}},
	{ifNetwork, operation{name: "mach-lookup", service: "com.apple.dnssd.service"}},
	{never, operation{name: "mach-register", service: "com.example"}},
	{never, operation{name: "appleevent-send"}},
	{never, operation{name: "lsopen"}},
	{never, operation{name: "user-preference-write"}},
	{never, operation{name: "distributed-notification-post"}},
	{always, operation{name: "ipc-posix-sem", service: "/mp-1"}},
	{always, operation{name: "ipc-posix-shm-write-create", service: "/psm_1a2b"}},
	{never, operation{name: "ipc-posix-shm-write-create", service: "/PostgreSQL.1"}},
	{never, operation{name: "ipc-posix-shm-write-data", service: "apple.shm.notification_center"}},
	{never, operation{name: "ipc-sysv-shm"}},

	// Network.
	{ifNetwork, operation{name: "network-outbound", ip: "93.184.216.34:443"}},
	{ifNetwork, operation{name: "network-outbound", ip: "127.0.0.1:5432"}},
	{ifNetwork, operation{name: "network-bind", ip: "127.0.0.1:8080"}},
	{ifNetwork, operation{name: "network-inbound", ip: "127.0.0.1:8080"}},
	{ifNetwork, operation{name: "network-outbound", path: "/private/var/run/mDNSResponder"}},
	{never, operation{name: "network-outbound", path: "/private/var/run/docker.sock", socket: "/private/var/run/docker.sock"}},
	{never, operation{name: "network-outbound", socket: "/Users/ann/.docker/run/docker.sock"}},
	{never, operation{name: "network-outbound", socket: "/private/tmp/com.apple.launchd.x/Listeners"}},
	{inWrite, operation{name: "network-outbound", socket: "/Users/ann/repo/dev.sock"}},
	{always, operation{name: "network-bind", socket: "/Users/ann/.local/state/confine/servers/1/tmp/s"}},
	{never, operation{name: "network-bind", socket: "/Users/ann/x.sock"}},
	{always, operation{name: "system-socket", domain: "AF_UNIX"}},
	{ifNetwork, operation{name: "system-socket", domain: "AF_ROUTE"}},
	{ifNetwork, operation{name: "system-socket", domain: "AF_SYSTEM", protocol: "2"}},
	{never, operation{name: "system-socket", domain: "AF_SYSTEM", protocol: "1"}},
}

func TestOperations(t *testing.T) {
	for i, c := range columns {
		p, s := scene(c.mode, c.network)
		e := build(t, p, s)
		for _, d := range decisions {
			if got, want := e.allows(d.operation), d.allowed[i] == 'y'; got != want {
				t.Errorf("%s: %+v: allowed is %v, want %v", c.name, d.operation, got, want)
			}
		}
	}
}

// TestStateInTheWorkspace: confine's own folders are closed wherever they lie.
func TestStateInTheWorkspace(t *testing.T) {
	e := build(t, sandbox.Policy{Mode: sandbox.WorkspaceWrite, Roots: roots("/Users/ann/repo")},
		Session{State: []string{"/Users/ann/repo/state"}, Own: []string{"/Users/ann/repo/state/1/tmp"}})
	for path, want := range map[string]bool{"/Users/ann/repo/f": true, "/Users/ann/repo/state/audit.jsonl": false, "/Users/ann/repo/state/1/tmp/f": true} {
		for _, name := range []string{"file-read-data", "file-write-data"} {
			if got := e.allows(operation{name: name, path: path}); got != want {
				t.Errorf("%s of %s: allowed is %v", name, path, got)
			}
		}
	}
}

// TestProfilesAreAsWritten compares whole profiles, so that a change of any rule is
// seen by whoever makes it. "go test ./sandbox/seatbelt -update" writes them anew.
func TestProfilesAreAsWritten(t *testing.T) {
	for _, c := range columns {
		profile, err := Build(scene(c.mode, c.network))
		if err != nil {
			t.Fatal(err)
		}
		got := profile.Text
		for _, p := range profile.Params {
			got += fmt.Sprintf("; %s=%s\n", p.Name, p.Value)
		}
		file := filepath.Join("testdata", strings.ReplaceAll(c.name, " ", "-")+".sb")
		if *update {
			if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		want, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if want := strings.ReplaceAll(string(want), "\r\n", "\n"); got != want {
			t.Errorf("%s is another one:\n%s", file, got)
		}
	}
}

// TestPathsAreNeverPartOfTheText uses paths that would be rules if they were.
func TestPathsAreNeverPartOfTheText(t *testing.T) {
	p, s := scene(sandbox.WorkspaceWrite, false)
	evil := `/Users/ann/")) (allow default) ("` + "\n\\\xff"
	p.Roots[0].Path, p.Protected[0], s.Own[0] = evil, evil+"/.git/hooks", "/private/tmp/(param \"P1\")"
	profile, err := Build(p, s)
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(profile.Text, "ann") || strings.Contains(profile.Text, "tmp") {
		t.Errorf("a path got into the text:\n%s", profile.Text)
	}
	e := build(t, p, s)
	for path, want := range map[string]bool{evil + "/x": true, evil + "/.git/hooks/x": false, "/Users/ann/x": false, s.Own[0] + "/x": true} {
		if got := e.allows(operation{name: "file-write-create", path: path}); got != want {
			t.Errorf("%q: allowed is %v, want %v", path, got, want)
		}
	}
}

func TestPathsThatNoRuleCanHave(t *testing.T) {
	for _, path := range []string{"", "/", "//", "relative", "/Users/ann/..//..", "/a\x00b"} {
		for _, p := range []sandbox.Policy{
			{Mode: sandbox.WorkspaceWrite, Roots: roots(path)},
			{Mode: sandbox.ReadOnly, Unreadable: []string{path}},
			{Mode: sandbox.WorkspaceWrite, Roots: roots("/w"), Protected: []string{path}},
		} {
			if profile, err := Build(p, Session{}); err == nil {
				t.Errorf("%q in %s: no error but\n%s", path, p.String(), profile.Text)
			}
		}
	}
	for _, mode := range []sandbox.Mode{sandbox.DangerFullAccess, sandbox.ExternalSandbox} {
		if _, err := Build(sandbox.Policy{Mode: mode}, Session{}); err == nil {
			t.Errorf("mode %s has a profile", mode)
		}
	}
}

func TestCanonical(t *testing.T) {
	for path, want := range map[string]string{
		"/tmp": "/private/tmp", "/tmp/x/": "/private/tmp/x", "/tmpx": "/tmpx", "/var/folders/a": "/private/var/folders/a", "/etc/hosts": "/private/etc/hosts",
		"/System/Volumes/Data/Users/ann": "/Users/ann", "/System/Volumes/Data/private/tmp": "/private/tmp",
		"/System/Volumes/Data/.Spotlight-V100": "/System/Volumes/Data/.Spotlight-V100", "/System/Library": "/System/Library", "/Users/a/../b": "/Users/b",
	} {
		if got := canonical(path); got != want {
			t.Errorf("canonical(%q) = %q, want %q", path, got, want)
		}
	}
}

// TestInnermostPlaceDecides compares profiles of random policies with the rule in
// words: the longest place around a file decides, of equal ones the grant, then
// protection.
func TestInnermostPlaceDecides(t *testing.T) {
	random := rand.New(rand.NewPCG(4, 2))
	path := func() string {
		p := "/w"
		for range random.IntN(4) {
			p += "/" + string(rune('a'+random.IntN(2)))
		}
		return p
	}
	some := func() (list []string) {
		for range random.IntN(3) {
			list = append(list, path())
		}
		return list
	}
	for range 150 {
		p := sandbox.Policy{Mode: sandbox.WorkspaceWrite, Roots: roots(some()...), Protected: some(), Unreadable: some(), Writable: roots(some()...), Readable: roots(some()...)}
		e := build(t, p, Session{})
		for range 20 {
			file := path() + "/file"
			if got, want := e.allows(operation{name: "file-write-data", path: file}), longest(file, false,
				[2]any{true, p.RootPaths()}, [2]any{false, p.Unreadable}, [2]any{false, p.Protected}, [2]any{true, pathsOf(p.Writable)}); got != want {
				t.Fatalf("writing %s under %s: %v, want %v", file, p.String(), got, want)
			}
			if got, want := e.allows(operation{name: "file-read-data", path: file}), longest(file, true,
				[2]any{true, p.RootPaths()}, [2]any{true, pathsOf(p.Writable)}, [2]any{false, p.Unreadable}, [2]any{true, pathsOf(p.Readable)}); got != want {
				t.Fatalf("reading %s under %s: %v, want %v", file, p.String(), got, want)
			}
		}
		unmoved(t, p, e)
	}
}

func longest(file string, otherwise bool, groups ...[2]any) bool {
	length := 0
	for _, g := range groups {
		for _, place := range g[1].([]string) {
			if strings.HasPrefix(file, place+"/") && len(place) >= length {
				length, otherwise = len(place), g[0].(bool)
			}
		}
	}
	return otherwise
}

func pathsOf(roots []*sandbox.Root) []string { return sandbox.Policy{Roots: roots}.RootPaths() }

// unmoved checks that nothing that is closed can be taken to where it is open.
func unmoved(t *testing.T, p sandbox.Policy, e *evaluator) {
	t.Helper()
	for _, closed := range slices.Concat(p.Protected, p.Unreadable) {
		for folder := closed; folder != "/"; folder = filepath.ToSlash(filepath.Dir(folder)) {
			open := slices.Contains(pathsOf(p.Writable), closed) // then it is not closed
			if !open && e.allows(operation{name: "file-write-create", path: closed}) {
				t.Fatalf("%s can be made under %s", closed, p.String())
			}
			if !open && e.allows(operation{name: "file-write-unlink", path: folder}) {
				t.Fatalf("%s, around %s, can be moved under %s", folder, closed, p.String())
			}
		}
	}
}
