package sandboxtest

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/confine-dev/confine/sandbox"
)

// Fake is a Provider that runs nothing. A test says what each command prints
// and how it ends, either beforehand with Script or as it goes with Next. It
// confines nothing either: its facts are whatever the test makes them.
type Fake struct {
	name    string
	facets  map[sandbox.Facet]sandbox.FacetReport // empty for ProviderNone
	started chan *FakeProcess                     // never closed; processes without a script
	playing sync.WaitGroup                        // the scripts

	mu        sync.Mutex // guards what follows
	report    sandbox.Report
	probes    int
	probeHold chan struct{} // closed by the release function of HoldProbe
	startErrs []error
	scripts   map[string]func(*FakeProcess)
	specs     []sandbox.Spec
	processes []*FakeProcess
	closed    []string

	interaction sandbox.Interaction
}

var _ sandbox.Provider = (*Fake)(nil)

// fakeQueue is how many processes may wait for Next; more is a test gone wrong.
const fakeQueue = 4096

// NewFake returns a provider of that name which is usable and enforces
// everything. The name sandbox.ProviderNone makes one that confines nothing.
func NewFake(name string) *Fake {
	f := &Fake{
		name:    name,
		facets:  map[sandbox.Facet]sandbox.FacetReport{},
		started: make(chan *FakeProcess, fakeQueue),
		scripts: map[string]func(*FakeProcess){},

		interaction: sandbox.Interaction{Input: true, Terminal: true},
	}
	if f.confines() {
		for _, facet := range sandbox.Facets {
			f.facets[facet] = sandbox.FacetReport{State: sandbox.Enforced}
		}
	}
	f.report = sandbox.Report{Provider: name, Kind: f.kind(), Usable: true, Version: "fake", Facets: f.facets}
	return f
}

func (f *Fake) confines() bool { return f.name != sandbox.ProviderNone }

func (f *Fake) kind() string {
	if !f.confines() {
		return ""
	}
	return "linux-" + f.name
}

// Name returns the name that the fake was made with.
func (f *Fake) Name() string { return f.name }

// Interaction is everything, or what SetInteraction set.
func (f *Fake) Interaction() sandbox.Interaction {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.interaction
}

// SetInteraction sets what can be had of open input and terminals from now on.
func (f *Fake) SetInteraction(i sandbox.Interaction) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.interaction = i
}

// SetReport sets what Probe answers from now on.
func (f *Fake) SetReport(r sandbox.Report) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.report = r
}

// HoldProbe makes every Probe wait until release is called.
func (f *Fake) HoldProbe() (release func()) {
	f.mu.Lock()
	defer f.mu.Unlock()
	hold := make(chan struct{})
	f.probeHold = hold
	return sync.OnceFunc(func() { close(hold) })
}

// Probe answers what SetReport set, or the report of a provider that enforces
// everything.
func (f *Fake) Probe(ctx context.Context) sandbox.Report {
	f.mu.Lock()
	f.probes++
	hold := f.probeHold
	f.mu.Unlock()
	if hold != nil {
		select {
		case <-hold:
		case <-ctx.Done():
		}
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.report
}

// Probes is how often Probe was called.
func (f *Fake) Probes() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.probes
}

// FailStart makes the next Start fail with err. Several calls queue up.
func (f *Fake) FailStart(err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.startErrs = append(f.startErrs, err)
}

// Script makes every later run of exactly this command play the given part, in
// a goroutine of its own that Close waits for.
func (f *Fake) Script(command string, play func(*FakeProcess)) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.scripts[command] = play
}

// Start begins a process that has a script, or hands it to Next.
func (f *Fake) Start(ctx context.Context, spec sandbox.Spec) (sandbox.Process, error) {
	if err := ctx.Err(); err != nil {
		return nil, fmt.Errorf("starting a fake command: %w", err)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.specs = append(f.specs, spec)
	if len(f.startErrs) > 0 {
		err := f.startErrs[0]
		f.startErrs = f.startErrs[1:]
		return nil, err
	}
	p := newFakeProcess(spec, f.facts(spec.Policy))
	f.processes = append(f.processes, p)
	if play, ok := f.scripts[spec.Command]; ok {
		f.playing.Go(func() { play(p) })
	} else {
		f.started <- p
	}
	return p, nil
}

func (f *Fake) facts(p sandbox.Policy) sandbox.Facts {
	facts := sandbox.Facts{Mode: p.Mode, Provider: f.name, Kind: f.kind()}
	if f.confines() {
		facts.Layers = []string{"fake"}
		facts.Facets = f.facets
		facts.Enforcement = sandbox.Sum(p, f.facets)
		facts.Limits = fakeLimits(p.Limits)
	}
	return facts
}

// fakeLimits says that each limit that is set is kept.
func fakeLimits(l sandbox.Limits) []sandbox.LimitReport {
	set := map[sandbox.Resource]uint64{sandbox.ProcessCount: l.Processes, sandbox.Memory: l.Memory, sandbox.OpenFiles: l.OpenFiles,
		sandbox.FileSize: l.FileSize, sandbox.TemporaryFiles: l.TempSize}
	var reports []sandbox.LimitReport
	for _, resource := range sandbox.Resources {
		report := sandbox.LimitReport{Resource: resource, Limit: set[resource], State: sandbox.Enforced}
		if report.Limit == 0 {
			report.State, report.Reason = sandbox.Open, "no limit is set"
		}
		reports = append(reports, report)
	}
	return reports
}

// Next waits for the next process without a script.
func (f *Fake) Next(ctx context.Context) (*FakeProcess, error) {
	select {
	case p := <-f.started:
		return p, nil
	case <-ctx.Done():
		return nil, fmt.Errorf("waiting for a command to start: %w", ctx.Err())
	}
}

// Specs lists what was asked of Start, failed starts included.
func (f *Fake) Specs() []sandbox.Spec {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.specs)
}

// ClosedSessions lists the arguments of CloseSession in order.
func (f *Fake) ClosedSessions() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.closed)
}

// CloseSession kills what the session still runs.
func (f *Fake) CloseSession(session string) {
	f.mu.Lock()
	f.closed = append(f.closed, session)
	processes := slices.Clone(f.processes)
	f.mu.Unlock()
	for _, p := range processes {
		if p.Spec.Session == session {
			p.End(sandbox.Result{Signal: "SIGKILL", Cancelled: true})
		}
	}
}

// Close kills everything and waits for the scripts.
func (f *Fake) Close() error {
	f.mu.Lock()
	processes := slices.Clone(f.processes)
	f.mu.Unlock()
	for _, p := range processes {
		p.End(sandbox.Result{Signal: "SIGKILL", Cancelled: true})
	}
	f.playing.Wait()
	return nil
}

// FakeProcess is a command that a test plays.
type FakeProcess struct {
	Spec sandbox.Spec

	facts     sandbox.Facts
	captures  map[sandbox.Stream]*sandbox.Capture
	input     *sandbox.Input // nil unless it is open
	began     time.Time
	done      chan struct{} // closed when the process ends
	cancelled chan struct{} // closed by the first Cancel

	printing sync.Mutex // held while output is handed over, so that it is never twice at once

	mu       sync.Mutex  // guards what follows
	deadline *time.Timer // nil without a timeout
	trapped  bool
	asked    bool // Cancel was called
	ended    bool
	result   sandbox.Result
	err      error
	signals  []os.Signal
	size     sandbox.TerminalSize // of its terminal
}

var _ sandbox.Process = (*FakeProcess)(nil)

func newFakeProcess(spec sandbox.Spec, facts sandbox.Facts) *FakeProcess {
	p := &FakeProcess{
		Spec:      spec,
		facts:     facts,
		captures:  map[sandbox.Stream]*sandbox.Capture{},
		began:     time.Now(),
		done:      make(chan struct{}),
		cancelled: make(chan struct{}),
	}
	for _, s := range []sandbox.Stream{sandbox.StdoutStream, sandbox.StderrStream} {
		p.captures[s] = sandbox.NewCapture(sandbox.CaptureOptions{Keep: spec.KeepOutput, SpillDir: spec.SpillDir, Name: string(s)})
	}
	if spec.StdinOpen || spec.Terminal != nil {
		p.input = sandbox.NewInput()
	}
	if spec.Terminal != nil {
		p.size = *spec.Terminal
	}
	if spec.Timeout > 0 {
		p.mu.Lock() // the timer may be faster
		defer p.mu.Unlock()
		p.deadline = time.AfterFunc(spec.Timeout, func() {
			p.End(sandbox.Result{Signal: "SIGTERM", TimedOut: true})
		})
	}
	return p
}

// Provider is the name of the fake that began it.
func (p *FakeProcess) Provider() string { return p.facts.Provider }

// Print makes the command print; after its end it does nothing.
func (p *FakeProcess) Print(stream sandbox.Stream, data string) {
	p.printing.Lock()
	defer p.printing.Unlock()
	p.mu.Lock()
	ended := p.ended
	p.mu.Unlock()
	if ended {
		return
	}
	offset := p.captures[stream].Total()
	p.captures[stream].Write([]byte(data)) // a Capture never fails
	if p.Spec.Output != nil {
		p.Spec.Output(sandbox.Chunk{Stream: stream, Offset: offset, Data: []byte(data)})
	}
}

// Stdout prints on standard output.
func (p *FakeProcess) Stdout(data string) { p.Print(sandbox.StdoutStream, data) }

// Stderr prints on standard error.
func (p *FakeProcess) Stderr(data string) { p.Print(sandbox.StderrStream, data) }

// Exit ends the command with a status.
func (p *FakeProcess) Exit(code int) { p.End(sandbox.Result{ExitCode: code}) }

// Deny ends the command with status 1 and these denials.
func (p *FakeProcess) Deny(denials ...sandbox.Denial) {
	p.End(sandbox.Result{ExitCode: 1, Denied: true, Denials: denials})
}

// Break ends the command because its sandbox broke.
func (p *FakeProcess) Break(err error) { p.end(sandbox.Result{}, err) }

// End ends the command with a result, whose facts and times are filled in.
// Only the first end counts.
func (p *FakeProcess) End(r sandbox.Result) { p.end(r, nil) }

func (p *FakeProcess) end(r sandbox.Result, err error) {
	p.printing.Lock()
	defer p.printing.Unlock()
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.ended {
		return
	}
	p.ended = true
	if p.deadline != nil {
		p.deadline.Stop()
	}
	r.Started, r.Duration, r.Facts = p.began, time.Since(p.began), p.facts
	p.result, p.err = r, err
	for _, c := range p.captures {
		c.Finish()
	}
	if p.input != nil {
		p.input.Stop()
	}
	close(p.done)
}

// Trap makes the command ignore Cancel from now on.
func (p *FakeProcess) Trap() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.trapped = true
}

// Cancelled is closed once Cancel was called, trapped or not.
func (p *FakeProcess) Cancelled() <-chan struct{} { return p.cancelled }

// Cancel ends the command by SIGTERM at once, unless it is trapped.
func (p *FakeProcess) Cancel() {
	p.mu.Lock()
	first := !p.asked
	p.asked = true
	trapped := p.trapped
	p.mu.Unlock()
	if first {
		close(p.cancelled)
	}
	if !trapped {
		p.End(sandbox.Result{Signal: "SIGTERM", Cancelled: true})
	}
}

// Wait blocks until the command was ended.
func (p *FakeProcess) Wait() (sandbox.Result, error) {
	<-p.done
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.result, p.err
}

// Done is closed when the command was ended.
func (p *FakeProcess) Done() <-chan struct{} { return p.done }

// Signal notes the signal.
func (p *FakeProcess) Signal(sig os.Signal) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.signals = append(p.signals, sig)
	return nil
}

// Signals lists what was sent with Signal.
func (p *FakeProcess) Signals() []os.Signal {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.signals)
}

// Output gives access to what was printed.
func (p *FakeProcess) Output(stream sandbox.Stream) *sandbox.Capture { return p.captures[stream] }

// Input is the queue of a command with open input. A test reads it as the command
// would.
func (p *FakeProcess) Input() *sandbox.Input { return p.input }

// Resize notes the size.
func (p *FakeProcess) Resize(size sandbox.TerminalSize) error {
	if p.Spec.Terminal == nil {
		return errors.New("it has no terminal")
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.ended {
		p.size = size
	}
	return nil
}

// Size is that of the terminal.
func (p *FakeProcess) Size() sandbox.TerminalSize {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.size
}
