package approval

import (
	"strings"
	"testing"

	"github.com/confine-dev/confine/sandbox"
)

func TestSessionGrantIsExact(t *testing.T) {
	for name, change := range map[string]func(*Request){
		"command":         func(r *Request) { r.Command += " " },
		"arguments":       func(r *Request) { r.Command, r.Argv = "", []string{"npm", "install"} },
		"folder":          func(r *Request) { r.Dir += "/x" },
		"variable":        func(r *Request) { r.Env["A"] = "2" },
		"new variable":    func(r *Request) { r.Env["B"] = "" },
		"no variables":    func(r *Request) { r.Env = nil },
		"moved name":      func(r *Request) { r.Env = map[string]string{"A1": ""} },
		"input":           func(r *Request) { r.Stdin = "x" },
		"open input":      func(r *Request) { r.StdinOpen = true },
		"a terminal":      func(r *Request) { r.StdinOpen, r.Terminal = true, true },
		"policy":          func(r *Request) { r.Want.Network = true },
		"mode":            func(r *Request) { r.Want.Mode = sandbox.DangerFullAccess },
		"folder replaced": func(r *Request) { r.Want.Roots = []*sandbox.Root{{Path: project.Path, Dev: 1, Ino: 99}} },
		"session":         func(r *Request) { r.Session = "t" },
		"no session":      func(r *Request) { r.Session = "" },
	} {
		t.Run(name, func(t *testing.T) {
			g, p := newGate(t, Options{}), picks("allow-session")
			granted := func() Request {
				r := request()
				r.Env = map[string]string{"A": "1"}
				return r
			}
			first := decide(t, g, p, granted())
			wantDecision(t, first, AllowedSession, ByPerson)

			same := granted()
			same.RunID, same.Kind, same.Justification = "run-2", KindEscalation, "another"
			again := decide(t, g, p, same)
			wantDecision(t, again, AllowedSession, ByGrant)
			if p.asked != 1 || again.QuestionID != first.QuestionID {
				t.Errorf("asked %d times, question %s and %s", p.asked, first.QuestionID, again.QuestionID)
			}

			other := granted()
			change(&other)
			p.answer.OptionID = "refuse"
			wantDecision(t, decide(t, g, p, other), Rejected, ByPerson)
		})
	}
}

func TestOnceIsOnce(t *testing.T) {
	g, p := newGate(t, Options{}), picks("allow-once")
	for want := 1; want <= 3; want++ {
		decide(t, g, p, request())
		if p.asked != want {
			t.Fatalf("asked %d times, want %d", p.asked, want)
		}
	}
}

func TestKeysDiffer(t *testing.T) {
	requests := map[string]Request{
		"command":       {Command: "a b"},
		"arguments":     {Argv: []string{"a", "b"}},
		"one argument":  {Argv: []string{"a b"}},
		"in the folder": {Command: "a", Dir: " b"},
		"in the input":  {Command: "a", Stdin: " b"},
		"in a variable": {Command: "a", Env: map[string]string{" b": ""}},
		"in its value":  {Command: "a", Env: map[string]string{"": " b"}},
	}
	seen := map[key]string{}
	for name, r := range requests {
		k := keyOf(r)
		if other, ok := seen[k]; ok {
			t.Errorf("%s and %s are the same", name, other)
		}
		seen[k] = name
	}
}

func TestRefusedOnceIsNotAskedAgain(t *testing.T) {
	g, p := newGate(t, Options{}), picks("refuse")
	first := decide(t, g, p, request())
	wantDecision(t, first, Rejected, ByPerson)

	for _, words := range []string{request().Justification, "  packages MUST\n be fetched. "} {
		r := request()
		r.Justification = words
		d := decide(t, g, p, r)
		wantDecision(t, d, Rejected, ByMemory)
		if d.QuestionID != first.QuestionID || !strings.Contains(d.Reason, "do not retry") {
			t.Errorf("got %+v", d)
		}
	}
	if p.asked != 1 {
		t.Fatalf("asked %d times", p.asked)
	}

	for name, change := range map[string]func(*Request){
		"other command": func(r *Request) { r.Command = "npm ci" },
		"other mode":    func(r *Request) { r.Want.Mode = sandbox.DangerFullAccess },
		"other session": func(r *Request) { r.Session = "t" },
	} {
		r := request()
		change(&r)
		wantDecision(t, decide(t, g, picks("allow-once"), r), AllowedOnce, ByPerson)
		if t.Failed() {
			t.Fatal(name)
		}
	}

	g.EndSession("s")
	wantDecision(t, decide(t, g, picks("allow-once"), request()), AllowedOnce, ByPerson)
}

// TestNewReasonsWearOut: a reason may convince, a stream of them only tires.
func TestNewReasonsWearOut(t *testing.T) {
	for name, answer := range map[string]Answer{"refused": {OptionID: "refuse"}, "closed": {Cancelled: true}} {
		t.Run(name, func(t *testing.T) {
			g, p := newGate(t, Options{}), &counter{answer: answer}
			for i := range 6 {
				r := request()
				r.Justification = strings.Repeat("please ", i+1)
				d := decide(t, g, p, r)
				if d.Outcome.Allowed() || (d.By == ByMemory) != (i >= 3) {
					t.Errorf("request %d: %s by %s", i+1, d.Outcome, d.By)
				}
			}
			if p.asked != 3 {
				t.Errorf("asked %d times, want 3", p.asked)
			}
		})
	}
}

func TestClosingIsNoRefusal(t *testing.T) {
	g, p := newGate(t, Options{}), &counter{answer: Answer{Cancelled: true}}
	decide(t, g, p, request())
	p.answer = Answer{OptionID: "allow-once"}
	wantDecision(t, decide(t, g, p, request()), AllowedOnce, ByPerson)
}

func TestWithoutSessionNothingIsRemembered(t *testing.T) {
	g := newGate(t, Options{})
	r := request()
	r.Session = ""
	for _, option := range []string{"refuse", "allow-once", "refuse"} {
		p := picks(option)
		decide(t, g, p, r)
		if p.asked != 1 {
			t.Errorf("not asked before %s", option)
		}
	}
	wantDecision(t, decide(t, g, picks("allow-session"), r), Unavailable, ByDefault) // was not offered
}

func TestLastAnswerCounts(t *testing.T) {
	m := newMemory()
	r, k := request(), keyOf(request())
	for _, c := range []struct{ answer, want Outcome }{
		{Rejected, Rejected}, {AllowedSession, AllowedSession}, {Rejected, Rejected},
	} {
		m.note(k, r, Standing{Outcome: c.answer})
		if d, ok := m.recall(k, r); !ok || d.Outcome != c.want {
			t.Errorf("after %s: %v %v", c.answer, d.Outcome, ok)
		}
	}
}

func TestGrantReplacesRefusal(t *testing.T) {
	m := newMemory()
	r, k := request(), keyOf(request())
	m.note(k, r, Standing{Outcome: Rejected})
	m.note(k, r, Standing{Outcome: AllowedSession})
	m.forgetRoot(project.Path)
	if d, ok := m.recall(k, r); ok {
		t.Errorf("when the grant is gone an older answer decides: %v", d)
	}
}

func TestEndSessionForgetsGrants(t *testing.T) {
	g, p := newGate(t, Options{}), picks("allow-session")
	decide(t, g, p, request())
	g.EndSession("other")
	decide(t, g, p, request())
	if p.asked != 1 {
		t.Fatalf("another session's end ended the grant")
	}
	g.EndSession("s")
	decide(t, g, p, request())
	if p.asked != 2 {
		t.Errorf("the grant outlived its session")
	}
}

func TestEndRootEndsItsGrants(t *testing.T) {
	elsewhere := func(r *Request) {
		r.Dir = "/srv/x"
		r.Want.Roots = []*sandbox.Root{{Path: "/srv/x", Dev: 1, Ino: 7}}
	}
	for _, c := range []struct {
		name  string
		root  string
		moved func(*Request)
		ends  bool
	}{
		{"its root", "/home/me/project", nil, true},
		{"another root", "/home/me/other", nil, false},
		{"a root whose name it begins with", "/home/me/proj", nil, false},
		{"root of a grant elsewhere", "/home/me/project", elsewhere, false},
		{"folder of full access", "/home/me/project", func(r *Request) { r.Want = sandbox.Policy{Mode: sandbox.DangerFullAccess} }, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			g, p, r := newGate(t, Options{}), picks("allow-session"), request()
			if c.moved != nil {
				c.moved(&r)
			}
			decide(t, g, p, r)
			g.EndRoot(c.root)
			decide(t, g, p, r)
			if ended := p.asked == 2; ended != c.ends {
				t.Errorf("grant ended: %v", ended)
			}
		})
	}
}

func TestEndRootKeepsRefusals(t *testing.T) {
	g, p := newGate(t, Options{}), picks("refuse")
	decide(t, g, p, request())
	g.EndRoot("/home/me/project")
	wantDecision(t, decide(t, g, p, request()), Rejected, ByMemory)
}
