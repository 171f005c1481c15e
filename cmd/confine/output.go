package main

import (
	"context"
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/confine-dev/confine/sandbox"
)

// attached connects the commands of a provider to the files of the person,
// past the protocol: standard input as it comes, where the protocol has room
// for a text that is complete before the start only, and output at the speed of
// whoever takes it, where the protocol leaves out what a slow reader misses.
type attached struct {
	sandbox.Provider
	input  func(*sandbox.Spec) error // says what a command reads, just before its start; nil for nothing
	output *liveOutput               // nil for none
}

func (a *attached) Start(ctx context.Context, spec sandbox.Spec) (sandbox.Process, error) {
	if a.input != nil {
		if err := a.input(&spec); err != nil {
			return nil, err
		}
	}
	if told := spec.Output; a.output != nil {
		spec.Output = func(chunk sandbox.Chunk) {
			if told != nil {
				told(chunk)
			}
			a.output.take(chunk)
		}
	}
	return a.Provider.Start(ctx, spec)
}

// liveOutput writes the output of commands to the person's files, byte for byte
// and in the order of the chunks, as it comes. A command that prints faster than its output is
// taken is held back, as a pipe would hold it.
type liveOutput struct {
	stdout, stderr io.Writer
	failed         func() // called once, if writing fails
	stopped        chan struct{}

	mu      sync.Mutex // guards what follows
	queue   []piece
	queued  int // bytes in queue, and of the piece being written
	lost    int64
	err     error // of writing; nothing is written any more
	closed  bool
	changed chan struct{} // closed and replaced by change
}

type piece struct {
	to   io.Writer
	data []byte
}

// What may wait to be written, in bytes. Above maxAhead a command is held back,
// for each chunk at most maxHold: a provider gives up on output that is not
// taken within two seconds after the command ended. What that lets pass to a
// reader who stands still fits below maxQueued for some two minutes; more is
// dropped and counted.
const (
	maxAhead  = 1 << 20
	maxHold   = 300 * time.Millisecond
	maxQueued = 32 << 20
)

// newLiveOutput begins to write. Close it.
func newLiveOutput(stdout, stderr io.Writer, failed func()) *liveOutput {
	o := &liveOutput{stdout: stdout, stderr: stderr, failed: failed, stopped: make(chan struct{}), changed: make(chan struct{})}
	go o.write()
	return o
}

// take queues a chunk and waits, not for long, until there is room again.
func (o *liveOutput) take(chunk sandbox.Chunk) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.err != nil {
		return
	}
	if o.queued+len(chunk.Data) > maxQueued {
		o.lost += int64(len(chunk.Data))
	} else {
		to := o.stdout
		if chunk.Stream == sandbox.StderrStream {
			to = o.stderr
		}
		o.queue = append(o.queue, piece{to, append([]byte(nil), chunk.Data...)})
		o.queued += len(chunk.Data)
		o.change()
	}
	limit := time.NewTimer(maxHold)
	defer limit.Stop()
	o.await(limit.C, func() bool { return o.queued <= maxAhead || o.err != nil })
}

// flush waits until everything is written, and returns how many bytes were
// dropped so far and why writing ended.
func (o *liveOutput) flush() (lost int64, err error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.await(nil, func() bool { return o.queued == 0 || o.err != nil })
	return o.lost, o.err
}

// close ends writing. What flush did not wait for is dropped.
func (o *liveOutput) close() {
	o.mu.Lock()
	o.closed = true
	o.change()
	o.mu.Unlock()
	<-o.stopped
}

// write is the goroutine that writes, until close.
func (o *liveOutput) write() {
	defer close(o.stopped)
	o.mu.Lock()
	defer o.mu.Unlock()
	for {
		o.await(nil, func() bool { return len(o.queue) > 0 || o.closed })
		if o.closed {
			return
		}
		next := o.queue[0]
		o.queue = o.queue[1:]
		o.mu.Unlock()
		_, err := next.to.Write(next.data)
		o.mu.Lock()
		o.queued -= len(next.data)
		if err != nil {
			o.err = fmt.Errorf("writing the command's output: %w", err)
			o.queue, o.queued = nil, 0
			go o.failed()
		}
		o.change()
	}
}

// await waits, without mu in between, until a condition holds or give up
// fires. mu is held.
func (o *liveOutput) await(giveUp <-chan time.Time, condition func() bool) {
	for !condition() {
		changed := o.changed
		o.mu.Unlock()
		select {
		case <-changed:
			o.mu.Lock()
		case <-giveUp:
			o.mu.Lock()
			return
		}
	}
}

// change wakes everybody who waits. mu is held.
func (o *liveOutput) change() {
	close(o.changed)
	o.changed = make(chan struct{})
}
