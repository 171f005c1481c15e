package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/confine-dev/confine/rpc"
	"github.com/confine-dev/confine/rpc/proto"
	"github.com/confine-dev/confine/sandbox"
	"github.com/confine-dev/confine/sandbox/landlock"
	"github.com/confine-dev/confine/sandbox/local"
	"github.com/confine-dev/confine/sandbox/observe"
)

// BenchmarkOutput sends 1 GiB through the server to an editor that reads, to one
// that reads nothing until the end, and to one that does not ask for output; and
// through a plain pipe.
func BenchmarkOutput(b *testing.B) {
	const size = 1 << 30
	argv := []string{"/bin/sh", "-c", fmt.Sprintf("yes 'a line of output' | head -c %d", size)}
	for _, reader := range []string{"fast", "stalled", "none"} {
		b.Run("reader="+reader, func(b *testing.B) {
			var stall chan struct{}
			var output rpc.Notification
			if reader != "none" {
				output = func(context.Context, *rpc.Request) {
					if reader == "stalled" {
						<-stall
					}
				}
			}
			m, _ := startMeasured(b, sandbox.ProviderAuto, output)
			var plain, confined stopwatch
			for b.Loop() {
				plain.time(func() {
					cmd := exec.Command(argv[0], argv[1:]...)
					cmd.Stdout = struct{ io.Writer }{io.Discard} // through a pipe, not to /dev/null
					if err := cmd.Run(); err != nil {
						b.Fatal(err)
					}
				})
				stall = make(chan struct{})
				confined.time(func() {
					if reader != "stalled" {
						checkBytes(b, m.run(b, proto.RunCommandParams{Argv: argv}), size)
						return
					}
					// Nothing is read meanwhile, so the end is seen at the disk.
					done := filepath.Join(m.work, "done")
					go func() { waitForFile(done); close(stall) }()
					stalled := []string{argv[0], argv[1], argv[2] + "; : > done"}
					checkBytes(b, m.run(b, proto.RunCommandParams{Argv: stalled}), size)
					os.Remove(done)
				})
			}
			b.ReportMetric(float64(size)/(1<<20)/median(confined).Seconds(), "MiB/s")
			b.ReportMetric(float64(median(confined))/float64(median(plain)), "x-pipe")
			b.ReportMetric(m.memory(b, "VmHWM"), "MiB-peak")
		})
	}
}

func checkBytes(b *testing.B, result proto.RunResult, want int64) {
	if result.Stdout.Bytes != want {
		b.Fatalf("%d bytes counted, want %d", result.Stdout.Bytes, want)
	}
}

// BenchmarkUnpack unpacks 20,000 small files into memory with denials observed,
// without, and in no sandbox at all.
func BenchmarkUnpack(b *testing.B) {
	base := "/dev/shm"
	if _, err := os.Stat(base); err != nil {
		b.Skip("there is no file system in memory")
	}
	top, err := os.MkdirTemp(base, "confine-bench-")
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { os.RemoveAll(top) })
	files, work := filepath.Join(top, "files"), filepath.Join(top, "work")
	for _, dir := range []string{files, work} {
		if err := os.Mkdir(dir, 0o700); err != nil {
			b.Fatal(err)
		}
	}
	fill(b, files, 20_000)
	archive := filepath.Join(work, "files.tar")
	succeed(b, "tar", "-cf", archive, "-C", files, ".")
	// Not in memory: the view hides what is there.
	state := newBenchWorld(b, sandbox.ProviderAuto).home
	observed, unobserved := newUnpacker(b, state, "observed", observe.New(observe.Options{})), newUnpacker(b, state, "unobserved", nil)
	var seen, unseen, plain stopwatch
	for b.Loop() {
		for _, way := range []struct {
			watch *stopwatch
			run   func(argv []string)
		}{
			{&seen, func(argv []string) { observed.run(b, work, argv) }},
			{&unseen, func(argv []string) { unobserved.run(b, work, argv) }},
			{&plain, func(argv []string) { succeed(b, argv...) }},
		} {
			into := filepath.Join(work, "into")
			if err := os.Mkdir(into, 0o700); err != nil {
				b.Fatal(err)
			}
			way.watch.time(func() { way.run([]string{"/bin/tar", "-xf", archive, "-C", into}) })
			if err := os.RemoveAll(into); err != nil {
				b.Fatal(err)
			}
		}
	}
	b.ReportMetric(milliseconds(median(seen)), "observed-ms")
	b.ReportMetric(milliseconds(median(unseen)), "unobserved-ms")
	b.ReportMetric(float64(median(seen))/float64(median(unseen)), "x-unobserved")
	b.ReportMetric(float64(median(seen))/float64(median(plain)), "x-plain")
}

// unpacker is an engine of its own.
type unpacker struct{ engine *local.Engine }

func newUnpacker(b *testing.B, top, name string, o local.Observer) unpacker {
	state := filepath.Join(top, name)
	if err := os.Mkdir(state, 0o700); err != nil {
		b.Fatal(err)
	}
	e, err := local.New(landlock.New(), local.Options{StateDir: state, Observer: o})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { e.Close() })
	return unpacker{e}
}

func (u unpacker) run(b *testing.B, work string, argv []string) {
	root, err := sandbox.DeclareRoot(work, sandbox.Forbidden{})
	if err != nil {
		b.Fatal(err)
	}
	defer root.Close()
	p, err := u.engine.Start(b.Context(), sandbox.Spec{RunID: "unpack", Argv: argv, Dir: work, Env: []string{"PATH=/usr/bin:/bin"},
		Policy: sandbox.Policy{Mode: sandbox.WorkspaceWrite, Roots: []*sandbox.Root{root}}})
	if err != nil {
		b.Fatal(err)
	}
	result, err := p.Wait()
	if err != nil || result.ExitCode != 0 || !slices.Contains(result.Facts.Layers, "namespaces") {
		b.Fatalf("unpacking ended with %+v, %v", result, err)
	}
}

// waitForFile polls, because nothing of the server may be read meanwhile.
func waitForFile(path string) {
	for {
		if _, err := os.Lstat(path); err == nil {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
}
