package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/confine-dev/confine/rpc"
	"github.com/confine-dev/confine/rpc/proto"
	"github.com/confine-dev/confine/sandbox"
	"github.com/confine-dev/confine/sandbox/bwrap"
	"github.com/confine-dev/confine/sandbox/hide"
	"github.com/confine-dev/confine/sandbox/local"
	"github.com/confine-dev/confine/sandbox/protect"
)

// The benchmarks measure the real program against the thing named in the
// budget, alternating in one run so that both see the same machine. They report
// medians and never fail for being slow.
//
//	go test ./cmd/confine -run '^$' -bench . -benchtime 200x

// measured is a `confine serve` that a benchmark talks to.
type measured struct {
	conn *rpc.Conn
	cmd  *exec.Cmd
	work string
}

// childPipes is both streams of a child.
type childPipes struct {
	io.ReadCloser
	io.WriteCloser
}

func (s childPipes) Close() error { s.ReadCloser.Close(); return s.WriteCloser.Close() }

// startMeasured spawns the server; the time runs until initialize is answered.
func startMeasured(b *testing.B, provider string, output rpc.Notification) (m *measured, greeted time.Duration) {
	b.Helper()
	w := newBenchWorld(b, provider)
	program, err := os.Executable()
	if err != nil {
		b.Fatal(err)
	}
	m = &measured{work: w.work, cmd: exec.Command(program, "serve")}
	m.cmd.Dir, m.cmd.Env, m.cmd.Stderr = w.work, w.env, os.Stderr
	in, err := m.cmd.StdinPipe()
	if err != nil {
		b.Fatal(err)
	}
	out, err := m.cmd.StdoutPipe()
	if err != nil {
		b.Fatal(err)
	}
	begun := time.Now()
	if err := m.cmd.Start(); err != nil {
		b.Fatal(err)
	}
	options := rpc.Options{Notifications: map[string]rpc.Notification{}}
	experimental := proto.ClientExperimental{Confine: &proto.ClientConfine{ProtocolVersion: proto.ProtocolVersion}}
	if output != nil {
		options.Notifications[proto.MethodOutput] = output
		experimental.Confine.Output = true
	}
	m.conn = rpc.NewConn(childPipes{out, in}, options)
	go m.conn.Serve(context.Background())
	capability, err := json.Marshal(experimental)
	if err != nil {
		b.Fatal(err)
	}
	params := proto.InitializeParams{Capabilities: proto.ClientCapabilities{Experimental: capability},
		WorkspaceFolders: []proto.WorkspaceFolder{{URI: fileURI(w.work), Name: "work"}}}
	if err := m.conn.Call(context.Background(), proto.MethodInitialize, params, nil); err != nil {
		b.Fatal(err)
	}
	greeted = time.Since(begun)
	m.conn.Notify(proto.MethodInitialized, struct{}{}, nil)
	b.Cleanup(m.stop)
	settle(b, w.home)
	return m, greeted
}

func (m *measured) stop() {
	m.conn.Call(context.Background(), proto.MethodShutdown, nil, nil)
	m.conn.Notify(proto.MethodExit, nil, nil)
	m.cmd.Wait()
	m.conn.Close()
}

func (m *measured) run(b *testing.B, params proto.RunCommandParams) proto.RunResult {
	var result proto.RunResult
	if err := m.conn.Call(context.Background(), proto.MethodRunCommand, params, &result); err != nil {
		b.Fatal(err)
	}
	if result.ExitCode == nil || *result.ExitCode != 0 {
		b.Fatalf("the command failed: %+v", result)
	}
	return result
}

// memory is a field of /proc/PID/status in MiB.
func (m *measured) memory(b *testing.B, field string) float64 {
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", m.cmd.Process.Pid))
	if err != nil {
		b.Fatal(err)
	}
	for line := range strings.Lines(string(data)) {
		if value, ok := strings.CutPrefix(line, field+":"); ok {
			kib, err := strconv.Atoi(strings.TrimSuffix(strings.TrimSpace(value), " kB"))
			if err != nil {
				b.Fatal(err)
			}
			return float64(kib) / 1024
		}
	}
	b.Fatalf("no %s in /proc/PID/status", field)
	return 0
}

func newBenchWorld(b *testing.B, provider string) world {
	b.Helper()
	top, err := os.MkdirTemp("/var/tmp", "confine-bench-")
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { os.RemoveAll(top) })
	w := world{home: filepath.Join(top, "home"), work: filepath.Join(top, "work")}
	settings := filepath.Join(w.home, ".config/confine")
	for _, dir := range []string{settings, w.work} {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			b.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(settings, "config.toml"), []byte("sandbox_mode = \"workspace-write\"\nprovider = \""+provider+"\"\n"), 0o600); err != nil {
		b.Fatal(err)
	}
	w.env = []string{asConfine + "=1", "HOME=" + w.home, "PATH=/usr/local/bin:/usr/bin:/bin"}
	return w
}

// settle makes a home folder look as if nothing had changed in it lately, as in most
// homes: where something has, what is to be hidden is looked for in every run.
func settle(b *testing.B, home string) {
	long := time.Now().Add(-time.Hour)
	err := filepath.WalkDir(home, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.IsDir() {
			return err
		}
		return os.Chtimes(path, long, long)
	})
	if err != nil {
		b.Fatal(err)
	}
}

func median(d stopwatch) time.Duration {
	slices.Sort(d)
	return d[len(d)/2]
}

func milliseconds(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

// bareBwrap is bubblewrap with the arguments that confine gives it where it runs
// alone, which make the same view with as many mounts, but without what only
// confine's init needs.
func bareBwrap(b *testing.B, m *measured) []string {
	b.Helper()
	work, state, tmp := filepath.Join(filepath.Dir(m.work), "bare-work"), filepath.Join(filepath.Dir(m.work), "bare-state"), filepath.Join(filepath.Dir(m.work), "bare-tmp")
	makeFolders(b, work, state, tmp)
	root, err := sandbox.DeclareRoot(work, sandbox.Forbidden{})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { root.Close() })
	policy := sandbox.Policy{Mode: sandbox.WorkspaceWrite, Roots: []*sandbox.Root{root}}
	var find protect.Finder
	policy.Protected = find.Find(policy.Roots, sandbox.Forbidden{}).Protected
	makeFolders(b, policy.Protected...) // what confine covers itself where it does not exist
	policy.Unreadable = hide.New(hide.Rules{Home: filepath.Join(filepath.Dir(m.work), "home"), Defaults: true, Root: os.Geteuid() == 0}, nil).Find(policy.Roots)
	launch, err := bwrap.New(bwrap.Options{}).Wrap(local.Request{Policy: policy, Dir: work, Tmp: tmp, State: state})
	if err != nil {
		b.Fatal(err)
	}
	args := slices.DeleteFunc(slices.Clone(launch.Runner.Args), func(arg string) bool {
		return arg == "--as-pid-1" || arg == "--json-status-fd" || arg == strconv.Itoa(local.RunnerStatus) || arg == "--"
	})
	return append(append([]string{"bwrap"}, args...), "--chdir", work, "--")
}

func makeFolders(b *testing.B, folders ...string) {
	for _, folder := range folders {
		if err := os.MkdirAll(folder, 0o700); err != nil {
			b.Fatal(err)
		}
	}
}

// eachProvider runs a benchmark for each provider that can be used here.
func eachProvider(b *testing.B, f func(b *testing.B, provider string)) {
	for _, provider := range []string{sandbox.ProviderLandlock, sandbox.ProviderBwrap} {
		b.Run(provider, func(b *testing.B) {
			if _, err := exec.LookPath("bwrap"); err != nil {
				b.Skip("bubblewrap, which this is measured against, is not installed")
			}
			f(b, provider)
		})
	}
}

// stopwatch collects how long things took.
type stopwatch []time.Duration

func (s *stopwatch) time(f func()) {
	begun := time.Now()
	f()
	*s = append(*s, time.Since(begun))
}

// succeed runs a program and fails the benchmark if that fails.
func succeed(b *testing.B, argv ...string) {
	if err := exec.Command(argv[0], argv[1:]...).Run(); err != nil {
		b.Fatal(err)
	}
}

// BenchmarkTrue runs true through the server, by a plain fork+exec and in bare
// bubblewrap.
func BenchmarkTrue(b *testing.B) {
	eachProvider(b, func(b *testing.B, provider string) {
		m, _ := startMeasured(b, provider, nil)
		params := proto.RunCommandParams{Argv: []string{"/bin/true"}}
		m.run(b, params) // the session and the probe are made once
		bare := append(bareBwrap(b, m), "/bin/true")
		var plain, confined, bwrap stopwatch
		for b.Loop() {
			plain.time(func() { succeed(b, "/bin/true") })
			confined.time(func() { m.run(b, params) })
			bwrap.time(func() { succeed(b, bare...) })
		}
		p, c, w := median(plain), median(confined), median(bwrap)
		b.ReportMetric(milliseconds(p), "plain-ms")
		b.ReportMetric(milliseconds(w), "bwrap-ms")
		b.ReportMetric(milliseconds(c), "confine-ms")
		b.ReportMetric(milliseconds(c-p), "more-than-plain-ms")
		b.ReportMetric(milliseconds(c-w), "more-than-bwrap-ms")
		b.ReportMetric(float64(c)/float64(p), "x-plain")
		b.ReportMetric(float64(c)/float64(w), "x-bwrap")
	})
}

// BenchmarkLargeWorkspace runs true in a repository of 50,000 files and in an
// empty folder: the size of a workspace must not matter.
func BenchmarkLargeWorkspace(b *testing.B) {
	eachProvider(b, func(b *testing.B, provider string) {
		empty, _ := startMeasured(b, provider, nil)
		large, _ := startMeasured(b, provider, nil)
		fill(b, large.work, 50_000)
		succeed(b, "git", "-c", "init.defaultBranch=main", "init", "-q", large.work)
		params := proto.RunCommandParams{Argv: []string{"/bin/true"}}
		var times [2]stopwatch
		for _, m := range []*measured{empty, large} {
			m.run(b, params)
		}
		for b.Loop() {
			for i, m := range []*measured{empty, large} {
				times[i].time(func() { m.run(b, params) })
			}
		}
		e, l := median(times[0]), median(times[1])
		b.ReportMetric(milliseconds(e), "empty-ms")
		b.ReportMetric(milliseconds(l), "large-ms")
		b.ReportMetric(float64(l)/float64(e), "x-empty")
	})
}

// fill makes files of 1 KiB in a folder, 500 in each of its own.
func fill(b *testing.B, folder string, count int) {
	content := bytes.Repeat([]byte("x"), 1<<10)
	for i := range count {
		dir := filepath.Join(folder, strconv.Itoa(i/500))
		if i%500 == 0 {
			if err := os.Mkdir(dir, 0o700); err != nil {
				b.Fatal(err)
			}
		}
		if err := os.WriteFile(filepath.Join(dir, strconv.Itoa(i)), content, 0o600); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkInitialize spawns the server and waits for the answer to
// initialize; then it looks at the memory of the idle server.
func BenchmarkInitialize(b *testing.B) {
	var greeted, bare stopwatch
	var resident float64
	for b.Loop() {
		bare.time(func() { succeed(b, "/bin/true") })
		m, d := startMeasured(b, sandbox.ProviderAuto, nil)
		greeted = append(greeted, d)
		resident = max(resident, m.memory(b, "VmRSS"))
		m.stop()
	}
	b.ReportMetric(milliseconds(median(greeted)), "initialize-ms")
	b.ReportMetric(float64(median(greeted))/float64(median(bare)), "x-forkexec-true")
	b.ReportMetric(resident, "MiB-resident")
}

// BenchmarkConcurrent runs 200 commands at once, each of which must get its own
// answer, against bare bubblewrap at the same concurrency.
func BenchmarkConcurrent(b *testing.B) {
	const count = 200
	eachProvider(b, func(b *testing.B, provider string) {
		m, _ := startMeasured(b, provider, nil)
		m.run(b, proto.RunCommandParams{Argv: []string{"/bin/true"}})
		bare := append(bareBwrap(b, m), "/bin/echo", "x")
		var confined, bwrap stopwatch
		all := func(f func(i int)) func() {
			return func() {
				var group sync.WaitGroup
				for i := range count {
					group.Go(func() { f(i) })
				}
				group.Wait()
			}
		}
		for b.Loop() {
			confined.time(all(func(i int) {
				word := fmt.Sprintf("run-%d", i)
				if got := m.run(b, proto.RunCommandParams{Argv: []string{"/bin/echo", word}}); got.Stdout.Text != word+"\n" {
					b.Errorf("run %d printed %q", i, got.Stdout.Text)
				}
			}))
			bwrap.time(all(func(int) {
				var out bytes.Buffer
				cmd := exec.Command(bare[0], bare[1:]...)
				cmd.Stdout = &out
				if err := cmd.Run(); err != nil {
					b.Error(err)
				}
			}))
		}
		b.ReportMetric(milliseconds(median(confined)), "confine-ms")
		b.ReportMetric(milliseconds(median(bwrap)), "bwrap-ms")
		b.ReportMetric(float64(median(confined))/float64(median(bwrap)), "x-bwrap")
	})
}
