package server

import (
	"context"

	"github.com/confine-dev/confine/approval"
	"github.com/confine-dev/confine/approval/rules"
	"github.com/confine-dev/confine/rpc"
	"github.com/confine-dev/confine/rpc/proto"
)

// explain says what would become of a request to run a command, up to the answer.
func (c *client) explain(_ context.Context, req *rpc.Request) (any, error) {
	var params proto.RunCommandParams
	if err := req.Decode(&params); err != nil {
		return nil, err
	}
	p, err := c.plan(params)
	if err != nil {
		return nil, err
	}
	defer p.release()
	p.verdict = p.settings.Rules.Judge(c.ruled(p))
	more := !p.want.Equal(p.have)
	return proto.Explanation{
		Auto: p.verdict.Decision == rules.Allow && !more,
		Now:  outlook(p, more), Decision: p.verdict.Decision, Rule: p.verdict.Rule, Why: p.verdict.Why,
		Prompt: approval.Describe(p.request()).Text,
	}, nil
}

func outlook(p plan, more bool) proto.Outlook {
	policy := p.settings.ApprovalPolicy
	switch asked := more || policy.Asks(p.verdict); {
	case p.verdict.Decision == rules.Deny, asked && policy == approval.PolicyNever:
		return proto.OutlookRefused
	case asked:
		return proto.OutlookAsks
	}
	return proto.OutlookRuns
}
