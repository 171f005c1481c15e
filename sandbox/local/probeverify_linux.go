package local

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/confine-dev/confine/sandbox"
	"golang.org/x/sys/unix"
)

// Verify implements sandbox.Verifier. Nothing that was found before counts, and
// nothing that runs rely on changes, unless a claim turns out to be wrong: then
// it is not made again by this engine.
func (e *Engine) Verify(ctx context.Context) []sandbox.Verification {
	if e.wrapper == nil || !e.enter() {
		return nil
	}
	defer e.starting.Done()
	free, err := e.possible(ctx)
	if err == nil {
		err = e.guard.start() // a probe is a run like any other
	}
	var all []sandbox.Verification
	for _, mode := range []sandbox.Mode{sandbox.ReadOnly, sandbox.WorkspaceWrite} {
		for _, network := range []bool{false, true} {
			for _, namespaces := range []bool{true, false} {
				x := experiment{key: probeKey{mode: mode, network: network}, namespaces: namespaces, thorough: true}
				v := e.unverified(x)
				if err != nil {
					v.Reason = err.Error()
				} else {
					e.verify(ctx, &v, x, free)
				}
				all = append(all, v)
			}
		}
	}
	return all
}

// unverified is a verification of which nothing is known yet.
func (e *Engine) unverified(x experiment) sandbox.Verification {
	return sandbox.Verification{Provider: e.wrapper.Name(), Mode: x.key.mode, Network: x.key.network, Namespaces: x.namespaces,
		Facets: []sandbox.VerifiedFacet{}, Limits: []sandbox.VerifiedFacet{}, Controls: []sandbox.Check{}}
}

// verify tries one combination and fills the verification in.
func (e *Engine) verify(ctx context.Context, v *sandbox.Verification, x experiment, free map[string]attempt) {
	if ctx.Err() != nil {
		v.Reason = ctx.Err().Error()
		return
	}
	inUse, err := e.verdict(ctx, sandbox.Policy{Mode: v.Mode, Network: v.Network})
	v.InUse = err == nil && inUse.namespaces == v.Namespaces
	if x.namespaces && e.options.NoNamespaces {
		v.Reason = "namespaces are switched off"
		return
	}
	claims := e.wrapper.Claims(x.key.policy(), x.namespaces)
	if claims.Missing != "" {
		v.Reason = claims.Missing
		return
	}
	attempts, err := e.conduct(ctx, x)
	if ctx.Err() != nil {
		err = ctx.Err() // whatever came of it
	}
	if broken, ok := errors.AsType[*brokenProbeError](err); ok {
		v.Controls = append(v.Controls, sandbox.Check{Name: "the probing command ends its work", Detail: broken.text})
		return
	}
	if err != nil {
		v.Reason = err.Error()
		return
	}
	v.Layers = claims.Layers
	for i := range attempts {
		attempts[i] = attempts[i].against(free)
	}
	tried := trialsOf(attempts)
	for _, facet := range sandbox.Facets {
		claim, made := claims.Facets[facet]
		if !made {
			claim = sandbox.FacetReport{State: sandbox.Open, Reason: "nothing is claimed"}
		}
		v.Facets = append(v.Facets, verified(facet, claim, tried[facet]))
	}
	held := verdict{namespaces: x.namespaces, claims: claims}
	limits := limitClaims(x.key.mode, held.mounts(), x.namespaces)
	for _, resource := range sandbox.Resources {
		facet := limitFacet(resource)
		v.Limits = append(v.Limits, verified(facet, limits[facet], tried[facet]))
	}
	for _, a := range attempts {
		if trialByTitle()[a.Title].facet == "" && a.Outcome != sandbox.Untried {
			v.Controls = append(v.Controls, a.check())
		}
	}
	e.probes.disprove(x, attempts, len(v.Problems()) > 0)
}

func verified(facet sandbox.Facet, claim sandbox.FacetReport, trials []sandbox.Trial) sandbox.VerifiedFacet {
	return sandbox.VerifiedFacet{Facet: facet, Claimed: claim, Confirmed: sandbox.Confirm(claim, trials), Finding: sandbox.Judge(claim, trials), Trials: trials}
}

// against says that a trial tells nothing if it fails without a sandbox too.
func (a attempt) against(free map[string]attempt) attempt {
	t := trialByTitle()[a.Title]
	f, known := free[a.Title]
	if t.facet == "" || t.certain || !known || f.Outcome == sandbox.Possible || a.Outcome != sandbox.Refused {
		return a
	}
	return attempt{a.Title, sandbox.Untried, "without a sandbox it is not possible either: " + f.Detail}
}

// disprove notes what must not be claimed from now on.
func (p *probes) disprove(x experiment, attempts []attempt, wrong bool) {
	x.thorough = false // as the quick probe looks it up
	p.mu.Lock()
	defer p.mu.Unlock()
	if !wrong && p.escapes[x] == nil {
		return
	}
	p.found = nil
	if p.escapes == nil {
		p.escapes = map[experiment][]attempt{}
	}
	delete(p.escapes, x)
	for _, a := range attempts {
		if a.Outcome == sandbox.Possible && !a.good() {
			p.escapes[x] = append(p.escapes[x], a)
		}
	}
}

// possible makes all trials with nothing confined: what fails then says nothing
// about a sandbox.
func (e *Engine) possible(ctx context.Context) (map[string]attempt, error) {
	// In read-only mode the workspace is tried too.
	stage, err := e.newProbeStage(experiment{key: probeKey{mode: sandbox.ReadOnly}, thorough: true})
	if err != nil {
		return nil, err
	}
	defer stage.close()
	stage.orders.Free, stage.orders.Scratch = true, filepath.Dir(stage.orders.Outside)
	orders, err := json.Marshal(stage.orders)
	if err != nil {
		return nil, err
	}
	text, err := runFree(ctx, string(orders))
	if err != nil {
		return nil, fmt.Errorf("trying what is possible without a sandbox: %w", err)
	}
	var attempts []attempt
	if err := json.Unmarshal(text, &attempts); err != nil || len(attempts) == 0 {
		return nil, errors.New("trying what is possible without a sandbox: there was no report")
	}
	if attempts, err = stage.look(attempts); err != nil {
		return nil, err
	}
	free := map[string]attempt{}
	for _, a := range attempts {
		free[a.Title] = a
	}
	return free, nil
}

// runFree runs the prober without a sandbox and returns its report.
func runFree(ctx context.Context, orders string) ([]byte, error) {
	r, w, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	defer r.Close()
	pid, err := startSelf(nil, []string{"__probe", freeArg, orders}, w)
	w.Close()
	if err != nil {
		return nil, err
	}
	limited, cancel := context.WithTimeout(ctx, probeTime)
	defer cancel()
	// It is not reaped before stop says that no signal is on its way.
	killed := make(chan struct{})
	stop := context.AfterFunc(limited, func() {
		defer close(killed)
		unix.Kill(pid, unix.SIGKILL)
	})
	text, err := io.ReadAll(r)
	over := !stop()
	if over {
		<-killed
	}
	err = errors.Join(err, waitChild(pid))
	if over && ctx.Err() == nil {
		return nil, errProbeSlow
	}
	return text, err
}
