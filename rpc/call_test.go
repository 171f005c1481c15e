package rpc

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

// A call that is given up tells the peer and is forgotten; what the peer answers
// later does nothing.
func TestCallIsGivenUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPeer(t, Options{})
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		answer := "unchanged"
		if err := p.conn.Call(ctx, "question", []int{1}, &answer); err != context.DeadlineExceeded {
			t.Errorf("Call returned %v", err)
		}
		p.expect(`{"jsonrpc":"2.0","id":"call-1","method":"question","params":[1]}`,
			`{"jsonrpc":"2.0","method":"$/cancelRequest","params":{"id":"call-1"}}`)
		if n := len(p.conn.calls); n != 0 {
			t.Errorf("%d calls are remembered", n)
		}
		p.send(`{"jsonrpc":"2.0","id":"call-1","result":"yes"}`)
		p.expect()
		if answer != "unchanged" {
			t.Errorf("a late answer arrived: %q", answer)
		}
		if err := p.conn.Call(ctx, "question", nil, nil); err != context.DeadlineExceeded {
			t.Errorf("Call returned %v", err)
		}
		p.endCleanly() // with nothing sent for a call that was over before it began
	})
}

// An answer at the same moment as the end of the context is no answer.
func TestCallPrefersTheEndOfItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPeer(t, Options{})
		done := make(chan error, 1)
		go func() { done <- p.conn.Call(&endsMeanwhile{Context: t.Context()}, "question", nil, nil) }()
		p.expect(`{"jsonrpc":"2.0","id":"call-1","method":"question"}`)
		p.send(`{"jsonrpc":"2.0","id":"call-1","result":"yes"}`)
		if err := <-done; err != context.Canceled {
			t.Errorf("Call returned %v", err)
		}
		p.endCleanly() // with no cancellation of what has been answered
	})
}

// endsMeanwhile is a context that ends while the call waits, seen only when the
// answer is there.
type endsMeanwhile struct {
	context.Context
	asked bool
}

func (e *endsMeanwhile) Done() <-chan struct{} { return nil }

func (e *endsMeanwhile) Err() error {
	if e.asked {
		return context.Canceled
	}
	e.asked = true
	return nil
}

func TestCallResults(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPeer(t, Options{})
		done := make(chan error, 1)
		var got struct{ Title string }
		call := func(answer string) error {
			go func() { done <- p.conn.Call(t.Context(), "question", nil, &got) }()
			p.take()
			p.send(answer)
			return <-done
		}
		if err := call(`{"jsonrpc":"2.0","id":"call-1","result":{"title":"Deny","more":1}}`); err != nil || got.Title != "Deny" {
			t.Errorf("got %+v, %v", got, err)
		}
		if err := call(`{"jsonrpc":"2.0","id":"call-2","result":null}`); err != nil || got.Title != "Deny" {
			t.Errorf("null: got %+v, %v", got, err)
		}
		if err := call(`{"jsonrpc":"2.0","id":"call-3","result":"Allow"}`); err == nil {
			t.Errorf("a result of the wrong type was accepted: %+v", got)
		}
		err := call(`{"jsonrpc":"2.0","id":"call-4","error":{"code":-32601,"message":"no such method"}}`)
		if e, ok := errors.AsType[*Error](err); !ok || e.Code != CodeMethodNotFound || e.Message != "no such method" || e.Data != nil {
			t.Errorf("an error answer gave %#v", err)
		}
		go func() { done <- p.conn.Call(t.Context(), "question", nil, &got) }()
		p.take()
		if err := p.end(); err != nil {
			t.Error(err)
		}
		if err := <-done; err != ErrClosed {
			t.Errorf("the end of the connection gave %v", err)
		}
	})
}
