package local_test

import (
	"bytes"
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/confine-dev/confine/sandbox"
	"github.com/confine-dev/confine/sandbox/landlock"
	"github.com/confine-dev/confine/sandbox/local"
	"github.com/confine-dev/confine/sandbox/observe"
)

// level is one way in which the engine can hold a run together.
type level string

const (
	namespaces   level = "namespaces"
	noNamespaces level = "no-namespaces"
	unconfined   level = "unconfined"
)

var levels = []level{namespaces, noNamespaces, unconfined}

// patience is how long a test waits for what must happen. It is reached only
// by a test that fails.
const patience = 20 * time.Second

// fixture is an engine with a workspace.
type fixture struct {
	testing.TB
	level    level
	engine   *local.Engine
	provider sandbox.Provider
	policy   sandbox.Policy
	dir      string // the workspace
	state    string
}

// newFixture starts an engine; the test's end closes it and looks at what it
// left.
func newFixture(t testing.TB, level level) *fixture {
	t.Helper()
	f := &fixture{TB: t, level: level, dir: realDir(t), state: realDir(t)}
	f.engine, f.provider, f.policy = open(t, level, f.state, f.dir)
	t.Cleanup(f.close)
	if level == namespaces {
		report := f.provider.Probe(t.Context())
		if !slices.Contains(report.Layers, "namespaces") {
			t.Skipf("this host has no user namespaces for us: %s", report.Reason)
		}
	}
	return f
}

// open starts an engine of a level.
func open(t testing.TB, level level, state, dir string) (*local.Engine, sandbox.Provider, sandbox.Policy) {
	t.Helper()
	e, err := local.New(landlock.New(), local.Options{StateDir: state, NoNamespaces: level == noNamespaces, Observer: observe.New(observe.Options{}), Log: slog.New(logTo{t})})
	if err != nil {
		t.Fatal(err)
	}
	if level == unconfined {
		return e, e.Unconfined(), sandbox.Policy{Mode: sandbox.DangerFullAccess}
	}
	root, err := sandbox.DeclareRoot(dir, sandbox.Forbidden{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { root.Close() })
	return e, e, sandbox.Policy{Mode: sandbox.WorkspaceWrite, Roots: []*sandbox.Root{root}}
}

func (f *fixture) close() {
	if err := f.engine.Close(); err != nil {
		f.Errorf("closing the engine: %v", err)
	}
	for _, left := range serverFolders(f, f.state) {
		f.Errorf("the engine left %s", left)
	}
}

// serverFolders lists what engines keep in a state folder.
func serverFolders(t testing.TB, state string) []string {
	t.Helper()
	folders, err := filepath.Glob(filepath.Join(state, "servers", "*"))
	if err != nil {
		t.Fatal(err)
	}
	return folders
}

// eachLevel runs a test on every level.
func eachLevel(t *testing.T, test func(t *testing.T, f *fixture)) {
	t.Helper()
	for _, level := range levels {
		t.Run(string(level), func(t *testing.T) {
			t.Parallel()
			test(t, newFixture(t, level))
		})
	}
}

// spec is a bash command in the workspace, in the test's own session.
func (f *fixture) spec(command string) sandbox.Spec {
	return sandbox.Spec{RunID: "run", Session: f.Name(), Command: command, Dir: f.dir, Policy: f.policy, Timeout: patience,
		Env: []string{"PATH=/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin", "LC_ALL=C", "HOME=" + f.dir}}
}

// start begins a command and kills it, at the latest, when the test ends.
func (f *fixture) start(t testing.TB, spec sandbox.Spec) sandbox.Process {
	t.Helper()
	p, err := f.provider.Start(context.Background(), spec)
	if err != nil {
		t.Fatalf("starting %q: %v", short(spec.Command), err)
	}
	t.Cleanup(func() { p.Cancel() })
	return p
}

// outcome is all that a run came to.
type outcome struct {
	sandbox.Result
	stdout, stderr string
}

// finish waits for a run.
func finish(t testing.TB, p sandbox.Process) outcome {
	t.Helper()
	wait(t, "the run to end", p.Done())
	result, err := p.Wait()
	if err != nil {
		t.Fatalf("the sandbox failed: %v", err)
	}
	stdout, _ := p.Output(sandbox.StdoutStream).Tail()
	stderr, _ := p.Output(sandbox.StderrStream).Tail()
	return outcome{result, stdout, stderr}
}

// run starts a command and waits for it.
func (f *fixture) run(t testing.TB, command string) outcome {
	t.Helper()
	return finish(t, f.start(t, f.spec(command)))
}

// succeed runs a command that must exit 0 and returns its output, trimmed.
func (f *fixture) succeed(t testing.TB, command string) string {
	t.Helper()
	o := f.run(t, command)
	if o.ExitCode != 0 || o.Signal != "" || o.TimedOut || o.Cancelled {
		t.Fatalf("%q ended with exit code %d, signal %q\nstdout: %s\nstderr: %s", short(command), o.ExitCode, o.Signal, o.stdout, o.stderr)
	}
	return strings.TrimSpace(o.stdout)
}

// ended fails the test unless the run ended as told.
func (o outcome) ended(t testing.TB, code int, signal string) {
	t.Helper()
	if o.Signal != signal || signal == "" && o.ExitCode != code {
		t.Errorf("it ended with exit code %d, signal %q, want %d, %q\nstderr: %s", o.ExitCode, o.Signal, code, signal, o.stderr)
	}
}

// printed waits until a run's standard output holds text.
func printed(t testing.TB, p sandbox.Process, text string) {
	t.Helper()
	eventually(t, "the command to print "+text, func() bool {
		stdout, _ := p.Output(sandbox.StdoutStream).Tail()
		return strings.Contains(stdout, text)
	})
}

// eventually polls for a condition that nothing announces.
func eventually(t testing.TB, what string, condition func() bool) {
	t.Helper()
	within(t, patience, what, condition)
}

// within polls for a condition that must hold after limit at the latest.
func within(t testing.TB, limit time.Duration, what string, condition func() bool) {
	t.Helper()
	for end := time.Now().Add(limit); !condition(); time.Sleep(2 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("waited %v in vain for %s", limit, what)
		}
	}
}

// wait blocks until a channel is closed.
func wait(t testing.TB, what string, done <-chan struct{}) {
	t.Helper()
	timer := time.NewTimer(patience + 5*time.Second)
	defer timer.Stop()
	select {
	case <-done:
	case <-timer.C:
		t.Fatalf("waited in vain for %s", what)
	}
}

// realDir is a temporary folder without symbolic links in its path.
func realDir(t testing.TB) string {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

func short(s string) string {
	if len(s) > 200 {
		return s[:200] + "…"
	}
	return s
}

// isRoot says whether plain permissions stop us.
func isRoot() bool { return os.Geteuid() == 0 }

// chunks collects output as it comes.
type chunks struct {
	mu     sync.Mutex
	all    []sandbox.Chunk // guarded by mu; Data copied
	nested bool            // guarded by mu: two calls at once
	inside bool            // guarded by mu
}

func (c *chunks) add(chunk sandbox.Chunk) {
	c.mu.Lock()
	c.nested = c.nested || c.inside
	c.inside = true
	c.mu.Unlock()
	chunk.Data = bytes.Clone(chunk.Data)
	c.mu.Lock()
	c.all = append(c.all, chunk)
	c.inside = false
	c.mu.Unlock()
}

// logTo writes an engine's log into the test's.
type logTo struct{ testing.TB }

func (l logTo) Enabled(context.Context, slog.Level) bool { return true }
func (l logTo) WithAttrs([]slog.Attr) slog.Handler       { return l }
func (l logTo) WithGroup(string) slog.Handler            { return l }
func (l logTo) Handle(_ context.Context, r slog.Record) error {
	var b strings.Builder
	r.Attrs(func(a slog.Attr) bool { b.WriteString(" " + a.String()); return true })
	l.Logf("engine: %s%s", r.Message, b.String())
	return nil
}
