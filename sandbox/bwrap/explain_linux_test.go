package bwrap

import (
	"errors"
	"os"
	"strings"
	"testing"

	"github.com/confine-dev/confine/sandbox"
	"github.com/confine-dev/confine/sandbox/local"
)

// Messages as bubblewrap prints them.
const (
	refused08     = "bwrap: No permissions to creating new namespace, likely because the kernel does not allow non-privileged user namespaces. On e.g. debian this can be enabled with 'sysctl kernel.unprivileged_userns_clone=1'."
	refusedDebian = "bwrap: No permissions to create new namespace, likely because the kernel does not allow non-privileged user namespaces. See <https://deb.li/bubblewrap> or <file:///usr/share/doc/bubblewrap/README.Debian.gz>."
	exceeded      = "bwrap: Creating new namespace failed: nesting depth or /proc/sys/user/max_*_namespaces exceeded (ENOSPC)"
)

func TestExplain(t *testing.T) {
	for _, test := range []struct {
		name   string
		stderr string
		host   host
		reason string // part of it
		remedy string // part of one
	}{
		{"the sysctl of Debian", refusedDebian, host{Host: local.Host{Unprivileged: "0", Maximum: "96365"}}, "kernel.unprivileged_userns_clone = 0", "sysctl kernel.unprivileged_userns_clone=1"},
		{"the same, upstream's words", refused08, host{Host: local.Host{Unprivileged: "0"}}, "kernel.unprivileged_userns_clone = 0", "sysctl kernel.unprivileged_userns_clone=1"},
		{"none allowed at all", refusedDebian, host{Host: local.Host{Maximum: "0"}}, "user.max_user_namespaces = 0", "sysctl user.max_user_namespaces="},
		{"none allowed at all, as the kernel says it", exceeded, host{Host: local.Host{Maximum: "0"}}, "user.max_user_namespaces = 0", "sysctl user.max_user_namespaces="},
		{"too many", exceeded, host{Host: local.Host{Maximum: "96365"}}, "limit of namespaces", "user.max_user_namespaces"},
		{"AppArmor refuses", refused08, host{Host: local.Host{AppArmor: "1", Maximum: "96365"}}, "AppArmor", "/etc/apparmor.d/bwrap"},
		{"AppArmor of Ubuntu 24.04", "bwrap: setting up uid map: Permission denied", host{Host: local.Host{AppArmor: "1"}}, "AppArmor", "/etc/apparmor.d/bwrap"},
		{"AppArmor, seen at the network", "bwrap: loopback: Failed RTM_NEWADDR: Operation not permitted", host{Host: local.Host{AppArmor: "1"}}, "AppArmor", "/etc/apparmor.d/bwrap"},
		{"a sandbox around", "bwrap: setting up uid map: Permission denied", host{}, "another sandbox", "outside that sandbox"},
		{"a container's filter", refused08, host{Host: local.Host{Seccomp: true, Maximum: "96365"}}, "seccomp", "seccomp profile"},
		{"a container's filter for root", "bwrap: Creating new namespace failed: Operation not permitted", host{Host: local.Host{Seccomp: true, Root: true}}, "seccomp", "seccomp profile"},
		{"for unknown reasons", refused08, host{}, "refuses new namespaces", "sysctl"},
		{"no user namespaces in the kernel", "bwrap: Creating new namespace failed, likely because the kernel does not support user namespaces.  bwrap must be installed setuid on such systems.", host{}, "CONFIG_USER_NS", "boot a kernel"},
		{"out of processes", "bwrap: Creating new namespace failed: Resource temporarily unavailable", host{}, "limit of processes", "ulimit -u"},
		{"a container's /proc", "bwrap: Can't mount proc on /newroot/proc: Operation not permitted", host{}, "containers do that mask", "systempaths=unconfined"},
		{"a container's AppArmor", "bwrap: Failed to make / slave: Permission denied", host{}, "forbids it", "apparmor=unconfined"},
		{"setuid without effect", refused08, host{Host: local.Host{NoNewPrivs: true, Unprivileged: "0"}, setuid: true}, "under no_new_privs", "sysctl kernel.unprivileged_userns_clone=1"},
		{"setuid with effect", "bwrap: The --size option is not permitted in setuid mode", host{setuid: true}, "installed setuid root", "chmod u-s"},
		{"capabilities", "bwrap: Unexpected capabilities but not setuid, old file caps config?", host{}, "with capabilities", "ambient"},
		{"an option it lacks", "bwrap: Unknown option --json-status-fd", host{}, "too old", "update bubblewrap"},
		{"a source that vanished", "bwrap: Can't find source path /home/me/work: No such file or directory", host{}, "vanished", "reopen"},
		{"a source that vanished later", "bwrap: Can't get type of source /home/me/work: No such file or directory", host{}, "vanished", "reopen"},
		{"a place that cannot be made", "bwrap: Can't mkdir /srv/x: Read-only file system", host{}, "could not be put", "doctor"},
		{"a mount that cannot be made", "bwrap: Can't bind mount /oldroot/x on /newroot/x: No such device", host{}, "could not be put", "doctor"},
		{"an initial ramdisk", "bwrap: pivot_root: Invalid argument", host{}, "ramdisk", "mounted as root"},
		{"no init", "bwrap: execvp /proc/self/fd/10: Permission denied", host{}, "could not execute confine's init", "doctor"},
		{"something new", "bwrap: the moon is full", host{}, "the moon is full", "doctor"},
		{"nothing", "", host{}, "exit status 1", "doctor"},
	} {
		t.Run(test.name, func(t *testing.T) {
			e := &local.RunnerError{Name: "bwrap", Stderr: test.stderr + "\n", Cause: errors.New("exit status 1")}
			reason, remedies := explain(e, test.host)
			if !strings.Contains(reason, test.reason) {
				t.Errorf("got reason %q, want %q in it", reason, test.reason)
			}
			if all := strings.Join(remedies, "\n"); !strings.Contains(all, test.remedy) {
				t.Errorf("got remedies %q, want %q in them", all, test.remedy)
			}
			if strings.Contains(reason, "\n") {
				t.Errorf("the reason has several lines: %q", reason)
			}
		})
	}
}

// TestCausesAreDistinct makes sure that no message is taken for another's cause.
func TestCausesAreDistinct(t *testing.T) {
	seen := map[string]string{}
	for name, stderr := range map[string]string{
		"refused": refused08, "mapped": "bwrap: setting up uid map: Permission denied", "proc": "bwrap: Can't mount proc on /newroot/proc: Operation not permitted",
		"vanished": "bwrap: Can't find source path /x: No such file or directory", "old": "bwrap: Unknown option --perms", "exceeded": exceeded,
	} {
		reason, _ := explain(&local.RunnerError{Name: "bwrap", Stderr: stderr, Cause: errors.New("exit status 1")}, host{})
		_, why, _ := strings.Cut(reason, stderr+": ")
		if other, ok := seen[why]; ok || why == "" {
			t.Errorf("%s and %s mean the same: %q", name, other, why)
		}
		seen[why] = name
	}
}

// TestFailureIsExplained lets a bubblewrap fail as one does under AppArmor: the
// command is refused with the cause and what to do. One that works by the next
// command is used.
func TestFailureIsExplained(t *testing.T) {
	dir := folder(t)
	if err := os.Mkdir(dir+"/state", 0o700); err != nil {
		t.Fatal(err)
	}
	speaker(t, dir+"/bwrap", "bwrap: setting up uid map: Permission denied")
	w := New(Options{Path: dir + "/bwrap"})
	w.host = func() host { return host{Host: local.Host{AppArmor: "1"}} }
	e, err := local.New(w, local.Options{StateDir: dir + "/state"})
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	start := func() (sandbox.Process, error) {
		return e.Start(t.Context(), sandbox.Spec{RunID: "run", Session: "s", Argv: []string{"/bin/true"}, Dir: "/", Policy: sandbox.Policy{Mode: sandbox.ReadOnly}})
	}
	_, err = start()
	var unavailable *sandbox.UnavailableError
	if !errors.As(err, &unavailable) || unavailable.Started {
		t.Fatalf("got %v", err)
	}
	if !strings.Contains(unavailable.Detail, "AppArmor lets programs without a profile") || !strings.Contains(strings.Join(unavailable.Remedies, "\n"), "/etc/apparmor.d/bwrap") {
		t.Errorf("got %q, remedies %q", unavailable.Detail, unavailable.Remedies)
	}
	real, err := find("", places)
	if err != nil {
		if os.Getenv("CI") != "" {
			t.Fatalf("on CI bubblewrap must be usable: %v", err)
		}
		t.Skip(err)
	}
	if err := os.Remove(dir + "/bwrap"); err != nil {
		t.Fatal(err)
	}
	copyTo(t, real.path, dir+"/bwrap")
	p, err := start()
	if err != nil {
		t.Fatal(err)
	}
	if result, err := p.Wait(); err != nil || result.ExitCode != 0 || result.Facts.Provider != sandbox.ProviderBwrap {
		t.Errorf("got %+v, %v", result, err)
	}
}
