package local

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/confine-dev/confine/sandbox"
	"golang.org/x/sys/unix"
)

// verdict is what a probe found for one kind of policy.
type verdict struct {
	namespaces bool
	claims     Claims
	limits     map[sandbox.Facet]sandbox.FacetReport // by limitFacet
	checks     []sandbox.Check
	reason     string // why there are no namespaces
	provider   string
	kind       string
}

// mounts reports whether a run has mounts of its own.
func (v verdict) mounts() bool { return v.namespaces || slices.Contains(v.claims.Layers, "namespaces") }

// facts are what a run by this verdict can truthfully say.
func (v verdict) facts(p sandbox.Policy) sandbox.Facts {
	facets := v.claims.Facets
	if facets[sandbox.FileRead].State == sandbox.Enforced {
		if report, less := readable(p.Unreadable); less {
			facets = maps.Clone(facets)
			facets[sandbox.FileRead] = report
		}
	}
	return sandbox.Facts{Mode: p.Mode, Provider: v.provider, Kind: v.kind, Layers: v.claims.Layers,
		Facets: facets, Enforcement: sandbox.Sum(p, facets)}
}

// readable says what is less than enforced about hiding some paths where hiding
// works.
func readable(hidden []string) (report sandbox.FacetReport, less bool) {
	if len(hidden) == 0 { // probes always hide something
		return sandbox.FacetReport{State: sandbox.Open, Reason: "nothing is to be hidden: a command can read every file that its user can read"}, true
	}
	for _, path := range hidden {
		var st unix.Stat_t
		if unix.Lstat(path, &st) == nil && st.Mode&unix.S_IFMT == unix.S_IFREG && st.Nlink > 1 {
			return sandbox.FacetReport{State: sandbox.Partial, Reason: fmt.Sprintf("%q has another name on its file system, a hard link, by which it can be read", path)}, true
		}
	}
	return sandbox.FacetReport{}, false
}

// probeKey tells kinds of policies apart that are enforced by other means.
type probeKey struct {
	mode    sandbox.Mode
	network bool
}

// policy is one of the kind. Something is hidden in all of them.
func (k probeKey) policy() sandbox.Policy {
	return sandbox.Policy{Mode: k.mode, Network: k.network, Unreadable: []string{"/something"}}
}

// probes keeps what was found until something failed.
type probes struct {
	mu         sync.Mutex // held while probing, so that one probe serves all who wait
	found      map[probeKey]verdict
	namespaces bool // they worked once
	any        bool // something did

	// escapes are what Verify found possible although it was claimed not to be.
	// A quick probe may not see them again.
	escapes map[experiment][]attempt
}

func (p *probes) forget() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.found = nil
}

// probeTime bounds one probe.
const probeTime = 10 * time.Second

// verdict returns what holds for a policy, trying it out the first time.
func (e *Engine) verdict(ctx context.Context, policy sandbox.Policy) (verdict, error) {
	if e.wrapper == nil {
		return verdict{}, &sandbox.UnavailableError{Mode: policy.Mode, Lacking: true}
	}
	e.probes.mu.Lock()
	defer e.probes.mu.Unlock()
	key := probeKey{policy.Mode, policy.Network}
	if v, ok := e.probes.found[key]; ok {
		return v, nil
	}
	v, err := e.try(ctx, key)
	if err != nil {
		return verdict{}, err
	}
	if e.probes.found == nil {
		e.probes.found = map[probeKey]verdict{}
	}
	e.probes.found[key] = v
	e.probes.any, e.probes.namespaces = true, e.probes.namespaces || v.namespaces
	return v, nil
}

// try probes with namespaces, then without.
func (e *Engine) try(ctx context.Context, key probeKey) (verdict, error) {
	policy := key.policy()
	if e.kernel.unfit != "" {
		return verdict{}, &sandbox.UnavailableError{Mode: key.mode, Detail: e.kernel.unfit, Lacking: true,
			Remedies: []string{"boot a newer kernel: 5.13 has the first Landlock, 5.19 shows what a sandbox refused, 6.12 has all that confine uses"}}
	}
	var reasons []string
	lacking := !e.probes.any
	advice := []string{"allow unprivileged user namespaces for confine, or boot a kernel with Landlock (5.13 or newer)"}
	for _, namespaces := range []bool{true, false} {
		if namespaces && e.options.NoNamespaces {
			reasons = append(reasons, "namespaces are switched off")
			continue
		}
		if !namespaces && e.probes.namespaces {
			// Something is short for a moment, perhaps because a command saw to
			// it. That is no reason to confine less from now on.
			return verdict{}, &sandbox.UnavailableError{Mode: key.mode, Detail: strings.Join(reasons, "; "),
				Remedies: []string{"try again", "restart confine, if this host is to refuse namespaces from now on"}}
		}
		claims := e.wrapper.Claims(policy, namespaces)
		if claims.Missing != "" {
			return verdict{}, &sandbox.UnavailableError{Mode: key.mode, Detail: claims.Missing, Remedies: claims.Remedies, Lacking: lacking && !claims.Unsure}
		}
		x := experiment{key: key, namespaces: namespaces}
		attempts, err := e.conduct(ctx, x)
		if ctx.Err() != nil {
			return verdict{}, ctx.Err()
		}
		if namespaces && passing(err) {
			return verdict{}, &sandbox.UnavailableError{Mode: key.mode, Detail: err.Error(), Remedies: remedies(err)}
		}
		if err == nil {
			attempts = append(attempts, e.probes.escapes[x]...)
			err = holds(attempts)
		}
		if err != nil {
			reasons = append(reasons, err.Error())
			lacking = lacking && !passing(err)
			if runner, ok := errors.AsType[*RunnerError](err); ok && len(runner.Remedies) > 0 {
				advice = runner.Remedies
			}
			continue
		}
		v := verdict{namespaces: namespaces, claims: claims, checks: checksOf(attempts), provider: e.wrapper.Name(), kind: e.wrapper.Kind()}
		if !namespaces {
			v.reason = strings.Join(reasons, "; ")
		}
		v.claims.Facets = confirm(claims.Facets, attempts)
		v.limits = confirm(limitClaims(key.mode, v.mounts(), namespaces), attempts)
		return v, nil
	}
	return verdict{}, &sandbox.UnavailableError{Mode: key.mode, Detail: strings.Join(reasons, "; "), Lacking: lacking,
		Remedies: slices.Concat(advice, []string{"run `confine doctor` for details"})}
}

var errProbeSlow = fmt.Errorf("the probe did not end within %v; this machine is too busy", probeTime)

// passing reports whether a failure says that something is short for now, not
// that the host refuses. To confine less because of it would make the first
// command of a busy moment decide for all that follow.
func passing(err error) bool {
	if errors.Is(err, errProbeSlow) {
		return true
	}
	var errno syscall.Errno
	return errors.As(err, &errno) && slices.Contains([]syscall.Errno{syscall.EMFILE, syscall.ENFILE, syscall.ENOMEM, syscall.EAGAIN, syscall.EINTR}, errno)
}

// confirm takes back every claim that an attempt contradicts, or that none tried.
func confirm(claims map[sandbox.Facet]sandbox.FacetReport, attempts []attempt) map[sandbox.Facet]sandbox.FacetReport {
	facets := maps.Clone(claims)
	tried := trialsOf(attempts)
	for facet, claim := range claims {
		facets[facet] = sandbox.Confirm(claim, tried[facet])
	}
	return facets
}

// trialsOf sorts attempts by what they speak of.
func trialsOf(attempts []attempt) map[sandbox.Facet][]sandbox.Trial {
	sorted := map[sandbox.Facet][]sandbox.Trial{}
	for _, a := range attempts {
		facet, name, _ := strings.Cut(a.Title, ": ")
		sorted[sandbox.Facet(facet)] = append(sorted[sandbox.Facet(facet)],
			sandbox.Trial{Name: name, Outcome: a.Outcome, Detail: a.Detail, Exception: trialByTitle()[a.Title].exception})
	}
	return sorted
}

// checksOf lists what was really tried.
func checksOf(attempts []attempt) []sandbox.Check {
	checks := []sandbox.Check{}
	for _, a := range attempts {
		if a.Outcome != sandbox.Untried {
			checks = append(checks, a.check())
		}
	}
	return checks
}

func (a attempt) check() sandbox.Check {
	c := sandbox.Check{Name: a.Title, OK: a.good(), Detail: a.Detail}
	switch {
	case a.Outcome == sandbox.Refused:
		c.Detail = "refused: " + a.Detail
	case a.Detail == "" && c.OK:
		c.Detail = "works"
	case a.Detail == "":
		c.Detail = "it was possible"
	}
	return c
}

// good reports whether the outcome is what a sandbox that governs everything
// would give.
func (a attempt) good() bool {
	if trialByTitle()[a.Title].works {
		return a.Outcome != sandbox.Refused
	}
	return a.Outcome != sandbox.Possible
}

// holds returns an error if a level cannot be used at all: a control fails or a
// file outside could be changed.
func holds(attempts []attempt) error {
	for _, a := range attempts {
		t, known := trialByTitle()[a.Title]
		basic := !known || t.facet == "" || t.facet == sandbox.FileWrite && !t.exception
		if basic && !a.good() {
			return fmt.Errorf("the probe found that the sandbox does not hold: %s: %s", a.Title, a.check().Detail)
		}
	}
	return nil
}

// experiment is one way of probing.
type experiment struct {
	key        probeKey
	namespaces bool
	thorough   bool
}

// conduct runs the very profile once with confine itself as the command, which
// tries what must work and what must not.
func (e *Engine) conduct(ctx context.Context, x experiment) ([]attempt, error) {
	stage, err := e.newProbeStage(x)
	if err != nil {
		return nil, err
	}
	defer stage.close()
	claims := e.wrapper.Claims(stage.policy(), x.namespaces)
	v := verdict{namespaces: x.namespaces, claims: claims, provider: e.wrapper.Name(), kind: e.wrapper.Kind()}
	stage.orders.Counting, stage.orders.Bounded = countingFor(v.mounts(), v.namespaces), true
	orders, err := json.Marshal(stage.orders)
	if err != nil {
		return nil, err
	}
	session := "\x00" + stage.orders.Secret // nobody else's
	defer e.CloseSession(session)
	spec := sandbox.Spec{RunID: "probe", Session: session, Argv: []string{"confine"}, Dir: stage.root.Path,
		Policy: stage.policy(), Timeout: probeTime, Env: append([]string{"PATH=/usr/bin:/bin"}, helperEnv...), SpillDir: stage.orders.Outside}
	program := resolved{path: scriptPath, argv: []string{"confine", "__probe", string(orders)}, script: e.self}
	r, err := e.confine(spec, program, v)
	if err != nil {
		return nil, err
	}
	stop := context.AfterFunc(ctx, r.Cancel)
	defer stop()
	result, err := r.Wait()
	if err != nil {
		return nil, err
	}
	attempts, err := readAttempts(r, result)
	if err != nil {
		return nil, err
	}
	return stage.look(attempts)
}

// readAttempts reads the child's report.
func readAttempts(r *run, result sandbox.Result) ([]attempt, error) {
	text, _ := r.Output(sandbox.StdoutStream).Tail()
	var attempts []attempt
	if err := json.Unmarshal([]byte(text), &attempts); err != nil || len(attempts) == 0 {
		if result.TimedOut {
			return nil, errProbeSlow
		}
		stderr, _ := r.Output(sandbox.StderrStream).Tail()
		return nil, &brokenProbeError{fmt.Sprintf("the probe gave no report (exit code %d, signal %q): %s", result.ExitCode, result.Signal, firstLine(stderr))}
	}
	return attempts, nil
}

// brokenProbeError says that the probing child began and did not do its work.
type brokenProbeError struct{ text string }

func (e *brokenProbeError) Error() string { return e.text }

func firstLine(s string) string {
	line, _, _ := strings.Cut(strings.TrimSpace(s), "\n")
	return line
}

// Probe implements sandbox.Provider: the report is for workspace-write without
// network.
func (e *Engine) Probe(ctx context.Context) sandbox.Report {
	if e.wrapper == nil {
		return sandbox.Report{Provider: sandbox.ProviderNone, Usable: true, Reason: "nothing is confined"}
	}
	report := sandbox.Report{Provider: e.wrapper.Name(), Kind: e.wrapper.Kind()}
	if !e.enter() {
		report.Reason = errClosed.Error()
		return report
	}
	defer e.starting.Done()
	if err := e.guard.start(); err != nil { // a probe is a run like any other
		report.Reason = "starting the guardian: " + err.Error()
		return report
	}
	v, err := e.verdict(ctx, sandbox.Policy{Mode: sandbox.WorkspaceWrite})
	if err != nil {
		report.Reason = err.Error()
		var unavailable *sandbox.UnavailableError
		if errors.As(err, &unavailable) {
			report.Reason, report.Remedies = unavailable.Detail, unavailable.Remedies
		}
		return report
	}
	report.Usable, report.Version, report.Layers = true, v.claims.Version, v.claims.Layers
	report.ABI, report.MissingRights = v.claims.ABI, v.claims.MissingRights
	report.Limits = limitStates(v.limits)
	report.Facets, report.Checks, report.Reason, report.Remedies = v.claims.Facets, v.checks, v.reason, v.claims.Remedies
	return report
}
