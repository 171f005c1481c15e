package rpc

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"runtime/debug"
	"sync"
	"time"

	"github.com/sourcegraph/jsonrpc2"
)

// Conn is one connection. Its methods may be called from any goroutine, Serve
// once. The owner must not let the process die of SIGPIPE if the stream is
// standard output.
type Conn struct {
	o      Options
	log    *slog.Logger
	stream *stream // read by the read loop, written by the write loop
	trace  *tracer // nil without Options.Trace

	closing  chan struct{}  // closed by stop, once: Serve shall end
	handlers sync.WaitGroup // running handlers and notifications; Add only under mu while !ended

	mu       sync.Mutex // guards everything below
	changed  *sync.Cond // on mu: queue, refusing or dropping changed
	serving  bool
	ended    bool  // nothing received is acted on and no call is answered any more
	refusing bool  // nothing is accepted for sending any more
	dropping bool  // what is queued is dropped
	cause    error // why the connection was broken off; nil after Close
	queue    []outgoing
	queued   int // bytes in queue, and of the message being written
	inFlight map[string]*inbound
	calls    map[jsonrpc2.ID]*call
	lastCall uint64
}

// Options configures a connection. The zero value answers every request with
// -32601 and ignores every notification.
type Options struct {
	Requests      map[string]Handler
	Notifications map[string]Notification

	// InOrder names requests that are handled on the read loop, in the order of the
	// wire with each other and with notifications. Their handlers must not block and
	// not Call: nothing is read meanwhile.
	InOrder []string

	// Admit is the lifecycle gate, called on the read loop in message order for
	// every request and notification except $/cancelRequest, known or not. A
	// non-nil error is the reply to a request, or drops the notification.
	Admit func(method string, isRequest bool) error

	// MaxMessage is how long a received message may be, in bytes; 0 = 32 MiB. A
	// longer one is skipped and answered with -32600 under its own id.
	MaxMessage int

	// MaxInFlight is how many requests may run at once; 0 = 256. One more is
	// answered with -32803, data {"code":"SERVER_BUSY"}.
	MaxInFlight int

	// MaxQueued is how many bytes may wait for the peer to read them; 0 = 64 MiB.
	// Beyond half of it Notify fails with ErrBacklog. Replies and calls may use
	// all of it; since they must not be lost, the connection is broken off when
	// they do not fit. A single message of any size fits into an empty queue.
	MaxQueued int

	// Trace gets every message as text, with time and direction. Messages hold
	// commands and their environment: the file must be private. A writer that
	// fails, or is too slow, costs trace lines and nothing else.
	Trace io.Writer

	// TraceLine is how many bytes of a message are traced; 0 = 64 KiB.
	TraceLine int

	Log *slog.Logger // nil = nothing is logged
}

// Handler answers one request. It runs on its own goroutine. ctx ends when the
// peer cancels the request (cause ErrCancelled) or the connection ends (cause
// ErrClosed, or that of Serve's context), and the handler must then return soon:
// Serve waits for it. What it returns is the reply in every case: a nil result is
// null, an *Error anywhere in err's chain gives code and data, any other error or
// a panic is -32603.
type Handler func(ctx context.Context, req *Request) (any, error)

// Notification handles one notification. It runs on the read loop, in order, and
// must not block and not Call: nothing is read meanwhile. ctx ends with the
// connection.
type Notification func(ctx context.Context, req *Request)

// Request is a received request or notification.
type Request struct {
	Method string
	Params json.RawMessage // as sent; nil if absent
	ID     string          // for people: a number, or a quoted string; empty for notifications
	Conn   *Conn
}

// Decode stores the params in v; absent and null params are {}. Its error is an
// *Error with CodeInvalidParams, fit to be the reply.
func (r *Request) Decode(v any) error {
	params := r.Params
	if len(params) == 0 || string(params) == "null" {
		params = json.RawMessage("{}")
	}
	err := json.Unmarshal(params, v)
	if err == nil {
		return nil
	}
	if t, ok := errors.AsType[*json.UnmarshalTypeError](err); ok { // without the names of Go types
		if t.Field == "" {
			return Errorf(CodeInvalidParams, "invalid params for %s: they cannot be a JSON %s", short(r.Method), t.Value)
		}
		return Errorf(CodeInvalidParams, "invalid params for %s: %q cannot be a JSON %s", short(r.Method), t.Field, t.Value)
	}
	return Errorf(CodeInvalidParams, "invalid params for %s: %v", short(r.Method), err)
}

// How long the end of a connection waits for a peer that does not read, and for
// reads, writes and traces that cannot be interrupted (those of standard input
// and output cannot; such a goroutine lives until the process ends).
const (
	flushTime  = time.Second
	unwindTime = 100 * time.Millisecond
)

// NewConn makes a connection that owns stream. Nothing is read or written before
// Serve.
func NewConn(stream io.ReadWriteCloser, o Options) *Conn {
	o.MaxMessage = orDefault(o.MaxMessage, 32<<20)
	o.MaxInFlight = orDefault(o.MaxInFlight, 256)
	o.MaxQueued = orDefault(o.MaxQueued, 64<<20)
	o.TraceLine = orDefault(o.TraceLine, 64<<10)
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	c := &Conn{
		o:        o,
		log:      o.Log,
		stream:   newStream(stream, o.MaxMessage),
		closing:  make(chan struct{}),
		inFlight: make(map[string]*inbound),
		calls:    make(map[jsonrpc2.ID]*call),
	}
	c.changed = sync.NewCond(&c.mu)
	return c
}

func orDefault(n, fallback int) int {
	if n <= 0 {
		return fallback
	}
	return n
}

// Serve runs the connection until the peer ends its side, Close is called, ctx
// ends or the connection breaks. It cancels the handlers' contexts then, and
// returns once every handler has returned, their last replies are written (if the
// peer reads them within a second) and the stream is closed.
//
// It returns nil after Close and after an end of file between two messages,
// the cause of ctx if that ended, and else what broke the connection.
func (c *Conn) Serve(ctx context.Context) error {
	c.mu.Lock()
	if c.serving || c.ended {
		c.mu.Unlock()
		return ErrClosed
	}
	c.serving = true
	c.mu.Unlock()

	c.trace = newTracer(c.o.Trace, c.o.TraceLine, c.log)
	running, cancel := context.WithCancelCause(ctx)
	read, written := make(chan error, 1), make(chan struct{})
	go func() { read <- c.readLoop(running) }()
	go func() { defer close(written); c.writeLoop() }()

	var err error
	select {
	case err = <-read:
		read = nil
	case <-c.closing:
	case <-ctx.Done():
		err = context.Cause(ctx)
	}
	c.mu.Lock()
	c.endLocked()
	c.mu.Unlock()
	cancel(ErrClosed)
	c.handlers.Wait()
	c.shutdown(read, written)

	c.mu.Lock()
	defer c.mu.Unlock()
	if c.cause != nil {
		return c.cause
	}
	return err
}

// shutdown flushes and closes the stream, and waits for the loops. read is nil if
// the read loop has ended.
func (c *Conn) shutdown(read <-chan error, written <-chan struct{}) {
	c.mu.Lock()
	c.refusing = true
	c.changed.Broadcast()
	c.mu.Unlock()
	flushed := waitFor(written, flushTime)

	c.mu.Lock()
	lost := c.queued
	c.dropping = true
	c.changed.Broadcast()
	c.mu.Unlock()
	if !flushed {
		c.log.Warn("closing the connection although the peer has not read everything", "bytes", lost)
	}
	if err := c.stream.Close(); err != nil {
		c.log.Debug("closing the stream", "error", err)
	}
	waitFor(written, unwindTime)
	c.dropQueue() // in case the write loop is stuck
	if read != nil {
		waitFor(read, unwindTime)
	}
	c.trace.close()
}

// waitFor waits for a receive from ch, for a limited time.
func waitFor[T any](ch <-chan T, limit time.Duration) bool {
	timer := time.NewTimer(limit)
	defer timer.Stop()
	select {
	case <-ch:
		return true
	case <-timer.C:
		return false
	}
}

// Close ends the connection without waiting, so that a handler or notification
// may call it: from its return on nothing is received, sent or replied any more,
// calls fail, and handlers are cancelled. What was queued before is still
// written. The stream is closed by Serve, or here if Serve is not running.
func (c *Conn) Close() error {
	c.mu.Lock()
	served := c.serving
	c.serving = true // Serve cannot begin any more
	c.refusing = true
	c.endLocked()
	c.mu.Unlock()
	if served {
		return nil
	}
	go c.dropQueue() // it ends at once; see Notify for why it is another goroutine
	return c.stream.Close()
}

// fail breaks the connection off: what is queued is dropped.
func (c *Conn) fail(cause error) {
	level := slog.LevelError
	c.mu.Lock()
	if c.ended {
		level = slog.LevelDebug // the peer has gone, or was told to; that is no failure
	} else {
		c.cause = cause
	}
	c.refusing, c.dropping = true, true
	c.endLocked()
	c.mu.Unlock()
	// Without the lock: a log may well be sent over this connection.
	c.log.Log(context.Background(), level, "breaking the connection off", "reason", cause)
}

// endLocked stops acting on what is received, fails the calls that wait for the
// peer, and makes Serve end. mu is held.
func (c *Conn) endLocked() {
	if !c.ended {
		c.ended = true
		close(c.closing)
	}
	for id, call := range c.calls {
		close(call.answer)
		delete(c.calls, id)
	}
	c.changed.Broadcast()
}

// protect runs f and turns a panic into an error: one bad request must not end
// every other one.
func (c *Conn) protect(what string, f func() error) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("internal error: panic in %s", what)
			c.log.Error(err.Error(), "panic", p, "stack", string(debug.Stack()))
		}
	}()
	return f()
}
