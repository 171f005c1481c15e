package rpc

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"time"

	"github.com/sourcegraph/jsonrpc2"
)

// call is a request of ours that the peer has not answered.
type call struct {
	method string
	start  time.Time
	answer chan *jsonrpc2.Response // room for one; closed by endLocked when none can come any more
}

// Call sends a request and waits for the answer, whose result is stored in
// result (nil: not wanted; a null leaves it as it was). It must not be called
// from a Notification or Admit, which run on the read loop.
//
// When ctx ends first, the peer is sent $/cancelRequest, the call is forgotten
// (an answer that comes later does nothing) and ctx.Err() is returned, also if
// the answer came at the same moment: a late yes is no yes. An error answer is
// returned as *Error; ErrClosed means that no answer can come any more.
func (c *Conn) Call(ctx context.Context, method string, params, result any) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	pending := &call{method: method, start: time.Now(), answer: make(chan *jsonrpc2.Response, 1)}
	id, err := c.remember(pending)
	if err != nil {
		return err
	}
	body, err := encodeCall(id.Str, method, params)
	if err != nil {
		c.forget(id)
		return fmt.Errorf("encoding the params of %s: %w", method, err)
	}
	if err := c.send(outgoing{body: body, note: traced{kind: request, method: method, id: id.Str}}, required); err != nil {
		c.forget(id)
		return err
	}

	var got *jsonrpc2.Response
	select {
	case got = <-pending.answer:
	case <-ctx.Done():
	}
	if err := ctx.Err(); err != nil {
		if c.forget(id) != nil {
			c.sendCancel(id)
		}
		return err
	}
	switch {
	case got == nil:
		return ErrClosed
	case got.Error != nil:
		return remoteError(got.Error)
	case result == nil:
		return nil
	}
	if err := json.Unmarshal(*got.Result, result); err != nil {
		return fmt.Errorf("decoding the answer to %s: %w", method, err)
	}
	return nil
}

// remember gives a call its id. Ours are strings, which no peer confuses with
// its own numbers.
func (c *Conn) remember(pending *call) (jsonrpc2.ID, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.ended {
		return jsonrpc2.ID{}, ErrClosed
	}
	c.lastCall++
	id := jsonrpc2.ID{Str: "call-" + strconv.FormatUint(c.lastCall, 10), IsString: true}
	c.calls[id] = pending
	return id, nil
}

// forget returns the call if it was still waiting.
func (c *Conn) forget(id jsonrpc2.ID) *call {
	c.mu.Lock()
	defer c.mu.Unlock()
	pending := c.calls[id]
	delete(c.calls, id)
	return pending
}

func (c *Conn) sendCancel(id jsonrpc2.ID) {
	body, err := encodeCall("", cancelRequest, map[string]string{"id": id.Str})
	if err == nil {
		err = c.send(outgoing{body: body, note: traced{kind: notification, method: cancelRequest}}, required)
	}
	if err != nil {
		c.log.Debug("dropping a cancellation", "id", id.Str, "reason", err)
	}
}

// answered hands an answer, or what should have been one, to the call that
// waits for it. It is false if none does.
func (c *Conn) answered(m message) bool {
	id, ok := callID(m)
	if !ok {
		return false
	}
	pending := c.forget(id)
	if pending == nil {
		return false
	}
	got := &jsonrpc2.Response{ID: id, Result: &m.result}
	switch {
	case m.kind != answer:
		got.Error = &jsonrpc2.Error{Code: CodeInternalError, Message: "the answer cannot be used: " + m.wrong.Message}
	case m.err != nil && string(m.err) != "null":
		got.Error = readError(m.err)
	case m.result == nil:
		got.Error = &jsonrpc2.Error{Code: CodeInternalError, Message: "the answer has neither result nor error"}
	}
	pending.answer <- got // never waits: forget returned the call to us alone
	return true
}

// callID is the id of an answer if it can be one of ours.
func callID(m message) (jsonrpc2.ID, bool) {
	var id jsonrpc2.ID
	ok := m.key != "" && json.Unmarshal(m.id, &id) == nil
	return id, ok
}
