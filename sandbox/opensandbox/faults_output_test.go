//go:build unix

package opensandbox_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/confine-dev/confine/sandbox/opensandbox"
	"github.com/confine-dev/confine/sandbox/opensandbox/osbtest"
)

// TestFaultOfLogs: where every byte counts, none comes twice or from nowhere, and what
// is missing is said to be.
func TestFaultOfLogs(t *testing.T) {
	const output = "a\r\n\xffb\nc"
	all := func(fault osbtest.Fault) injection { return injection{osbtest.Logs, 0, fault} }
	once := func(fault osbtest.Fault) injection { return injection{osbtest.Logs, 1, fault} }
	for _, test := range []struct {
		name  string
		fault injection
		want  string
		whole bool // all output came
	}{
		{"none", injection{osbtest.Health, 1, osbtest.Fault{}}, ended, true},
		{"500 once", once(kind(osbtest.Internal)), ended, true},
		{"lost once", once(kind(osbtest.Drop)), ended, true},
		{"cut once", once(kind(osbtest.CutBody)), ended, true},
		{"redirection once", once(kind(osbtest.Redirect)), ended, true},
		{"500 always", all(kind(osbtest.Internal)), ended, false},
		{"page always", all(kind(osbtest.HTML)), ended, false},
		{"no cursor", all(kind(osbtest.NoCursor)), ended, false},
		{"cursor goes back", all(text(osbtest.BackCursor, "-1")), ended, false},
		{"cursor too far", all(text(osbtest.BackCursor, "1000000")), ended, false},
		{"cursor that is none", all(text(osbtest.BackCursor, "many")), ended, false},
		{"endless", all(kind(osbtest.Huge)), ended, false},
		{"sandbox gone", once(kind(osbtest.Gone)), broken, false},
		{"execd restarted", once(kind(osbtest.ExecdRestart)), broken, false},
		{"status never to be had", injection{osbtest.Status, 0, kind(osbtest.Internal)}, broken, false},
		{"status without a code", injection{osbtest.Status, 0, kind(osbtest.NoExitCode)}, broken, false},
		{"status of another", injection{osbtest.Status, 0, kind(osbtest.OtherID)}, broken, false},
		{"could not be started", injection{osbtest.Command, 1, kind(osbtest.CannotStart)}, broken, false},
		{"stream cut before its first event", injection{osbtest.Command, 1, kind(osbtest.CutInit)}, broken, false},
		{"stream cut behind it", injection{osbtest.Command, 1, kind(osbtest.CutFinal)}, ended, true},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t, osbtest.Options{}, func(c *opensandbox.Config) { c.Output = opensandbox.OutputBytes })
			b.inject(test.fault)
			var got strings.Builder
			s := spec("one", `printf 'a\r\n\377'; echo b >&2; printf c; exit 3`)
			s.Output = collect(&got)
			a := b.run(t.Context(), s)
			b.expect(t, a, test.want)
			switch {
			case !strings.HasPrefix(output, got.String()) && test.fault.fault.Kind != osbtest.HTML:
				t.Errorf("output that was never printed: %q", got.String())
			case test.whole && (got.String() != output || a.result.Missing != ""):
				t.Errorf("got %q, missing %q", got.String(), a.result.Missing)
			case !test.whole && a.how() == ended && a.result.Missing == "":
				t.Errorf("got %q, and nothing is said to be missing", got.String())
			}
		})
	}
}

// TestOutputByItsCursor: the cursor says which bytes an answer has, not its length. What
// is behind it comes again, and what it lacks is missing.
func TestOutputByItsCursor(t *testing.T) {
	for _, test := range []struct {
		name    string
		fault   osbtest.Fault
		nth     int
		missing bool
	}{
		{"an answer with more", text(osbtest.BackCursor, "3"), 1, false},
		{"answers with less", text(osbtest.BackCursor, "9"), 0, true},
	} {
		t.Run(test.name, func(t *testing.T) {
			b := newBench(t, osbtest.Options{}, func(c *opensandbox.Config) { c.Output = opensandbox.OutputBytes })
			first := b.fake.HoldCall(osbtest.Logs, 1) // until all is printed
			b.inject(injection{osbtest.Logs, test.nth, test.fault})
			process, err := b.provider.Start(t.Context(), spec("one", "printf 12345678"))
			if err != nil {
				t.Fatal(err)
			}
			ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
			defer cancel()
			if err := b.fake.Await(ctx, func(l osbtest.Ledger) bool { return len(l.Commands) == 1 && len(l.Running()) == 0 }); err != nil {
				t.Error(err)
			}
			first.Release()
			a := account{mark: "one"}.wait(process)
			b.expect(t, a, ended)
			if a.stdout != "12345678" || (a.result.Missing != "") != test.missing {
				t.Errorf("got %q, missing %q", a.stdout, a.result.Missing)
			}
		})
	}
}

// TestFaultOfOneCall: the one-call interface says everything at once, or nothing.
func TestFaultOfOneCall(t *testing.T) {
	for _, test := range []struct {
		name  string
		fault osbtest.Fault
		want  string
	}{
		{"none", osbtest.Fault{}, ended},
		{"wrong key", kind(osbtest.Unauthorized), broken},
		{"forbidden", kind(osbtest.Forbidden), broken},
		{"429", kind(osbtest.TooMany), broken},
		{"429 with a time", kind(osbtest.RetryAfter), broken},
		{"500", kind(osbtest.Internal), broken},
		{"502 when it began", after(osbtest.BadGateway), broken},
		{"503", kind(osbtest.Unavailable), broken},
		{"connection lost", kind(osbtest.Drop), broken},
		{"connection lost when it began", after(osbtest.Drop), broken},
		{"cut answer", kind(osbtest.CutBody), broken},
		{"no JSON", after(osbtest.BadJSON), broken},
		{"page", kind(osbtest.HTML), broken},
		{"endless answer", after(osbtest.Huge), broken},
		{"redirection", kind(osbtest.Redirect), broken},
		{"no exit code", kind(osbtest.NoExitCode), broken},
		{"exit code as text", text(osbtest.BadExit, `"0"`), broken},
		{"exit code below all", text(osbtest.BadExit, "-1"), broken},
		{"exit code beyond all", text(osbtest.BadExit, "256"), broken},
		{"no answer", kind(osbtest.Hang), broken},
		{"no answer when it began", after(osbtest.Hang), broken},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t, osbtest.Options{}, func(c *opensandbox.Config) { c.API = opensandbox.APIRun })
			b.inject(injection{osbtest.OneCall, 1, test.fault})
			s := spec("one", "echo hi; exit 3")
			if test.fault.Kind == osbtest.Hang {
				s.Timeout = short
			}
			b.expect(t, b.run(t.Context(), s), test.want)
		})
	}
}

// TestOutputOfWhatIsLeft: what a command leaves behind may print for ever; the command
// ends all the same.
func TestOutputOfWhatIsLeft(t *testing.T) {
	for _, output := range []string{opensandbox.OutputLines, opensandbox.OutputBytes} {
		b := newBench(t, osbtest.Options{}, func(c *opensandbox.Config) { c.Output = output })
		a := b.run(t.Context(), spec("one", "echo mine; while :; do echo left; done & exit 3"))
		b.expect(t, a, ended)
	}
}

// TestStreamThatGoesOn: a stream in which something still comes, and no end, does not keep
// a command from having ended.
func TestStreamThatGoesOn(t *testing.T) {
	b := newBench(t, osbtest.Options{Ping: time.Millisecond}, func(c *opensandbox.Config) { c.Patience = short })
	b.inject(injection{osbtest.Command, 1, kind(osbtest.Pinging)})
	a := b.run(t.Context(), spec("one", "exit 3"))
	b.expect(t, a, ended)
	if a.result.ExitCode != 3 || a.result.Missing == "" {
		t.Errorf("exit %d, missing %q", a.result.ExitCode, a.result.Missing)
	}
}

// TestEmptyLines: execd cuts off line ends, and of an empty line leaves nothing else.
func TestEmptyLines(t *testing.T) {
	b := newBench(t, osbtest.Options{}, nil)
	a := b.run(t.Context(), spec("one", `printf '\na\n\n\nb'`))
	b.expect(t, a, ended)
	if want := "\na\n\n\nb\n"; a.stdout != want {
		t.Errorf("got %q, want %q", a.stdout, want)
	}
}
