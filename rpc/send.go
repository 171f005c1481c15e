package rpc

import (
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/sourcegraph/jsonrpc2"
)

// outgoing is one message on its way to the peer.
type outgoing struct {
	body json.RawMessage
	sent func() // may be nil; called once, written or not
	note traced
}

// Notify queues a notification behind everything sent before it, replies
// included; params that are nil are left out. It does not wait for the peer.
//
// sent, if not nil, is called exactly once, when the bytes were written or
// dropped, also if Notify fails; never on the caller's goroutine, so the caller
// may hold its locks. It must not block.
//
// The error is ErrClosed, ErrBacklog (see Options.MaxQueued), or that params do
// not encode.
func (c *Conn) Notify(method string, params any, sent func()) error {
	body, err := encodeCall("", method, params)
	if err != nil {
		err = fmt.Errorf("encoding the params of %s: %w", method, err)
	} else {
		err = c.send(outgoing{body: body, sent: sent, note: traced{kind: notification, method: method}}, droppable)
	}
	if err != nil && sent != nil {
		go c.finish(outgoing{sent: sent})
	}
	return err
}

// reply answers a received request.
func (c *Conn) reply(m message, in *inbound, result any, err error) {
	var body json.RawMessage
	if err == nil {
		err = c.protect("encoding the reply to "+short(m.method), func() (err error) {
			body, err = encode(struct {
				Version string          `json:"jsonrpc"`
				ID      json.RawMessage `json:"id"`
				Result  any             `json:"result"`
			}{version, m.id, result})
			return err
		})
	}
	if err != nil {
		body = c.encodeError(m.id, err)
	}
	note := traced{kind: answer, method: in.method, id: m.key, took: time.Since(in.start)}
	c.sendReply(outgoing{body: body, note: note})
}

// replyError answers a message that never reached a handler. id is the id as
// received, or null.
func (c *Conn) replyError(id json.RawMessage, err error) {
	c.sendReply(outgoing{body: c.encodeError(id, err), note: traced{kind: answer, id: string(id)}})
}

func (c *Conn) encodeError(id json.RawMessage, err error) json.RawMessage {
	var body json.RawMessage
	failed := c.protect("encoding an error", func() (failed error) {
		body, failed = encode(struct {
			Version string          `json:"jsonrpc"`
			ID      json.RawMessage `json:"id"`
			Error   *jsonrpc2.Error `json:"error"`
		}{version, id, wireError(err)})
		return failed
	})
	if failed != nil { // an Error whose data panics, or worse
		return c.encodeError(id, errors.New("internal error: the error cannot be shown"))
	}
	return body
}

// sendReply drops the reply if the connection has ended: nobody is there to read it.
func (c *Conn) sendReply(o outgoing) {
	if err := c.send(o, required); err != nil {
		c.log.Debug("dropping a reply", "id", o.note.id, "reason", err)
	}
}

// urgency says what happens to a message that does not fit into the queue.
type urgency string

const (
	required  urgency = "required"  // the connection is broken off
	droppable urgency = "droppable" // the message is refused
)

// overhead is what a queued message costs besides its text, in bytes.
const overhead = 128

func (o *outgoing) size() int { return len(o.body) + overhead }

// send queues one message.
func (c *Conn) send(o outgoing, u urgency) error {
	room := c.o.MaxQueued
	if u == droppable {
		room /= 2
	}
	c.mu.Lock()
	queued := c.queued
	fits := queued == 0 || queued+o.size() <= room
	accepted := fits && !c.refusing
	if accepted {
		c.queue = append(c.queue, o)
		c.queued += o.size()
		c.changed.Signal()
	}
	refusing := c.refusing
	c.mu.Unlock()
	switch {
	case accepted:
		return nil
	case refusing:
		return ErrClosed
	case u == droppable:
		return ErrBacklog
	}
	c.fail(fmt.Errorf("the peer does not read: %d bytes are waiting, and %d more do not fit", queued, o.size()))
	return ErrClosed
}

// writeLoop writes what is queued until nothing more can come, or all is dropped.
func (c *Conn) writeLoop() {
	for {
		o, ok := c.next()
		if !ok {
			break
		}
		c.trace.add("Sent", o.note, o.body)
		err := c.stream.WriteObject(o.body)
		c.mu.Lock()
		c.queued -= o.size()
		c.mu.Unlock()
		c.finish(o)
		if err != nil {
			c.fail(fmt.Errorf("writing to the peer: %w", err))
		}
	}
	c.dropQueue()
}

// dropQueue forgets what has not been written.
func (c *Conn) dropQueue() {
	c.mu.Lock()
	dropped := c.queue
	c.queue, c.queued = nil, 0
	c.mu.Unlock()
	for _, o := range dropped {
		c.finish(o)
	}
}

// next waits for the next message to write; false means that the write loop is
// over.
func (c *Conn) next() (outgoing, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for len(c.queue) == 0 && !c.refusing && !c.dropping {
		c.changed.Wait()
	}
	if c.dropping || len(c.queue) == 0 {
		return outgoing{}, false
	}
	o := c.queue[0]
	c.queue[0] = outgoing{} // free the body
	c.queue = c.queue[1:]
	return o, true
}

func (c *Conn) finish(o outgoing) {
	if o.sent != nil {
		c.protect("a sent callback", func() error { o.sent(); return nil }) // its error is logged already
	}
}
