package server

import (
	"context"

	"github.com/confine-dev/confine/approval"
	"github.com/confine-dev/confine/rpc"
	"github.com/confine-dev/confine/rpc/proto"
	"github.com/confine-dev/confine/sandbox"
)

// requestEscalation asks whether a command that ran may run again, once, under
// a wider mode. The command, its folder, environment and input are those of
// the run, byte for byte; the request cannot change them.
func (c *client) requestEscalation(ctx context.Context, req *rpc.Request) (any, error) {
	var params proto.EscalationParams
	if err := req.Decode(&params); err != nil {
		return nil, err
	}
	p, earlier, err := c.escalation(params)
	if err != nil {
		return nil, err
	}
	if p == nil {
		// What is asked for is what the run had. Running it again would change
		// nothing but what it has done: its result is the answer.
		return c.result(earlier), nil
	}
	return c.perform(ctx, *p)
}

// escalation checks the params. The plan is nil if nothing wider is asked for.
func (c *client) escalation(params proto.EscalationParams) (*plan, *run, error) {
	if params.Additional != nil {
		return nil, nil, invalid("additional is not available yet: name a wider mode in sandboxPermissions")
	}
	if params.SandboxPermissions == "" {
		return nil, nil, invalid("sandboxPermissions is required")
	}
	if _, err := asksFor(params.SandboxPermissions, params.Justification); err != nil {
		return nil, nil, err
	}
	earlier, err := c.runs.find(params.RunID)
	if err != nil {
		return nil, nil, err
	}
	f := earlier.facts()
	switch {
	case f.ending == nil:
		return nil, nil, invalid("run %q has not ended yet", params.RunID)
	case f.process == nil:
		return nil, nil, invalid("run %q never ran, so there is nothing to run again: use %s", params.RunID, proto.MethodRunCommand)
	}
	before := earlier.plan
	if !modeBeyond(params.SandboxPermissions, before.want.Mode) {
		return nil, earlier, nil
	}
	roots := c.folders.roots()
	if params.SandboxPermissions == sandbox.WorkspaceWrite && len(roots) == 0 {
		return nil, nil, errNoFolder()
	}
	id, err := newRunID(params.NewRunID)
	if err != nil {
		return nil, nil, err
	}
	wider := before
	wider.id, wider.token, wider.detached = id, params.WorkDoneToken, false
	wider.want = c.policy(scope{mode: params.SandboxPermissions, network: before.want.Network}, roots)
	wider.kind, wider.asks = approval.KindEscalation, true
	wider.justification = params.Justification
	wider.settle()
	wider.evidence, wider.warnings, wider.reason = evidence(f.ending)
	return &wider, earlier, nil
}

// evidence is what a person should know about the first run. Its text must not
// differ from one run of the command to the next: a refusal is remembered by it.
func evidence(e *ending) (denials []sandbox.Denial, warnings []string, reason string) {
	if e.result.Denied {
		return e.result.Denials, nil, "As far as is known, the sandbox refused something when this command ran."
	}
	return nil, []string{"The sandbox refused nothing when this command ran, as far as is known."}, "The command ran, and shall run with more than it had."
}
