package opensandbox

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/confine-dev/confine/sandbox"
)

// probeTime bounds a probe.
const probeTime = time.Minute

// Probe implements sandbox.Provider: it has the service make a sandbox, runs a command
// that must succeed and one that must fail, and deletes it. The answer is kept while
// it is good.
func (p *Provider) Probe(ctx context.Context) sandbox.Report {
	p.probing <- struct{}{}
	defer func() { <-p.probing }()
	p.mu.Lock()
	kept := p.report
	p.mu.Unlock()
	if kept != nil {
		return *kept
	}
	report := sandbox.Report{Provider: p.Name()}
	if !p.enter() {
		report.Reason = "confine is shutting down"
		return report
	}
	defer p.working.Done()
	ctx, cancel := context.WithTimeout(ctx, probeTime)
	defer cancel()
	defer context.AfterFunc(p.ctx, cancel)()
	report.Checks, report.Reason, report.Remedies = p.try(ctx)
	if report.Reason != "" {
		return report
	}
	report.Usable, report.Reason = true, p.config.manner()
	report.Layers, report.Facets = []string{p.layer()}, p.config.facets(sandbox.WorkspaceWrite, false)
	report.Limits = map[sandbox.Resource]sandbox.FacetReport{}
	for _, resource := range sandbox.Resources {
		report.Limits[resource] = sandbox.FacetReport{State: sandbox.Open, Reason: noLimits}
	}
	if ctx.Err() == nil {
		p.mu.Lock()
		p.report = &report
		p.mu.Unlock()
	}
	return report
}

// probed waits for the end of a probe; false if that is not to be waited for any more.
// Its sandbox can be the last that the service has room for.
func (p *Provider) probed(ctx context.Context) bool {
	select {
	case p.probing <- struct{}{}:
		<-p.probing
		return true
	case <-ctx.Done():
		return false
	}
}

// trial is one command of a probe and the exit code that it must have.
type trial struct {
	name, command string
	code          int
}

var trials = []trial{
	{"a command that succeeds is said to", "true", 0},
	{"a command that fails is said to", "exit 7", 7},
}

// try makes the checks up to the first that fails. problem is why.
func (p *Provider) try(ctx context.Context) (checks []sandbox.Check, problem string, remedies []string) {
	add := func(name string, f *failure) bool {
		if f == nil {
			checks = append(checks, sandbox.Check{Name: name, OK: true})
			return true
		}
		checks = append(checks, sandbox.Check{Name: name, Detail: f.text})
		problem, remedies = f.text, f.remedies()
		return false
	}
	health := *p.base
	health.Path = strings.TrimSuffix(strings.TrimRight(health.Path, "/"), "/v1")
	f := p.insist(ctx, peer{base: &health}, call{method: http.MethodGet, path: "/health"}, nil)
	if f != nil && f.status != 0 && p.config.API == APIRun {
		f = nil // it answers; that it has such a page is not part of this contract
	}
	if !add("the service answers", f) {
		return checks, problem, remedies
	}
	if p.config.API == APIRun {
		p.tryCalls(ctx, add)
		return checks, problem, remedies
	}
	policy := sandbox.Policy{Mode: sandbox.ReadOnly}
	spec := sandbox.Spec{Session: "probe-" + rand.Text(), Dir: "/", Policy: policy}
	volumes, _ := p.mounts(policy) // without roots there are none
	r, err := p.make(ctx, spec, volumes, nil)
	if err != nil {
		add("a sandbox is made and runs", &failure{sent: true, text: detail(err)})
		return checks, problem, remediesOf(err)
	}
	add("a sandbox is made and runs", nil)
	for _, t := range trials {
		bounded, cancel := context.WithTimeout(ctx, p.config.Patience)
		v, f := r.execd.run(bounded, order{Command: t.command})
		cancel()
		if f == nil && (v.kind != exited || v.code != t.code) {
			f = &failure{sent: true, text: fmt.Sprintf("the service said something else of the command %q", t.command)}
		}
		if !add(t.name, f) {
			break
		}
	}
	r.end("it was made to try the service", true)
	if r.left != nil {
		add("a sandbox is deleted", r.left)
	} else if problem == "" {
		add("a sandbox is deleted", nil)
	}
	return checks, problem, remedies
}

// tryCalls makes the trials by the one-call interface.
func (p *Provider) tryCalls(ctx context.Context, add func(string, *failure) bool) {
	for _, t := range trials {
		bounded, cancel := context.WithTimeout(ctx, p.config.Patience)
		answer, f := p.sendCall(bounded, p.callPeer(), map[string]any{"cmd": t.command, "env": map[string]string{}})
		cancel()
		if f == nil && int(answer.code) != t.code {
			f = &failure{sent: true, text: fmt.Sprintf("the service said something else of the command %q", t.command)}
		}
		if !add(t.name, f) {
			return
		}
	}
}

// detail and remediesOf are what an error of this package says.
func detail(err error) string {
	if failed, ok := errors.AsType[*sandbox.UnavailableError](err); ok {
		return strings.TrimPrefix(failed.Detail, prefix)
	}
	return err.Error()
}

func remediesOf(err error) []string {
	if failed, ok := errors.AsType[*sandbox.UnavailableError](err); ok {
		return slices.DeleteFunc(failed.Remedies, func(remedy string) bool { return remedy == seeDoctor })
	}
	return nil
}
