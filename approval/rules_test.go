package approval

import (
	"strings"
	"testing"

	"github.com/confine-dev/confine/approval/rules"
)

// judged is a request that wants no more than is configured, of which the rules say
// something.
func judged(d rules.Decision) Request {
	r := request()
	r.Want, r.Grants, r.Reason = r.Have, nil, ""
	r.Verdict = rules.Verdict{Decision: d, Why: "a rule (f:1) says " + string(d)}
	return r
}

func TestRulesAndPolicies(t *testing.T) {
	for _, c := range []struct {
		policy  Policy
		verdict rules.Decision
		outcome Outcome // with an allow-session for whatever is asked
		by      By
		asked   int
	}{
		{PolicyAsk, "", AllowedOnce, ByMode, 0},
		{PolicyAsk, rules.Allow, AllowedOnce, ByMode, 0},
		{PolicyAsk, rules.Ask, AllowedOnce, ByPerson, 1},
		{PolicyAsk, rules.Deny, Rejected, ByPolicy, 0},
		{PolicyUntrusted, "", AllowedOnce, ByPerson, 1},
		{PolicyUntrusted, rules.Allow, AllowedOnce, ByMode, 0},
		{PolicyUntrusted, rules.Ask, AllowedOnce, ByPerson, 1},
		{PolicyUntrusted, rules.Deny, Rejected, ByPolicy, 0},
		{PolicyNever, "", AllowedOnce, ByMode, 0},
		{PolicyNever, rules.Ask, Rejected, ByPolicy, 0},
		{PolicyNever, rules.Deny, Rejected, ByPolicy, 0},
	} {
		p := picks("allow-once")
		d := decide(t, newGate(t, Options{Policy: c.policy}), p, judged(c.verdict))
		if d.Outcome != c.outcome || d.By != c.by || p.asked != c.asked {
			t.Errorf("%s, rules say %q: %s by %s after %d questions, want %s by %s after %d", c.policy, c.verdict, d.Outcome, d.By, p.asked, c.outcome, c.by, c.asked)
		}
		if d.By == ByPolicy && !strings.Contains(d.Reason, "f:1") {
			t.Errorf("%s, rules say %q: the reason %q does not name the rule", c.policy, c.verdict, d.Reason)
		}
	}
}

// An allow rule widens nothing: what wants more is asked about, or refused.
func TestAllowRuleDoesNotWiden(t *testing.T) {
	for policy, by := range map[Policy]By{PolicyAsk: ByPerson, PolicyUntrusted: ByPerson, PolicyNever: ByPolicy} {
		r := request()
		r.Verdict.Decision = rules.Allow
		d := decide(t, newGate(t, Options{Policy: policy}), picks("refuse"), r)
		wantDecision(t, d, Rejected, by)
	}
}

func TestRuleBeforeGrant(t *testing.T) {
	g, p := newGate(t, Options{Policy: PolicyUntrusted}), picks("allow-session")
	wantDecision(t, decide(t, g, p, judged("")), AllowedSession, ByPerson)
	wantDecision(t, decide(t, g, p, judged("")), AllowedSession, ByGrant)
	once := picks("allow-once")
	wantDecision(t, decide(t, g, once, judged(rules.Ask)), AllowedOnce, ByPerson)
	wantDecision(t, decide(t, g, once, judged(rules.Ask)), AllowedOnce, ByPerson)
	wantDecision(t, decide(t, g, p, judged(rules.Deny)), Rejected, ByPolicy)
	if once.asked != 2 {
		t.Errorf("of two commands that a rule asks about %d were asked", once.asked)
	}
	// What no answer can mean is not offered, and counts for nothing.
	wantDecision(t, decide(t, g, picks("allow-session"), judged(rules.Ask)), Unavailable, ByDefault)
}

func TestRefusalIsRememberedUnderRules(t *testing.T) {
	for _, verdict := range []rules.Decision{"", rules.Ask} {
		g, p := newGate(t, Options{Policy: PolicyUntrusted}), picks("refuse")
		wantDecision(t, decide(t, g, p, judged(verdict)), Rejected, ByPerson)
		wantDecision(t, decide(t, g, p, judged(verdict)), Rejected, ByMemory)
	}
}

func TestQuestionOfARule(t *testing.T) {
	r := judged(rules.Ask)
	q := Describe(r)
	if !strings.Contains(q.Text, "f:1") || len(q.Options) != 2 {
		t.Errorf("the question has %d options and says\n%s", len(q.Options), q.Text)
	}
	r = judged("")
	r.Policy = PolicyUntrusted
	if q = Describe(r); !strings.Contains(q.Reason, "untrusted") || len(q.Options) != 3 {
		t.Errorf("the question has %d options and the reason %q", len(q.Options), q.Reason)
	}
	if r.Policy = PolicyAsk; Describe(r).Reason != "" {
		t.Errorf("a policy that asks nothing gives the reason %q", Describe(r).Reason)
	}
}
