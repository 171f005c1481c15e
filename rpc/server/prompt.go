package server

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"github.com/confine-dev/confine/approval"
	"github.com/confine-dev/confine/rpc"
	"github.com/confine-dev/confine/rpc/proto"
)

// prompter brings questions to the editor. It is nil, nobody to ask, once the
// editor has said that it knows no way.
func (c *client) prompter() approval.Prompter {
	switch {
	case c.mute.Load():
		return nil
	case c.announced() && c.offer.confine.Approval:
		return fullPrompter{c}
	}
	return stockPrompter{c}
}

// fullPrompter asks by confine/requestApproval.
type fullPrompter struct{ c *client }

// Prompt returns an error for every answer that is none; the gate takes it for
// a refusal.
func (p fullPrompter) Prompt(ctx context.Context, q approval.Question) (approval.Answer, error) {
	var answer proto.ApprovalAnswer
	err := p.c.ask(ctx, q, proto.MethodRequestApproval, wireQuestion(q), &answer)
	if err != nil {
		return approval.Answer{}, err
	}
	switch o := answer.Outcome; {
	case o.Outcome == proto.OutcomeCancelled && o.OptionID == "":
		return approval.Answer{Cancelled: true}, nil
	case o.Outcome == proto.OutcomeSelected && o.OptionID != "":
		return approval.Answer{OptionID: o.OptionID}, nil
	}
	return approval.Answer{}, errors.New("the editor's answer cannot be understood")
}

// stockPrompter asks by window/showMessageRequest. It is tried whatever the
// editor announced: some that can ask never say so.
type stockPrompter struct{ c *client }

func (p stockPrompter) Prompt(ctx context.Context, q approval.Question) (approval.Answer, error) {
	if q.Unshown > 0 {
		return approval.Answer{}, errors.New("the question does not fit whole into a message, which is all that this editor shows: the command, what it is given or what is asked for must be shorter")
	}
	byTitle := map[string]string{}
	params := proto.ShowMessageRequestParams{Type: proto.MessageWarning, Message: q.Text}
	for _, option := range q.Options {
		byTitle[option.Name] = option.ID
		params.Actions = append(params.Actions, proto.MessageActionItem{Title: option.Name})
	}
	if len(byTitle) != len(q.Options) {
		return approval.Answer{}, errors.New("two options have the same name")
	}
	var chosen *proto.MessageActionItem
	if err := p.c.ask(ctx, q, proto.MethodShowMessageRequest, params, &chosen); err != nil {
		return approval.Answer{}, err
	}
	if chosen == nil { // closed without a choice
		return approval.Answer{Cancelled: true}, nil
	}
	// Some editors give back nothing but the title.
	id, known := byTitle[chosen.Title]
	if !known {
		return approval.Answer{}, errors.New("the editor's answer is none of the options")
	}
	return approval.Answer{OptionID: id}, nil
}

// ask calls the editor. When ctx ends the question is withdrawn: the connection
// sends $/cancelRequest and ignores what still comes.
func (c *client) ask(ctx context.Context, q approval.Question, method string, params, answer any) error {
	var raw json.RawMessage
	err := c.conn.Call(ctx, method, params, &raw)
	if ctx.Err() != nil {
		c.withdraw(ctx, q)
		return ctx.Err()
	}
	var wire *rpc.Error
	if errors.As(err, &wire) && wire.Code == proto.CodeMethodNotFound {
		c.mute.Store(true)
	}
	if err != nil {
		return err
	}
	if err := json.Unmarshal(raw, answer); err != nil {
		return errors.New("the editor's answer cannot be read")
	}
	return nil
}

func (c *client) withdraw(ctx context.Context, q approval.Question) {
	if !c.announced() {
		return
	}
	reason := proto.WithdrawnCancelled
	if outcome, _ := approval.Withdrawal(ctx); outcome == approval.TimedOut {
		reason = proto.WithdrawnExpired
	}
	c.notify(proto.MethodApprovalWithdrawn, proto.ApprovalWithdrawn{ID: q.ID, Reason: reason})
}

func wireQuestion(q approval.Question) proto.Question {
	wire := proto.Question{
		ID: q.ID, RunID: q.RunID, Kind: string(q.Kind), Title: q.Title,
		Command: q.Command, Stdin: q.Stdin, Env: q.Env, Cwd: q.Dir,
		Mode: q.Mode, Wanted: *wireWanted(q.Wanted),
		Reason: q.Reason, Justification: q.Justification,
		Evidence: orEmpty(q.Evidence), Warnings: orEmpty(q.Warnings),
		PolicyHash: q.PolicyHash, DefaultOptionID: q.DefaultOptionID,
		ExpiresAt: q.ExpiresAt.UTC().Format(time.RFC3339), Text: q.Text, Unshown: q.Unshown,
	}
	for _, o := range q.Options {
		wire.Options = append(wire.Options, proto.Option{OptionID: o.ID, Name: o.Name, Kind: string(o.Kind), Scope: string(o.Scope)})
	}
	return wire
}

func wireWanted(w approval.Wanted) *proto.Wanted {
	wire := &proto.Wanted{Mode: w.Mode}
	if len(w.Write)+len(w.Read) > 0 || w.Network {
		wire.Additional = &proto.Additional{Write: w.Write, Read: w.Read, Network: w.Network}
	}
	return wire
}

// orEmpty makes a list that encodes as [] and not as null.
func orEmpty[T any](list []T) []T {
	if list == nil {
		return []T{}
	}
	return list
}
