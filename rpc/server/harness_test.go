package server_test

import (
	"context"
	"encoding/json"
	"net"
	"net/url"
	"path/filepath"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"github.com/confine-dev/confine/approval"
	"github.com/confine-dev/confine/rpc/proto"
	"github.com/confine-dev/confine/rpc/rpctest"
	"github.com/confine-dev/confine/rpc/server"
	"github.com/confine-dev/confine/sandbox"
	"github.com/confine-dev/confine/sandbox/sandboxtest"
)

// patience is longer than any time limit of the server. In a bubble it costs
// nothing; elsewhere the test binary's own limit comes first.
const patience = 24 * time.Hour

// world is a server and its editor.
type world struct {
	t          *testing.T
	editor     *rpctest.Editor
	confined   *sandboxtest.Fake
	unconfined *sandboxtest.Fake
	served     chan served // gets what Serve returned, then is closed
	folder     string      // the workspace folder that most tests open
}

type served struct {
	clean bool
	err   error
}

// full is an editor that speaks all of the protocol.
func full(folder string) rpctest.Init {
	return rpctest.Init{
		Confine: &proto.ClientConfine{ProtocolVersion: 1, Approval: true, Output: true},
		Folders: []string{fileURI(folder)},
	}
}

func fileURI(path string) string {
	return (&url.URL{Scheme: "file", Path: filepath.ToSlash(path)}).String()
}

// inBubble runs a test in a bubble of its own, where time passes only when
// nothing moves: waits for what never comes fail at once, and nothing sleeps.
func inBubble(t *testing.T, test func(t *testing.T)) {
	t.Helper()
	synctest.Test(t, test)
}

// newWorld starts a server whose providers are fakes; change edits its options.
func newWorld(t *testing.T, change func(*server.Options)) *world {
	t.Helper()
	gate, err := approval.New(approval.Options{Audit: approval.NoAudit()})
	if err != nil {
		t.Fatal(err)
	}
	w := &world{
		t:          t,
		confined:   sandboxtest.NewFake(sandbox.ProviderLandlock),
		unconfined: sandboxtest.NewFake(sandbox.ProviderNone),
		served:     make(chan served, 1),
		folder:     realTempDir(t),
	}
	o := server.Options{
		Version: "test", Settings: server.Settings{Confined: w.confined}, Unconfined: w.unconfined, Gate: gate,
		HostEnv: []string{"PATH=/usr/bin:/bin", "SECRET_TOKEN=x"},
	}
	if change != nil {
		change(&o)
	}
	ours, theirs := net.Pipe()
	s := server.New(o)
	ctx, cancel := context.WithCancel(context.Background())
	go func() {
		clean, err := s.Serve(ctx, theirs)
		w.served <- served{clean, err}
		close(w.served)
	}()
	t.Cleanup(func() {
		w.editor.Close()
		cancel()
		for range w.served { // until it is closed
		}
		w.confined.Close()
		w.unconfined.Close()
		if err := gate.Close(context.Background()); err != nil {
			t.Error(err)
		}
	})
	w.editor = rpctest.Open(t, ours)
	w.editor.Patience = patience
	return w
}

// open starts a server and an editor that speaks all of the protocol.
func open(t *testing.T, change func(*server.Options)) *world {
	t.Helper()
	w := newWorld(t, change)
	w.editor.Initialize(full(w.folder))
	return w
}

func mode(m sandbox.Mode) func(*server.Options) {
	return func(o *server.Options) { o.Settings.Mode = m }
}

// next waits for the next command that a provider was asked to start.
func (w *world) next(f *sandboxtest.Fake) *sandboxtest.FakeProcess {
	w.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	p, err := f.Next(ctx)
	if err != nil {
		w.t.Fatal(err)
	}
	return p
}

// question waits for a question in full.
func (w *world) question() (rpctest.Message, proto.Question) {
	w.t.Helper()
	m := w.editor.AwaitRequest(proto.MethodRequestApproval)
	var q proto.Question
	if err := json.Unmarshal(m.Params, &q); err != nil {
		w.t.Fatal(err)
	}
	return m, q
}

// choose answers a question with the option of that kind.
func (w *world) choose(m rpctest.Message, q proto.Question, kind string) {
	w.t.Helper()
	for _, o := range q.Options {
		if o.Kind == kind {
			w.editor.Reply(m, proto.ApprovalAnswer{Outcome: proto.ApprovalOutcome{Outcome: proto.OutcomeSelected, OptionID: o.OptionID}})
			return
		}
	}
	w.t.Fatalf("the question has no option of kind %q: %+v", kind, q.Options)
}

// run sends runCommand and waits for its result.
func (w *world) run(p proto.RunCommandParams) proto.RunResult {
	w.t.Helper()
	var result proto.RunResult
	w.editor.Call(proto.MethodRunCommand, p, &result)
	return result
}

func jsonInt(n int64) string { return strconv.FormatInt(n, 10) }

func exit0(p *sandboxtest.FakeProcess) { p.Exit(0) }

// realTempDir is a new folder whose path has no link in it.
func realTempDir(t *testing.T) string {
	t.Helper()
	folder, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	return folder
}
