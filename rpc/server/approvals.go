package server

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/confine-dev/confine/approval"
	"github.com/confine-dev/confine/approval/rules"
	"github.com/confine-dev/confine/rpc"
	"github.com/confine-dev/confine/rpc/proto"
)

// approvalsList says what would decide later commands: what the person answered in
// these sessions, and the rules in force.
func (c *client) approvalsList(_ context.Context, req *rpc.Request) (any, error) {
	var params proto.ApprovalsParams
	if err := req.Decode(&params); err != nil {
		return nil, err
	}
	sessions := c.sessions.all()
	if params.Session != "" {
		sessions = []string{c.sessionKey(params.Session)}
	}
	list := proto.ApprovalsResult{Approvals: []proto.Approval{}}
	for _, s := range c.o.Gate.Standing(sessions) {
		list.Approvals = append(list.Approvals, c.answered(s))
	}
	for _, rule := range c.settings().Rules {
		list.Approvals = append(list.Approvals, ruled(rule))
	}
	return list, nil
}

// answered is an answer of the person on the wire.
func (c *client) answered(s approval.Standing) proto.Approval {
	a := proto.Approval{
		ID: s.ID, Source: proto.ApprovalByPerson, Decision: rules.Deny, Text: s.Text, Scope: proto.ApprovalOfSession,
		Session: strings.TrimPrefix(strings.TrimPrefix(s.Session, c.id), "/"),
		Command: s.Command, Cwd: s.Dir, Mode: s.Mode, Wanted: wireWanted(s.Wanted), Warnings: s.Warnings, PolicyHash: s.PolicyHash,
		Outcome: string(s.Outcome), At: s.At.UTC().Format(time.RFC3339), Revocable: true,
	}
	switch s.Outcome {
	case approval.AllowedSession:
		a.Decision = rules.Allow
	case approval.Cancelled:
		a.Decision = rules.Ask
	}
	return a
}

// ruled is a rule on the wire.
func ruled(r rules.Rule) proto.Approval {
	text := map[rules.Decision]string{
		rules.Allow: "Commands that begin so run without the question that the policy \"untrusted\" asks; nothing becomes wider.",
		rules.Ask:   "Commands that begin so are asked about every time.",
		rules.Deny:  "Commands that begin so are refused without a question.",
	}[r.Decision]
	return proto.Approval{
		ID: ruleID(r), Source: proto.ApprovalByRule, Decision: r.Decision, Text: text, Scope: proto.ApprovalOfSettings,
		Command: approval.Visible(r.String()), Reason: approval.Visible(r.Reason), Origin: approval.Visible(r.Origin),
	}
}

// ruleID stays the same as long as the rule does.
func ruleID(r rules.Rule) string {
	sum := sha256.Sum256(fmt.Appendf(nil, "%q %q %q", r.Decision, r.Command, r.Origin))
	return "rule-" + hex.EncodeToString(sum[:8])
}

// approvalsRevoke ends what an answer means for later requests.
func (c *client) approvalsRevoke(_ context.Context, req *rpc.Request) (any, error) {
	var params proto.RevokeParams
	if err := req.Decode(&params); err != nil {
		return nil, err
	}
	for _, rule := range c.settings().Rules {
		if ruleID(rule) == params.ID {
			return nil, invalid("a rule cannot be revoked: take it out where it stands, %s", rule.Origin)
		}
	}
	err := c.o.Gate.Revoke(c.sessions.all(), params.ID)
	switch {
	case errors.Is(err, approval.ErrNotStanding):
		return nil, invalid("there is no approval %q on this connection, or it does not count any more", params.ID)
	case err != nil:
		return nil, &notRecordedError{err}
	}
	return nil, nil
}
