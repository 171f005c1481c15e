package landlock

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"

	"github.com/confine-dev/confine/sandbox"
	"github.com/confine-dev/confine/sandbox/local"
	"github.com/confine-dev/confine/sandbox/restrict"
)

// Wrapper compiles policies for Landlock, seccomp and, where there are
// namespaces, a view of the file system.
type Wrapper struct{ abi restrict.ABI }

// New asks the kernel what it knows. It never fails: a kernel without Landlock
// is reported by Claims and refused by Wrap.
func New() *Wrapper { return &Wrapper{abi: restrict.ABIOf(restrict.Version())} }

var _ local.Wrapper = (*Wrapper)(nil)

// Name implements local.Wrapper.
func (w *Wrapper) Name() string { return sandbox.ProviderLandlock }

// Kind implements local.Wrapper.
func (w *Wrapper) Kind() string { return "linux-landlock" }

// Wrap implements local.Wrapper.
func (w *Wrapper) Wrap(r local.Request) (*local.Launch, error) {
	if w.abi.Version == 0 {
		return nil, fmt.Errorf("%s", missing)
	}
	if !r.Policy.Mode.Confined() {
		return nil, fmt.Errorf("mode %q is not one that Landlock confines", r.Policy.Mode)
	}
	if len(r.Policy.Unreadable) > 0 {
		return nil, fmt.Errorf("hiding files from commands is not available yet")
	}
	if path := deepProtected(r.Policy); path != "" {
		return nil, fmt.Errorf("keeping %s read-only is not available yet: its folder could be renamed, and another put there", quote(path))
	}
	l := &local.Launch{Namespaces: r.Namespaces, SharedNetwork: r.Policy.Network, HasRuleset: true, Env: map[string]string{}}
	rules := restrict.Ruleset{ABI: w.abi, Scopes: restrict.ScopeSignal}
	refused := restrict.Refusals()
	var keep []int
	if r.Namespaces {
		(&view{s: &l.Prepare, request: r}).build()
		rules.Rules = insideRules()
		l.Env["TMPDIR"] = "/tmp"
		l.Writable = []string{"/tmp", "/dev", "/proc"}
		for _, c := range r.Caches {
			l.Writable = append(l.Writable, c.Path)
			rules.Rules = append(rules.Rules, restrict.Rule{Path: c.Path, Rights: restrict.InFolder})
		}
		if os.Geteuid() == 0 {
			keep = restrict.RootKeeps
		}
	} else {
		rules.Rules = outsideRules(r.Tmp)
		rules.RefuseTCP = !r.Policy.Network
		l.Env["TMPDIR"] = r.Tmp
		l.Writable = append([]string{r.Tmp}, devicePaths()...)
		refused = append(refused, restrict.NoLimits()...)
		if !r.Policy.Network {
			refused = append(refused, restrict.NoInternet()...)
		}
	}
	if !r.Namespaces || r.Policy.Network {
		rules.Scopes |= restrict.ScopeAbstract // a network namespace of its own does the same
	}
	if r.Policy.Mode == sandbox.WorkspaceWrite {
		for _, root := range r.Policy.Roots {
			if !r.Namespaces && protects(r.Policy, root.Path) {
				// Rules add up: nothing below an allowed folder can be taken
				// out again. Such a folder stays closed.
				continue
			}
			rules.Rules = append(rules.Rules, restrict.Rule{Path: root.Path, Rights: restrict.InFolder, Root: root})
		}
	}
	l.Ruleset = rules.Create(&l.Prepare)
	restrict.DropPrivileges(&l.Confine, keep)
	restrict.InstallFilter(&l.Confine, refused)
	return l, nil
}

// protects reports whether something below a root is to stay read-only.
func protects(p sandbox.Policy, root string) bool {
	return slices.ContainsFunc(p.Protected, func(path string) bool { return sandbox.Within(path, root) })
}

// deepProtected is a protected path that does not lie at the top of a writable
// folder. A mount keeps what it covers from being renamed, not what lies above.
func deepProtected(p sandbox.Policy) string {
	for _, path := range p.Protected {
		top := slices.Contains(p.RootPaths(), path) || slices.Contains(p.RootPaths(), filepath.Dir(path))
		if !top && slices.ContainsFunc(p.RootPaths(), func(root string) bool { return sandbox.Within(path, root) }) {
			return path
		}
	}
	return ""
}

// insideRules allow what belongs to the run's own view.
func insideRules() []restrict.Rule {
	rules := []restrict.Rule{{Path: tmpFolder(), Rights: restrict.InFolder}, {Path: sharedMemory, Rights: restrict.InFolder},
		{Path: "/dev/pts", Rights: restrict.OnFile}, {Path: "/proc", Rights: restrict.OnContent}}
	for _, path := range devicePaths() {
		rules = append(rules, restrict.Rule{Path: path, Rights: restrict.OnFile})
	}
	return rules
}

// outsideRules allow what a command needs where it sees the host's files. The
// pseudoterminals of the host stay closed: they are other people's.
func outsideRules(tmp string) []restrict.Rule {
	rules := []restrict.Rule{{Path: tmp, Rights: restrict.InFolder}}
	for _, path := range devicePaths() {
		rules = append(rules, restrict.Rule{Path: path, Rights: restrict.OnFile})
	}
	return rules
}

// devicePaths are the device nodes that exist.
func devicePaths() []string {
	var paths []string
	for _, name := range deviceNodes {
		if _, err := os.Stat("/dev/" + name); err == nil {
			paths = append(paths, "/dev/"+name)
		}
	}
	return paths
}

func quote(path string) string { return strconv.Quote(path) }
