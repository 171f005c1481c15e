package local_test

import (
	"context"
	"os"
	"runtime"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/confine-dev/confine/sandbox/landlock"
	"github.com/confine-dev/confine/sandbox/local"
)

// Whatever happens to runs, an engine leaves this process as it was. The test
// runs alone, so all that is counted is the engine's.
func TestEngineLeavesTheProcessAsItWas(t *testing.T) {
	for _, level := range levels {
		t.Run(string(level), func(t *testing.T) {
			state, dir := realDir(t), realDir(t)
			cycle := func() {
				e, provider, policy := open(t, level, state, dir)
				f := &fixture{TB: t, level: level, engine: e, provider: provider, policy: policy, dir: dir, state: state}
				f.succeed(t, "true")
				f.run(t, "exit 3")
				f.run(t, "sleep 60 & setsid sleep 60 & kill -9 $$")
				f.startError(t, f.argv("", "no-such-program"))
				f.write(t, "text", []byte("words\n"), 0o755)
				f.startError(t, f.argv("", "./text"))
				finish(t, f.start(t, f.terminal("cat & echo x")))
				nothing := f.terminal("")
				nothing.Command, nothing.Argv = "", []string{"./text"}
				f.startError(t, nothing)
				p := f.start(t, in("other", f.terminal(sleeper)))
				printed(t, p, "ready")
				p.Cancel()
				finish(t, p)
				p = f.start(t, in("other", f.spec(sleeper)))
				printed(t, p, "ready")
				p.Cancel()
				finish(t, p)
				f.start(t, in("a", f.spec(sleeper)))
				f.engine.CloseSession("a")
				f.start(t, in("b", f.spec(sleeper)))
				f.close()
				for _, root := range policy.Roots {
					root.Close()
				}
			}
			cycle() // what is made once for all engines is made now
			before := count(t)
			defer func() {
				if t.Failed() {
					t.Logf("before %+v, after %+v", before, count(t))
				}
			}()
			for range 3 {
				cycle()
			}
			// The collector closes no files here: they were closed.
			eventually(t, "goroutines, descriptors and children to go", func() bool {
				after := count(t)
				return after.goroutines <= before.goroutines && after.descriptors <= before.descriptors && after.children <= before.children
			})
		})
	}
}

// belongings are what a process has.
type belongings struct{ goroutines, descriptors, children int }

func count(t testing.TB) belongings {
	t.Helper()
	fds, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	children := 0
	entries, err := os.ReadDir("/proc")
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if pid, err := strconv.Atoi(e.Name()); err == nil {
			if fields := statFields(pid); fields != nil && fields[1] == strconv.Itoa(os.Getpid()) {
				children++ // the dead ones count: somebody has to reap them
			}
		}
	}
	return belongings{runtime.NumGoroutine(), len(fds), children}
}

// An engine that is closed while it probes comes to its end.
func TestCloseWhileProbing(t *testing.T) {
	t.Parallel()
	state := realDir(t)
	for n := range 20 {
		e, err := local.New(landlock.New(), local.Options{StateDir: state})
		if err != nil {
			t.Fatal(err)
		}
		var probing sync.WaitGroup
		probing.Go(func() { e.Probe(context.Background()) })
		time.Sleep(time.Duration(n) * time.Millisecond) // any moment will do
		if err := e.Close(); err != nil {
			t.Error(err)
		}
		probing.Wait()
		if left := serverFolders(t, state); len(left) > 0 {
			t.Fatalf("left behind: %v", left)
		}
		if report := e.Probe(context.Background()); report.Usable {
			t.Error("a closed engine says that it is usable")
		}
	}
}

// Many runs of one session, one after the other, are as good as one.
func TestManyRuns(t *testing.T) {
	t.Parallel()
	f := newFixture(t, namespaces)
	spec := f.argv("", "/bin/true")
	runs := 50
	if os.Getenv("CONFINE_SLOW") != "" {
		runs = 150
	}
	for range runs {
		finish(t, f.start(t, spec)).ended(t, 0, "")
	}
}
