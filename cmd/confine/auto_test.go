package main

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/confine-dev/confine/sandbox"
)

// counted is a provider that counts what is asked of it.
type counted struct {
	done                            chan struct{} // see running
	name                            string
	report                          sandbox.Report
	err                             error // of each start
	probes, starts, closes, endings atomic.Int64
}

func (c *counted) Name() string { return c.name }

func (c *counted) Interaction() sandbox.Interaction { return sandbox.Interaction{} }

func (c *counted) Probe(context.Context) sandbox.Report {
	c.probes.Add(1)
	return c.report
}

func (c *counted) Start(context.Context, sandbox.Spec) (sandbox.Process, error) {
	c.starts.Add(1)
	if c.err != nil {
		return nil, c.err
	}
	return &running{provider: c.name, done: c.done}, nil
}

// running is a command that ends when done is closed; at once without one.
type running struct {
	sandbox.Process
	provider string
	done     chan struct{}
}

func (r *running) Done() <-chan struct{} {
	if r.done != nil {
		return r.done
	}
	ended := make(chan struct{})
	close(ended)
	return ended
}

func (r *running) Wait() (sandbox.Result, error) {
	<-r.Done()
	facts := sandbox.Facts{Mode: sandbox.DangerFullAccess, Provider: r.provider}
	return sandbox.Result{Facts: facts, Denied: true, Denials: []sandbox.Denial{{Op: "write"}}}, nil
}

func (c *counted) CloseSession(string) { c.endings.Add(1) }

func (c *counted) Close() error {
	c.closes.Add(1)
	return nil
}

// Reports of providers on various hosts.
var (
	everything = sandbox.Report{Usable: true, Facets: facetsBut()}
	most       = sandbox.Report{Usable: true, Facets: facetsBut(sandbox.Metadata)}
	some       = sandbox.Report{Usable: true, Facets: facetsBut(sandbox.Metadata, sandbox.Devices)}
	nothing    = sandbox.Report{Reason: "it is not there"}
)

// facetsBut are the facets of a mode, all enforced but for some. Nobody enforces
// reading where nothing is hidden.
func facetsBut(open ...sandbox.Facet) map[sandbox.Facet]sandbox.FacetReport {
	facets := map[sandbox.Facet]sandbox.FacetReport{}
	for _, f := range sandbox.Facets {
		facets[f] = sandbox.FacetReport{State: sandbox.Enforced}
	}
	for _, f := range append(open, sandbox.FileRead) {
		facets[f] = sandbox.FacetReport{State: sandbox.Open, Reason: "not here"}
	}
	return facets
}

func TestAutoChoice(t *testing.T) {
	for _, test := range []struct {
		name                                 string
		landlock, bwrap                      sandbox.Report
		prefer                               bool
		want                                 string
		probesOfLandlock, probesOfBubblewrap int64 // for three commands
	}{
		{"the embedded one is enough", everything, everything, false, "landlock", 1, 0},
		{"bubblewrap enforces more", some, most, false, "bwrap", 1, 1},
		{"bubblewrap enforces as much", most, most, false, "landlock", 1, 1},
		{"bubblewrap enforces less", most, some, false, "landlock", 1, 1},
		{"bubblewrap is missing", most, nothing, false, "landlock", 1, 1},
		{"only bubblewrap is usable", nothing, some, false, "bwrap", 1, 1},
		{"none is usable", nothing, nothing, false, "landlock", 3, 3},
		{"bubblewrap is preferred", everything, some, true, "bwrap", 0, 1},
		{"bubblewrap is preferred and missing", some, nothing, true, "landlock", 1, 1},
		{"bubblewrap is preferred and none is usable", nothing, nothing, true, "landlock", 3, 3},
	} {
		t.Run(test.name, func(t *testing.T) {
			landlock, bwrap := &counted{name: "landlock", report: test.landlock}, &counted{name: "bwrap", report: test.bwrap}
			a := &auto{embedded: landlock, bwrap: bwrap, preferBwrap: test.prefer}
			if expected := map[bool]string{true: "bwrap", false: "landlock"}[test.prefer]; a.Name() != expected {
				t.Errorf("before anything was tried it is named %s", a.Name())
			}
			for range 3 {
				if _, err := a.Start(t.Context(), sandbox.Spec{}); err != nil {
					t.Fatal(err)
				}
			}
			started := map[string]int64{"landlock": landlock.starts.Load(), "bwrap": bwrap.starts.Load()}
			if started[test.want] != 3 || a.Name() != test.want && (test.landlock.Usable || test.bwrap.Usable) {
				t.Errorf("started by %v, named %s, want %s", started, a.Name(), test.want)
			}
			if l, b := landlock.probes.Load(), bwrap.probes.Load(); l != test.probesOfLandlock || b != test.probesOfBubblewrap {
				t.Errorf("landlock was tried %d times, bubblewrap %d times; want %d and %d", l, b, test.probesOfLandlock, test.probesOfBubblewrap)
			}
		})
	}
}

// TestAutoChoosesAnew lets the chosen provider fail: the command, which did not
// begin, is started by the other one if that is now the choice.
func TestAutoChoosesAnew(t *testing.T) {
	unavailable := &sandbox.UnavailableError{Detail: "namespaces are gone"}
	landlock, bwrap := &counted{name: "landlock", report: everything}, &counted{name: "bwrap", report: everything}
	a := &auto{embedded: landlock, bwrap: bwrap}
	a.Start(t.Context(), sandbox.Spec{})
	landlock.report, landlock.err = nothing, unavailable
	if _, err := a.Start(t.Context(), sandbox.Spec{}); err != nil || bwrap.starts.Load() != 1 || a.Name() != "bwrap" {
		t.Errorf("got %v, bubblewrap started %d, the choice is %s", err, bwrap.starts.Load(), a.Name())
	}

	// Where the choice stays, the failure is told, and the next command tries again.
	landlock, bwrap = &counted{name: "landlock", report: everything, err: unavailable}, &counted{name: "bwrap", report: everything}
	a = &auto{embedded: landlock, bwrap: bwrap}
	if _, err := a.Start(t.Context(), sandbox.Spec{}); !errors.Is(err, error(unavailable)) || landlock.starts.Load() != 1 || bwrap.starts.Load() != 0 {
		t.Errorf("got %v, starts %d and %d", err, landlock.starts.Load(), bwrap.starts.Load())
	}
	if landlock.probes.Load() != 2 {
		t.Errorf("landlock was tried %d times, want again after the failure", landlock.probes.Load())
	}
}

// TestAutoLacksBoth: something is lacking only if both providers say so of themselves
// in the same moment.
func TestAutoLacksBoth(t *testing.T) {
	lacking, busy := &sandbox.UnavailableError{Detail: "no Landlock", Lacking: true}, &sandbox.UnavailableError{Detail: "busy"}
	none := &sandbox.UnavailableError{Detail: "not installed", Lacking: true}
	for i, test := range []struct{ landlock, bwrap, want error }{
		{lacking, none, lacking}, {lacking, busy, busy}, {busy, none, busy}, {lacking, nil, nil},
	} {
		landlock, bwrap := &counted{name: "landlock", report: nothing, err: test.landlock}, &counted{name: "bwrap", report: nothing, err: test.bwrap}
		a := &auto{embedded: landlock, bwrap: bwrap}
		if _, err := a.Start(t.Context(), sandbox.Spec{}); err != test.want {
			t.Errorf("%d: got %v, want %v", i, err, test.want)
		}
	}
}

// TestAutoKeepsItsChoice lets commands fail by themselves, and a sandbox break
// after the command began: it must not run twice.
func TestAutoKeepsItsChoice(t *testing.T) {
	for _, err := range []error{&sandbox.StartError{Kind: sandbox.ProgramNotFound}, &sandbox.UnavailableError{Started: true}, context.Canceled} {
		landlock, bwrap := &counted{name: "landlock", report: everything, err: err}, &counted{name: "bwrap", report: everything}
		a := &auto{embedded: landlock, bwrap: bwrap}
		for range 2 {
			if _, got := a.Start(t.Context(), sandbox.Spec{}); !errors.Is(got, err) {
				t.Errorf("got %v, want %v", got, err)
			}
		}
		if landlock.starts.Load() != 2 || bwrap.starts.Load() != 0 || landlock.probes.Load() != 1 {
			t.Errorf("%v: starts %d and %d, tried %d times", err, landlock.starts.Load(), bwrap.starts.Load(), landlock.probes.Load())
		}
	}
}

func TestAutoIsChosenOnce(t *testing.T) {
	landlock, bwrap := &counted{name: "landlock", report: most}, &counted{name: "bwrap", report: everything}
	a := &auto{embedded: landlock, bwrap: bwrap}
	var all sync.WaitGroup
	for range 50 {
		all.Go(func() { a.Start(t.Context(), sandbox.Spec{}) })
	}
	all.Wait()
	if landlock.probes.Load() != 1 || bwrap.probes.Load() != 1 || bwrap.starts.Load() != 50 {
		t.Errorf("tried %d and %d times, bubblewrap started %d", landlock.probes.Load(), bwrap.probes.Load(), bwrap.starts.Load())
	}
}

// TestAutoForgetsNothingCancelled makes sure that a cancelled look is no verdict.
func TestAutoForgetsNothingCancelled(t *testing.T) {
	landlock, bwrap := &counted{name: "landlock", report: nothing}, &counted{name: "bwrap", report: everything}
	a := &auto{embedded: landlock, bwrap: bwrap}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	a.Start(ctx, sandbox.Spec{})
	landlock.report = everything
	if a.Start(t.Context(), sandbox.Spec{}); a.Name() != "landlock" || bwrap.starts.Load() != 0 {
		t.Errorf("the choice is %s", a.Name())
	}
}

func TestOnDemand(t *testing.T) {
	var made []*counted
	p := &onDemand{name: "bwrap", open: func() (sandbox.Provider, error) {
		made = append(made, &counted{name: "bwrap", report: everything})
		return made[len(made)-1], nil
	}}
	p.CloseSession("s")
	if len(made) != 0 {
		t.Fatal("it was made before it was needed")
	}
	for range 2 {
		if r := p.Probe(t.Context()); !r.Usable {
			t.Errorf("got %+v", r)
		}
	}
	if len(made) != 2 || made[0].closes.Load() != 1 || made[1].closes.Load() != 1 {
		t.Fatalf("for two questions %d were made, and not all closed", len(made))
	}
	for range 2 {
		p.Start(t.Context(), sandbox.Spec{})
	}
	p.Probe(t.Context())
	p.CloseSession("s")
	if len(made) != 3 || made[2].starts.Load() != 2 || made[2].probes.Load() != 1 || made[2].endings.Load() != 1 || made[2].closes.Load() != 0 {
		t.Fatalf("%d were made; the last: %+v", len(made), made[2])
	}
	p.Close()
	if made[2].closes.Load() != 1 {
		t.Error("it was not closed")
	}
	var unavailable *sandbox.UnavailableError
	if _, err := p.Start(t.Context(), sandbox.Spec{}); !errors.As(err, &unavailable) {
		t.Errorf("started once closed: %v", err)
	}
	if r := p.Probe(t.Context()); r.Usable || r.Provider != "bwrap" || len(made) != 3 {
		t.Errorf("tried once closed: %+v", r)
	}
}

// TestOnDemandRetires closes when the last command has ended, and not before.
func TestOnDemandRetires(t *testing.T) {
	end := make(chan struct{})
	engine := &counted{name: "bwrap", report: everything, done: end}
	p := &onDemand{name: "bwrap", open: func() (sandbox.Provider, error) { return engine, nil }}
	for range 2 {
		if _, err := p.Start(t.Context(), sandbox.Spec{}); err != nil {
			t.Fatal(err)
		}
	}
	closed := make(chan struct{})
	p.retire(func() { close(closed) })
	if engine.closes.Load() != 0 {
		t.Fatal("it was closed while commands run")
	}
	close(end)
	<-closed
	if engine.closes.Load() != 1 {
		t.Error("it was not closed")
	}
	idle := &onDemand{name: "bwrap"}
	told := false
	if idle.retire(func() { told = true }); !told {
		t.Error("one that was never needed does not retire")
	}
}

// TestFallbackSaysSo: the result of a command that ran unconfined against its mode
// has nothing in it that a sandbox would have done.
func TestFallbackSaysSo(t *testing.T) {
	broken := &counted{name: "landlock", err: &sandbox.UnavailableError{Mode: sandbox.ReadOnly, Lacking: true}}
	bare := &counted{name: "none"}
	f := &fallback{Provider: broken, unconfined: bare}
	process, err := f.Start(t.Context(), sandbox.Spec{Policy: sandbox.Policy{Mode: sandbox.ReadOnly}})
	if err != nil {
		t.Fatal(err)
	}
	result, err := process.Wait()
	if err != nil {
		t.Fatal(err)
	}
	facts := result.Facts
	if facts.Mode != sandbox.ReadOnly || facts.Provider != "none" || facts.Kind != "" || facts.Enforcement != "" || len(facts.Layers) > 0 || result.Denied || len(result.Denials) > 0 {
		t.Errorf("got %+v", result)
	}
	for _, facet := range sandbox.Facets {
		if got := facts.Facets[facet]; got.State != sandbox.Open || got.Reason == "" {
			t.Errorf("%s is %+v", facet, got)
		}
	}
	if f.CloseSession("s"); broken.endings.Load() != 1 || bare.endings.Load() != 1 {
		t.Error("the session was not ended in both")
	}

	// What began, what fails for now, and what fails for another reason does not run.
	for _, failure := range []error{&sandbox.UnavailableError{Started: true, Lacking: true}, &sandbox.UnavailableError{Detail: "too many processes"}, &sandbox.StartError{Kind: sandbox.ProgramNotFound}} {
		broken.err = failure
		if _, err := f.Start(t.Context(), sandbox.Spec{}); !errors.Is(err, failure) || bare.starts.Load() != 1 {
			t.Errorf("%v: got %v, %d started", failure, err, bare.starts.Load())
		}
	}
}

func TestOnDemandCannotBeMade(t *testing.T) {
	p := &onDemand{name: "bwrap", open: func() (sandbox.Provider, error) { return nil, errors.New("the disk is full") }}
	var unavailable *sandbox.UnavailableError
	if _, err := p.Start(t.Context(), sandbox.Spec{Policy: sandbox.Policy{Mode: sandbox.ReadOnly}}); !errors.As(err, &unavailable) || unavailable.Mode != sandbox.ReadOnly {
		t.Errorf("got %v", err)
	}
	if r := p.Probe(t.Context()); r.Usable || r.Reason == "" {
		t.Errorf("got %+v", r)
	}
	if err := p.Close(); err != nil {
		t.Error(err)
	}
}

// TestOnDemandWaits closes while a question is being answered.
func TestOnDemandWaits(t *testing.T) {
	asked, answer := make(chan struct{}), make(chan struct{})
	slow := &slowProvider{counted: counted{name: "bwrap"}, asked: asked, answer: answer}
	p := &onDemand{name: "bwrap", open: func() (sandbox.Provider, error) { return slow, nil }}
	var both sync.WaitGroup
	both.Go(func() { p.Probe(t.Context()) })
	<-asked
	both.Go(func() {
		p.Close()
		if slow.closes.Load() != 1 {
			t.Error("closed before the question was answered")
		}
	})
	close(answer)
	both.Wait()
}

type slowProvider struct {
	counted
	asked, answer chan struct{}
}

func (s *slowProvider) Probe(context.Context) sandbox.Report {
	close(s.asked)
	<-s.answer
	return sandbox.Report{}
}
