package rpc

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"time"
)

// inbound is a request whose handler is running.
type inbound struct {
	method string
	start  time.Time
	cancel context.CancelCauseFunc
}

// readLoop receives until the end of the stream or of the connection. It
// returns nil for an end between two messages.
func (c *Conn) readLoop(ctx context.Context) error {
	for !c.over() {
		var body json.RawMessage
		err := c.stream.ReadObject(&body)
		if n := c.stream.junk; n > 0 {
			c.stream.junk = 0
			c.log.Warn("skipped bytes that belong to no message", "bytes", n)
		}
		var lost *frameError
		switch {
		case err == nil:
			c.receive(ctx, body)
		case errors.As(err, &lost):
			c.lose(lost)
		case errors.Is(err, io.EOF):
			return nil
		case c.over(): // the stream was closed under the read
			return nil
		case errors.Is(err, io.ErrUnexpectedEOF):
			c.replyError(null, Errorf(CodeParseError, "the stream ended inside a message"))
			fallthrough
		default:
			return fmt.Errorf("reading from the peer: %w", err)
		}
	}
	return nil
}

func (c *Conn) over() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.ended
}

// lose answers a message that could not be read, under its own id if that is
// known.
func (c *Conn) lose(f *frameError) {
	m := message{kind: invalid, id: null, wrong: &Error{Code: f.code, Message: f.reason}}
	if key, ok := idKey(f.lost.id); ok {
		m.id, m.key = f.lost.id, key
	}
	c.traceReceived(m, []byte(f.reason))
	switch {
	case f.lost.method:
		c.replyError(m.id, m.wrong)
	case !c.answered(m):
		c.replyError(null, m.wrong)
	}
}

// receive acts on one message. Nothing in here waits.
func (c *Conn) receive(ctx context.Context, body []byte) {
	m := parse(body)
	c.traceReceived(m, body)
	switch m.kind {
	case answer:
		if !c.answered(m) {
			c.log.Warn("ignoring an answer that no call waits for", "id", short(string(m.id)), "error", short(string(m.err)))
		}
	case request:
		c.request(ctx, m)
	case notification:
		c.notification(ctx, m)
	default:
		// Under the id of one of our calls it is a broken answer: the call must
		// fail rather than wait for a better one.
		if !c.answered(m) {
			c.replyError(m.id, m.wrong)
		}
	}
}

// request registers a request and starts its handler, or refuses it.
func (c *Conn) request(ctx context.Context, m message) {
	if err := c.admit(m); err != nil {
		c.replyError(m.id, err)
		return
	}
	handler := c.o.Requests[m.method]
	if handler == nil {
		c.replyError(m.id, Errorf(CodeMethodNotFound, "the method %s is unknown", short(m.method)))
		return
	}
	in := &inbound{method: m.method, start: time.Now()}
	ctx, in.cancel = context.WithCancelCause(ctx)

	c.mu.Lock()
	_, twice := c.inFlight[m.key]
	busy := len(c.inFlight) >= c.o.MaxInFlight
	start := !twice && !busy && !c.ended
	if start {
		c.inFlight[m.key] = in
		c.handlers.Add(1)
	}
	c.mu.Unlock()
	switch {
	case start && slices.Contains(c.o.InOrder, m.method):
		c.run(ctx, in, handler, m)
		return
	case start:
		go c.run(ctx, in, handler, m)
		return
	case twice: // under its id the reply would pass for the running request's
		c.replyError(null, Errorf(CodeInvalidRequest, "the id %s is in use by a request that is still running", m.key))
	case busy:
		c.replyError(m.id, &Error{
			Code:    CodeRequestFailed,
			Message: fmt.Sprintf("%d requests are running already; try again when one has ended", c.o.MaxInFlight),
			Data:    map[string]string{"code": "SERVER_BUSY"},
		})
	}
	in.cancel(nil)
}

// run runs one handler, mostly on a goroutine of its own, and replies exactly once, whatever
// the handler does.
func (c *Conn) run(ctx context.Context, in *inbound, handler Handler, m message) {
	defer c.handlers.Done()
	var result any
	err := errors.New("internal error: the handler gave no answer") // stays if it ends its goroutine
	defer func() {
		in.cancel(nil)
		c.mu.Lock()
		delete(c.inFlight, m.key) // before the reply, after which the peer may use the id again
		c.mu.Unlock()
		c.reply(m, in, result, err)
	}()
	err = c.protect(short(m.method), func() (err error) {
		result, err = handler(ctx, &Request{Method: m.method, Params: m.params, ID: m.key, Conn: c})
		return err
	})
}

// notification runs a notification's handler, or cancels a request.
func (c *Conn) notification(ctx context.Context, m message) {
	if m.method == cancelRequest {
		c.cancel(m.params)
		return
	}
	if err := c.admit(m); err != nil {
		c.log.Debug("dropping a notification", "method", short(m.method), "reason", err)
		return
	}
	handler := c.o.Notifications[m.method]
	if handler == nil {
		return // unknown notifications are ignored, as LSP asks
	}
	c.mu.Lock()
	ended := c.ended
	if !ended {
		c.handlers.Add(1)
	}
	c.mu.Unlock()
	if ended {
		return
	}
	defer c.handlers.Done()
	c.protect(short(m.method), func() error { // its error is logged already
		handler(ctx, &Request{Method: m.method, Params: m.params, Conn: c})
		return nil
	})
}

func (c *Conn) admit(m message) error {
	if c.o.Admit == nil {
		return nil
	}
	return c.protect("admitting "+short(m.method), func() error {
		return c.o.Admit(m.method, m.kind == request)
	})
}

// cancelRequest is the one method that package rpc handles itself.
const cancelRequest = "$/cancelRequest"

// cancel ends the context of a running request. One that has been answered, or
// never was, is not worth a word: the two messages crossed.
func (c *Conn) cancel(params json.RawMessage) {
	var p struct {
		ID json.RawMessage `json:"id"`
	}
	if err := json.Unmarshal(params, &p); err != nil {
		c.log.Warn("ignoring a cancellation that cannot be read", "error", err)
		return
	}
	key, _ := idKey(p.ID)
	c.mu.Lock()
	in := c.inFlight[key]
	c.mu.Unlock()
	if in != nil {
		in.cancel(ErrCancelled)
	}
}

// short quotes and cuts untrusted text for messages and logs.
func short(s string) string {
	if len(s) > 100 {
		s = s[:100] + "…"
	}
	return strconv.QuoteToASCII(s)
}
