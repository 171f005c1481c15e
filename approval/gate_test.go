package approval

import (
	"context"
	"errors"
	"runtime"
	"testing"

	"github.com/confine-dev/confine/sandbox"
)

// prompterFunc answers questions.
type prompterFunc func(context.Context, Question) (Answer, error)

func (f prompterFunc) Prompt(ctx context.Context, q Question) (Answer, error) { return f(ctx, q) }

// counter answers every question with one option and counts them.
type counter struct {
	answer Answer
	asked  int
}

func (c *counter) Prompt(context.Context, Question) (Answer, error) {
	c.asked++
	return c.answer, nil
}

func picks(option string) *counter { return &counter{answer: Answer{OptionID: option}} }

// silent never answers and goes when it is told to.
var silent = prompterFunc(func(ctx context.Context, _ Question) (Answer, error) {
	<-ctx.Done()
	return Answer{}, ctx.Err()
})

func newGate(t *testing.T, o Options) *Gate {
	t.Helper()
	if o.Audit == nil {
		o.Audit = NoAudit()
	}
	g, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := g.Close(t.Context()); err != nil && t.Context().Err() == nil {
			t.Error(err)
		}
	})
	return g
}

func decide(t *testing.T, g *Gate, p Prompter, r Request) Decision {
	t.Helper()
	d, err := g.Decide(t.Context(), p, r)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func wantDecision(t *testing.T, d Decision, outcome Outcome, by By) {
	t.Helper()
	if d.Outcome != outcome || d.By != by {
		t.Errorf("got %s by %s (%s), want %s by %s", d.Outcome, d.By, d.Reason, outcome, by)
	}
	if d.Reason == "" {
		t.Error("no reason given")
	}
}

func TestAnswers(t *testing.T) {
	typedNil := (*counter)(nil)
	for _, c := range []struct {
		name    string
		p       Prompter
		outcome Outcome
		by      By
		allowed bool
	}{
		{"once", picks("allow-once"), AllowedOnce, ByPerson, true},
		{"session", picks("allow-session"), AllowedSession, ByPerson, true},
		{"refused", picks("refuse"), Rejected, ByPerson, false},
		{"closed", &counter{answer: Answer{Cancelled: true}}, Cancelled, ByPerson, false},
		{"nothing", &counter{}, Unavailable, ByDefault, false},
		{"no option of ours", picks("allow-always"), Unavailable, ByDefault, false},
		{"the name, not the ID", picks("Allow this once"), Unavailable, ByDefault, false},
		{"contradiction", &counter{answer: Answer{OptionID: "allow-once", Cancelled: true}}, Unavailable, ByDefault, false},
		{"nobody", nil, Unavailable, ByDefault, false},
		{"nil pointer", typedNil, Unavailable, ByDefault, false},
		{"error beside a yes", prompterFunc(func(context.Context, Question) (Answer, error) {
			return Answer{OptionID: "allow-once"}, errors.New("broken\x1b pipe")
		}), Unavailable, ByDefault, false},
		{"panic", prompterFunc(func(context.Context, Question) (Answer, error) { panic("boom") }), Unavailable, ByDefault, false},
		{"goroutine ended", prompterFunc(func(context.Context, Question) (Answer, error) {
			runtime.Goexit()
			return Answer{OptionID: "allow-once"}, nil
		}), Unavailable, ByDefault, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			d := decide(t, newGate(t, Options{}), c.p, request())
			wantDecision(t, d, c.outcome, c.by)
			if d.Outcome.Allowed() != c.allowed {
				t.Errorf("Allowed is %v", !c.allowed)
			}
			if c.p != nil && d.QuestionID == "" {
				t.Error("no question named")
			}
			checkVisible(t, d.Reason)
		})
	}
}

func TestOutcomeAllowed(t *testing.T) {
	for outcome, want := range map[Outcome]bool{
		AllowedOnce: true, AllowedSession: true, AllowedAlways: true,
		Rejected: false, Cancelled: false, TimedOut: false, Unavailable: false, "": false, "allowed": false,
	} {
		if outcome.Allowed() != want {
			t.Errorf("%q allows: %v", outcome, !want)
		}
	}
}

// TestUnasked holds the requests that nobody is asked about.
func TestUnasked(t *testing.T) {
	for _, c := range []struct {
		name    string
		policy  Policy
		change  func(*Request)
		outcome Outcome
		by      By
	}{
		{"same policy", "", func(r *Request) { r.Want = r.Have }, AllowedOnce, ByMode},
		{"narrower", "", func(r *Request) { r.Have, r.Want = r.Want, r.Have }, AllowedOnce, ByMode},
		{"same policy, never", PolicyNever, func(r *Request) { r.Want = r.Have }, AllowedOnce, ByMode},
		{"wider, never", PolicyNever, nil, Rejected, ByPolicy},
		{"no mode wanted", "", func(r *Request) { r.Want.Mode = "" }, Rejected, ByLimits},
		{"unknown mode", "", func(r *Request) { r.Want.Mode = "all" }, Rejected, ByLimits},
		{"no mode at all", "", func(r *Request) { r.Have, r.Want = sandbox.Policy{}, sandbox.Policy{} }, Rejected, ByLimits},
		{"no command", "", func(r *Request) { r.Command = "" }, Rejected, ByLimits},
		{"two commands", "", func(r *Request) { r.Argv = []string{"ls"} }, Rejected, ByLimits},
		{"no kind", "", func(r *Request) { r.Kind = "" }, Rejected, ByLimits},
		{"limits before never", PolicyNever, func(r *Request) { r.Kind = "" }, Rejected, ByLimits},
	} {
		t.Run(c.name, func(t *testing.T) {
			r, p := request(), picks("allow-once")
			if c.change != nil {
				c.change(&r)
			}
			wantDecision(t, decide(t, newGate(t, Options{Policy: c.policy}), p, r), c.outcome, c.by)
			if p.asked != 0 {
				t.Error("the person was asked")
			}
		})
	}
}

func TestCancelledBeforeItIsAsked(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	path := auditPath(t)
	d, err := newGate(t, Options{Audit: openAudit(t, path, AuditOptions{})}).Decide(ctx, silent, request())
	if err != nil {
		t.Fatal(err)
	}
	wantDecision(t, d, Cancelled, ByDefault)
	if lines := readLines(t, path); len(lines) != 1 || lines[0]["event"] != "unasked" {
		t.Errorf("the file holds %v", lines)
	}
}

func TestNew(t *testing.T) {
	for name, o := range map[string]Options{
		"no audit":         {},
		"unknown policy":   {Audit: NoAudit(), Policy: "trusted"},
		"negative time":    {Audit: NoAudit(), QuestionTTL: -1},
		"negative waiting": {Audit: NoAudit(), MaxWaiting: -1},
	} {
		if g, err := New(o); err == nil || g != nil {
			t.Errorf("%s: no error", name)
		}
	}
}
