package approval

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
)

// waiting is a question that a person may be looking at. It is listed in its
// gate until both the decision has been made and the Prompter has returned.
type waiting struct {
	id      string
	session string
	folders []string

	ctx      context.Context // ends with the request or by withdraw; its cause tells why
	withdraw context.CancelCauseFunc

	users int  // of the two: decision, Prompter; guarded by the gate's mu
	ended bool // session or root is gone: the answer must not be kept; guarded by the gate's mu
}

func newWaiting(ctx context.Context, r Request) *waiting {
	w := &waiting{id: newID(), session: r.Session, folders: foldersOf(r), users: 1}
	w.ctx, w.withdraw = context.WithCancelCause(ctx)
	return w
}

func newID() string {
	id := make([]byte, 8)
	rand.Read(id) // never fails
	return hex.EncodeToString(id)
}

// end is called with the gate's mu held.
func (w *waiting) end(why *withdrawal) {
	w.ended = true
	w.withdraw(why)
}

// leave drops one user of w.
func (g *Gate) leave(w *waiting) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if w.users--; w.users == 0 {
		delete(g.waiting, w.id)
		g.closeIfIdle()
	}
}

// withdrawal is why a question ended without an answer.
type withdrawal struct {
	outcome Outcome
	reason  string
}

func (w *withdrawal) Error() string { return w.reason }

var (
	errRequestEnded = &withdrawal{Cancelled, "the request was cancelled before there was an answer"}
	errSessionEnded = &withdrawal{Cancelled, "the session ended before there was an answer"}
	errRootRemoved  = &withdrawal{Cancelled, "the folder was removed from the workspace before there was an answer"}
	errExpired      = &withdrawal{TimedOut, "nobody answered in time, and no answer is a no"}
	errClosed       = &withdrawal{Unavailable, "nobody can be asked: confine is shutting down"}
)

// Withdrawal says, for the context of a Prompt that has ended, what became of
// the question and why, to tell the client.
func Withdrawal(ctx context.Context) (outcome Outcome, reason string) {
	var w *withdrawal
	if !errors.As(context.Cause(ctx), &w) {
		w = errRequestEnded
	}
	return w.outcome, w.reason
}

// ask puts one question to the person. The record that it was asked is on disk
// before the person sees it, the record of the answer before Decide returns.
func (g *Gate) ask(p Prompter, r Request, k key, w *waiting) (Decision, error) {
	defer g.leave(w)
	defer w.withdraw(nil)
	asked := g.now()
	q := newQuestion(r, w.id, asked.Add(g.ttl))
	if err := g.audit.asked(asked, r, q); err != nil {
		return Decision{}, err
	}
	d := g.answer(p, q, w)
	d.QuestionID = q.ID
	at := g.now()
	if err := g.audit.decided(at, d); err != nil {
		return Decision{}, err
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	// Without a session nothing is remembered: nobody would ever end it.
	if w.session != "" && !w.ended && lasting(d) {
		if g.sessions[w.session] == nil {
			g.sessions[w.session] = newMemory()
		}
		g.sessions[w.session].note(k, r, standing(r, q, d, at))
	}
	return d, nil
}

// reply is what came back from a Prompter.
type reply struct {
	answer Answer
	err    error
}

// answer waits for whatever comes first. What comes later is dropped.
func (g *Gate) answer(p Prompter, q Question, w *waiting) Decision {
	shown, stop := context.WithTimeoutCause(w.ctx, g.ttl, errExpired)
	defer stop()
	offered := append([]Option{}, q.Options...) // the Prompter may still hold q

	g.mu.Lock()
	w.users++
	g.mu.Unlock()
	replies := make(chan reply, 1) // never closed; one reply, which may find nobody waiting
	go func() {
		defer g.leave(w)
		got := reply{err: errors.New("the question was given up")} // stands if Prompt ends its goroutine
		defer func() {
			if fault := recover(); fault != nil {
				got = reply{err: fmt.Errorf("internal error: %v", fault)}
			}
			replies <- got
		}()
		got.answer, got.err = p.Prompt(shown, q)
	}()

	var got reply
	select {
	case got = <-replies:
	case <-shown.Done():
	}
	switch {
	case shown.Err() != nil:
		outcome, reason := Withdrawal(shown)
		return Decision{outcome, ByDefault, "", reason}
	case !g.now().Round(0).Before(q.ExpiresAt.Round(0)):
		// Timers stand still while the machine sleeps; the wall clock does not.
		return Decision{TimedOut, ByDefault, "", errExpired.reason}
	}
	return judge(got, offered)
}

// judge reads an answer. Only one of the offered options can allow anything.
func judge(got reply, offered []Option) Decision {
	unavailable := func(why string) Decision { return Decision{Unavailable, ByDefault, "", why} }
	a := got.answer
	switch {
	case got.err != nil:
		why, _ := escape(got.err.Error(), style{prose: true}).fit(maxWarning)
		return unavailable("the question got no answer: " + why)
	case a.Cancelled && a.OptionID == "":
		return Decision{Cancelled, ByPerson, "", "the person closed the question without an answer"}
	case a.Cancelled:
		return unavailable("the answer contradicts itself, so it counts as none")
	}
	for _, o := range offered {
		if o.ID != a.OptionID {
			continue
		}
		switch o {
		case refuse:
			return Decision{Rejected, ByPerson, "", "the person refused"}
		case allowOnce:
			return Decision{AllowedOnce, ByPerson, "", "the person allowed this once"}
		case allowSession:
			return Decision{AllowedSession, ByPerson, "", "the person allowed this exact command for this session"}
		}
	}
	return unavailable("the answer is none of the options, so it counts as none")
}
