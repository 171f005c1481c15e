//go:build unix

package opensandbox_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/confine-dev/confine/sandbox"
	"github.com/confine-dev/confine/sandbox/opensandbox"
	"github.com/confine-dev/confine/sandbox/opensandbox/osbtest"
)

// bench is a provider at a service that can be told to fail.
type bench struct {
	fake     *osbtest.Server
	provider *opensandbox.Provider
	config   opensandbox.Config
	log      *notes
}

// notes is a log that can be read while it is written.
type notes struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (n *notes) Write(p []byte) (int, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.text.Write(p)
}

func (n *notes) String() string {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.text.String()
}

// short is for waits that a test sits out.
const short = 150 * time.Millisecond

// newBench starts both. Waits are long unless change makes them short, so that a busy
// machine fails nothing.
func newBench(t *testing.T, options osbtest.Options, change func(*opensandbox.Config)) *bench {
	t.Helper()
	if options.Dir == "" {
		options.Dir = t.TempDir()
	}
	fake, err := osbtest.New(options)
	if err != nil {
		t.Fatal(err)
	}
	b := &bench{fake: fake, log: &notes{}}
	t.Cleanup(func() {
		if err := fake.Close(); err != nil {
			t.Error(err)
		}
	})
	b.config = opensandbox.Config{URL: fake.URL(), APIKey: fake.Key(), StateDir: t.TempDir(), Log: slog.New(slog.NewTextHandler(b.log, &slog.HandlerOptions{Level: slog.LevelDebug})),
		Poll: 2 * time.Millisecond, Retry: time.Millisecond, Patience: 20 * time.Second}
	if change != nil {
		change(&b.config)
	}
	b.open(t)
	return b
}

// open makes the provider, as another start of confine would.
func (b *bench) open(t *testing.T) {
	t.Helper()
	provider, err := opensandbox.New(b.config)
	if err != nil {
		t.Fatal(err)
	}
	b.provider = provider
}

// account is what a provider says of one command.
type account struct {
	mark     string
	startErr error
	result   sandbox.Result
	waitErr  error
	stdout   string
	stderr   string
}

// spec is a command that the ledger knows by its mark.
func spec(mark, command string) sandbox.Spec {
	return sandbox.Spec{RunID: mark, Session: "session", Command: command + " # " + mark, Dir: "/tmp", Policy: sandbox.Policy{Mode: sandbox.ReadOnly}}
}

// run runs a command to its end.
func (b *bench) run(ctx context.Context, s sandbox.Spec) account {
	a := account{mark: s.RunID}
	process, err := b.provider.Start(ctx, s)
	if err != nil {
		a.startErr = err
		return a
	}
	return a.wait(process)
}

func (a account) wait(process sandbox.Process) account {
	a.result, a.waitErr = process.Wait()
	a.stdout, _ = process.Output(sandbox.StdoutStream).Tail()
	a.stderr, _ = process.Output(sandbox.StderrStream).Tail()
	return a
}

// How an account ends.
const (
	ended   = "result"              // of the command
	refused = "error, not begun"    // the service failed and the command did not run
	broken  = "error, begun"        // the service failed and the command may have run
	unfit   = "the command's fault" // it could not begin
)

func (a account) how() string {
	for _, err := range []error{a.startErr, a.waitErr} {
		if err == nil {
			continue
		}
		if unavailable, ok := errors.AsType[*sandbox.UnavailableError](err); ok {
			if unavailable.Started {
				return broken
			}
			return refused
		}
		if _, ok := errors.AsType[*sandbox.StartError](err); ok {
			return unfit
		}
		return fmt.Sprintf("another error: %v", err)
	}
	return ended
}

// text is everything that a person could see of an account.
func (a account) text() string {
	var b strings.Builder
	for _, err := range []error{a.startErr, a.waitErr} {
		if err != nil {
			fmt.Fprintln(&b, err)
		}
		if unavailable, ok := errors.AsType[*sandbox.UnavailableError](err); ok {
			fmt.Fprintln(&b, unavailable.Detail, unavailable.Remedies)
		}
	}
	r := a.result
	fmt.Fprintf(&b, "exit %d %s, cancelled %v, timed out %v, missing %q, layers %v\n%s\n%s\n", r.ExitCode, r.Signal, r.Cancelled, r.TimedOut, r.Missing, r.Facts.Layers, a.stdout, a.stderr)
	return b.String()
}

// lies compares an account with what really happened.
func (b *bench) lies(a account) (lies []string) {
	say := func(format string, args ...any) { lies = append(lies, fmt.Sprintf(format, args...)) }
	ran := b.fake.Ledger().With(a.mark)
	if len(ran) > 1 {
		say("it ran %d times", len(ran))
	}
	switch how := a.how(); how {
	case refused, unfit:
		if len(ran) > 0 {
			say("it is said not to have begun, and it ran")
		}
	case broken:
	case ended:
		switch {
		case len(ran) == 0:
			say("a result, and it never ran: %+v", a.result)
		case ran[0].Running:
			say("a result while it runs: %+v", a.result)
		case a.result.Signal == "" && (ran[0].Signal != "" || ran[0].ExitCode != a.result.ExitCode):
			say("the result says %d, and it ended with %d %s", a.result.ExitCode, ran[0].ExitCode, ran[0].Signal)
		case a.result.Signal != "" && ran[0].Signal == "":
			say("the result says %s, and it exited with %d", a.result.Signal, ran[0].ExitCode)
		case ran[0].Interrupted && a.result.Signal != "" && !a.result.Cancelled && !a.result.TimedOut:
			say("the service ended it, and the result says that it ended by itself: %+v", a.result)
		}
	default:
		say("%s", how)
	}
	return lies
}

// leaks says where a key can be seen.
func (b *bench) leaks(texts ...string) (leaks []string) {
	for _, text := range append(texts, b.log.String()) {
		for _, secret := range b.fake.Secrets() {
			if strings.Contains(text, secret) {
				leaks = append(leaks, "a key is in: "+text)
			}
		}
	}
	for _, r := range b.fake.Trapped() {
		leaks = append(leaks, fmt.Sprintf("a host that nobody named got %s %s", r.Method, r.Path))
	}
	return append(leaks, b.fake.Strays()...)
}

// close ends the provider and says what it left at the service.
func (b *bench) close() (left []string) {
	err := b.provider.Close()
	l := b.fake.Ledger()
	for _, box := range l.Existing() {
		left = append(left, fmt.Sprintf("sandbox %s (its id was told: %v) is left; Close said: %v", box.ID, box.Told, err))
	}
	for _, c := range l.Running() {
		left = append(left, "still running: "+c.Command)
	}
	return left
}

// expect runs a command, wants it to end in one of some ways, and nothing of it to be
// untrue, seen or left.
func (b *bench) expect(t *testing.T, a account, ways ...string) {
	t.Helper()
	how := a.how()
	found := false
	for _, way := range ways {
		found = found || way == how
	}
	if !found {
		t.Errorf("%s, want %s\n%s", how, strings.Join(ways, " or "), a.text())
	}
	for _, lie := range b.lies(a) {
		t.Errorf("%s\n%s", lie, a.text())
	}
	b.expectClean(t, a)
}

func (b *bench) expectClean(t *testing.T, accounts ...account) {
	t.Helper()
	left := b.close()
	for _, fault := range left {
		t.Error(fault)
	}
	var texts []string
	for _, a := range accounts {
		texts = append(texts, a.text())
	}
	for _, leak := range b.leaks(texts...) {
		t.Error(leak)
	}
}
