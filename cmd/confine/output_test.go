package main

import (
	"bytes"
	"errors"
	"io"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/confine-dev/confine/sandbox"
)

func chunk(stream sandbox.Stream, data string) sandbox.Chunk {
	return sandbox.Chunk{Stream: stream, Data: []byte(data)}
}

func TestLiveOutputKeepsBytesAndOrder(t *testing.T) {
	var both, stdout bytes.Buffer
	o := newLiveOutput(io.MultiWriter(&both, &stdout), &both, nil)
	defer o.close()
	reused := chunk("stdout", "1\xff")
	o.take(reused)
	copy(reused.Data, "??") // whoever calls may use its buffer again
	o.take(chunk("stderr", "2\x00"))
	o.take(chunk("stdout", "3"))
	if lost, err := o.flush(); lost != 0 || err != nil {
		t.Errorf("lost %d, %v", lost, err)
	}
	if both.String() != "1\xff2\x003" || stdout.String() != "1\xff3" {
		t.Errorf("got %q and %q", &both, &stdout)
	}
}

// gate is a reader that takes one write for each send on it.
type gate chan struct{}

func (g gate) Write(p []byte) (int, error) { <-g; return len(p), nil }

func TestLiveOutputHoldsTheCommandBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		reader := make(gate)
		o := newLiveOutput(reader, reader, nil)
		half := sandbox.Chunk{Stream: "stdout", Data: make([]byte, maxAhead/2)}
		take := func() time.Duration {
			start := time.Now()
			o.take(half)
			return time.Since(start)
		}
		for range 2 {
			if held := take(); held != 0 {
				t.Errorf("held back for %v although there is room", held)
			}
		}
		if held := take(); held != maxHold {
			t.Errorf("a reader that stands still holds a chunk back for %v, want %v", held, maxHold)
		}
		go func() {
			time.Sleep(maxHold / 3)
			reader <- struct{}{}
			time.Sleep(maxHold / 3)
			reader <- struct{}{}
		}()
		if held := take(); held != maxHold/3*2 {
			t.Errorf("held back for %v, want until there was room again", held)
		}
		close(reader)
		if lost, err := o.flush(); lost != 0 || err != nil {
			t.Errorf("lost %d, %v", lost, err)
		}
		o.close()
	})
}

func TestLiveOutputIsBoundedAndCounts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		reader := make(gate)
		o := newLiveOutput(reader, reader, nil)
		block := sandbox.Chunk{Stream: "stderr", Data: make([]byte, 1<<20)}
		for range maxQueued/len(block.Data) + 3 {
			o.take(block)
		}
		if o.queued > maxQueued {
			t.Errorf("%d bytes wait, more than %d", o.queued, maxQueued)
		}
		close(reader)
		if lost, err := o.flush(); lost != 3<<20 || err != nil {
			t.Errorf("lost %d bytes, want %d; %v", lost, 3<<20, err)
		}
		o.close()
	})
}

type brokenWriter struct{}

var errBroken = errors.New("broken")

func (brokenWriter) Write([]byte) (int, error) { return 0, errBroken }

func TestLiveOutputEndsWithItsReader(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var calls atomic.Int32
		o := newLiveOutput(brokenWriter{}, brokenWriter{}, func() { calls.Add(1) })
		start := time.Now()
		for range 100 {
			o.take(sandbox.Chunk{Stream: "stdout", Data: make([]byte, 1<<20)})
		}
		if _, err := o.flush(); !errors.Is(err, errBroken) {
			t.Errorf("got %v", err)
		}
		o.close()
		synctest.Wait()
		if calls.Load() != 1 {
			t.Errorf("failed was called %d times", calls.Load())
		}
		if held := time.Since(start); held > maxHold {
			t.Errorf("the command was held back for %v for nobody", held)
		}
	})
}
