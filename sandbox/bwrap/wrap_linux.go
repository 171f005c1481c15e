package bwrap

import (
	"os"
	"slices"
	"sync"

	"github.com/confine-dev/confine/sandbox"
	"github.com/confine-dev/confine/sandbox/local"
	"github.com/confine-dev/confine/sandbox/restrict"
	"github.com/confine-dev/confine/sandbox/view"
	"golang.org/x/sys/unix"
)

// Wrapper compiles policies for bubblewrap.
type Wrapper struct {
	options Options
	abi     restrict.ABI
	host    func() host // what Explain looks at

	mu      sync.Mutex
	program *program   // guarded by mu; nil until one was found
	err     error      // guarded by mu: why there is none
	former  []*program // guarded by mu: replaced on the disk; a run that starts may still use them
}

// Options are what a person sets. The zero value is right for most.
type Options struct {
	Path string // of bubblewrap, absolute; empty means where systems install it

	// ReadOnly are folders and files of the host that are shown read-only,
	// whatever else is said of them. Devices are character and block devices of
	// the host that may be used. See Skipped.
	ReadOnly, Devices []string
}

// New asks the kernel what it knows. It never fails: a missing bubblewrap is
// reported by Claims and refused by Wrap.
func New(o Options) *Wrapper {
	return &Wrapper{options: o, abi: restrict.ABIOf(restrict.Version()), host: thisHost}
}

var (
	_ local.Wrapper   = (*Wrapper)(nil)
	_ local.Explainer = (*Wrapper)(nil)
)

// Name implements local.Wrapper.
func (w *Wrapper) Name() string { return sandbox.ProviderBwrap }

// Kind implements local.Wrapper.
func (w *Wrapper) Kind() string { return "linux-bwrap" }

// Wrap implements local.Wrapper.
func (w *Wrapper) Wrap(r local.Request) (*local.Launch, error) {
	p, err := w.found()
	if err != nil {
		return nil, err
	}
	plan, err := view.Of(r)
	if err != nil {
		return nil, err
	}
	extra := w.options.look(plan, r.State)
	if caches := usable(r.Caches, plan, extra); len(caches) < len(r.Caches) {
		r.Caches = caches
		if plan, err = view.Of(r); err != nil {
			return nil, err
		}
	}
	root := os.Geteuid() == 0
	keep := kept(root && r.Namespaces)
	args := arguments{request: r, plan: plan, extra: extra, version: p.version, root: root, keep: keep}
	list, err := args.list()
	if err != nil {
		return nil, err
	}
	l := &local.Launch{
		Namespaces:    r.Namespaces,
		SharedNetwork: r.Policy.Network,
		Env:           map[string]string{"TMPDIR": "/tmp"},
		Caches:        r.Caches,
		Writable:      append(plan.Writable(), extra.devices...),
		Fleeting:      slices.ContainsFunc(plan.Mounts, func(m view.Mount) bool { return m.Fleeting }),
		Runner:        &local.Runner{Program: p.file, Name: "bwrap", Args: list},
	}
	w.restrict(l, plan, extra, keep, r.Policy)
	return l, nil
}

// restrict adds what the init does to itself in what bubblewrap made.
func (w *Wrapper) restrict(l *local.Launch, plan *view.Plan, extra extras, keep []capability, policy sandbox.Policy) {
	inside := &l.Runner.Inside
	compare(inside, plan)
	if w.abi.Version > 0 {
		rules := restrict.Ruleset{ABI: w.abi, Rules: plan.Rules(), Scopes: restrict.ScopeSignal}
		for _, device := range extra.devices {
			rules.Rules = append(rules.Rules, restrict.Rule{Path: device, Rights: restrict.OnFile})
		}
		if policy.Network {
			rules.Scopes |= restrict.ScopeAbstract // else a network namespace does the same
		}
		l.Ruleset, l.HasRuleset = rules.Create(inside), true
	}
	restrict.DropPrivileges(inside, numbers(keep))
	restrict.InstallRefusals(inside)
}

// compare makes sure that bubblewrap, which looks names up again, found what was
// declared, and that it put it where it belongs. It follows links on the way to
// a place, and commands of the session can make links in /tmp.
func compare(s *local.Script, plan *view.Plan) {
	for _, m := range plan.Mounts {
		if _, made := plan.Place(m); m.Root == nil && !made {
			continue
		}
		how := unix.OpenHow{Flags: unix.O_PATH | unix.O_CLOEXEC, Resolve: unix.RESOLVE_NO_SYMLINKS}
		fd := s.Call(m.Why, unix.SYS_OPENAT2, local.Int(unix.AT_FDCWD), local.Text(m.Path), local.Struct(&how), local.Int(unix.SizeofOpenHow))
		if m.Root != nil {
			restrict.Expect(s, m.Why, fd, m.Root)
		}
		s.Call(m.Why, unix.SYS_CLOSE, local.Result(fd))
	}
}

// found returns the bubblewrap that Claims found, or looks for one.
func (w *Wrapper) found() (*program, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.program == nil {
		w.look()
	}
	return w.program, w.err
}

// refresh looks again, because bubblewrap may have been installed, updated or
// removed. One that is the same as before is not asked again.
func (w *Wrapper) refresh() (*program, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.look()
	return w.program, w.err
}

// look finds bubblewrap and asks its version. mu is held.
func (w *Wrapper) look() {
	p, err := find(w.options.Path, places)
	switch {
	case err == nil && w.program != nil && p.id == w.program.id:
		p.file.Close()
		return
	case err == nil:
		if p.version, err = ask(p); err != nil {
			p.file.Close()
		}
	}
	if w.program != nil {
		w.former = append(w.former, w.program)
	}
	if w.program, w.err = p, err; err != nil {
		w.program = nil
	}
}

// capability is one that bubblewrap knows by name.
type capability struct {
	number int
	name   string
}

// rootKeeps are restrict.RootKeeps by name.
var rootKeeps = []capability{{unix.CAP_CHOWN, "CAP_CHOWN"}, {unix.CAP_DAC_OVERRIDE, "CAP_DAC_OVERRIDE"},
	{unix.CAP_FOWNER, "CAP_FOWNER"}, {unix.CAP_FSETID, "CAP_FSETID"}}

// kept are what a command keeps. In a user namespace that bubblewrap made only
// one user exists, and nothing is gained by keeping any.
func kept(session bool) []capability {
	if session {
		return rootKeeps
	}
	return nil
}

func numbers(list []capability) []int {
	var numbers []int
	for _, c := range list {
		numbers = append(numbers, c.number)
	}
	return numbers
}
