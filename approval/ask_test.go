package approval

import (
	"context"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

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
