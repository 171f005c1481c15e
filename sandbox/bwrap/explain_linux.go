package bwrap

import (
	"fmt"
	"strings"

	"github.com/confine-dev/confine/sandbox/local"
)

// host are the facts of a system by which the same message of bubblewrap has
// different causes.
type host struct {
	local.Host
	setuid bool // bubblewrap is installed setuid
}

// thisHost reads the facts.
func thisHost() host { return host{Host: local.ThisHost()} }

// Explain implements local.Explainer. The text decides nothing but which cause
// is named: that the command never began is known before.
func (w *Wrapper) Explain(e *local.RunnerError) (reason string, remedies []string) {
	h := w.host()
	w.mu.Lock()
	h.setuid = w.program != nil && w.program.setuid
	w.mu.Unlock()
	return explain(e, h)
}

// cause is a message of bubblewrap and what it means.
type cause struct {
	says []string // all are parts of the message
	mean func(h host) (reason string, remedies []string)
}

const (
	elsewise = "or use the embedded provider: provider = \"landlock\""
	ownPath  = "the path vanished or was replaced meanwhile"
)

// causes are tried in order. The messages are those of bubblewrap 0.4 to 0.11
// and of Debian's, which words one of its own way.
var causes = []cause{
	{[]string{"No permissions to creat"}, refusedNamespaces},
	{[]string{"Creating new namespace failed", "Operation not permitted"}, refusedNamespaces},
	{[]string{"Creating new namespace failed", "does not support user namespaces"}, said(
		"the kernel has no user namespaces (CONFIG_USER_NS)", "boot a kernel with user namespaces", elsewise)},
	{[]string{"Creating new namespace failed", "ENOSPC"}, tooMany},
	{[]string{"Creating new namespace failed", "No space left"}, tooMany},
	{[]string{"Creating new namespace failed", "Resource temporarily unavailable"}, said(
		"the limit of processes is reached", "end other programs or raise the limit (ulimit -u)")},
	{[]string{"setting up uid map"}, mapped},
	{[]string{"setting up gid map"}, mapped},
	{[]string{"error writing to setgroups"}, mapped},
	{[]string{"loopback: Failed"}, powerless("it could not start the loopback network")},
	{[]string{"Can't mount proc on"}, said(
		"the host refuses a new /proc, as containers do that mask parts of theirs",
		"start the container so that its /proc is not masked (docker run --security-opt systempaths=unconfined, podman run --security-opt unmask=ALL)", elsewise)},
	{[]string{"Can't mount devpts"}, powerless("it could not make pseudoterminals")},
	{[]string{"Failed to make / slave"}, powerless("it could not separate the mounts")},
	{[]string{"Failed to mount tmpfs"}, powerless("it could not mount a file system in memory")},
	{[]string{"pivot_root"}, said("the root file system cannot be exchanged, as when a system runs from its initial ramdisk",
		"run from a file system that was mounted as root", elsewise)},
	{[]string{"Can't find source path"}, vanished},
	{[]string{"Can't get type of source"}, vanished},
	{[]string{"Unexpected capabilities but not setuid"}, said(
		"confine runs with capabilities though not as root, which bubblewrap refuses", "start the editor without ambient or inherited capabilities", elsewise)},
	{[]string{"Unexpected setuid user"}, said("bubblewrap is installed setuid for a user who is not root", "install it anew", elsewise)},
	{[]string{"not permitted in setuid mode"}, asSetuid},
	{[]string{"setuid"}, asSetuid},
	{[]string{"Unknown option"}, said("bubblewrap is too old, or built without what confine needs", "update bubblewrap", elsewise)},
	{[]string{"Can't open /proc"}, said("there is no /proc here", "mount /proc", elsewise)},
	{[]string{"Can't read /proc/sys/kernel/overflow"}, said("there is no usable /proc here", "mount /proc", elsewise)},
	{[]string{"Can't bind mount"}, unmountable},
	{[]string{"Can't mkdir"}, unmountable},
	{[]string{"Can't create file"}, unmountable},
	{[]string{"Can't remount"}, unmountable},
	{[]string{"execvp"}, said("it made the sandbox but could not execute confine's init in it", "run `confine doctor`")},
}

// explain finds the first cause whose message it is.
func explain(e *local.RunnerError, h host) (reason string, remedies []string) {
	for _, c := range causes {
		all := true
		for _, part := range c.says {
			all = all && strings.Contains(e.Stderr, part)
		}
		if all {
			why, remedies := c.mean(h)
			return fmt.Sprintf("%s: %s", firstLine(e.Error()), why), remedies
		}
	}
	return firstLine(e.Error()), []string{"run `confine doctor` to see what this host refuses"}
}

func said(reason string, remedies ...string) func(host) (string, []string) {
	return func(host) (string, []string) { return reason, remedies }
}

// usual is where most systems have bubblewrap.
const usual = "/usr/bin/bwrap"

// packaged is where a profile comes from.
const packaged = "or on Ubuntu install the package apparmor-profiles, which has a profile for bubblewrap (bwrap-userns-restrict)"

// refusedNamespaces: EPERM from clone.
func refusedNamespaces(h host) (string, []string) {
	why, remedies := h.Refuser(usual)
	if h.AppArmor == "1" {
		remedies = append(remedies, packaged)
	}
	return why + h.void(), append(remedies, elsewise)
}

// void explains why installing bubblewrap setuid did not help.
func (h host) void() string {
	if h.setuid && h.NoNewPrivs {
		return "; bubblewrap is installed setuid root, but under no_new_privs, which holds for confine, that has no effect"
	}
	return ""
}

func tooMany(h host) (string, []string) {
	if h.Maximum == "0" {
		return refusedNamespaces(host{local.Host{Maximum: "0", NoNewPrivs: h.NoNewPrivs}, h.setuid})
	}
	return "the limit of namespaces, or of their nesting, is reached (user.max_*_namespaces)",
		[]string{"raise user.max_user_namespaces: sysctl user.max_user_namespaces=10000", elsewise}
}

// mapped: the namespace was made but may not be set up, which is AppArmor's way
// since it lets every program make one without any right in it.
func mapped(h host) (string, []string) {
	if h.AppArmor == "1" {
		return "AppArmor lets programs without a profile make a user namespace but do nothing in it (kernel.apparmor_restrict_unprivileged_userns = 1)", append(local.AllowInAppArmor(usual), packaged, elsewise)
	}
	return "the host refuses to set up a user namespace; another sandbox around confine does that", []string{"run confine outside that sandbox", elsewise}
}

// powerless: root of its own namespaces was refused what root of them may do.
func powerless(what string) func(host) (string, []string) {
	return func(h host) (string, []string) {
		if h.AppArmor == "1" {
			why, remedies := mapped(h)
			return what + ": " + why, remedies
		}
		return what + ": a security module or a container around confine forbids it",
			[]string{"allow confine and bubblewrap to mount in namespaces of their own (in a container: docker run --security-opt apparmor=unconfined)", elsewise}
	}
}

func asSetuid(host) (string, []string) {
	return "bubblewrap is installed setuid root, which confine does not use", []string{"allow unprivileged user namespaces and run chmod u-s on it", elsewise}
}

func vanished(host) (string, []string) {
	return ownPath, []string{"try again", "reopen the workspace folder in the editor, so that it is declared anew"}
}

func unmountable(host) (string, []string) {
	return "a folder or file could not be put where the command is to see it", []string{"run `confine doctor`", elsewise}
}

func firstLine(s string) string {
	line, _, _ := strings.Cut(strings.TrimSpace(s), "\n")
	return line
}
