package server

import (
	"time"

	"github.com/confine-dev/confine/approval"
	"github.com/confine-dev/confine/rpc/proto"
	"github.com/confine-dev/confine/sandbox"
)

// result is everything about a run as it is now. It is made anew each time, so
// that ended runs hold their output once.
func (c *client) result(r *run) *proto.RunResult {
	f, p := r.facts(), r.plan
	result := &proto.RunResult{
		RunID:              p.id,
		Status:             f.status(),
		DurationMs:         f.duration().Milliseconds(),
		EffectiveTimeoutMs: p.timeout.Milliseconds(),
		Stdout:             f.text(sandbox.StdoutStream),
		Stderr:             f.text(sandbox.StderrStream),
		Approval:           approvalFacts(p, f.decision),
		DroppedEnv:         orEmpty(f.dropped),
		PolicyHash:         p.want.Hash(),
	}
	if f.ending != nil {
		f.ending.describe(result)
	}
	result.Sandbox = c.sandboxFacts(p, f)
	result.Escalation = c.escalationHint(f)
	result.ModelText = modelText(p, f, result)
	return result
}

// describe fills in how the run ended.
func (e *ending) describe(result *proto.RunResult) {
	if e.err != nil {
		result.Error = errorObject(e.err)
	}
	if !e.ran {
		return
	}
	result.TimedOut, result.OutputMissing = e.result.TimedOut, e.result.Missing
	if e.result.Signal != "" {
		result.Signal = e.result.Signal
	} else {
		result.ExitCode = &e.result.ExitCode
	}
}

// duration is how long the command has run, and 0 if it did not begin.
func (f facts) duration() time.Duration {
	switch {
	case f.began.IsZero():
		return 0
	case f.ending == nil:
		return time.Since(f.began)
	case f.ending.ran:
		return f.ending.result.Duration
	}
	return f.ending.at.Sub(f.began)
}

func (f facts) text(s sandbox.Stream) proto.StreamText {
	if f.process == nil {
		return proto.StreamText{}
	}
	capture := f.process.Output(s)
	text, truncated := capture.Tail()
	return proto.StreamText{Text: text, Bytes: capture.Total(), Truncated: truncated, SpillPath: capture.SpillPath()}
}

// modeInForce is the mode that the command runs under, or ran; of one that did
// not begin, what needed no question.
func modeInForce(p plan, f facts) sandbox.Mode {
	if f.process == nil && !f.runnerFailed() {
		return p.have.Mode
	}
	return p.want.Mode
}

// sandboxFacts says nothing that was not shown: of a command that never ran
// only the mode that was in force is known.
func (c *client) sandboxFacts(p plan, f facts) *proto.SandboxFacts {
	s := &proto.SandboxFacts{Mode: modeInForce(p, f), RunnerFailed: f.runnerFailed()}
	switch {
	case f.process == nil:
		return s
	case !s.Mode.Confined() && p.background:
		return nil
	case !s.Mode.Confined():
		return s // nothing was confined, so nothing can have been denied
	}
	s.SkippedRoots = p.want.Skipped
	if f.ending == nil || !f.ending.ran {
		s.Provider = f.process.Provider()
		return s
	}
	ran := f.ending.result
	s.Provider, s.Kind, s.Layers = ran.Facts.Provider, ran.Facts.Kind, ran.Facts.Layers
	s.Enforcement, s.Facets, s.Planted = ran.Facts.Enforcement, ran.Facts.Facets, ran.Facts.Planted
	s.Limits = ran.Facts.Limits
	s.Denied, s.Denials = ran.Denied, ran.Denials
	if ran.Observation.State != "" {
		s.Observation = &ran.Observation
	}
	return s
}

// runnerFailed reports whether the sandbox itself broke.
func (f facts) runnerFailed() bool {
	return f.ending != nil && isUnavailable(f.ending.err)
}

// approvalFacts are left out where nothing had to be asked.
func approvalFacts(p plan, d approval.Decision) *proto.ApprovalFacts {
	if d.Outcome == "" || d.By == approval.ByMode || !p.asks && d.Outcome.Allowed() {
		return nil
	}
	return &proto.ApprovalFacts{Outcome: string(d.Outcome), By: string(d.By), Reason: d.Reason}
}
