package landlock

import (
	"errors"
	"os"

	"github.com/confine-dev/confine/sandbox"
	"github.com/confine-dev/confine/sandbox/local"
	"github.com/confine-dev/confine/sandbox/restrict"
	"github.com/confine-dev/confine/sandbox/view"
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
		return nil, errors.New(missing)
	}
	l := &local.Launch{Namespaces: r.Namespaces, SharedNetwork: r.Policy.Network, HasRuleset: true, Env: map[string]string{}, Caches: r.Caches}
	wrap := w.outside
	if r.Namespaces {
		wrap = w.inside
	}
	if err := wrap(l, r); err != nil {
		return nil, err
	}
	return l, nil
}

// inside compiles for namespaces of the run's own.
func (w *Wrapper) inside(l *local.Launch, r local.Request) error {
	plan, err := view.Of(r)
	if err != nil {
		return err
	}
	l.Prepare.Grow(250) // about what they take
	l.Confine.Grow(50)
	writer{s: &l.Prepare, plan: plan}.write()
	l.Env["TMPDIR"] = "/tmp"
	l.Writable = plan.Writable()
	rules := restrict.Ruleset{ABI: w.abi, Scopes: restrict.ScopeSignal, Rules: plan.Rules()}
	if r.Policy.Network {
		rules.Scopes |= restrict.ScopeAbstract // a network namespace of its own does the same
	}
	l.Ruleset = rules.Create(&l.Prepare)
	var keep []int
	if os.Geteuid() == 0 {
		keep = restrict.RootKeeps
	}
	restrict.DropPrivileges(&l.Confine, keep)
	restrict.InstallRefusals(&l.Confine)
	return nil
}

// outside compiles for a host that refuses namespaces.
func (w *Wrapper) outside(l *local.Launch, r local.Request) error {
	if err := view.Check(r); err != nil {
		return err
	}
	if err := view.CheckBare(r.Policy); err != nil {
		return err
	}
	rules := restrict.Ruleset{ABI: w.abi, Scopes: restrict.ScopeSignal | restrict.ScopeAbstract, RefuseTCP: !r.Policy.Network, Rules: outsideRules(r)}
	l.Env["TMPDIR"] = r.Tmp
	l.Writable = append([]string{r.Tmp}, view.Devices()...)
	for _, root := range r.Policy.Writable {
		l.Writable = append(l.Writable, root.Path)
	}
	l.Ruleset = rules.Create(&l.Prepare)
	l.TerminalRights = uint64(restrict.OnFile & w.abi.Files)
	refused := append(restrict.Refusals(), restrict.NoLimits()...)
	if !r.Policy.Network {
		refused = append(refused, restrict.NoInternet()...)
	}
	restrict.DropPrivileges(&l.Confine, nil)
	restrict.InstallFilter(&l.Confine, refused)
	return nil
}

// outsideRules allow what a command needs where it sees the host's files. The
// pseudoterminals of the host stay closed: they are other people's, save the one
// that was made for the command. Rules add
// up: nothing below an allowed folder can be taken out again, so that protected
// paths can only be looked at after the run.
func outsideRules(r local.Request) []restrict.Rule {
	rules := []restrict.Rule{{Path: r.Tmp, Rights: restrict.InFolder}}
	for _, path := range view.Devices() {
		rules = append(rules, restrict.Rule{Path: path, Rights: restrict.OnFile})
	}
	for _, root := range r.Policy.Roots {
		if r.Policy.Mode == sandbox.WorkspaceWrite {
			rules = append(rules, restrict.Granted(root))
		}
	}
	for _, root := range r.Policy.Writable {
		rules = append(rules, restrict.Granted(root))
	}
	return rules
}
