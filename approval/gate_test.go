package approval

import (
	"context"
	"errors"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

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
		"unknown policy":   {Audit: NoAudit(), Policy: "untrusted"},
		"negative time":    {Audit: NoAudit(), QuestionTTL: -1},
		"negative waiting": {Audit: NoAudit(), MaxWaiting: -1},
	} {
		if g, err := New(o); err == nil || g != nil {
			t.Errorf("%s: no error", name)
		}
	}
}

func TestExpiry(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGate(t, Options{})
		start := time.Now()
		var outcome Outcome
		var reason string
		var expires time.Time
		d := decide(t, g, prompterFunc(func(ctx context.Context, q Question) (Answer, error) {
			expires = q.ExpiresAt
			<-ctx.Done()
			outcome, reason = Withdrawal(ctx)
			return Answer{OptionID: "allow-once"}, nil // too late
		}), request())
		wantDecision(t, d, TimedOut, ByDefault)
		synctest.Wait()
		if took := time.Since(start); took != 10*time.Minute || !expires.Equal(start.Add(took)) {
			t.Errorf("took %v, the question said %v", took, expires.Sub(start))
		}
		if outcome != TimedOut || reason == "" {
			t.Errorf("the client hears %q %q", outcome, reason)
		}
	})
}

func TestRequestCancelledWhileAsked(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGate(t, Options{})
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(time.Second, cancel)
		outcomes := make(chan Outcome, 1)
		d, err := g.Decide(ctx, prompterFunc(func(ctx context.Context, _ Question) (Answer, error) {
			<-ctx.Done()
			outcome, _ := Withdrawal(ctx)
			outcomes <- outcome
			return Answer{OptionID: "allow-session"}, nil
		}), request())
		if err != nil {
			t.Fatal(err)
		}
		wantDecision(t, d, Cancelled, ByDefault)
		if got := <-outcomes; got != Cancelled {
			t.Errorf("the client hears %q", got)
		}
		p := picks("refuse")
		decide(t, g, p, request())
		if p.asked != 1 {
			t.Error("the late answer was kept as a grant")
		}
	})
}

// TestAnswerAndCancelAtOnce: whichever the runtime sees first, it is a no.
func TestAnswerAndCancelAtOnce(t *testing.T) {
	for range 200 {
		g := newGate(t, Options{})
		ctx, cancel := context.WithCancel(t.Context())
		d, err := g.Decide(ctx, prompterFunc(func(context.Context, Question) (Answer, error) {
			cancel()
			return Answer{OptionID: "allow-once"}, nil
		}), request())
		if err != nil || d.Outcome != Cancelled {
			t.Fatalf("got %v %v", d, err)
		}
	}
}

// TestMachineSlept: timers stand still during sleep, so the clock must decide.
func TestMachineSlept(t *testing.T) {
	now := time.Unix(1000, 0)
	g := newGate(t, Options{Now: func() time.Time { return now }})
	d := decide(t, g, prompterFunc(func(context.Context, Question) (Answer, error) {
		now = now.Add(8 * time.Hour)
		return Answer{OptionID: "allow-once"}, nil
	}), request())
	wantDecision(t, d, TimedOut, ByDefault)
}

func TestPrompterThatNeverReturns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGate(t, Options{QuestionTTL: time.Minute, MaxWaiting: 1})
		release := make(chan struct{})
		deaf := prompterFunc(func(context.Context, Question) (Answer, error) {
			<-release
			return Answer{OptionID: "allow-session"}, nil
		})
		wantDecision(t, decide(t, g, deaf, request()), TimedOut, ByDefault)

		// It still holds its place, so that goroutines cannot pile up …
		d := decide(t, g, picks("allow-once"), request())
		wantDecision(t, d, Unavailable, ByDefault)
		if !strings.Contains(d.Reason, "1 questions wait") {
			t.Errorf("reason is %q", d.Reason)
		}
		closing, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := g.Close(closing); err == nil {
			t.Error("Close did not wait for it")
		}
		// … until it returns; what it says then counts for nothing.
		close(release)
		if err := g.Close(t.Context()); err != nil {
			t.Error(err)
		}
		if len(g.sessions) != 0 || len(g.waiting) != 0 {
			t.Errorf("left: %d sessions, %d waiting", len(g.sessions), len(g.waiting))
		}
	})
}

func TestOneYesCoversOneRequest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGate(t, Options{QuestionTTL: time.Minute})
		questions := make(chan Question, 3)
		answers := map[string]chan Answer{}
		for range 3 {
			answers[string(rune('0'+len(answers)))] = make(chan Answer)
		}
		decisions := make(chan Decision, 3)
		ask := func(name string) {
			r := request()
			r.RunID = name
			d, err := g.Decide(t.Context(), prompterFunc(func(ctx context.Context, q Question) (Answer, error) {
				questions <- q
				select {
				case a := <-answers[name]:
					return a, nil
				case <-ctx.Done():
					return Answer{}, ctx.Err()
				}
			}), r)
			if err != nil {
				t.Error(err)
			}
			decisions <- d
		}
		for name := range answers {
			go ask(name)
		}
		synctest.Wait()
		ids := map[string]bool{}
		for range 3 {
			ids[(<-questions).ID] = true
		}
		if len(ids) != 3 {
			t.Fatalf("%d different questions, want 3", len(ids))
		}
		answers["1"] <- Answer{OptionID: "allow-session"}
		synctest.Wait()
		if len(decisions) != 1 {
			t.Fatalf("one yes ended %d requests", len(decisions))
		}
		if d := <-decisions; !d.Outcome.Allowed() || !ids[d.QuestionID] {
			t.Errorf("got %v", d)
		}
		for range 2 {
			wantDecision(t, <-decisions, TimedOut, ByDefault)
		}
	})
}

func TestTooManyQuestions(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGate(t, Options{})
		ctx, cancel := context.WithCancel(t.Context())
		for range DefaultMaxWaiting {
			go g.Decide(ctx, silent, request())
		}
		synctest.Wait()
		wantDecision(t, decide(t, g, picks("allow-once"), request()), Unavailable, ByDefault)
		cancel()
		synctest.Wait()
		wantDecision(t, decide(t, g, picks("allow-once"), request()), AllowedOnce, ByPerson)
	})
}

func TestWithdrawn(t *testing.T) {
	for _, c := range []struct {
		name    string
		do      func(*Gate)
		outcome Outcome // empty: the question stays
	}{
		{"session ended", func(g *Gate) { g.EndSession("s") }, Cancelled},
		{"other session ended", func(g *Gate) { g.EndSession("t") }, ""},
		{"root removed", func(g *Gate) { g.EndRoot("/home/me/project") }, Cancelled},
		{"root above removed", func(g *Gate) { g.EndRoot("/home/me") }, Cancelled},
		{"other root removed", func(g *Gate) { g.EndRoot("/home/me/proj") }, ""},
		{"closed", func(g *Gate) { go g.Close(context.Background()) }, Unavailable},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				g := newGate(t, Options{QuestionTTL: time.Hour})
				withdrawn := make(chan Outcome, 1)
				decisions := make(chan Decision, 1)
				go func() {
					d, err := g.Decide(t.Context(), prompterFunc(func(ctx context.Context, _ Question) (Answer, error) {
						<-ctx.Done()
						outcome, _ := Withdrawal(ctx)
						withdrawn <- outcome
						return Answer{OptionID: "allow-session"}, nil
					}), request())
					if err != nil {
						t.Error(err)
					}
					decisions <- d
				}()
				synctest.Wait()
				c.do(g)
				synctest.Wait()
				if c.outcome == "" {
					if len(decisions) != 0 {
						t.Error("the question was withdrawn")
					}
					return // closing the gate ends it
				}
				if got := <-withdrawn; got != c.outcome {
					t.Errorf("the client hears %q, want %q", got, c.outcome)
				}
				wantDecision(t, <-decisions, c.outcome, ByDefault)
				if len(g.sessions) != 0 {
					t.Error("something was remembered")
				}
			})
		})
	}
}

func TestClosedGateAsksNobody(t *testing.T) {
	g := newGate(t, Options{})
	if err := g.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	p := picks("allow-once")
	wantDecision(t, decide(t, g, p, request()), Unavailable, ByDefault)
	if p.asked != 0 {
		t.Error("the person was asked")
	}
	if err := g.Close(t.Context()); err != nil {
		t.Error(err)
	}
}

// TestManyAtOnce is for the race detector.
func TestManyAtOnce(t *testing.T) {
	audit, err := OpenAudit(filepath.Join(t.TempDir(), "audit", "a.jsonl"), AuditOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer audit.Close()
	g := newGate(t, Options{Audit: audit, MaxWaiting: 100})
	done := make(chan struct{})
	for i := range 20 {
		go func() {
			defer func() { done <- struct{}{} }()
			r := request()
			r.Session = string(rune('a' + i%3))
			option := []string{"allow-once", "allow-session", "refuse"}[i%3]
			if _, err := g.Decide(t.Context(), picks(option), r); err != nil {
				t.Error(err)
			}
			g.EndRoot("/home/me/project")
			g.EndSession(r.Session)
		}()
	}
	for range 20 {
		<-done
	}
}
