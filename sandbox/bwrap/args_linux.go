package bwrap

import (
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/confine-dev/confine/sandbox/local"
	"github.com/confine-dev/confine/sandbox/view"
	"golang.org/x/sys/unix"
)

// arguments are what bubblewrap is told for one run.
type arguments struct {
	request local.Request
	plan    *view.Plan
	extra   extras
	version version
	root    bool
	keep    []capability
}

// coverSize bounds the file systems that cover folders; they hold empty folders
// and files as places for mounts.
const coverSize = 64 << 10

// list builds the arguments. Mounts are made in this order, so what comes later
// lies over what came before. It fails if something cannot be put in its place.
func (a *arguments) list() ([]string, error) {
	mounts, err := a.mounts()
	if err != nil {
		return nil, err
	}
	return slices.Concat(a.process(), a.namespaces(), a.privileges(), []string{"--ro-bind", "/", "/"}, a.hide(), a.devices(), a.proc(),
		mounts, a.close(), []string{"--"}), nil
}

// process says how the init begins and ends. It is PID 1, reports by itself
// what became of the command, and dies with the server. Environment, working
// directory and filter are the init's business: nothing of the command's
// passes through here.
func (a *arguments) process() []string {
	return []string{"--as-pid-1", "--die-with-parent", "--new-session", "--json-status-fd", strconv.Itoa(local.RunnerStatus)}
}

// namespaces are new for each run, save the network where the session or the
// host has it.
func (a *arguments) namespaces() []string {
	switch {
	case a.request.Namespaces && a.root:
		// bubblewrap is root of the session's user namespace, in which all users
		// exist. In a further one only root would, and files of others could
		// not be used any more. The network is the session's.
		return []string{"--unshare-pid", "--unshare-ipc", "--unshare-uts", "--unshare-cgroup-try"}
	case a.request.Namespaces:
		// A plain user loses the rights in the session's user namespace by
		// executing bubblewrap, which needs one of its own. Sharing the network
		// here means the session's network, or the host's if it was granted:
		// whichever the process that starts bubblewrap has joined.
		return []string{"--unshare-all", "--share-net"}
	case a.request.Policy.Network:
		return []string{"--unshare-all", "--unshare-user", "--share-net"}
	}
	// --unshare-all only tries to make a user namespace, and root does without:
	// but root's rights must not be the host's.
	return []string{"--unshare-all", "--unshare-user"}
}

func (a *arguments) privileges() []string {
	args := []string{"--cap-drop", "ALL"}
	for _, c := range a.keep {
		args = append(args, "--cap-add", c.name)
	}
	return args
}

// hide covers the folders of host services.
func (a *arguments) hide() []string {
	var args []string
	for _, folder := range a.plan.Hidden {
		args = append(args, a.memoryFiles(folder, "0755", coverSize)...)
	}
	return args
}

// devices makes /dev: nodes and pseudoterminals are bubblewrap's, shared memory
// gets a limit.
func (a *arguments) devices() []string {
	args := append([]string{"--dev", "/dev"}, a.memoryFiles(view.SharedMemory, "1777", a.plan.Room.Bytes)...)
	for _, device := range a.extra.devices {
		args = append(args, "--dev-bind", device, device)
	}
	return args
}

// proc makes /proc and puts the parts that speak to the kernel over it,
// read-only: root may write there without any capability.
func (a *arguments) proc() []string {
	args := []string{"--proc", "/proc"}
	for _, path := range a.plan.Kernel {
		args = append(args, "--ro-bind", path, path)
	}
	return args
}

// mounts puts what is to be seen in its place, last of all what the person wants
// read-only, which then is.
func (a *arguments) mounts() (args []string, err error) {
	list := slices.Clone(a.plan.Mounts)
	for _, folder := range a.extra.between(a.plan) {
		byPath := func(m view.Mount, path string) int { return strings.Compare(m.Path, path) }
		if i, found := slices.BinarySearchFunc(list, folder, byPath); !found {
			list = slices.Insert(list, i, view.Mount{Path: folder, Source: folder, Writable: true, Why: "holding " + strconv.Quote(folder)})
		}
	}
	for _, extra := range a.extra.readOnly {
		list = append(list, view.Mount{Path: extra.path, Source: extra.path, File: extra.file, Why: "showing " + strconv.Quote(extra.path)})
	}
	own := map[string]bool{} // folders of the run's own, for places
	for _, m := range list {
		if m.Hides() && a.onlyRoot() && !reached(m.Path) {
			continue
		}
		folder, err := a.ground(m)
		if err != nil {
			return nil, err
		}
		if folder != "" && !own[folder] {
			own[folder] = true
			args = append(args, a.memoryFiles(folder, "0755", a.plan.Room.Bytes)...)
		}
		switch {
		case m.Source == "" && m.Hides():
			mode := "0000"
			if a.plan.Holds(m) {
				mode = "0755"
			}
			args = append(args, a.memoryFiles(m.Path, mode, coverSize)...)
		case m.Source == "":
			args = append(args, a.memoryFiles(m.Path, "1777", a.plan.Room.Bytes)...)
		case m.Writable:
			args = append(args, "--bind", m.Source, m.Path)
		default:
			args = append(args, "--ro-bind", m.Source, m.Path)
		}
	}
	return args, nil
}

// onlyRoot reports whether bubblewrap makes a user namespace for root.
func (a *arguments) onlyRoot() bool { return a.root && !a.request.Namespaces }

// reached reports whether root can enter every folder on the way to a path in a
// namespace where other users do not exist: there it has no rights over their
// files. What bubblewrap cannot reach to hide it, commands cannot reach either.
func reached(path string) bool {
	for folder := filepath.Dir(path); folder != "/"; folder = filepath.Dir(folder) {
		var st unix.Stat_t
		if unix.Stat(folder, &st) != nil {
			return false
		}
		enter := st.Mode & 0o001
		switch {
		case st.Uid == 0 && st.Gid == 0:
			enter = 1
		case st.Uid == 0:
			enter = st.Mode & 0o100
		case st.Gid == 0:
			enter = st.Mode & 0o010
		}
		if enter == 0 {
			return false
		}
	}
	return true
}

// ground is the folder on which a new file system has to be mounted first, so
// that the place of a mount is made there; empty if none is needed.
//
// bubblewrap makes places by name and follows links, out of the view it builds
// too, as long as the host's is still there. The session's temporary files and
// caches outlive a run, and a command can leave links in them. To make one folder
// at their top is safe: that follows no link. To make a file is not.
func (a *arguments) ground(m view.Mount) (string, error) {
	base, missing := a.plan.Place(m)
	lasting := func(outer view.Mount) bool {
		return outer.Path == base && outer.Writable && outer.Source != "" && outer.Source != outer.Path
	}
	if !missing || !slices.ContainsFunc(a.plan.Mounts, lasting) {
		return "", nil
	}
	name, _, deeper := strings.Cut(strings.TrimPrefix(m.Path, base+"/"), "/")
	switch {
	case deeper:
		return base + "/" + name, nil
	case m.File:
		return "", fmt.Errorf("%s: bubblewrap cannot safely show a file among those of the session in %q; move it, or use the provider landlock", m.Why, base)
	}
	return "", nil
}

// close makes read-only what was only open for making places.
func (a *arguments) close() []string {
	var args []string
	folders := append(slices.Clone(a.plan.Hidden), "/dev")
	for _, m := range a.plan.Mounts {
		// The others have mode 0, and nothing that a command could use.
		if m.Source == "" && m.Hides() && a.plan.Holds(m) {
			folders = append(folders, m.Path)
		}
	}
	for _, folder := range folders {
		args = append(args, "--remount-ro", folder)
	}
	return args
}

// memoryFiles mounts a file system in memory.
func (a *arguments) memoryFiles(path, mode string, size uint64) []string {
	args := []string{"--perms", mode}
	if !a.version.before(sizeSince) {
		args = append(args, "--size", strconv.FormatUint(size, 10))
	}
	return append(args, "--tmpfs", path)
}
