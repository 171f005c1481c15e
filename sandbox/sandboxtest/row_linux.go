package sandboxtest

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/confine-dev/confine/sandbox"
	"golang.org/x/sys/unix"
)

// refusal is an operation that the sandbox must not let through.
type refusal struct {
	name string

	// facet is what the operation tests. Where it is enforced, and where it is
	// partial but gap does not name the level, the operation must be refused.
	// Without a facet it must be refused always.
	facet sandbox.Facet

	// gap names the levels on which the operation is known to get through.
	// There it must, and the facet must not be called enforced.
	gap levels

	modes  []sandbox.Mode    // nil: workspace-write
	grant  grant             // what the command may do besides; nil: nothing
	errnos []syscall.Errno   // how it may be refused; nil: see usualErrnos
	try    func(stage) error // in the child

	// arrange prepares the host, and seen says what came of the operation
	// there, or nothing. Changes below Outside are always seen.
	arrange func(*scene)
	seen    func(*scene) string

	control control
}

// levels are ways of confining that differ in what they can govern.
type levels int

const (
	withNamespaces levels = 1 << iota
	withoutNamespaces
	everywhere = withNamespaces | withoutNamespaces
)

// control says how a row is shown to be able to fail.
type control struct {
	// none says why there is no control; empty if there is one.
	none string

	// root: plain permissions allow it to root alone.
	root bool

	// alone: it is tried in namespaces of its own, for it would change the host.
	alone bool

	// direct: it is started by the suite itself, without a provider.
	direct bool

	// errno is how the kernel answers it, having looked at it: where the answer
	// is a fault of the arguments, the call cannot succeed but is not refused.
	errno syscall.Errno

	// traced: although the answer is an error, the host sees what happened.
	traced bool

	// optional are answers of a host that does not have what the row needs.
	optional []syscall.Errno
}

var usualErrnos = []syscall.Errno{unix.EROFS, unix.EACCES, unix.EPERM, unix.EXDEV}

// run tries the row with nothing confined, then confined in each mode.
func (r refusal) run(t *testing.T, w *place, tally *tally) {
	if !w.world.bare { // with namespaces or not is all the same to it
		r.runControl(t, w)
	}
	modes := r.modes
	if modes == nil {
		modes = []sandbox.Mode{sandbox.WorkspaceWrite}
	}
	for _, mode := range modes {
		s := newScene(t, w, mode)
		if r.arrange != nil {
			r.arrange(s)
		}
		s.grant = r.grant
		out, facts := s.run(t, r.name)
		tally.note(facts)
		r.judge(t, s, out, facts, tally)
	}
}

func (r refusal) runControl(t *testing.T, w *place) {
	if r.control.none != "" || r.control.root && w.world.uid != 0 {
		return
	}
	s := newScene(t, w, sandbox.DangerFullAccess)
	if r.arrange != nil {
		r.arrange(s)
	}
	var out outcome
	switch {
	case r.control.direct:
		out = s.runDirectly(t, entryOp, r.name)
	case r.control.alone:
		out = s.runDirectly(t, entryQuarantine, r.name)
	default:
		out, _ = s.run(t, r.name)
	}
	seen := s.whatHappened(r)
	switch {
	case slices.Contains(r.control.optional, out.Errno):
		t.Logf("this host does not have what the row needs: %v", out)
	case out.Broken != "":
		t.Errorf("control: the operation %v", out)
	case out.Errno != r.control.errno:
		t.Errorf("control: with nothing confined the operation %v: the row cannot fail", out)
	case r.watched() && (r.control.errno == 0 || r.control.traced) && seen == "":
		t.Error("control: with nothing confined the operation left no trace: the row cannot fail")
	}
}

// watched reports whether the row leaves something to see on the host.
func (r refusal) watched() bool {
	return r.seen != nil || r.facet == sandbox.FileWrite || r.facet == sandbox.Metadata
}

// judge looks at the host and compares what came of the operation with what
// the facts say.
func (r refusal) judge(t *testing.T, s *scene, out outcome, facts sandbox.Facts, tally *tally) {
	t.Helper()
	seen := s.whatHappened(r)
	if r.facet != "" && through(out, seen) {
		tally.noteThrough(r.facet, r.name)
	}
	if fault := r.fault(out, seen, facts); fault != "" {
		t.Errorf("%s: %s", s.mode, fault)
	}
}

// through reports whether an operation got through. The host is believed more
// than the child.
func through(out outcome, seen string) bool { return out.Broken == "" && out.Errno == 0 || seen != "" }

// fault says in what an outcome and the facts do not fit the row or one
// another; it is empty if they do.
func (r refusal) fault(out outcome, seen string, facts sandbox.Facts) string {
	what := "the operation " + out.String() + because(seen)
	state := facts.Facets[r.facet].State
	known := r.gap&levelOf(facts) != 0
	switch {
	case through(out, seen) && r.facet != "" && state == sandbox.Enforced:
		return fmt.Sprintf("%s is called enforced, but %s", r.facet, what)
	case out.Broken != "":
		return what
	case known && !through(out, seen):
		return what + ", though it is known to get through: tighten the claim and the row"
	case known, through(out, seen) && state == sandbox.Open:
		return ""
	case through(out, seen):
		return what
	case !r.expects(out.Errno):
		return what + ", which is no refusal"
	}
	return ""
}

func because(seen string) string {
	if seen == "" {
		return ""
	}
	return ", and on the host: " + seen
}

func (r refusal) expects(errno syscall.Errno) bool {
	if r.errnos == nil {
		return slices.Contains(usualErrnos, errno)
	}
	return slices.Contains(r.errnos, errno)
}

func levelOf(facts sandbox.Facts) levels {
	if slices.Contains(facts.Layers, LayerNamespaces) {
		return withNamespaces
	}
	return withoutNamespaces
}

// tally collects what got through, for the other direction of the truth: a
// facet that is called less than enforced must have let something through.
type tally struct {
	mu      sync.Mutex // guards what follows
	through map[sandbox.Facet][]string
	facts   map[sandbox.Facet]sandbox.FacetReport
}

func (y *tally) note(f sandbox.Facts) {
	y.mu.Lock()
	defer y.mu.Unlock()
	for facet, report := range f.Facets {
		y.facts[facet] = report
	}
}

func (y *tally) noteThrough(facet sandbox.Facet, name string) {
	y.mu.Lock()
	defer y.mu.Unlock()
	y.through[facet] = append(y.through[facet], name)
}

// faults says where the facts of a whole table are not true. A part of the
// table says nothing.
func (y *tally) faults() (faults []string) {
	for _, facet := range sandbox.Facets {
		report := y.facts[facet]
		switch {
		case report.State == "":
			faults = append(faults, fmt.Sprintf("the facts do not speak of %s", facet))
		case report.State == sandbox.Enforced:
		case report.Reason == "":
			faults = append(faults, fmt.Sprintf("%s is called %s without a reason", facet, report.State))
		case len(y.through[facet]) == 0:
			faults = append(faults, fmt.Sprintf("%s is called %s (%s), but no row got through", facet, report.State, report.Reason))
		}
	}
	return faults
}

// allowance is an operation that the sandbox must not get in the way of.
type allowance struct {
	name   string
	modes  []sandbox.Mode // nil: workspace-write
	levels levels         // 0: everywhere
	root   bool           // for root only
	users  bool           // needs other users than its own, which Config.Alone leaves out
	grant  grant          // what the command may do besides; nil: nothing
	try    func(stage) error

	// missing, if set, says what is not on the host afterwards, though it should.
	missing func(*scene) string
}

func (r allowance) run(t *testing.T, w *place) {
	if r.root && w.world.uid != 0 {
		return
	}
	modes := r.modes
	if modes == nil {
		modes = []sandbox.Mode{sandbox.WorkspaceWrite}
	}
	for _, mode := range modes {
		s := newScene(t, w, mode)
		s.grant = r.grant
		out, facts := s.run(t, r.name)
		if r.levels != 0 && r.levels&levelOf(facts) == 0 {
			continue // nobody says that it works on this level
		}
		if r.users && w.alone {
			if out.Broken == "" && out.Errno == 0 {
				t.Errorf("%s: the operation %v, although a run is said to see one user only", mode, out)
			}
			continue
		}
		if out.Broken != "" || out.Errno != 0 {
			t.Errorf("%s: the operation %v", mode, out)
			continue
		}
		if r.missing != nil {
			if what := r.missing(s); what != "" {
				t.Errorf("%s: the operation seemed to work, but on the host: %s", mode, what)
			}
		}
	}
}

// opTime bounds one row's command.
const opTime = 30 * time.Second

// run tries the row's operation as a command of a provider.
func (s *scene) run(t *testing.T, row string) (outcome, sandbox.Facts) {
	t.Helper()
	provider := s.place.confined
	if s.mode == sandbox.DangerFullAccess {
		provider = s.place.unconfined
	}
	spec := s.place.spec(s.mode)
	spec.Policy.Network = s.network
	if s.grant != nil {
		s.grant(s, &spec.Policy)
	}
	spec.Argv = []string{s.place.program, entryOp, row, s.orders(t)}
	if s.stage.Inside != "" {
		spec.Dir = s.stage.Inside
	}
	result, stdout, stderr := start(t, provider, spec)
	return parseOutcome(t, stdout, fmt.Sprintf("exit code %d, signal %q, stderr %q", result.ExitCode, result.Signal, stderr)), result.Facts
}

func (s *scene) runDirectly(t *testing.T, entry, row string) outcome {
	t.Helper()
	cmd := exec.Command(s.place.program, entry, row, s.orders(t))
	cmd.Dir = s.stage.Inside
	cmd.Env = os.Environ()
	out, err := cmd.Output()
	return parseOutcome(t, string(out), fmt.Sprint(err))
}

func (s *scene) orders(t *testing.T) string {
	data, err := json.Marshal(s.stage)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

func parseOutcome(t *testing.T, stdout, otherwise string) outcome {
	t.Helper()
	var out outcome
	if err := json.Unmarshal([]byte(stdout), &out); err != nil {
		t.Fatalf("the child gave no report: %s; stdout %q", otherwise, stdout)
	}
	return out
}

// start runs a command to its end; it is an error if that does not begin or
// the sandbox breaks.
func start(t *testing.T, p sandbox.Provider, spec sandbox.Spec) (result sandbox.Result, stdout, stderr string) {
	t.Helper()
	process, err := p.Start(context.Background(), spec)
	if err != nil {
		t.Fatalf("starting the row's command: %v", err)
	}
	result, err = process.Wait()
	if err != nil {
		t.Fatalf("waiting for the row's command: %v", err)
	}
	if result.TimedOut {
		t.Fatalf("the row's command did not end within %v", spec.Timeout)
	}
	stdout, _ = process.Output(sandbox.StdoutStream).Tail()
	stderr, _ = process.Output(sandbox.StderrStream).Tail()
	return result, stdout, stderr
}
