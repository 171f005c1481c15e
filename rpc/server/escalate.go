package server

import (
	"context"

	"github.com/confine-dev/confine/approval"
	"github.com/confine-dev/confine/rpc"
	"github.com/confine-dev/confine/rpc/proto"
	"github.com/confine-dev/confine/sandbox"
)

// requestEscalation asks whether a command that ran may run again, once, under
// a wider mode or with more in the same one. The command, its folder,
// environment and input are those of the run, byte for byte; the request cannot
// change them.
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

// escalation checks the params. The plan is nil if nothing wider is asked for;
// otherwise it holds what was pinned for it, which ends with its run.
func (c *client) escalation(params proto.EscalationParams) (*plan, *run, error) {
	if err := checkEscalation(params); err != nil {
		return nil, nil, err
	}
	earlier, err := c.ranBefore(params.RunID)
	if err != nil {
		return nil, nil, err
	}
	settings := c.settings()
	if err := settings.usable(); err != nil {
		return nil, nil, err
	}
	if settings != earlier.plan.settings {
		return nil, nil, invalid("the settings have changed since run %q began, and with them what needs no question: use %s", params.RunID, proto.MethodRunCommand)
	}
	e := earlier.facts().ending
	wider := earlier.plan
	if wider.id, err = newRunID(params.NewRunID); err != nil {
		return nil, nil, err
	}
	wider.token, wider.detached, wider.pins = params.WorkDoneToken, false, nil
	wider.kind, wider.asks = approval.KindEscalation, true
	wider.justification = params.Justification
	wider.evidence, wider.warnings, wider.reason = evidence(e)
	if settings.Elsewhere {
		wider.warnings = append([]string{remoteWarning}, wider.warnings...)
	}
	if wider.open {
		wider.warnings = append(wider.warnings, "What was written to the command while it ran is not written to it again.")
	}

	var more bool
	if params.Additional != nil {
		more, err = c.enlarge(&wider, *params.Additional, e.result.Denials)
	} else {
		more, err = c.widen(&wider, params.SandboxPermissions)
		wider.warnings = append(wider.warnings, lessWouldDo(e)...)
	}
	if err == nil {
		err = settings.reachable(wider.want)
	}
	if err != nil || !more {
		wider.release()
		return nil, earlier, err
	}
	wider.settle()
	return &wider, earlier, nil
}

// checkEscalation looks at the params by themselves.
func checkEscalation(params proto.EscalationParams) error {
	if err := checkToken(params.WorkDoneToken); err != nil {
		return err
	}
	switch {
	case params.Additional != nil && params.SandboxPermissions != "":
		return invalid("sandboxPermissions and additional exclude each other")
	case params.Additional != nil:
		return checkAdditional(*params.Additional, params.Justification)
	case params.SandboxPermissions == "":
		return invalid("sandboxPermissions or additional is required")
	}
	_, err := asksFor(params.SandboxPermissions, params.Justification)
	return err
}

// ranBefore finds a run that ran and ended.
func (c *client) ranBefore(id string) (*run, error) {
	earlier, err := c.runs.find(id)
	if err != nil {
		return nil, err
	}
	f := earlier.facts()
	switch {
	case f.ending == nil:
		return nil, invalid("run %q has not ended yet", id)
	case f.process == nil:
		return nil, invalid("run %q never ran, so there is nothing to run again: use %s", id, proto.MethodRunCommand)
	}
	return earlier, nil
}

// widen changes what a plan wants to a wider mode. What was granted to the
// earlier run stays. more is false if the mode is not wider.
func (c *client) widen(p *plan, mode sandbox.Mode) (more bool, err error) {
	if !modeBeyond(mode, p.want.Mode) {
		return false, nil
	}
	roots := c.roots(p.settings)
	if mode == sandbox.WorkspaceWrite && len(roots) == 0 {
		return false, errNoFolder()
	}
	before := p.want
	p.want = c.policy(p.settings, scope{mode: mode, network: before.Network}, roots)
	if !mode.Confined() {
		return true, nil
	}
	p.want.Unreadable = before.Unreadable
	return true, p.pinAgain(before)
}

// evidence is what a person should know about the first run. Its text must not
// differ from one run of the command to the next: a refusal is remembered by it.
func evidence(e *ending) (denials []sandbox.Denial, warnings []string, reason string) {
	if e.result.Denied {
		return e.result.Denials, nil, "As far as is known, the sandbox refused something when this command ran."
	}
	return nil, []string{"The sandbox refused nothing when this command ran, as far as is known."}, "The command ran, and shall run with more than it had."
}
