package sandbox

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"unicode/utf8"
)

// privateDir is a folder fit for spill files.
func privateDir(t testing.TB) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "spill")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	return dir
}

func writeAll(c *Capture, chunks ...string) {
	for _, chunk := range chunks {
		_, _ = c.Write([]byte(chunk))
	}
}

func TestCaptureTail(t *testing.T) {
	const euro, note = "€", "𝄞" // three and four bytes
	tests := []struct {
		name      string
		keep      int
		chunks    []string
		finish    bool
		text      string
		truncated bool
	}{
		{"empty", 4, nil, true, "", false},
		{"exactly at the cap", 4, []string{"ab", "cd"}, true, "abcd", false},
		{"one over", 4, []string{"abcd", "e"}, true, "bcde", true},
		{"one chunk over", 4, []string{"abcdefghi"}, true, "fghi", true},
		{"long chunk into a begun ring", 4, []string{"ab", "cdefghijk"}, true, "hijk", true},
		{"cut inside a rune of three", 5, []string{"a" + euro + "bcd"}, true, "bcd", true},
		{"cut after one byte of it", 5, []string{euro + "bcd"}, true, "bcd", true},
		{"cut just before it", 5, []string{"x" + euro + "bc"}, true, euro + "bc", true},
		{"cut inside a rune of four", 4, []string{note + "z"}, true, "z", true},
		{"no byte is dropped without a cut", 4, []string{"\x80\x80ab"}, true, "\uFFFD\uFFFDab", false},
		{"invalid bytes one by one", 9, []string{"a\xff\xfe\x00b"}, true, "a\uFFFD\uFFFD\x00b", false},
		{"incomplete rune while growing", 9, []string{"a\xe2\x82"}, false, "a", false},
		{"incomplete rune at the end", 9, []string{"a\xe2\x82"}, true, "a\uFFFD\uFFFD", false},
		{"rune over two chunks", 9, []string{"a\xe2\x82", "\xac"}, false, "a" + euro, false},
		{"invalid end while growing", 9, []string{"a\xff"}, false, "a\uFFFD", false},
		{"only continuation bytes", 4, []string{"\x80\x80\x80\x80\x80\x80"}, true, "\uFFFD", true},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			c := NewCapture(CaptureOptions{Keep: test.keep})
			writeAll(c, test.chunks...)
			if test.finish {
				c.Finish()
			}
			text, truncated := c.Tail()
			if text != test.text || truncated != test.truncated {
				t.Errorf("Tail() = %q, %v; want %q, %v", text, truncated, test.text, test.truncated)
			}
		})
	}
}

// TestCaptureModel compares against a plain slice that keeps everything.
func TestCaptureModel(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for round := range 300 {
		keep := 1 + random.IntN(40)
		options := CaptureOptions{Keep: keep}
		if round%2 == 0 {
			options.SpillDir = privateDir(t)
		}
		c := NewCapture(options)
		var all []byte
		for range random.IntN(30) {
			chunk := make([]byte, random.IntN(2*keep+3))
			for i := range chunk {
				chunk[i] = byte(random.Uint32())
			}
			_, _ = c.Write(chunk)
			all = append(all, chunk...)
			checkAgainst(t, c, all, keep, options.SpillDir != "", random)
		}
		c.Finish()
		checkAgainst(t, c, all, keep, options.SpillDir != "", random)
		text, truncated := c.Tail()
		if !utf8.ValidString(text) || truncated != (len(all) > keep) {
			t.Fatalf("keep %d of %d bytes: Tail() = %q, %v", keep, len(all), text, truncated)
		}
		if path := c.SpillPath(); (path != "") != (options.SpillDir != "" && len(all) > keep) {
			t.Fatalf("keep %d of %d bytes: SpillPath() = %q", keep, len(all), path)
		} else if path != "" {
			if data, err := os.ReadFile(path); err != nil || !bytes.Equal(data, all) {
				t.Fatalf("spill file is not the stream: %v", err)
			}
		}
	}
}

func checkAgainst(t *testing.T, c *Capture, all []byte, keep int, spilled bool, random *rand.Rand) {
	t.Helper()
	if c.Total() != int64(len(all)) {
		t.Fatalf("Total() = %d, want %d", c.Total(), len(all))
	}
	offset, n := random.IntN(len(all)+2), 1+random.IntN(len(all)+5)
	wantAt := offset
	if oldest := len(all) - keep; !spilled && offset < oldest {
		wantAt = oldest
	}
	var want []byte
	if wantAt < len(all) {
		want = all[wantAt:min(wantAt+n, len(all))]
	}
	data, at := c.ReadAt(int64(offset), n)
	if at != int64(wantAt) || !bytes.Equal(data, want) {
		t.Fatalf("ReadAt(%d, %d) of %d, keep %d = %q, %d; want %q, %d", offset, n, len(all), keep, data, at, want, wantAt)
	}
}

func TestCaptureReadAtOddArguments(t *testing.T) {
	c := NewCapture(CaptureOptions{Keep: 4})
	writeAll(c, "abcdef")
	if data, at := c.ReadAt(-5, 2); string(data) != "cd" || at != 2 {
		t.Errorf("negative offset: %q, %d", data, at)
	}
	if data, at := c.ReadAt(3, 0); len(data) != 0 || at != 3 {
		t.Errorf("nothing wanted: %q, %d", data, at)
	}
	if data, at := c.ReadAt(99, 5); len(data) != 0 || at != 99 {
		t.Errorf("beyond the end: %q, %d", data, at)
	}
}

func TestCaptureDefaults(t *testing.T) {
	c := NewCapture(CaptureOptions{})
	writeAll(c, strings.Repeat("a", 64000))
	if _, truncated := c.Tail(); truncated {
		t.Error("64,000 bytes are truncated")
	}
	writeAll(c, "b")
	if text, truncated := c.Tail(); !truncated || len(text) != 64000 {
		t.Errorf("64,001 bytes: %d left, truncated %v", len(text), truncated)
	}
}

func TestCaptureWriteAfterFinish(t *testing.T) {
	c := NewCapture(CaptureOptions{Keep: 4})
	writeAll(c, "ab")
	c.Finish()
	c.Finish()
	writeAll(c, "cd")
	if text, _ := c.Tail(); text != "ab" || c.Total() != 2 {
		t.Errorf("a finished stream grew to %q", text)
	}
}

// TestCaptureConcurrent reads in every way while the stream grows; what is
// read must be the stream, and the race detector must stay quiet.
func TestCaptureConcurrent(t *testing.T) {
	c := NewCapture(CaptureOptions{Keep: 64, SpillDir: privateDir(t)})
	line := func(i int) string { return fmt.Sprintf("%07d\n", i) }
	const lines = 4000
	var wg sync.WaitGroup
	wg.Go(func() {
		for i := range lines {
			writeAll(c, line(i))
		}
		c.Finish()
	})
	for range 3 {
		wg.Go(func() {
			for offset := int64(0); offset < lines*8; {
				c.Tail()
				c.SpillPath()
				data, at := c.ReadAt(offset, 4096)
				if at != offset {
					t.Errorf("bytes %d to %d are lost", offset, at)
					return
				}
				if len(data) == 0 {
					runtime.Gosched()
				}
				for i, b := range data {
					n := offset + int64(i)
					if want := line(int(n / 8))[n%8]; b != want {
						t.Errorf("byte %d is %q, want %q", n, b, want)
						return
					}
				}
				offset += int64(len(data))
			}
		})
	}
	wg.Wait()
}

// BenchmarkCapture counts a stream of 64 KiB chunks. alloc-MiB is what one
// gibibyte allocated in all; memory in use at any time is less.
func BenchmarkCapture(b *testing.B) {
	chunk := bytes.Repeat([]byte("0123456789abcde\n"), 4096)
	for _, bench := range []struct {
		name  string
		spill bool
		total int
	}{{"tail", false, 1 << 30}, {"spill", true, 1 << 30}, {"spill-under-limit", true, 60 << 20}} {
		b.Run(bench.name, func(b *testing.B) {
			b.SetBytes(int64(bench.total))
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			for b.Loop() {
				options := CaptureOptions{}
				if bench.spill {
					options.SpillDir = privateDir(b)
				}
				c := NewCapture(options)
				for range bench.total / len(chunk) {
					_, _ = c.Write(chunk)
				}
				c.Finish()
				if c.Total() != int64(bench.total) {
					b.Fatalf("counted %d", c.Total())
				}
				c.Discard()
			}
			runtime.ReadMemStats(&after)
			b.ReportMetric(float64(after.TotalAlloc-before.TotalAlloc)/float64(b.N)/(1<<20), "alloc-MiB")
		})
	}
}
