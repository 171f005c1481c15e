package server

import (
	"context"
	"errors"

	"github.com/confine-dev/confine/approval"
	"github.com/confine-dev/confine/rpc"
	"github.com/confine-dev/confine/rpc/proto"
	"github.com/confine-dev/confine/sandbox"
)

// runCommand runs a command, after asking somebody if it wants more than is
// configured. A refusal and a cancellation are results, not errors.
func (c *client) runCommand(ctx context.Context, req *rpc.Request) (any, error) {
	var params proto.RunCommandParams
	if err := req.Decode(&params); err != nil {
		return nil, err
	}
	p, err := c.plan(params)
	if err != nil {
		return nil, err
	}
	return c.perform(ctx, p)
}

// perform lists the run and follows it until it can be answered.
func (c *client) perform(ctx context.Context, p plan) (*proto.RunResult, error) {
	r, err := c.list(p)
	if err != nil {
		return nil, err
	}
	// Until it is answered, a run ends with its request.
	defer context.AfterFunc(ctx, func() { c.requestEnded(ctx, r) })()
	told := false
	defer func() {
		if !told {
			c.runs.remove(r) // the error is the answer, and all that is to be told; a panic is answered too
		}
	}()
	if err := c.follow(r); err != nil {
		return nil, err
	}
	told = true
	return c.result(r), nil
}

// list makes a run of a plan.
func (c *client) list(p plan) (*run, error) {
	err := c.sessions.add(p.session)
	if err == nil {
		var r *run
		if r, err = c.runs.add(c.ctx, p); err == nil {
			return r, nil
		}
	}
	p.release()
	return nil, err
}

// follow decides, starts and waits. The error says that the sandbox, or
// confine, failed; of a background run that began it is kept for its result.
func (c *client) follow(r *run) error {
	decision, err := c.decide(r)
	if err != nil {
		return err
	}
	r.decided(decision)
	switch {
	case r.ctx.Err() != nil:
		c.finish(r, ending{status: proto.StatusCancelled})
		return nil
	case !decision.Outcome.Allowed():
		c.finish(r, ending{status: proto.StatusRefused})
		return nil
	case r.plan.asks && r.plan.settings != c.settings():
		return &settingsChangedError{}
	case r.plan.moved():
		return &sandbox.StartError{Kind: sandbox.BadWorkingDirectory, Path: r.plan.dir, Err: errors.New("it is not the folder that the question showed any more")}
	}
	if err := r.plan.replaced(); err != nil {
		return err
	}
	out := c.newOutflow(r.plan.id)
	process, err := c.start(r, out)
	switch {
	case err != nil && r.ctx.Err() != nil:
		c.finish(r, ending{status: proto.StatusCancelled})
		return nil
	case err != nil:
		return err
	}
	if err := r.started(process); err != nil {
		c.o.Log.Warn("a terminal keeps the size that it began with", "run", r.plan.id, "error", err)
	}
	if r.plan.background {
		c.working.Go(func() { c.wait(r, process, out) }) // its error is in the result
		return nil
	}
	return c.wait(r, process, out)
}

// decide asks the gate. What cannot be confined is not asked about.
func (c *client) decide(r *run) (approval.Decision, error) {
	p := r.plan
	if _, err := c.provider(p); err != nil {
		return approval.Decision{}, err
	}
	if err := c.hopeless(p); err != nil {
		return approval.Decision{}, err
	}
	decision, err := c.o.Gate.Decide(r.ctx, c.prompter(), p.request())
	if err != nil {
		return approval.Decision{}, &notRecordedError{err}
	}
	return decision, nil
}

// request is the plan in the words of the gate.
func (p plan) request() approval.Request {
	return approval.Request{
		RunID: p.id, Session: p.session, Kind: p.kind, Policy: p.settings.ApprovalPolicy, Verdict: p.verdict,
		Command: p.command, Argv: p.argv, Stdin: p.stdin, StdinOpen: p.open, Terminal: p.terminal != nil, Dir: p.dir, Env: p.env,
		Have: p.have, Want: p.want, Grants: p.grants,
		Reason: p.reason, Justification: p.justification, Evidence: p.evidence, Warnings: p.warnings,
	}
}

// hopeless is why a question would be in vain: the provider was tried and
// cannot be used. Another try begins, for the next request.
func (c *client) hopeless(p plan) error {
	if !p.asks || !p.want.Mode.Confined() {
		return nil
	}
	report, tried := c.probing.of(p.settings.Confined.Name())
	if !tried || report.Usable {
		return nil
	}
	err := &sandbox.UnavailableError{Mode: p.want.Mode, Detail: report.Reason, Remedies: report.Remedies, Remote: p.settings.Elsewhere}
	c.noteFailure(err)
	return err
}

// provider is what runs the command of a plan.
func (c *client) provider(p plan) (sandbox.Provider, error) {
	return c.providerIn(p.settings, p.want.Mode)
}

// providerIn is what runs commands in a mode.
func (c *client) providerIn(s *Settings, mode sandbox.Mode) (sandbox.Provider, error) {
	switch {
	case !mode.Confined():
		return c.o.Unconfined, nil
	case s.Confined == nil:
		return nil, &sandbox.UnavailableError{Mode: mode, Remedies: c.probing.remedies()}
	}
	return s.Confined, nil
}

func (c *client) start(r *run, out *outflow) (sandbox.Process, error) {
	p := r.plan
	provider, err := c.provider(p)
	if err != nil {
		return nil, err
	}
	spec := sandbox.Spec{
		RunID: p.id, Session: p.session,
		Command: p.command, Argv: p.argv, Dir: p.dir, Env: r.env(c.o.HostEnv), Stdin: p.reader(),
		StdinOpen: p.open, Terminal: r.terminal(),
		Policy: p.want, Timeout: p.timeout, SpillDir: c.o.SpillDir, KeepOutput: c.o.KeepOutput,
	}
	if out != nil {
		spec.Output = out.write
	}
	c.note(provider)
	process, err := provider.Start(r.ctx, spec)
	c.noteFailure(err)
	return process, err
}

// wait reports the end of a process. Everything that is told about a run is
// sent in this order: last output, end of progress, exit, response.
func (c *client) wait(r *run, process sandbox.Process, out *outflow) error {
	endProgress := c.showProgress(r)
	stop := context.AfterFunc(r.ctx, process.Cancel)
	result, err := process.Wait()
	stop()
	out.flush()
	endProgress()
	c.noteFailure(err)
	if err != nil && !r.answered() {
		return err
	}
	status := proto.StatusCompleted
	if result.Cancelled {
		status = proto.StatusCancelled
	}
	c.folders.finder.Note(result.Facts.Planted)
	e := ending{status: status, ran: err == nil, result: result, err: err}
	if e.ran && result.Denied {
		e.advice = c.advise(r.plan, result)
	}
	c.finish(r, e)
	return nil
}

// requestEnded cancels a run whose request has ended. If that is because the
// connection has, nothing else shall wait for this run's grace time.
func (c *client) requestEnded(ctx context.Context, r *run) {
	if errors.Is(context.Cause(ctx), rpc.ErrClosed) {
		c.cancel()
	}
	r.cancel()
}

// finish notes how a run ended, and tells the editor.
func (c *client) finish(r *run, e ending) {
	c.runs.finish(r, e)
	switch {
	case c.announced():
		c.notify(proto.MethodRunExit, c.result(r))
	case r.plan.detached:
		c.tellEnd(r)
	}
	close(r.done)
}
