package local_test

import (
	"context"
	"os"
	"os/exec"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/confine-dev/confine/sandbox"
)

// contest measures ways of doing the same by turns, so that all of them see
// the same noise, and reports the median of each in milliseconds.
type contest struct {
	names []string
	times map[string][]time.Duration
}

// run lets every way have its turn in each iteration.
func (c *contest) run(b *testing.B, ways map[string]func() error) {
	b.Helper()
	c.times = map[string][]time.Duration{}
	for _, name := range c.names {
		if err := ways[name](); err != nil { // the first time is special
			b.Fatalf("%s: %v", name, err)
		}
	}
	for b.Loop() {
		for _, name := range c.names {
			began := time.Now()
			if err := ways[name](); err != nil {
				b.Fatalf("%s: %v", name, err)
			}
			c.times[name] = append(c.times[name], time.Since(began))
		}
	}
	for _, name := range c.names {
		b.ReportMetric(c.median(name), name+"-p50-ms")
	}
	b.ReportMetric(0, "ns/op") // the sum of all ways says nothing
}

func (c *contest) median(name string) float64 {
	times := slices.Sorted(slices.Values(c.times[name]))
	return float64(times[len(times)/2]) / float64(time.Millisecond)
}

// runTrue runs true in an engine to its end.
func (f *fixture) runTrue() error {
	spec := f.argv("", "/bin/true")
	p, err := f.provider.Start(context.Background(), spec)
	if err != nil {
		return err
	}
	_, err = p.Wait()
	return err
}

// forkExec runs true as any program would.
func forkExec() error { return exec.Command("/bin/true").Run() }

// bubblewrap runs true in about the view that the engine gives.
func bubblewrap() error {
	return exec.Command("bwrap", "--unshare-all", "--die-with-parent", "--ro-bind", "/", "/", "--dev", "/dev", "--proc", "/proc",
		"--tmpfs", "/tmp", "--", "/bin/true").Run()
}

// ways lists what can be compared on this host.
func ways(f *fixture) (*contest, map[string]func() error) {
	c := &contest{names: []string{"engine", "forkexec"}}
	all := map[string]func() error{"engine": f.runTrue, "forkexec": forkExec, "bwrap": bubblewrap}
	if bubblewrap() == nil {
		c.names = append(c.names, "bwrap")
	}
	return c, all
}

// BenchmarkTrue is a run of true beside a plain fork and exec of it.
func BenchmarkTrue(b *testing.B) {
	for _, level := range levels {
		b.Run(string(level), func(b *testing.B) {
			f := newFixture(b, level)
			c, all := ways(f)
			c.run(b, all)
			b.ReportMetric(c.median("engine")-c.median("forkexec"), "more-than-forkexec-p50-ms")
		})
	}
}

// BenchmarkConcurrent200 is the time that 200 runs of true at once take
// together.
func BenchmarkConcurrent200(b *testing.B) {
	for _, level := range levels {
		b.Run(string(level), func(b *testing.B) {
			f := newFixture(b, level)
			c, all := ways(f)
			together := map[string]func() error{}
			for name, one := range all {
				together[name] = func() error { return atOnce(200, one) }
			}
			c.run(b, together)
			if slices.Contains(c.names, "bwrap") {
				b.ReportMetric(c.median("engine")/c.median("bwrap"), "of-bwrap")
			}
		})
	}
}

func atOnce(count int, run func() error) error {
	var runs sync.WaitGroup
	failed := make(chan error, count)
	for range count {
		runs.Go(func() {
			if err := run(); err != nil {
				failed <- err
			}
		})
	}
	runs.Wait()
	close(failed)
	return <-failed
}

// BenchmarkFirstRun is the time from nothing to the end of an engine's first
// run, its probe and guardian included, and of closing it.
func BenchmarkFirstRun(b *testing.B) {
	for _, level := range levels {
		b.Run(string(level), func(b *testing.B) {
			newFixture(b, level) // skips where there are no namespaces
			state, dir := realDir(b), realDir(b)
			var opening, running, closing time.Duration
			n := 0
			for b.Loop() {
				began := time.Now()
				e, provider, policy := open(b, level, state, dir)
				opened := time.Now()
				p, err := provider.Start(context.Background(), sandbox.Spec{RunID: "run", Argv: []string{"/bin/true"}, Dir: dir, Env: os.Environ(), Policy: policy})
				if err != nil {
					b.Fatal(err)
				}
				if _, err := p.Wait(); err != nil {
					b.Fatal(err)
				}
				ran := time.Now()
				if err := e.Close(); err != nil {
					b.Fatal(err)
				}
				opening, running, closing = opening+opened.Sub(began), running+ran.Sub(opened), closing+time.Since(ran)
				n++
			}
			for name, d := range map[string]time.Duration{"opening-ms": opening, "first-run-ms": running, "closing-ms": closing} {
				b.ReportMetric(float64(d)/float64(n)/float64(time.Millisecond), name)
			}
		})
	}
}
