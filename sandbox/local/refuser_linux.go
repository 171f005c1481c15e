package local

import (
	"os"
	"strings"
)

// Host are the facts of a system by which it refuses user namespaces. An empty text
// is a setting that the kernel does not have.
type Host struct {
	AppArmor     string // kernel.apparmor_restrict_unprivileged_userns
	Unprivileged string // kernel.unprivileged_userns_clone
	Maximum      string // user.max_user_namespaces
	Seccomp      bool   // this process is filtered itself
	NoNewPrivs   bool
	Root         bool
}

// ThisHost reads the facts.
func ThisHost() Host {
	read := func(path string) string {
		data, _ := os.ReadFile(path) // what cannot be read is not there
		return strings.TrimSpace(string(data))
	}
	status := read("/proc/self/status")
	return Host{
		AppArmor:     read("/proc/sys/kernel/apparmor_restrict_unprivileged_userns"),
		Unprivileged: read("/proc/sys/kernel/unprivileged_userns_clone"),
		Maximum:      read("/proc/sys/user/max_user_namespaces"),
		Seccomp:      strings.Contains(status, "Seccomp:\t2"),
		NoNewPrivs:   strings.Contains(status, "NoNewPrivs:\t1"),
		Root:         os.Geteuid() == 0,
	}
}

// Refuser says, where a namespace was refused, what most likely refuses it to the
// program at a path, and what to do.
func (h Host) Refuser(program string) (why string, remedies []string) {
	switch {
	case h.Unprivileged == "0" && !h.Root:
		return "the kernel refuses user namespaces to plain users (kernel.unprivileged_userns_clone = 0)",
			[]string{"run sysctl kernel.unprivileged_userns_clone=1"}
	case h.Maximum == "0":
		return "the kernel allows no user namespace (user.max_user_namespaces = 0)",
			[]string{"raise user.max_user_namespaces: sysctl user.max_user_namespaces=10000"}
	case h.AppArmor == "1" && !h.Root:
		return "AppArmor refuses user namespaces to programs without a profile (kernel.apparmor_restrict_unprivileged_userns = 1)",
			AllowInAppArmor(program)
	case h.Seccomp:
		return "a seccomp filter around confine, as containers have one, refuses new namespaces",
			[]string{"start the container with a seccomp profile that allows clone and unshare with new namespaces (docker run --security-opt seccomp=…)"}
	}
	return "the host refuses new namespaces",
		[]string{"allow them: sysctl kernel.unprivileged_userns_clone, user.max_user_namespaces, kernel.apparmor_restrict_unprivileged_userns, or the container's options"}
}

// AllowInAppArmor says how a program gets a profile that lets it make namespaces.
func AllowInAppArmor(program string) []string {
	name := program[strings.LastIndex(program, "/")+1:]
	return []string{
		"give it a profile that allows user namespaces: /etc/apparmor.d/" + name + " with `profile " + name + " " + program + " flags=(unconfined) { userns, }`, then `apparmor_parser -r /etc/apparmor.d/" + name + "`",
		"or allow them for every program: sysctl kernel.apparmor_restrict_unprivileged_userns=0",
	}
}
