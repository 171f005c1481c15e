//go:build unix

package opensandbox_test

import (
	"context"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/confine-dev/confine/sandbox"
	"github.com/confine-dev/confine/sandbox/opensandbox"
	"github.com/confine-dev/confine/sandbox/opensandbox/osbtest"
)

// injection is one fault of one call, or, with nth 0, of every call of a route.
type injection struct {
	route osbtest.Route
	nth   int
	fault osbtest.Fault
}

func (b *bench) inject(injections ...injection) {
	for _, i := range injections {
		if i.nth == 0 {
			b.fake.InjectAll(i.route, i.fault)
		} else {
			b.fake.Inject(i.route, i.nth, i.fault)
		}
	}
}

func kind(k osbtest.Kind) osbtest.Fault  { return osbtest.Fault{Kind: k} }
func after(k osbtest.Kind) osbtest.Fault { return osbtest.Fault{Kind: k, After: true} }
func text(k osbtest.Kind, text string) osbtest.Fault {
	return osbtest.Fault{Kind: k, Text: text}
}

// TestFaultOfTheService: each fault on the way to a sandbox. What may pass is tried
// again where that can do no harm; nothing else is, and the command never runs.
func TestFaultOfTheService(t *testing.T) {
	for _, test := range []struct {
		name  string
		fault injection
		want  string
	}{
		{"create: wrong key", injection{osbtest.Create, 1, kind(osbtest.Unauthorized)}, refused},
		{"create: forbidden", injection{osbtest.Create, 1, kind(osbtest.Forbidden)}, refused},
		{"create: no capacity", injection{osbtest.Create, 0, kind(osbtest.TooMany)}, refused},
		{"create: no capacity for a moment", injection{osbtest.Create, 1, kind(osbtest.TooMany)}, ended},
		{"create: no capacity, try later", injection{osbtest.Create, 1, kind(osbtest.RetryAfter)}, ended},
		{"create: 500", injection{osbtest.Create, 1, kind(osbtest.Internal)}, refused},
		{"create: 500 when it was made", injection{osbtest.Create, 1, after(osbtest.Internal)}, refused},
		{"create: 502", injection{osbtest.Create, 1, after(osbtest.BadGateway)}, refused},
		{"create: 503", injection{osbtest.Create, 1, kind(osbtest.Unavailable)}, refused},
		{"create: connection lost", injection{osbtest.Create, 1, kind(osbtest.Drop)}, refused},
		{"create: connection lost when it was made", injection{osbtest.Create, 1, after(osbtest.Drop)}, refused},
		{"create: restart", injection{osbtest.Create, 1, after(osbtest.Restart)}, refused},
		{"create: cut answer", injection{osbtest.Create, 1, kind(osbtest.CutBody)}, refused},
		{"create: no JSON", injection{osbtest.Create, 1, after(osbtest.BadJSON)}, refused},
		{"create: page", injection{osbtest.Create, 1, after(osbtest.HTML)}, refused},
		{"create: endless answer", injection{osbtest.Create, 1, after(osbtest.Huge)}, refused},
		{"create: redirection", injection{osbtest.Create, 1, kind(osbtest.Redirect)}, refused},
		{"look-up: 500 once", injection{osbtest.Get, 1, kind(osbtest.Internal)}, ended},
		{"look-up: connection lost once", injection{osbtest.Get, 1, kind(osbtest.Drop)}, ended},
		{"look-up: restart", injection{osbtest.Get, 1, kind(osbtest.Restart)}, ended},
		{"look-up: no JSON once", injection{osbtest.Get, 1, kind(osbtest.BadJSON)}, ended},
		{"look-up: 500 always", injection{osbtest.Get, 0, kind(osbtest.Internal)}, refused},
		{"look-up: page always", injection{osbtest.Get, 0, kind(osbtest.HTML)}, refused},
		{"look-up: endless answer always", injection{osbtest.Get, 0, kind(osbtest.Huge)}, refused},
		{"look-up: redirection", injection{osbtest.Get, 0, kind(osbtest.Redirect)}, refused},
		{"look-up: sandbox gone", injection{osbtest.Get, 1, kind(osbtest.Gone)}, refused},
		{"endpoint: 503 once", injection{osbtest.Endpoint, 1, kind(osbtest.Unavailable)}, ended},
		{"endpoint: 500 always", injection{osbtest.Endpoint, 0, kind(osbtest.Internal)}, refused},
		{"endpoint: sandbox gone", injection{osbtest.Endpoint, 1, kind(osbtest.Gone)}, refused},
		{"endpoint: cut answer always", injection{osbtest.Endpoint, 0, kind(osbtest.CutBody)}, refused},
		{"ping: 502 once", injection{osbtest.Ping, 1, kind(osbtest.BadGateway)}, ended},
		{"ping: wrong token", injection{osbtest.Ping, 0, kind(osbtest.Unauthorized)}, refused},
		{"ping: redirection", injection{osbtest.Ping, 1, kind(osbtest.Redirect)}, ended},
		{"delete: 500", injection{osbtest.Delete, 1, kind(osbtest.Internal)}, ended},
		{"delete: page", injection{osbtest.Delete, 1, kind(osbtest.HTML)}, ended},
		{"delete: no JSON", injection{osbtest.Delete, 1, kind(osbtest.BadJSON)}, ended},
		{"delete: no JSON when it was done", injection{osbtest.Delete, 0, after(osbtest.BadJSON)}, ended},
		{"delete: redirection", injection{osbtest.Delete, 1, kind(osbtest.Redirect)}, ended},
		{"delete: connection lost", injection{osbtest.Delete, 1, kind(osbtest.Drop)}, ended},
		{"delete: connection lost when it was done", injection{osbtest.Delete, 1, after(osbtest.Drop)}, ended},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t, osbtest.Options{PendingPolls: 2, PendingState: "Provisioning"}, nil)
			b.inject(test.fault)
			b.expect(t, b.run(t.Context(), spec("one", "echo hi; exit 3")), test.want)
		})
	}
}

// TestHangOfTheService: no answer ends a wait, and what was made meanwhile is found.
func TestHangOfTheService(t *testing.T) {
	for _, test := range []struct {
		name  string
		fault injection
		want  string
	}{
		{"create", injection{osbtest.Create, 1, kind(osbtest.Hang)}, refused},
		{"create when it was made", injection{osbtest.Create, 1, after(osbtest.Hang)}, refused},
		{"look-up", injection{osbtest.Get, 0, kind(osbtest.Hang)}, refused},
		{"endpoint", injection{osbtest.Endpoint, 0, kind(osbtest.Hang)}, refused},
		{"ping", injection{osbtest.Ping, 0, kind(osbtest.Hang)}, refused},
		{"ping, and a page for it", injection{osbtest.Ping, 0, kind(osbtest.HTML)}, refused},
		{"command", injection{osbtest.Command, 1, kind(osbtest.Hang)}, broken},
		{"command when it began", injection{osbtest.Command, 1, after(osbtest.Hang)}, broken},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t, osbtest.Options{PendingPolls: 1}, func(c *opensandbox.Config) { c.Patience, c.Startup = 2*short, 4*short })
			b.inject(test.fault)
			b.expect(t, b.run(t.Context(), spec("one", "exit 3")), test.want)
		})
	}
}

// TestFaultOfACommand: what can go wrong from the start of a command to its end. It is
// never begun twice, and its end is known or said not to be.
func TestFaultOfACommand(t *testing.T) {
	status := func(fault osbtest.Fault) injection { return injection{osbtest.Status, 0, fault} }
	command := func(fault osbtest.Fault) injection { return injection{osbtest.Command, 1, fault} }
	for _, test := range []struct {
		name   string
		faults []injection
		want   string
	}{
		{"start: wrong token", []injection{command(kind(osbtest.Unauthorized))}, broken},
		{"start: 403", []injection{command(kind(osbtest.Forbidden))}, broken},
		{"start: 429", []injection{command(kind(osbtest.TooMany))}, broken},
		{"start: 500", []injection{command(kind(osbtest.Internal))}, broken},
		{"start: 502 when it began", []injection{command(after(osbtest.BadGateway))}, broken},
		{"start: 503", []injection{command(kind(osbtest.Unavailable))}, broken},
		{"start: connection lost", []injection{command(kind(osbtest.Drop))}, broken},
		{"start: connection lost when it began", []injection{command(after(osbtest.Drop))}, broken},
		{"start: page", []injection{command(kind(osbtest.HTML))}, broken},
		{"start: page when it began", []injection{command(after(osbtest.HTML))}, broken},
		{"start: no JSON", []injection{command(after(osbtest.BadJSON))}, broken},
		{"start: endless answer", []injection{command(after(osbtest.Huge))}, broken},
		{"start: redirection", []injection{command(kind(osbtest.Redirect))}, broken},
		{"start: sandbox gone", []injection{command(kind(osbtest.Gone))}, broken},
		{"start: it could not be started", []injection{command(kind(osbtest.CannotStart))}, broken},
		{"stream: cut before its first event", []injection{command(kind(osbtest.CutInit))}, broken},
		{"stream: cut in an event", []injection{command(kind(osbtest.CutEvent))}, ended},
		{"stream: cut before the end", []injection{command(kind(osbtest.CutFinal))}, ended},
		{"stream: everything twice", []injection{command(kind(osbtest.Duplicate))}, ended},
		{"stream: end twice", []injection{command(kind(osbtest.FinalTwice))}, ended},
		{"stream: another end behind the end", []injection{command(kind(osbtest.AfterFinal))}, ended},
		{"stream: no number", []injection{command(text(osbtest.BadExit, "oops"))}, ended},
		{"stream: a number that cannot be", []injection{command(text(osbtest.BadExit, "999999999999999999999"))}, ended},
		{"stream: error without an error", []injection{command(kind(osbtest.ErrorZero))}, ended},
		{"stream: no event", []injection{command(text(osbtest.BadEvent, "<html>"))}, ended},
		{"stream: an event that is none", []injection{command(text(osbtest.BadEvent, `"execution_complete"`))}, ended},
		{"stream: sandbox expired", []injection{command(kind(osbtest.Expired))}, broken},
		{"stream: restart of execd", []injection{command(kind(osbtest.ExecdRestart))}, broken},
		{"end: status never to be had", []injection{status(kind(osbtest.Internal))}, ended},
		{"end: nobody says how", []injection{command(kind(osbtest.CutFinal)), status(kind(osbtest.Internal))}, broken},
		{"end: status 500 once", []injection{command(kind(osbtest.CutFinal)), {osbtest.Status, 1, kind(osbtest.Internal)}}, ended},
		{"end: status lost once", []injection{command(kind(osbtest.CutFinal)), {osbtest.Status, 1, kind(osbtest.Drop)}}, ended},
		{"end: status without a code", []injection{command(kind(osbtest.CutFinal)), status(kind(osbtest.NoExitCode))}, broken},
		{"end: stream knows, status does not", []injection{status(kind(osbtest.NoExitCode))}, ended},
		{"end: status of another", []injection{command(kind(osbtest.CutFinal)), status(kind(osbtest.OtherID))}, broken},
		{"end: status contradicts", []injection{status(kind(osbtest.OtherExitCode))}, broken},
		{"end: page for a status", []injection{command(kind(osbtest.CutFinal)), status(kind(osbtest.HTML))}, broken},
		{"end: sandbox gone", []injection{command(kind(osbtest.CutFinal)), status(kind(osbtest.Gone))}, broken},
		{"end: restart of execd", []injection{command(kind(osbtest.CutFinal)), {osbtest.Status, 1, kind(osbtest.ExecdRestart)}}, broken},
		{"end: redirection", []injection{command(kind(osbtest.CutFinal)), status(kind(osbtest.Redirect))}, broken},
		{"end: endless answer", []injection{command(kind(osbtest.CutFinal)), status(kind(osbtest.Huge))}, broken},
	} {
		exits := []string{"exit 3"}
		if os.Getenv("CONFINE_SLOW") != "" {
			exits = append(exits, "exit 0", "kill -9 $$")
		}
		for _, exit := range exits {
			t.Run(test.name+", "+exit, func(t *testing.T) {
				t.Parallel()
				b := newBench(t, osbtest.Options{}, nil)
				b.inject(test.faults...)
				a := b.run(t.Context(), spec("one", "echo hi; "+exit))
				b.expect(t, a, test.want)
				if how := a.how(); how == ended && strings.ReplaceAll(a.stdout, "hi\n", "") != "" {
					t.Errorf("output that was never printed: %q", a.stdout)
				}
				if cut := cutsOutput(test.faults); a.how() == ended && (a.result.Missing != "") != cut {
					t.Errorf("the output was cut: %v, and is said to miss: %q", cut, a.result.Missing)
				}
			})
		}
	}
}

// cutsOutput reports whether nobody can know that all output came.
func cutsOutput(faults []injection) bool {
	return slices.ContainsFunc(faults, func(i injection) bool {
		return slices.Contains([]osbtest.Kind{osbtest.CutEvent, osbtest.CutFinal, osbtest.BadEvent}, i.fault.Kind)
	})
}

// TestStatusThatNeverEnds: a service that says for ever that a command runs is left
// when the command's time is over, with its sandbox.
func TestStatusThatNeverEnds(t *testing.T) {
	t.Parallel()
	for _, stream := range []osbtest.Kind{osbtest.CutFinal, osbtest.Silent} {
		b := newBench(t, osbtest.Options{}, func(c *opensandbox.Config) { c.Patience = short })
		b.inject(injection{osbtest.Command, 1, kind(stream)}, injection{osbtest.Status, 0, kind(osbtest.StillRunning)})
		s := spec("one", "exit 3")
		s.Timeout = short
		b.expect(t, b.run(t.Context(), s), broken)
	}
}

// TestContradiction: the stream says that a command ended, the status that it runs.
func TestContradiction(t *testing.T) {
	t.Parallel()
	b := newBench(t, osbtest.Options{}, func(c *opensandbox.Config) { c.Patience = short })
	b.inject(injection{osbtest.Status, 0, kind(osbtest.StillRunning)})
	b.expect(t, b.run(t.Context(), spec("one", "true")), broken)
}

func TestHostileEndpoints(t *testing.T) {
	for _, address := range osbtest.HostileEndpoints {
		b := newBench(t, osbtest.Options{}, nil)
		b.inject(injection{osbtest.Endpoint, 0, text(osbtest.HostileEndpoint, address)})
		b.expect(t, b.run(t.Context(), spec("one", "true")), refused)
	}
}

// TestKeyStaysAtItsHost: what leads to a host of another name gets nothing, also if it
// is spelled as an endpoint is.
func TestKeyStaysAtItsHost(t *testing.T) {
	for _, address := range []string{"evil.example/box", "127.0.0.1.evil.example:80", "10.0.0.1:44772"} {
		b := newBench(t, osbtest.Options{}, nil)
		b.inject(injection{osbtest.Endpoint, 0, text(osbtest.HostileEndpoint, address)})
		b.expect(t, b.run(t.Context(), spec("one", "true")), refused)
	}
}

// TestCancelFaults: a command that is to end has ended when that is said, whatever the
// service does with the request.
func TestCancelFaults(t *testing.T) {
	const either = "either"
	for _, test := range []struct {
		name  string
		fault injection
		want  string
	}{
		{"none", injection{osbtest.Health, 1, osbtest.Fault{}}, ended},
		{"500 once", injection{osbtest.Interrupt, 1, kind(osbtest.Internal)}, ended},
		{"lost when it was done", injection{osbtest.Interrupt, 1, after(osbtest.Drop)}, ended},
		{"500 always", injection{osbtest.Interrupt, 0, kind(osbtest.Internal)}, broken},
		{"page always", injection{osbtest.Interrupt, 0, kind(osbtest.HTML)}, broken},
		{"no answer", injection{osbtest.Interrupt, 0, kind(osbtest.Hang)}, broken},
		{"redirection", injection{osbtest.Interrupt, 0, kind(osbtest.Redirect)}, broken},
		{"status never to be had", injection{osbtest.Status, 0, kind(osbtest.Internal)}, broken},
		{"status without a code", injection{osbtest.Status, 0, kind(osbtest.NoExitCode)}, either},
		{"sandbox gone", injection{osbtest.Interrupt, 1, kind(osbtest.Gone)}, broken},
		{"execd restarted", injection{osbtest.Interrupt, 1, kind(osbtest.ExecdRestart)}, broken},
	} {
		for _, output := range []string{opensandbox.OutputLines, opensandbox.OutputBytes} {
			// Where the way of output makes no difference, a quick run tries one.
			if output == opensandbox.OutputBytes && test.want == broken && os.Getenv("CONFINE_SLOW") == "" {
				continue
			}
			t.Run(test.name+", "+output, func(t *testing.T) {
				t.Parallel()
				b := newBench(t, osbtest.Options{}, func(c *opensandbox.Config) {
					c.Output = output
					if test.want == broken {
						c.Patience = 3 * short
					}
				})
				b.inject(test.fault)
				process, err := b.provider.Start(t.Context(), spec("one", "sleep 1000"))
				if err != nil {
					t.Fatal(err)
				}
				process.Cancel()
				a := account{mark: "one"}.wait(process)
				if running := b.fake.Ledger().Running(); len(running) != 0 {
					t.Errorf("it still runs: %+v", running)
				}
				want := test.want
				if want == either { // the stream knows, where it is about the command
					want = map[string]string{opensandbox.OutputLines: ended, opensandbox.OutputBytes: broken}[output]
				}
				b.expect(t, a, want)
			})
		}
	}
}

// TestUnreachable: nothing listens there.
func TestUnreachable(t *testing.T) {
	for _, api := range []string{opensandbox.APILifecycle, opensandbox.APIRun} {
		b := newBench(t, osbtest.Options{}, func(c *opensandbox.Config) { c.API = api })
		if err := b.fake.Close(); err != nil {
			t.Fatal(err)
		}
		a := b.run(t.Context(), spec("one", "true"))
		if a.how() != refused || !strings.Contains(a.text(), "refused") || !strings.Contains(a.text(), "sandbox_url") {
			t.Errorf("%s: %s\n%s", api, a.how(), a.text())
		}
		b.close()
	}
}

// TestUndeletable: what cannot be deleted is said to be left, and the next start of
// confine deletes it.
func TestUndeletable(t *testing.T) {
	for _, fault := range []osbtest.Kind{osbtest.Unavailable, osbtest.Unauthorized, osbtest.Redirect, osbtest.HTML} {
		b := newBench(t, osbtest.Options{}, nil)
		b.inject(injection{osbtest.Delete, 0, kind(fault)})
		a := b.run(t.Context(), spec("one", "true"))
		if a.how() != ended {
			t.Fatal(a.text())
		}
		if err := b.provider.Close(); err == nil || len(b.fake.Ledger().Existing()) != 1 {
			t.Errorf("%s: Close: %v, left: %+v", fault, err, b.fake.Ledger().Existing())
		}
		b.fake.Heal()
		b.open(t)
		b.expect(t, b.run(t.Context(), spec("two", "true")), ended)
	}
}

// TestRoomThatAProbeTakes: where the sandbox that tries the service is the last one there
// is room for, a command waits until it is gone.
func TestRoomThatAProbeTakes(t *testing.T) {
	b := newBench(t, osbtest.Options{}, nil)
	b.inject(injection{osbtest.Create, 2, kind(osbtest.TooMany)})
	probe, command := b.fake.HoldCall(osbtest.Endpoint, 1), b.fake.HoldCall(osbtest.Create, 2)
	probed := make(chan sandbox.Report, 1)
	go func() { probed <- b.provider.Probe(t.Context()) }()
	<-probe.Reached()
	ran := make(chan account, 1)
	go func() { ran <- b.run(t.Context(), spec("one", "true")) }()
	<-command.Reached()
	command.Release()
	probe.Release()
	if report := <-probed; !report.Usable {
		t.Errorf("%+v", report)
	}
	a := <-ran
	deleted, created := 0, 0
	for i, r := range b.fake.Requests() {
		switch {
		case r.Route == osbtest.Delete && r.Nth == 1:
			deleted = i
		case r.Route == osbtest.Create && r.Nth == 3:
			created = i
		}
	}
	if created < deleted {
		t.Errorf("a sandbox was asked for anew before that of the probe was deleted")
	}
	b.expect(t, a, ended)
}

// TestMadeWithoutAnAnswer: a sandbox that was made, of which confine did not hear, does
// not wait for the end of the session to be deleted.
func TestMadeWithoutAnAnswer(t *testing.T) {
	b := newBench(t, osbtest.Options{}, nil)
	b.inject(injection{osbtest.Create, 1, after(osbtest.Drop)})
	a := b.run(t.Context(), spec("one", "true"))
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	if err := b.fake.Await(ctx, func(l osbtest.Ledger) bool { return len(l.Sandboxes) == 1 && len(l.Existing()) == 0 }); err != nil {
		t.Errorf("it is left: %v", err)
	}
	b.expect(t, a, refused)
}

// TestOneSandboxIsBounded: whatever becomes of confine, the service ends a sandbox by
// itself.
func TestOneSandboxIsBounded(t *testing.T) {
	b := newBench(t, osbtest.Options{}, func(c *opensandbox.Config) { c.Lifetime = 2 * time.Minute })
	process, err := b.provider.Start(t.Context(), spec("one", "sleep 1000"))
	if err != nil {
		t.Fatal(err)
	}
	b.fake.Advance(2*time.Minute + time.Second)
	if l := b.fake.Ledger(); len(l.Existing()) != 0 || len(l.Running()) != 0 {
		t.Errorf("still there: %+v", l)
	}
	b.expect(t, account{mark: "one"}.wait(process), broken)
}
