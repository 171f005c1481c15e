package local_test

import (
	"context"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"sync/atomic"

	"github.com/confine-dev/confine/sandbox"
	"github.com/confine-dev/confine/sandbox/landlock"
	"github.com/confine-dev/confine/sandbox/local"
	"github.com/confine-dev/confine/sandbox/observe"
)

func init() { testEntries["__server"] = serverMain }

// unruly are commands that would rather stay.
var unruly = []string{
	"sleep 100",
	"trap '' TERM HUP INT; setsid sleep 100 & while :; do sleep 1; done",
	"while :; do (setsid sh -c '(sleep 100 &)' &); sleep 0.03; done",
	"yes output",
	"sh -c 'kill -STOP $$' & nohup sleep 100 & wait",
	"for i in $(seq 30); do sleep 100 & done; exit 0", // ends, and its children with it
}

// serverMain is a server: args are its level, its folder and what is to be
// killed. It starts commands
// until its input ends, then it closes everything.
func serverMain(args []string) int {
	level, base := level(args[0]), args[1]
	work := filepath.Join(base, "work")
	if err := os.Mkdir(work, 0o755); err != nil {
		return fail(err)
	}
	e, err := local.New(landlock.New(), local.Options{StateDir: filepath.Join(base, "state"), NoNamespaces: level == noNamespaces, Observer: observe.New(observe.Options{}), OwnsChildren: true})
	if err != nil {
		return fail(err)
	}
	root, err := sandbox.DeclareRoot(work, sandbox.Forbidden{})
	if err != nil {
		return fail(err)
	}
	s := &server{provider: e, base: base, began: make(chan struct{})}
	s.policy = sandbox.Policy{Mode: sandbox.WorkspaceWrite, Roots: []*sandbox.Root{root}}
	if level == unconfined {
		s.provider, s.policy = e.Unconfined(), sandbox.Policy{Mode: sandbox.DangerFullAccess}
	}
	var workers sync.WaitGroup
	for i, command := range unruly {
		workers.Go(func() { s.run("session "+strconv.Itoa(i%2), command) })
	}
	if target(args[2]) == killSession {
		workers.Go(s.churn)
	}
	go func() {
		<-s.began
		os.Stdout.WriteString("began\n")
	}()
	io.Copy(io.Discard, os.Stdin)
	s.ending.Store(true)
	if err := e.Close(); err != nil {
		return fail(err)
	}
	workers.Wait()
	return 0
}

// server starts commands.
type server struct {
	provider sandbox.Provider
	policy   sandbox.Policy
	base     string
	ending   atomic.Bool
	first    sync.Once
	began    chan struct{} // closed by first
}

// run starts a command again and again, until it runs or the server ends.
func (s *server) run(session, command string) {
	for !s.ending.Load() {
		p, err := s.start(session, command)
		if err != nil {
			continue // a helper that it needed was killed
		}
		s.first.Do(func() { close(s.began) })
		p.Wait()
	}
}

func (s *server) start(session, command string) (sandbox.Process, error) {
	return s.provider.Start(context.Background(), sandbox.Spec{RunID: "run", Session: session, Command: command + " # " + filepath.Base(s.base),
		Dir: filepath.Join(s.base, "work"), Env: []string{"PATH=/usr/bin:/bin", "MARK=" + s.base}, Policy: s.policy})
}

// churn makes and closes sessions, so that there is nearly always one being made.
func (s *server) churn() {
	for i := 0; !s.ending.Load(); i++ {
		session := "churn " + strconv.Itoa(i)
		if p, err := s.start(session, "true"); err == nil {
			p.Wait()
		}
		s.provider.CloseSession(session)
	}
}
