package server

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"unicode"

	"github.com/confine-dev/confine/rpc"
	"github.com/confine-dev/confine/rpc/proto"
)

// executeCommand is for editors that know nothing of confine. Some give up
// waiting after seconds, so each command is answered with a run id at once and
// what comes of it is told in messages.
func (c *client) executeCommand(_ context.Context, req *rpc.Request) (any, error) {
	var params proto.ExecuteCommandParams
	if err := req.Decode(&params); err != nil {
		return nil, err
	}
	if err := checkToken(params.WorkDoneToken); err != nil {
		return nil, err
	}
	if len(params.Arguments) > 1 {
		return nil, invalid("%s takes one argument", params.Command)
	}
	switch params.Command {
	case proto.CommandRun:
		return c.commandRun(params)
	case proto.CommandEscalate:
		return c.commandEscalate(params)
	case proto.CommandKill:
		return c.commandKill(params)
	case proto.CommandDoctor:
		return c.commandDoctor()
	}
	return nil, invalid("unknown command %q", params.Command)
}

// argument decodes the only argument into v, or into text if that is given and
// the argument is a string.
func argument(params proto.ExecuteCommandParams, v any, text *string) error {
	if len(params.Arguments) == 0 {
		return invalid("%s needs an argument", params.Command)
	}
	if text != nil && json.Unmarshal(params.Arguments[0], text) == nil {
		return nil
	}
	if err := json.Unmarshal(params.Arguments[0], v); err != nil {
		return invalid("the argument of %s cannot be read: %v", params.Command, err)
	}
	return nil
}

func (c *client) commandRun(params proto.ExecuteCommandParams) (any, error) {
	var wanted proto.RunCommandParams
	if err := argument(params, &wanted, &wanted.Command); err != nil {
		return nil, err
	}
	if !hasToken(wanted.WorkDoneToken) {
		wanted.WorkDoneToken = params.WorkDoneToken
	}
	p, err := c.plan(wanted)
	if err != nil {
		return nil, err
	}
	return c.detach(p)
}

func (c *client) commandEscalate(params proto.ExecuteCommandParams) (any, error) {
	wanted, err := c.escalateArgument(params)
	if err != nil {
		return nil, err
	}
	if !hasToken(wanted.WorkDoneToken) {
		wanted.WorkDoneToken = params.WorkDoneToken
	}
	p, earlier, err := c.escalation(wanted)
	if err != nil {
		return nil, err
	}
	if p == nil {
		return proto.Started{RunID: earlier.plan.id}, nil
	}
	return c.detach(*p)
}

// escalateArgument completes what the person left out: with no argument the run is
// the last one that can be helped, with a run id what is asked for is the narrowest
// step that would help it. An editor that sends no requests of its own shows neither.
func (c *client) escalateArgument(params proto.ExecuteCommandParams) (proto.EscalationParams, error) {
	var wanted proto.EscalationParams
	if len(params.Arguments) > 0 {
		if err := argument(params, &wanted, &wanted.RunID); err != nil {
			return wanted, err
		}
		if wanted.SandboxPermissions != "" || wanted.Additional != nil {
			return wanted, nil
		}
	}
	for _, r := range c.runs.lastEnded() {
		hint := c.escalationHint(r.facts())
		if hint == nil || wanted.RunID != "" && wanted.RunID != r.plan.id {
			continue
		}
		wanted.RunID, wanted.Additional = r.plan.id, hint.Additional
		wanted.Justification = cmp.Or(wanted.Justification, "Asked for by a command of the editor.")
		if hint.Additional == nil {
			wanted.SandboxPermissions = hint.Targets[0]
		}
		return wanted, nil
	}
	if wanted.RunID != "" {
		if _, err := c.ranBefore(wanted.RunID); err != nil {
			return wanted, err
		}
		return wanted, invalid("nothing that run %q was refused can be asked for", wanted.RunID)
	}
	return wanted, invalid("no run was refused anything that can be asked for")
}

func (c *client) commandKill(params proto.ExecuteCommandParams) (any, error) {
	var wanted proto.RunParams
	if err := argument(params, &wanted, &wanted.RunID); err != nil {
		return nil, err
	}
	killed, err := c.kill(wanted.RunID)
	if err != nil {
		return nil, err
	}
	return proto.Started{RunID: killed.RunID}, nil
}

// detach begins a run that is already answered.
func (c *client) detach(p plan) (any, error) {
	p.detached = true
	r, err := c.list(p)
	if err != nil {
		return nil, err
	}
	c.working.Go(func() {
		if err := c.follow(r); err != nil {
			c.finish(r, ending{status: proto.StatusCompleted, err: err})
		}
	})
	return proto.Started{RunID: p.id}, nil
}

// tellEnd tells a stock editor how a detached run ended: in a word to the
// person, in full to the log.
func (c *client) tellEnd(r *run) {
	result := c.result(r)
	kind := proto.MessageInfo
	if result.Status != proto.StatusCompleted || result.Error != nil || result.Sandbox != nil && result.Sandbox.Denied {
		kind = proto.MessageWarning
	}
	c.notify(proto.MethodLogMessage, proto.LogMessageParams{
		Type:    proto.MessageInfo,
		Message: fmt.Sprintf("confine: run %s\n%s", r.plan.id, visible(result.ModelText)),
	})
	ran := r.facts().process != nil
	c.notify(proto.MethodShowMessage, proto.ShowMessageParams{Type: kind, Message: endMessage(result) + whatIsLogged(ran)})
}

// endMessage holds nothing that comes from the command or its names: some
// editors make links of parts of a message, and links can run things.
func endMessage(result *proto.RunResult) string {
	how := "ended"
	switch {
	case result.Status == proto.StatusRefused:
		how = "was refused and did not run"
	case result.Status == proto.StatusCancelled:
		how = "was cancelled"
	case result.Error != nil:
		how = "failed"
		if result.Error.Data != nil {
			how += ", " + result.Error.Data.Code
		}
	case result.TimedOut:
		how = fmt.Sprintf("was ended after %d ms", result.EffectiveTimeoutMs)
	case result.Signal != "":
		how = "was killed by " + result.Signal
	case result.ExitCode != nil:
		how = fmt.Sprintf("ended with exit code %d", *result.ExitCode)
	}
	text := fmt.Sprintf("confine: run %s %s.", result.RunID, how)
	if result.Escalation != nil {
		text += fmt.Sprintf(" The sandbox refused something; %s asks you for more.", proto.CommandEscalate)
	}
	return text
}

// whatIsLogged says what the person finds in the log besides.
func whatIsLogged(ran bool) string {
	what := "More"
	if ran {
		what = "Its output"
	}
	return " " + what + " is in the log of the language server."
}

// sayable is a text of a provider as one line of a message, without links.
func sayable(text string) string {
	line := strings.Join(strings.Fields(visible(text)), " ")
	return strings.ReplaceAll(line, "](", "] (")
}

// visible escapes what could move or hide text in a log, and keeps lines.
func visible(text string) string {
	var b strings.Builder
	for _, r := range text {
		if r == '\n' || r == '\t' || unicode.IsPrint(r) {
			b.WriteRune(r)
		} else {
			fmt.Fprintf(&b, "\\u{%04X}", r)
		}
	}
	return b.String()
}
