package local_test

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/confine-dev/confine/sandbox"
)

// noise is n bytes that look like nothing.
func noise(seed uint64, n int) []byte {
	data := make([]byte, n)
	r := rand.New(rand.NewPCG(seed, seed))
	for i := range data {
		data[i] = byte(r.Uint32())
	}
	return data
}

// write puts a file into the workspace.
func (f *fixture) write(t testing.TB, name string, data []byte, mode os.FileMode) string {
	t.Helper()
	path := filepath.Join(f.dir, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	// A child cloned meanwhile would hold the file open for writing, and executing
	// it would fail with ETXTBSY.
	syscall.ForkLock.RLock()
	err := os.WriteFile(path, data, mode)
	syscall.ForkLock.RUnlock()
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(path, mode); err != nil { // whatever the umask
		t.Fatal(err)
	}
	return path
}

// stream joins what came of one stream and fails unless each piece begins
// where the one before ended.
func (c *chunks) stream(t testing.TB, stream sandbox.Stream) []byte {
	t.Helper()
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.nested {
		t.Error("the listener was called twice at once")
	}
	var data []byte
	for _, chunk := range c.all {
		if chunk.Stream != stream {
			continue
		}
		if chunk.Offset != int64(len(data)) {
			t.Fatalf("a piece of %s begins at %d, want %d", stream, chunk.Offset, len(data))
		}
		data = append(data, chunk.Data...)
	}
	return data
}

func TestOutputIsByteExact(t *testing.T) {
	blob := noise(1, 10<<20)
	eachLevel(t, func(t *testing.T, f *fixture) {
		f.write(t, "blob", blob, 0o644)
		var got chunks
		spec := f.spec("cat blob; cat blob >&2")
		spec.Output = got.add
		p := f.start(t, spec)
		finish(t, p).ended(t, 0, "")
		for _, stream := range []sandbox.Stream{sandbox.StdoutStream, sandbox.StderrStream} {
			if data := got.stream(t, stream); !bytes.Equal(data, blob) {
				t.Errorf("%s: %d bytes with digest %x came, want %d with %x", stream, len(data), sha256.Sum256(data), len(blob), sha256.Sum256(blob))
			}
			if total := p.Output(stream).Total(); total != int64(len(blob)) {
				t.Errorf("%s: %d bytes were counted, want %d", stream, total, len(blob))
			}
		}
	})
}

// What one process writes to one stream arrives in its order, also while
// others write to both.
func TestOutputOrder(t *testing.T) {
	const writers, lines = 4, 300
	eachLevel(t, func(t *testing.T, f *fixture) {
		var got chunks
		spec := f.spec(fmt.Sprintf("for w in $(seq %d); do for i in $(seq %d); do echo out $w $i; echo err $w $i >&2; done & done; wait", writers, lines))
		spec.Output = got.add
		finish(t, f.start(t, spec)).ended(t, 0, "")
		for _, stream := range []sandbox.Stream{sandbox.StdoutStream, sandbox.StderrStream} {
			next := map[int]int{}
			for line := range strings.Lines(string(got.stream(t, stream))) {
				var kind string
				var w, i int
				if n, err := fmt.Sscan(line, &kind, &w, &i); n != 3 {
					t.Fatalf("torn line %q: %v", line, err)
				}
				if next[w]++; i != next[w] || kind != string(stream)[3:] {
					t.Fatalf("writer %d's line %q came on %s as number %d", w, line, stream, next[w])
				}
			}
			for w := 1; w <= writers; w++ {
				if next[w] != lines {
					t.Errorf("%s: %d lines of writer %d came, want %d", stream, next[w], w, lines)
				}
			}
		}
	})
}

// Streams that alternate with time between are told in that order.
func TestStreamsInTheOrderOfTime(t *testing.T) {
	t.Parallel()
	f := newFixture(t, namespaces)
	var got chunks
	spec := f.spec("for i in 1 2 3 4; do echo $i; read -r x; echo $i >&2; read -r x; done")
	input := make(lineReader)
	spec.Stdin = input
	spec.Output = func(c sandbox.Chunk) {
		got.add(c)
		input <- "go on\n" // the next line is written only after this one came
	}
	p := f.start(t, spec)
	finish(t, p).ended(t, 0, "")
	var order string
	for _, c := range got.all {
		order += string(c.Stream) + strings.TrimSpace(string(c.Data)) + " "
	}
	if want := "stdout1 stderr1 stdout2 stderr2 stdout3 stderr3 stdout4 stderr4 "; order != want {
		t.Errorf("the order was %s, want %s", order, want)
	}
}

// lineReader reads what is sent, one text at a time, for ever.
type lineReader chan string

func (r lineReader) Read(p []byte) (int, error) { return copy(p, <-r), nil }

// A listener that stalls holds up its run, and loses nothing.
func TestStalledListener(t *testing.T) {
	eachLevel(t, func(t *testing.T, f *fixture) {
		blob := noise(2, 1<<20)
		f.write(t, "blob", blob, 0o644)
		entered, leave := make(chan struct{}), make(chan struct{})
		var got chunks
		spec := f.spec("cat blob")
		spec.Output = func(c sandbox.Chunk) {
			select {
			case <-entered:
			default:
				close(entered)
			}
			<-leave
			got.add(c)
		}
		p := f.start(t, spec)
		wait(t, "output", entered)
		select {
		case <-p.Done():
			t.Error("the run settled before its output was told")
		default:
		}
		close(leave)
		finish(t, p).ended(t, 0, "")
		if data := got.stream(t, sandbox.StdoutStream); !bytes.Equal(data, blob) {
			t.Errorf("%d bytes came, want %d", len(data), len(blob))
		}
	})
}

// Nothing that got hold of the output from outside keeps a run from settling.
func TestOutputHeldFromOutside(t *testing.T) {
	eachLevel(t, func(t *testing.T, f *fixture) {
		spec := f.spec("echo ready; read -r x; echo done")
		spec.Env = append(spec.Env, mark(t))
		input := make(lineReader, 1)
		spec.Stdin = input
		p := f.start(t, spec)
		printed(t, p, "ready")
		found := marked(mark(t))
		if len(found) == 0 {
			t.Fatal("the command is not to be found")
		}
		held, err := os.OpenFile(fmt.Sprintf("/proc/%d/fd/1", found[len(found)-1].pid), os.O_WRONLY, 0)
		if err != nil {
			t.Fatal(err)
		}
		defer held.Close()
		input <- "go on\n"
		o := finish(t, p)
		o.ended(t, 0, "")
		if o.stdout != "ready\ndone\n" {
			t.Errorf("the output is %q", o.stdout)
		}
	})
}

func TestInput(t *testing.T) {
	blob := noise(3, 2<<20)
	eachLevel(t, func(t *testing.T, f *fixture) {
		spec := f.spec("sha256sum")
		spec.Stdin = bytes.NewReader(blob)
		o := finish(t, f.start(t, spec))
		if want := fmt.Sprintf("%x  -\n", sha256.Sum256(blob)); o.stdout != want {
			t.Errorf("the command read %q, want %q", o.stdout, want)
		}

		spec = f.spec("head -c 10 >/dev/null; exit 6")
		spec.Stdin = bytes.NewReader(blob)
		finish(t, f.start(t, spec)).ended(t, 6, "")

		spec = f.spec("cat; echo end")
		spec.Stdin = strings.NewReader("")
		if o := finish(t, f.start(t, spec)); o.stdout != "end\n" {
			t.Errorf("with empty input the output is %q", o.stdout)
		}
	})
}

// Without input a command finds the null device, not a pipe: programs look.
func TestNoInput(t *testing.T) {
	eachLevel(t, func(t *testing.T, f *fixture) {
		if got := f.succeed(t, "test -c /dev/stdin && readlink /proc/self/fd/0 && cat && stat -L -c %t:%T /dev/stdin"); got != "/dev/null\n1:3" {
			t.Errorf("standard input is %q", got)
		}
	})
}

// The output of a command can be as long as it likes; the longest part of it
// goes to a file that is the engine's.
func TestSpill(t *testing.T) {
	blob := noise(4, 1<<20)
	eachLevel(t, func(t *testing.T, f *fixture) {
		f.write(t, "blob", blob, 0o644)
		spec := f.spec("cat blob")
		spec.SpillDir = f.engine.SpillDir()
		p := f.start(t, spec)
		finish(t, p)
		path := p.Output(sandbox.StdoutStream).SpillPath()
		if data, err := os.ReadFile(path); err != nil || !bytes.Equal(data, blob) {
			t.Fatalf("the spill file holds %d bytes (%v), want %d", len(data), err, len(blob))
		}
		if want := fmt.Sprintf("%x", sha256.Sum256(blob)); !strings.HasPrefix(f.succeed(t, "sha256sum "+path), want) {
			t.Error("the session's next command reads something else from it")
		}
		if f.level != unconfined {
			f.run(t, "echo x >>"+path).ended(t, 1, "")
		}
	})
}

func TestDurations(t *testing.T) {
	eachLevel(t, func(t *testing.T, f *fixture) {
		before := time.Now()
		o := f.run(t, "sleep 0.2")
		// It began a little before Start returned.
		if o.Duration < 100*time.Millisecond || o.Duration > time.Since(before) || o.Started.Before(before) {
			t.Errorf("a sleep of 200 ms began at %v and lasted %v", o.Started, o.Duration)
		}
	})
}
