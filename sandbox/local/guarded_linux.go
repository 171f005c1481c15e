package local

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"

	"github.com/confine-dev/confine/sandbox"
	"github.com/confine-dev/confine/sandbox/protect"
)

// guarded is what is done, besides the view, so that a run changes nothing that
// its policy protects, and what is looked at when it is over.
type guarded struct {
	policy   sandbox.Policy
	release  func() // of covers and temporary files; may be called again
	failed   []string
	absent   []string // what is covered, and must not seem to be there
	bare     bool     // nothing but rules that add up stands before what is protected
	snapshot *protect.Snapshot
}

// guardPaths prepares a run. Without namespaces nothing can be mounted, and so
// nothing is covered. The error says that what was granted cannot be made now.
func (e *Engine) guardPaths(policy sandbox.Policy, mounts bool) (*guarded, error) {
	g := &guarded{policy: policy, release: func() {}, bare: !mounts}
	if policy.Mode != sandbox.WorkspaceWrite && len(policy.Writable) == 0 {
		return g, nil
	}
	if mounts {
		g.release, g.absent, g.failed = e.covers.place(policy)
	}
	if err := e.covers.stands(policy.Lifted); err != nil {
		g.release()
		return nil, err
	}
	g.snapshot = protect.Take(policy, !mounts)
	return g, nil
}

// alsoRelease adds what is to be done when the run is over, before anybody is told.
func (g *guarded) alsoRelease(more func()) {
	release := g.release
	g.release = func() { release(); more() }
}

// end says what came of it. made are notable paths that were seen being made.
// Afterwards nothing is left of the covers that nobody else needs.
func (g *guarded) end(facts sandbox.Facts, made []string) sandbox.Facts {
	defer g.release()
	if g.snapshot == nil {
		return facts
	}
	facts.Planted = g.snapshot.Planted(made)
	var reasons []string
	if n := len(facts.Planted); n > 0 {
		what := strconv.Quote(facts.Planted[0])
		if n > 1 {
			what = fmt.Sprintf("%s and %d more", what, n-1)
		}
		reasons = append(reasons, "what programs outside run or believe was made or changed during the run: "+what+" (see planted)")
	}
	if len(g.failed) > 0 {
		reasons = append(reasons, fmt.Sprintf("%s could not be kept absent", strconv.Quote(g.failed[0])))
	}
	if g.policy.Gaps != "" {
		reasons = append(reasons, g.policy.Gaps)
	}
	if g.bare && facts.Facets[sandbox.FileWrite].State == sandbox.Enforced && g.snapshot.Exposed() {
		reasons = append(reasons, "without namespaces nothing in a granted folder can be kept read-only")
	}
	for _, reason := range reasons {
		facts = weaken(facts, reason)
	}
	facts.Enforcement = sandbox.Sum(g.policy, facts.Facets)
	return facts
}

// weaken takes back that writing files is governed without exception.
func weaken(facts sandbox.Facts, reason string) sandbox.Facts {
	report := facts.Facets[sandbox.FileWrite]
	switch report.State {
	case sandbox.Enforced:
		report = sandbox.FacetReport{State: sandbox.Partial, Reason: reason}
	case sandbox.Partial:
		report.Reason += "; " + reason
	default:
		return facts
	}
	facts.Facets = maps.Clone(facts.Facets)
	facts.Facets[sandbox.FileWrite] = report
	facts.Planted = slices.Clone(facts.Planted)
	return facts
}

// coverFolder is what commands see in the place of empty protected folders. Git
// is told to ignore it: otherwise it would try to clean it away, and fail.
func (h *home) coverFolder() string { return filepath.Join(h.dir, "cover") }

func (h *home) makeCoverFolder() error {
	if err := os.Mkdir(h.coverFolder(), 0o700); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(h.coverFolder(), ".gitignore"), []byte("*\n"), 0o600)
}
