package view

import (
	"slices"

	"github.com/confine-dev/confine/sandbox"
	"github.com/confine-dev/confine/sandbox/local"
	"github.com/confine-dev/confine/sandbox/restrict"
)

// Plan is what a command sees of the file system. Whoever builds it does this,
// and the order matters:
//
//  1. Everything of the host is there, but read-only, without set-id bits and
//     devices, whole mount trees included.
//  2. Each folder of Hidden is covered by a small empty file system.
//  3. /dev is a new file system with Devices, DeviceLinks, pseudoterminals of its
//     own and new shared memory; /proc is new, and what is in Kernel is
//     read-only in it.
//  4. Mounts are put in their places, in their order. Place says which of these
//     must be made first. No link may be followed on the way to a place: commands
//     can make links in what was placed before.
//  5. What covers Hidden, and what Hides a folder and Holds something, becomes
//     read-only.
//
// Where a Mount or rule names a Root, the command must not start unless device
// and inode of what was opened are the declared ones (restrict.Expect): names
// are looked up again, and a command may have put something else there.
type Plan struct {
	Hidden  []string // outermost only, sorted; /tmp is among Mounts instead
	Mounts  []Mount  // each path once, outer before inner
	Devices []string // device nodes of the host that exist: /dev/null and so on
	Kernel  []string // existing parts of /proc that speak to the kernel

	// Room is how large each file system in memory may become that a command can
	// fill: its temporary files, and shared memory.
	Room sandbox.Room

	tmp   string // where /tmp really is
	roots []*sandbox.Root
}

// Mount shows Source, with all that is mounted below it, at Path. None of it
// has set-id bits or devices.
type Mount struct {
	Path string // canonical

	// Source is a name on the host, looked up before anything was covered. Empty
	// is a new file system in memory, which ends with the run: a writable one with
	// mode 1777, which has Room, and another one that hides a
	// folder (see Hides) with mode 0, or 0755 if it Holds something.
	Source string

	File     bool          // it is a file, not a folder
	Writable bool          // otherwise read-only
	Root     *sandbox.Root // what must be found at Source; nil: whatever is there
	between  bool          // it only keeps a folder in its place; what may be written in it the mount around says
	Fleeting bool          // what has that path, which no command can change, may be gone by now: then there is no place, and no need
	Why      string        // gerund, with the path: completes "… failed"
}

// own reports whether a mount shows what the host has at the same place.
func (m Mount) own() bool { return m.Source == m.Path }

// SharedMemory is where programs share memory by files.
const SharedMemory = "/dev/shm"

// Of plans the view of one run. The error means that the policy asks for what a
// view cannot give; the command must not run then.
func Of(r local.Request) (*Plan, error) {
	if err := Check(r); err != nil {
		return nil, err
	}
	p := &Plan{Devices: Devices(), Kernel: existing(kernelFolders), Room: r.Policy.Limits.TempRoom(), tmp: real("/tmp"), roots: r.Policy.Roots}
	services := serviceFolders(r.State)
	p.Hidden = outermost(services, p.tmp, SharedMemory)
	if err := p.checkHidden(r.Policy, append(services, p.covers()...)); err != nil {
		return nil, err
	}
	masks, err := unreadable(r.Policy)
	if err != nil {
		return nil, err
	}
	b := builder{plan: p, request: r, writes: r.Policy.Mode == sandbox.WorkspaceWrite, masks: masks}
	b.temporary()
	b.roots()
	if err := b.protected(); err != nil {
		return nil, err
	}
	b.granted()
	if err := b.protected(); err != nil { // in what was granted
		return nil, err
	}
	if err := b.hide(); err != nil {
		return nil, err
	}
	b.caches()
	b.visible()
	if err := b.hide(); err != nil { // now that more is shown
		return nil, err
	}
	if err := b.sockets(); err != nil {
		return nil, err
	}
	return p, b.uncovered()
}

// Covered reports whether the host's file or folder at a canonical path is not
// shown unless a mount shows it.
func (p *Plan) Covered(path string) bool {
	return slices.ContainsFunc(p.covers(), func(c string) bool { return sandbox.Within(path, c) })
}

func (p *Plan) covers() []string { return append(slices.Clone(p.Hidden), p.tmp, SharedMemory) }

// Place says whether the place of a mount has to be made: then every folder
// below base down to its path is missing or, since /tmp and caches outlive a run,
// may be.
func (p *Plan) Place(m Mount) (base string, missing bool) {
	inside := func(folder string) bool { return sandbox.Within(m.Path, folder) && m.Path != folder }
	for _, folder := range p.covers() {
		if inside(folder) {
			base, missing = folder, true
		}
	}
	for _, outer := range p.Mounts { // inner ones come later, and none lies around a cover
		if inside(outer.Path) {
			base, missing = outer.Path, !outer.own()
		}
	}
	return base, missing
}

// Rules allow in Landlock what the view lets be written, and nothing else.
func (p *Plan) Rules() []restrict.Rule {
	rules := []restrict.Rule{
		{Path: SharedMemory, Rights: restrict.InFolder},
		{Path: "/dev/pts", Rights: restrict.OnFile},
		{Path: "/proc", Rights: restrict.OnContent},
	}
	for _, path := range p.Devices {
		rules = append(rules, restrict.Rule{Path: path, Rights: restrict.OnFile})
	}
	for _, m := range p.Mounts {
		switch {
		case !m.Writable, m.between: // a rule for a folder holds for what is mounted in it
		case m.Root != nil:
			rules = append(rules, restrict.Granted(m.Root))
		default:
			rules = append(rules, restrict.Rule{Path: m.Path, Rights: restrict.InFolder})
		}
	}
	return rules
}

// Writable are the places besides the policy's roots that a command may write
// to, as it names them.
func (p *Plan) Writable() []string {
	paths := []string{"/tmp", "/dev", "/proc"}
	for _, m := range p.Mounts {
		isRoot := slices.ContainsFunc(p.roots, func(r *sandbox.Root) bool { return r.Path == m.Path })
		if m.Writable && !m.between && !isRoot && m.Path != p.tmp {
			paths = append(paths, m.Path)
		}
	}
	return paths
}
