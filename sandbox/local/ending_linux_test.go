package local_test

import (
	"fmt"
	"io"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/confine-dev/confine/sandbox"
)

func TestExitCodes(t *testing.T) {
	eachLevel(t, func(t *testing.T, f *fixture) {
		for _, code := range []int{0, 1, 2, 3, 42, 125, 126, 127, 128, 137, 143, 254, 255} {
			f.run(t, fmt.Sprintf("exit %d", code)).ended(t, code, "")
		}
	})
}

// TestMoreExitCodes tries a third of all, or with CONFINE_SLOW unset a fifteenth.
func TestMoreExitCodes(t *testing.T) {
	t.Parallel()
	step := 15
	if os.Getenv("CONFINE_SLOW") != "" {
		step = 3
	}
	f := newFixture(t, namespaces)
	for code := 0; code < 256; code += step {
		spec := f.spec("")
		spec.Argv = []string{"sh", "-c", fmt.Sprintf("exit %d", code)}
		finish(t, f.start(t, spec)).ended(t, code, "")
	}
}

func TestSignalDeaths(t *testing.T) {
	cases := []struct{ command, signal string }{
		{"kill -KILL $$", "SIGKILL"},
		{"kill -TERM $$; sleep 60", "SIGTERM"}, // a PID 1 would not die of it
		{"kill -INT $$; sleep 60", "SIGINT"},
		{"kill -HUP $$; sleep 60", "SIGHUP"},
		{"kill -SEGV $$; sleep 60", "SIGSEGV"},
		{"kill -PIPE $$; sleep 60", "SIGPIPE"},
		{"kill -ABRT $$; sleep 60", "SIGABRT"},
		{"kill -40 $$; sleep 60", "SIG40"}, // a real-time signal
		{"exec sh -c 'kill -USR1 $$; sleep 60'", "SIGUSR1"},
	}
	eachLevel(t, func(t *testing.T, f *fixture) {
		for _, c := range cases {
			o := f.run(t, c.command)
			o.ended(t, 0, c.signal)
			if o.TimedOut || o.Cancelled {
				t.Errorf("%q: timed out %v, cancelled %v, but it ended by itself", c.command, o.TimedOut, o.Cancelled)
			}
		}
		// What a shell makes of a child's death is an exit code like any other.
		f.run(t, "sh -c 'kill -TERM $$'; exit $?").ended(t, 128+int(syscall.SIGTERM), "")
	})
}

// sleeper prints "ready" and sleeps in short pieces, because bash runs a trap
// only between commands.
const sleeper = "echo ready; while :; do sleep 0.02; done"

func TestCancelRunsTheTrap(t *testing.T) {
	eachLevel(t, func(t *testing.T, f *fixture) {
		p := f.start(t, f.spec("trap 'exit 7' TERM; "+sleeper))
		printed(t, p, "ready")
		p.Cancel()
		p.Cancel() // again does nothing
		o := finish(t, p)
		o.ended(t, 7, "")
		if !o.Cancelled || o.TimedOut {
			t.Errorf("cancelled %v, timed out %v, want true, false", o.Cancelled, o.TimedOut)
		}
	})
}

func TestCancelKillsWhatIgnoresTerm(t *testing.T) {
	eachLevel(t, func(t *testing.T, f *fixture) {
		spec := f.spec("trap '' TERM; " + sleeper)
		spec.Grace = 50 * time.Millisecond
		p := f.start(t, spec)
		printed(t, p, "ready")
		cancelled := time.Now()
		p.Cancel()
		o := finish(t, p)
		o.ended(t, 0, "SIGKILL")
		if !o.Cancelled || o.TimedOut {
			t.Errorf("cancelled %v, timed out %v, want true, false", o.Cancelled, o.TimedOut)
		}
		if took := time.Since(cancelled); took < spec.Grace {
			t.Errorf("it was killed after %v, before its grace time was over", took)
		}
	})
}

func TestTimeout(t *testing.T) {
	cases := []struct {
		name, command string
		code          int
		signal        string
	}{
		{"default", "echo ready; sleep 60", 0, "SIGTERM"},
		{"trap", "trap 'exit 0' TERM; " + sleeper, 0, ""},
		{"ignored", "trap '' TERM; " + sleeper, 0, "SIGKILL"},
		{"stopped", "echo ready; kill -STOP $$; echo went on", 0, "SIGTERM"},
	}
	eachLevel(t, func(t *testing.T, f *fixture) {
		for _, c := range cases {
			t.Run(c.name, func(t *testing.T) {
				t.Parallel()
				spec := f.spec(c.command)
				spec.Grace = patience
				if c.signal == "SIGKILL" {
					spec.Grace = 50 * time.Millisecond
				}
				o := timeOut(t, f, spec)
				o.ended(t, c.code, c.signal)
				if !o.TimedOut || o.Cancelled {
					t.Errorf("timed out %v, cancelled %v, want true, false", o.TimedOut, o.Cancelled)
				}
			})
		}
	})
}

// timeOut runs a command into its timeout, which is made longer until the
// command gets as far as printing "ready" before it.
func timeOut(t *testing.T, f *fixture, spec sandbox.Spec) outcome {
	t.Helper()
	for spec.Timeout = 200 * time.Millisecond; spec.Timeout < patience; spec.Timeout *= 3 {
		o := finish(t, f.start(t, spec))
		if o.Duration < spec.Timeout {
			t.Errorf("it lasted %v, less than its timeout", o.Duration)
		}
		if strings.Contains(o.stdout, "ready") {
			return o
		}
	}
	t.Fatal("it never got ready in time")
	return outcome{}
}

func TestCancelWakesTheStopped(t *testing.T) {
	eachLevel(t, func(t *testing.T, f *fixture) {
		p := f.start(t, f.spec("trap 'exit 9' TERM; echo ready; kill -STOP $$; exit 1"))
		printed(t, p, "ready")
		p.Cancel()
		finish(t, p).ended(t, 9, "")
	})
}

func TestSignalReachesTheGroup(t *testing.T) {
	eachLevel(t, func(t *testing.T, f *fixture) {
		p := f.start(t, f.spec("trap 'wait; exit 3' USR2; sh -c 'trap \"echo child too; exit\" USR2; "+sleeper+"' & "+sleeper))
		eventually(t, "both to be ready", func() bool {
			stdout, _ := p.Output(sandbox.StdoutStream).Tail()
			return strings.Count(stdout, "ready") == 2
		})
		if err := p.Signal(syscall.SIGUSR2); err != nil {
			t.Fatal(err)
		}
		printed(t, p, "child too")
		o := finish(t, p)
		o.ended(t, 3, "")
		if o.Cancelled {
			t.Error("a signal was taken for a cancellation")
		}
		if err := p.Signal(syscall.SIGTERM); err != nil {
			t.Errorf("signalling an ended command: %v, want no error", err)
		}
	})
}

// SIGSTOP would stop the init, which cannot pass it on.
func TestSignalStop(t *testing.T) {
	eachLevel(t, func(t *testing.T, f *fixture) {
		p := f.start(t, f.spec("trap 'exit 5' USR1; "+sleeper))
		printed(t, p, "ready")
		if err := p.Signal(syscall.SIGSTOP); err == nil {
			t.Error("a signal that does not reach the command was accepted")
		}
		if err := p.Signal(syscall.SIGUSR1); err != nil {
			t.Error(err)
		}
		finish(t, p).ended(t, 5, "")
	})
}

func TestSignalKill(t *testing.T) {
	eachLevel(t, func(t *testing.T, f *fixture) {
		p := f.start(t, f.spec(sleeper))
		printed(t, p, "ready")
		if err := p.Signal(syscall.SIGKILL); err != nil {
			t.Fatal(err)
		}
		finish(t, p).ended(t, 0, "SIGKILL")
	})
}

// A command whose init is killed from outside ends, and nobody makes up how.
func TestInitKilled(t *testing.T) {
	eachLevel(t, func(t *testing.T, f *fixture) {
		p := f.start(t, f.spec(sleeper))
		printed(t, p, "ready")
		for _, pid := range initsBelow(t, f.state) {
			syscall.Kill(pid, syscall.SIGKILL)
		}
		wait(t, "the run to end", p.Done())
		_, err := p.Wait()
		unavailable, ok := err.(*sandbox.UnavailableError)
		if !ok || !unavailable.Started {
			t.Errorf("the run ended with %v, want an UnavailableError after the start", err)
		}
		f.succeed(t, "true") // the engine goes on
	})
}

// Whatever a command leaves behind ends with it, also when it holds the output.
func TestNothingOutlivesTheCommand(t *testing.T) {
	cases := []struct{ name, command string }{
		{"child", "sleep 60 & echo $!"},
		{"nohup", "nohup sleep 60 & echo $!"},
		{"session", "setsid sleep 60 & echo $!"},
		{"daemon", "(setsid sh -c 'echo $$; exec sleep 60' &)"},
		{"double fork", "(setsid sh -c '(setsid sh -c \"echo \\$\\$; exec sleep 60\" &)' &) ; sleep 0.05"},
		{"stopped", "sh -c 'echo $$; kill -STOP $$' & sleep 0.05"},
		{"ignores all", "sh -c 'trap \"\" TERM HUP INT QUIT; echo $$; while :; do sleep 1; done' & sleep 0.05"},
		{"many", "for i in $(seq 200); do sleep 60 & done; echo $!"},
	}
	eachLevel(t, func(t *testing.T, f *fixture) {
		for _, c := range cases {
			t.Run(c.name, func(t *testing.T) {
				t.Parallel()
				spec := f.spec(c.command)
				spec.Env = append(spec.Env, mark(t))
				finish(t, f.start(t, spec)).ended(t, 0, "") // before any of the sleeps
				// Wait has returned, so there is nothing to wait for.
				if left := marked(mark(t)); len(left) > 0 {
					t.Errorf("left behind: %v", left)
				}
			})
		}
	})
}

func TestWaitTwice(t *testing.T) {
	eachLevel(t, func(t *testing.T, f *fixture) {
		p := f.start(t, f.spec("exit 5"))
		first := finish(t, p)
		second, err := p.Wait()
		if err != nil || second.ExitCode != 5 || second.Duration != first.Duration {
			t.Errorf("the second Wait returned %+v, %v, the first %+v", second, err, first.Result)
		}
		p.Cancel()
		if third, _ := p.Wait(); third.Cancelled {
			t.Error("cancelling an ended run changed its result")
		}
	})
}

// The run of a reader that never ends ends all the same.
func TestInputThatNeverEnds(t *testing.T) {
	eachLevel(t, func(t *testing.T, f *fixture) {
		never, write := io.Pipe()
		defer write.Close()
		spec := f.spec("exit 4")
		spec.Stdin = never
		finish(t, f.start(t, spec)).ended(t, 4, "")
	})
}
