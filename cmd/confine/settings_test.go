package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/confine-dev/confine/approval"
	"github.com/confine-dev/confine/cmd/confine/config"
	"github.com/confine-dev/confine/rpc/proto"
	"github.com/confine-dev/confine/rpc/server"
	"github.com/confine-dev/confine/sandbox"
	"github.com/confine-dev/confine/sandbox/sandboxtest"
)

// edited is a server whose settings file a test edits. Each state of the file has a
// number, by which every policy that comes of it can be told.
type edited struct {
	*testing.T
	file     string
	client   *client
	confined *sandboxtest.Fake

	settled, written atomic.Int64 // the last state that was seen in force, and that was written
	policies         sync.Map     // of the runs that were started, by id
}

func startEdited(t *testing.T) *edited {
	t.Helper()
	e := &edited{T: t, file: filepath.Join(t.TempDir(), "config.toml"), confined: sandboxtest.NewFake(sandbox.ProviderLandlock)}
	e.edit(rand.New(rand.NewPCG(0, 0)))
	e.settled.Store(e.written.Load())
	source, err := config.Open(config.Options{
		Paths: config.Paths{ConfigDir: filepath.Dir(e.file)}, Getenv: func(string) string { return "" }, Watch: true,
	})
	if err != nil {
		t.Fatal(err)
	}
	gate, err := approval.New(approval.Options{Audit: approval.NoAudit()})
	if err != nil {
		t.Fatal(err)
	}
	unconfined := sandboxtest.NewFake(sandbox.ProviderNone)
	srv := server.New(server.Options{
		Unconfined: unconfined, Gate: gate,
		Configure: func(changed func()) server.Configuration {
			return &configuration{Connection: source.Connect(changed), make: func(s *config.Snapshot) *server.Settings {
				return &server.Settings{Mode: s.Settings.Mode, Network: s.Settings.Network, Limits: s.Settings.Limits, ApprovalPolicy: approval.PolicyNever,
					Confined: e.confined, Shown: shownSettings(s), Problems: settingsProblems(s)}
			}}
		},
	})
	e.confined.Script("note", func(p *sandboxtest.FakeProcess) {
		e.policies.Store(p.Spec.RunID, p.Spec.Policy)
		p.Exit(0)
	})
	if e.client, err = connect(context.Background(), srv, clientOptions{folder: t.TempDir()}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		e.client.close()
		if err := source.Close(); err != nil {
			t.Error(err)
		}
		gate.Close(context.Background())
		e.confined.Close()
		unconfined.Close()
	})
	return e
}

// scopeOf is what state n allows.
func scopeOf(n int64) (mode sandbox.Mode, network bool) {
	if n%3 == 0 {
		return sandbox.WorkspaceWrite, n%2 == 0
	}
	return sandbox.ReadOnly, n%2 == 0
}

// edit writes the next state, or something that is none, in one of two ways. bad says
// that it is none.
func (e *edited) edit(r *rand.Rand) (bad bool) {
	n := e.written.Load()
	mode, network := scopeOf(n + 1)
	text := fmt.Sprintf("network_access = %v\nsandbox_mode = %q\nlimits.processes = %d\n", network, mode, 10000+n+1)
	if bad = n > 0 && r.IntN(5) == 0; bad {
		text = "sandbox_mode = \"danger-full-access\"\nnetwork_access = true\nlimits.processes = \n"
	} else {
		e.written.Add(1)
	}
	path := e.file
	if r.IntN(2) == 0 {
		path += ".new"
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		e.Fatal(err)
	}
	if path != e.file {
		if err := os.Rename(path, e.file); err != nil {
			e.Fatal(err)
		}
	}
	return bad
}

// state is that of a policy; an error if it is a mixture.
func (e *edited) state(p sandbox.Policy) int64 {
	n := int64(p.Limits.Processes) - 10000
	if mode, network := scopeOf(n); p.Mode != mode || p.Network != network {
		e.Errorf("a policy is of no state: %v", p)
	}
	return n
}

// run runs a command and compares its policy with what could be in force.
func (e *edited) run(id string) {
	earliest := e.settled.Load()
	var result proto.RunResult
	if err := e.client.conn.Call(context.Background(), proto.MethodRunCommand, proto.RunCommandParams{Command: "note", RunID: id}, &result); err != nil {
		e.Error(err)
		return
	}
	found, _ := e.policies.Load(id)
	policy, ok := found.(sandbox.Policy)
	if !ok {
		e.Errorf("run %s: no policy; %+v", id, result)
		return
	}
	if n := e.state(policy); n < earliest || n > e.written.Load() {
		e.Errorf("run %s had the policy of state %d, after %d was in force", id, n, earliest)
	}
	if result.PolicyHash != policy.Hash() {
		e.Errorf("run %s: its result has another hash than its policy", id)
	}
}

// now is the state in force, as an editor sees it, and whether a mistake is shown.
func (e *edited) now() (state int64, mistaken bool) {
	var c proto.Capabilities
	if err := e.client.conn.Call(context.Background(), proto.MethodCapabilities, nil, &c); err != nil {
		e.Fatal(err)
	}
	for _, s := range c.Settings {
		if s.Key == config.KeyProcesses {
			state = int64(s.Value.(float64)) - 10000
		}
	}
	for _, p := range c.SettingsProblems {
		mistaken = mistaken || p.Severity == proto.SeverityError
	}
	return state, mistaken
}

// TestEditsWhileCommandsRun: no command ever runs under anything but a whole state of
// the file that is not older than the last that was seen in force; what began before goes
// on; and the last edit counts in the end.
func TestEditsWhileCommandsRun(t *testing.T) {
	edits := 25
	if slow() {
		edits = 1000
	}
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 1))
	e := startEdited(t)
	long := make(chan *proto.RunResult, 1)
	go func() {
		var result proto.RunResult
		e.client.conn.Call(context.Background(), proto.MethodRunCommand, proto.RunCommandParams{Command: "long", RunID: "long"}, &result)
		long <- &result
	}()
	running, err := e.confined.Next(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	stop := make(chan struct{})
	var runs sync.WaitGroup
	for worker := range 2 {
		runs.Go(func() {
			for i := 0; ; i++ {
				select {
				case <-stop:
					return
				default:
					e.run(fmt.Sprintf("run-%d-%d", worker, i))
				}
			}
		})
	}
	for done := 0; done < edits && !t.Failed(); {
		bad := false
		for range 1 + r.IntN(3) {
			bad = e.edit(r)
			done++
		}
		for late := time.Now().Add(20 * time.Second); ; {
			state, mistaken := e.now()
			if bad && mistaken || !bad && !mistaken && state == e.written.Load() {
				e.settled.Store(state)
				break
			}
			if time.Now().After(late) {
				t.Fatalf("missed: state %d (mistaken: %v) is in force, %d was written (a mistake: %v)", state, mistaken, e.written.Load(), bad)
			}
		}
	}
	close(stop)
	runs.Wait()
	select {
	case <-running.Cancelled():
		t.Error("the command that began first was cancelled")
	default:
	}
	running.Exit(0)
	if result := <-long; result.PolicyHash != running.Spec.Policy.Hash() || e.state(running.Spec.Policy) != 1 {
		t.Errorf("the command that began first: %+v", result)
	}
}
