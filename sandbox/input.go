package sandbox

import (
	"errors"
	"io"
	"sync"
)

// Interaction says what a provider can do for commands that take input while they
// run.
type Interaction struct {
	Input    bool // Spec.StdinOpen
	Terminal bool // Spec.Terminal, whose input is open, too
}

// TerminalSize is how large a terminal is, in characters.
type TerminalSize struct {
	Columns, Rows int
}

// Input is what a command with open input is still to be given: a queue with an
// end for whoever writes, who never waits, and one for whoever passes it on. Its
// methods may be called from several goroutines.
type Input struct {
	mu      sync.Mutex // guards what follows
	changed *sync.Cond // on mu: data, closed or stopped changed
	data    []byte
	passed  int  // bytes that the last Read returned, which are being passed on
	closed  bool // nothing follows
	stopped bool // nobody reads any more
}

// MaxQueuedInput is how many bytes may wait for a command.
const MaxQueuedInput = 1 << 20

// ErrInputClosed says that a command takes no more input.
var ErrInputClosed = errors.New("the command takes no more input: it has ended, or its input was closed")

// NewInput returns an empty queue.
func NewInput() *Input {
	i := &Input{}
	i.changed = sync.NewCond(&i.mu)
	return i
}

// Room is how many bytes Write would take. Only Write makes it less.
func (i *Input) Room() int {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.room()
}

func (i *Input) room() int {
	if i.closed || i.stopped {
		return 0
	}
	return MaxQueuedInput - len(i.data) - i.passed
}

// Write queues the beginning of p, as much as there is room for. The error is nil,
// although less than p was taken, or ErrInputClosed.
func (i *Input) Write(p []byte) (taken int, err error) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.closed || i.stopped {
		return 0, ErrInputClosed
	}
	taken = min(len(p), i.room())
	i.data = append(i.data, p[:taken]...)
	i.changed.Broadcast()
	return taken, nil
}

// Close says that nothing follows what was written. Closing again does nothing.
func (i *Input) Close() {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.closed = true
	i.changed.Broadcast()
}

// Open reports whether Write can take anything, now or later.
func (i *Input) Open() bool {
	i.mu.Lock()
	defer i.mu.Unlock()
	return !i.closed && !i.stopped
}

// Queued is how many bytes the command was not given yet.
func (i *Input) Queued() int {
	i.mu.Lock()
	defer i.mu.Unlock()
	return len(i.data) + i.passed
}

// Read is for who passes input on: it waits until there is some. What it returned
// counts as passed on when it is called again. The end is io.EOF.
func (i *Input) Read(p []byte) (int, error) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.passed = 0
	for len(i.data) == 0 && !i.closed && !i.stopped {
		i.changed.Wait()
	}
	if i.stopped || len(i.data) == 0 {
		return 0, io.EOF
	}
	i.passed = copy(p, i.data)
	if i.data = i.data[i.passed:]; len(i.data) == 0 {
		i.data = nil // so that what was passed on is not held
	}
	return i.passed, nil
}

// Stop says that nobody reads any more, and drops what is queued.
func (i *Input) Stop() {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.stopped, i.data, i.passed = true, nil, 0
	i.changed.Broadcast()
}
