package approval

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/confine-dev/confine/sandbox"
)

// Standing is an answer that still counts for later requests of its session.
// Texts are escaped as those of a Question.
type Standing struct {
	ID      string  // of the question that was answered last
	Session string  // whose it is
	Outcome Outcome // AllowedSession, Rejected or Cancelled
	At      time.Time
	Text    string // what it means for later requests, in one sentence

	Command    string // of a long one the beginning and the end
	Dir        string
	Mode       sandbox.Mode // configured when it was asked
	Wanted     Wanted
	Warnings   []string // of the question: what it opens
	PolicyHash string
}

// maxStanding bounds the command of an answer that is kept, in UTF-16 units.
const maxStanding = 4 << 10

func standing(r Request, q Question, d Decision, at time.Time) Standing {
	command, _ := escape(commandText(r), style{}).fit(maxStanding)
	return Standing{
		ID: d.QuestionID, Session: r.Session, Outcome: d.Outcome, At: at,
		Text:    "Exactly this command runs " + how(r.Want.Mode, gained(r.Have, r.Want)) + " without a question.",
		Command: command, Dir: q.Dir, Mode: q.Mode, Wanted: q.Wanted, Warnings: q.Warnings, PolicyHash: q.PolicyHash,
	}
}

// asRefusal is the same for a command that was refused.
func (s Standing) asRefusal(no *refusal) Standing {
	switch {
	case no.times >= maxRefusals:
		s.Text = "Exactly this command is refused without a question."
	case len(no.reasons) > 0:
		s.Text = "Exactly this command is refused without a question, unless another reason is given."
	default:
		s.Text = fmt.Sprintf("Exactly this command is asked about again; its question was closed without an answer, and after %d of those it is not.", maxRefusals)
	}
	return s
}

// Standing lists the answers of some sessions that still count, newest first.
func (g *Gate) Standing(sessions []string) []Standing {
	g.mu.Lock()
	defer g.mu.Unlock()
	var list []Standing
	for _, session := range sessions {
		m := g.sessions[session]
		if m == nil {
			continue
		}
		for _, yes := range m.grants {
			list = append(list, yes.standing)
		}
		for _, no := range m.refusals {
			list = append(list, no.standing.asRefusal(no))
		}
	}
	slices.SortFunc(list, func(a, b Standing) int {
		return cmp.Or(b.At.Compare(a.At), cmp.Compare(a.ID, b.ID))
	})
	return list
}

// ErrNotStanding says that there is no such answer.
var ErrNotStanding = errors.New("there is no such answer, or it does not count any more")

// Revoke ends what an answer of one of the sessions means for later requests. What
// runs by it goes on with what it has. The error is ErrNotStanding, or that it was
// not recorded; then a yes has ended all the same, and a no still counts.
func (g *Gate) Revoke(sessions []string, id string) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, session := range sessions {
		m := g.sessions[session]
		if m == nil {
			continue
		}
		for k, yes := range m.grants {
			if yes.standing.ID == id {
				delete(m.grants, k)
				return g.audit.revoked(g.now(), yes.standing)
			}
		}
		for k, no := range m.refusals {
			if no.standing.ID != id {
				continue
			}
			if err := g.audit.revoked(g.now(), no.standing); err != nil {
				return err
			}
			delete(m.refusals, k)
			if m.refused[no.command] -= no.times; m.refused[no.command] <= 0 {
				delete(m.refused, no.command)
			}
			return nil
		}
	}
	return ErrNotStanding
}
