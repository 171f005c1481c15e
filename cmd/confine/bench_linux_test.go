package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
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
func startMeasured(b *testing.B, output rpc.Notification) (m *measured, greeted time.Duration) {
	b.Helper()
	w := newBenchWorld(b)
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

func newBenchWorld(b *testing.B) world {
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
	if err := os.WriteFile(filepath.Join(settings, "config.toml"), []byte("sandbox_mode = \"workspace-write\"\n"), 0o600); err != nil {
		b.Fatal(err)
	}
	w.env = []string{asConfine + "=1", "HOME=" + w.home, "PATH=/usr/local/bin:/usr/bin:/bin"}
	return w
}

func median(d []time.Duration) time.Duration {
	slices.Sort(d)
	return d[len(d)/2]
}

func milliseconds(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

// bareBwrap is bubblewrap with a comparable view.
func bareBwrap(work string) []string {
	return []string{"bwrap", "--unshare-all", "--die-with-parent", "--cap-drop", "ALL", "--ro-bind", "/", "/", "--dev", "/dev",
		"--proc", "/proc", "--tmpfs", "/tmp", "--tmpfs", "/run", "--bind", work, work, "--chdir", work, "--"}
}

// BenchmarkTrue runs true through the server, by a plain fork+exec and, where
// it is installed, in bare bubblewrap.
func BenchmarkTrue(b *testing.B) {
	m, _ := startMeasured(b, nil)
	_, noBwrap := exec.LookPath("bwrap")
	params := proto.RunCommandParams{Argv: []string{"/bin/true"}}
	m.run(b, params) // the session and the probe are made once
	var plain, confined, bwrap []time.Duration
	timed := func(list *[]time.Duration, f func()) {
		begun := time.Now()
		f()
		*list = append(*list, time.Since(begun))
	}
	command := func(argv ...string) func() {
		return func() {
			if err := exec.Command(argv[0], argv[1:]...).Run(); err != nil {
				b.Fatal(err)
			}
		}
	}
	for b.Loop() {
		timed(&plain, command("/bin/true"))
		timed(&confined, func() { m.run(b, params) })
		if noBwrap == nil {
			timed(&bwrap, command(append(bareBwrap(m.work), "/bin/true")...))
		}
	}
	p, c := median(plain), median(confined)
	b.ReportMetric(milliseconds(p), "plain-ms")
	b.ReportMetric(milliseconds(c), "confine-ms")
	b.ReportMetric(milliseconds(c-p), "more-ms")
	b.ReportMetric(float64(c)/float64(p), "x-plain")
	if noBwrap == nil {
		b.ReportMetric(milliseconds(median(bwrap)), "bwrap-ms")
		b.ReportMetric(float64(c)/float64(median(bwrap)), "x-bwrap")
	}
}

// BenchmarkLargeWorkspace runs true in a workspace of 50,000 files and in an
// empty one: the size of a workspace must not matter.
func BenchmarkLargeWorkspace(b *testing.B) {
	empty, _ := startMeasured(b, nil)
	large, _ := startMeasured(b, nil)
	for i := range 50_000 {
		dir := filepath.Join(large.work, strconv.Itoa(i/500))
		if i%500 == 0 {
			if err := os.Mkdir(dir, 0o700); err != nil {
				b.Fatal(err)
			}
		}
		if err := os.WriteFile(filepath.Join(dir, strconv.Itoa(i)), nil, 0o600); err != nil {
			b.Fatal(err)
		}
	}
	params := proto.RunCommandParams{Argv: []string{"/bin/true"}}
	times := map[*measured][]time.Duration{}
	for _, m := range []*measured{empty, large} {
		m.run(b, params) // the session and the probe are made once
	}
	for b.Loop() {
		for _, m := range []*measured{empty, large} {
			begun := time.Now()
			m.run(b, params)
			times[m] = append(times[m], time.Since(begun))
		}
	}
	e, l := median(times[empty]), median(times[large])
	b.ReportMetric(milliseconds(l), "large-ms")
	b.ReportMetric(float64(l)/float64(e), "x-empty")
}

// BenchmarkInitialize spawns the server and waits for the answer to
// initialize; then it looks at the memory of the idle server.
func BenchmarkInitialize(b *testing.B) {
	var greeted, bare []time.Duration
	var resident float64
	for b.Loop() {
		begun := time.Now()
		if err := exec.Command("/bin/true").Run(); err != nil {
			b.Fatal(err)
		}
		bare = append(bare, time.Since(begun))
		m, d := startMeasured(b, nil)
		greeted = append(greeted, d)
		resident = max(resident, m.memory(b, "VmRSS"))
		m.stop()
	}
	b.ReportMetric(milliseconds(median(greeted)), "initialize-ms")
	b.ReportMetric(float64(median(greeted))/float64(median(bare)), "x-forkexec-true")
	b.ReportMetric(resident, "MiB-resident")
}

// BenchmarkOutput sends 256 MiB through the server to an editor that reads and
// to one that does not ask for output, and through a plain pipe.
func BenchmarkOutput(b *testing.B) {
	const size = 256 << 20
	argv := []string{"/bin/sh", "-c", fmt.Sprintf("yes 'a line of output' | head -c %d", size)}
	for _, reads := range []bool{true, false} {
		b.Run(fmt.Sprintf("reads=%t", reads), func(b *testing.B) {
			var output rpc.Notification
			if reads {
				output = func(context.Context, *rpc.Request) {}
			}
			m, _ := startMeasured(b, output)
			var plain, confined time.Duration
			for b.Loop() {
				begun := time.Now()
				cmd := exec.Command(argv[0], argv[1:]...)
				cmd.Stdout = struct{ io.Writer }{io.Discard} // through a pipe, not to /dev/null
				if err := cmd.Run(); err != nil {
					b.Fatal(err)
				}
				plain += time.Since(begun)
				begun = time.Now()
				if result := m.run(b, proto.RunCommandParams{Argv: argv}); result.Stdout.Bytes != size {
					b.Fatalf("%d bytes counted, want %d", result.Stdout.Bytes, size)
				}
				confined += time.Since(begun)
			}
			b.ReportMetric(float64(size)*float64(b.N)/(1<<20)/confined.Seconds(), "MiB/s")
			b.ReportMetric(float64(confined)/float64(plain), "x-pipe")
			b.ReportMetric(m.memory(b, "VmHWM"), "MiB-peak")
		})
	}
}

// BenchmarkConcurrent runs 200 commands at once, each of which must get its own
// answer, against bare bubblewrap at the same concurrency.
func BenchmarkConcurrent(b *testing.B) {
	const count = 200
	m, _ := startMeasured(b, nil)
	_, noBwrap := exec.LookPath("bwrap")
	m.run(b, proto.RunCommandParams{Argv: []string{"/bin/true"}})
	var confined, bwrap []time.Duration
	all := func(f func(i int)) time.Duration {
		begun := time.Now()
		var group sync.WaitGroup
		for i := range count {
			group.Go(func() { f(i) })
		}
		group.Wait()
		return time.Since(begun)
	}
	for b.Loop() {
		confined = append(confined, all(func(i int) {
			word := fmt.Sprintf("run-%d", i)
			if got := m.run(b, proto.RunCommandParams{Argv: []string{"/bin/echo", word}}); got.Stdout.Text != word+"\n" {
				b.Errorf("run %d printed %q", i, got.Stdout.Text)
			}
		}))
		if noBwrap == nil {
			bwrap = append(bwrap, all(func(i int) {
				var out bytes.Buffer
				argv := append(bareBwrap(m.work), "/bin/echo", "x")
				cmd := exec.Command(argv[0], argv[1:]...)
				cmd.Stdout = &out
				if err := cmd.Run(); err != nil {
					b.Error(err)
				}
			}))
		}
	}
	b.ReportMetric(milliseconds(median(confined)), "confine-ms")
	if noBwrap == nil {
		b.ReportMetric(milliseconds(median(bwrap)), "bwrap-ms")
		b.ReportMetric(float64(median(confined))/float64(median(bwrap)), "x-bwrap")
	}
}
