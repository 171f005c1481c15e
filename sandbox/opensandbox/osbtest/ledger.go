package osbtest

import (
	"context"
	"fmt"
	"strings"
	"time"
)

// Ledger is what really happened, whatever clients were told.
type Ledger struct {
	Sandboxes []Sandbox
	Commands  []Ran
}

// Sandbox is one that was made.
type Sandbox struct {
	ID       string
	Exists   bool
	Told     bool // its id reached a client in the answer to its creation
	Request  string
	Expires  time.Time // zero means never
	Metadata map[string]string
}

// Ran is one command that bash was started with. Those that could not be started
// are not listed.
type Ran struct {
	ID         string // empty for the one-call contract
	Sandbox    string // empty for the one-call contract
	Command    string
	Dir        string // as it was asked for
	Env        map[string]string
	Background bool

	Running     bool
	ExitCode    int    // valid if it does not run and Signal is empty
	Signal      string // such as SIGKILL
	Interrupted bool   // by a call, its timeout or the end of its sandbox
}

// Ledger returns what happened so far. A sandbox that is being ended, whatever asked for
// it, ends first.
func (s *Server) Ledger() Ledger {
	s.mu.Lock()
	defer s.mu.Unlock()
	for s.ending > 0 {
		changed := s.changed
		s.mu.Unlock()
		<-changed
		s.mu.Lock()
	}
	var l Ledger
	for _, b := range s.boxes {
		l.Sandboxes = append(l.Sandboxes, Sandbox{ID: b.id, Exists: b.exists(), Told: b.told, Request: b.request, Expires: b.expires, Metadata: b.metadata})
	}
	for _, c := range s.commands {
		l.Commands = append(l.Commands, Ran{ID: c.id, Sandbox: c.box.id, Command: c.text, Dir: c.dir, Env: c.env, Background: c.background,
			Running: !c.over, ExitCode: c.exit, Signal: c.signal, Interrupted: c.interrupted})
	}
	return l
}

// With lists the commands whose text contains a mark.
func (l Ledger) With(mark string) []Ran {
	var ran []Ran
	for _, c := range l.Commands {
		if strings.Contains(c.Command, mark) {
			ran = append(ran, c)
		}
	}
	return ran
}

// Existing lists the sandboxes that were not ended.
func (l Ledger) Existing() []Sandbox {
	var left []Sandbox
	for _, b := range l.Sandboxes {
		if b.Exists {
			left = append(left, b)
		}
	}
	return left
}

// Running lists the commands that still run in a sandbox.
func (l Ledger) Running() []Ran {
	var left []Ran
	for _, c := range l.Commands {
		if c.Running && c.Sandbox != "" {
			left = append(left, c)
		}
	}
	return left
}

// change tells those who wait that the ledger is another, s.mu held.
func (s *Server) change() {
	close(s.changed)
	s.changed = make(chan struct{})
}

// Await waits until the ledger is as wanted.
func (s *Server) Await(ctx context.Context, wanted func(Ledger) bool) error {
	for {
		s.mu.Lock()
		changed := s.changed
		s.mu.Unlock()
		if wanted(s.Ledger()) {
			return nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return fmt.Errorf("waiting for the ledger to change: %w", ctx.Err())
		}
	}
}
