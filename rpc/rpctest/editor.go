// Package rpctest is a scripted fake editor: it frames messages with a codec of
// its own, notes everything it receives in order, and waits for what a test
// expects instead of sleeping.
//
//	editor := rpctest.Open(t, stream)
//	editor.Initialize(rpctest.Init{Confine: &proto.ClientConfine{ProtocolVersion: 1, Approval: true}})
//	id := editor.Request(proto.MethodRunCommand, proto.RunCommandParams{Command: "make"})
//	question := editor.AwaitRequest(proto.MethodRequestApproval)
//	editor.Reply(question, nil)
//	editor.Response(id, &result)
package rpctest

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"sync"
	"testing"
	"time"
)

// DefaultPatience is how long a test waits for a message.
const DefaultPatience = 20 * time.Second

// Message is one JSON-RPC message as it was received.
type Message struct {
	ID     json.RawMessage `json:"id,omitempty"`
	Method string          `json:"method,omitempty"`
	Params json.RawMessage `json:"params,omitempty"`
	Result json.RawMessage `json:"result,omitempty"`
	Error  *Error          `json:"error,omitempty"`
}

// IsRequest reports whether the message wants an answer.
func (m Message) IsRequest() bool { return m.Method != "" && m.ID != nil }

// IsNotification reports whether the message is a notification.
func (m Message) IsNotification() bool { return m.Method != "" && m.ID == nil }

// IsResponse reports whether the message answers a request.
func (m Message) IsResponse() bool { return m.Method == "" }

// Error is the error of a response.
type Error struct {
	Code    int64           `json:"code"`
	Message string          `json:"message"`
	Data    json.RawMessage `json:"data,omitempty"`
}

func (e *Error) Error() string { return fmt.Sprintf("error %d: %s", e.Code, e.Message) }

// Answer is what an editor does with a request of the server: a result, or an
// error if Err is set.
type Answer struct {
	Result any
	Err    *Error
}

// Editor is the client's end of one connection.
type Editor struct {
	// Patience replaces DefaultPatience if it is set before the first wait.
	// Within a synctest bubble it should be longer than every time limit of the
	// server: it is over as soon as nothing moves any more.
	Patience time.Duration

	t       testing.TB
	stream  io.ReadWriteCloser
	reading sync.WaitGroup // the reader, which ends with the stream
	writing sync.Mutex     // held while a frame is written

	mu       sync.Mutex // guards what follows
	nextID   int64
	received []Message
	taken    []bool        // parallel to received: a wait has consumed it
	changed  chan struct{} // closed and replaced when something was received
	ended    bool          // the stream is at its end
	answers  map[string]func(params json.RawMessage) Answer
	stalled  chan struct{} // non-nil while stalled; closed by Resume
}

// Open starts reading the stream. The test closes it at its end if Close was
// not called.
func Open(t testing.TB, stream io.ReadWriteCloser) *Editor {
	e := &Editor{
		Patience: DefaultPatience,

		t:       t,
		stream:  stream,
		changed: make(chan struct{}),
		answers: map[string]func(json.RawMessage) Answer{},
	}
	e.reading.Go(e.read)
	t.Cleanup(e.Close)
	return e
}

// Close closes the stream, as an editor that dies does, and waits for the
// reader.
func (e *Editor) Close() {
	e.Resume()
	e.stream.Close() // a second close fails, which means nothing
	e.reading.Wait()
}

// Stall stops reading, as an editor that hangs does, until Resume. One message
// may still be taken.
func (e *Editor) Stall() {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.stalled == nil {
		e.stalled = make(chan struct{})
	}
}

// Resume goes on reading.
func (e *Editor) Resume() {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.stalled != nil {
		close(e.stalled)
		e.stalled = nil
	}
}

// Answer answers every later request of the server with that method at once.
func (e *Editor) Answer(method string, answer func(params json.RawMessage) Answer) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.answers[method] = answer
}

func (e *Editor) read() {
	frames := newFrameReader(e.stream)
	for {
		body, err := frames.next()
		if err != nil {
			e.mu.Lock()
			e.ended = true
			e.announce()
			e.mu.Unlock()
			return
		}
		e.receive(body)
	}
}

func (e *Editor) receive(body []byte) {
	var m Message
	if err := json.Unmarshal(body, &m); err != nil {
		m = Message{Error: &Error{Message: fmt.Sprintf("rpctest: not a message: %q", body)}}
	}
	e.mu.Lock()
	stalled := e.stalled
	answer := e.answers[m.Method]
	e.received = append(e.received, m)
	e.taken = append(e.taken, false)
	e.announce()
	e.mu.Unlock()
	if answer != nil && m.IsRequest() {
		// Apart from the reader: over an unbuffered pipe both ends may write.
		e.reading.Go(func() { e.ReplyWith(m, answer(m.Params)) })
	}
	if stalled != nil {
		<-stalled
	}
}

// announce wakes whoever waits. The caller holds mu.
func (e *Editor) announce() {
	close(e.changed)
	e.changed = make(chan struct{})
}

// Received lists everything that was received so far, in order.
func (e *Editor) Received() []Message {
	e.mu.Lock()
	defer e.mu.Unlock()
	return append([]Message(nil), e.received...)
}

// Await takes the first message not yet taken that matches, waiting for it.
// The test fails if it does not come.
func (e *Editor) Await(what string, match func(Message) bool) Message {
	e.t.Helper()
	timeout := time.NewTimer(e.Patience)
	defer timeout.Stop()
	for {
		e.mu.Lock()
		for i, m := range e.received {
			if !e.taken[i] && match(m) {
				e.taken[i] = true
				e.mu.Unlock()
				return m
			}
		}
		changed, ended := e.changed, e.ended
		e.mu.Unlock()
		if ended {
			e.t.Fatalf("waiting for %s: the stream ended; received:\n%s", what, e.transcript())
		}
		select {
		case <-changed:
		case <-timeout.C:
			e.t.Fatalf("waiting for %s: nothing came; received:\n%s", what, e.transcript())
		}
	}
}

// AwaitEnd waits until the server closed the stream.
func (e *Editor) AwaitEnd() {
	e.t.Helper()
	timeout := time.NewTimer(e.Patience)
	defer timeout.Stop()
	for {
		e.mu.Lock()
		changed, ended := e.changed, e.ended
		e.mu.Unlock()
		if ended {
			return
		}
		select {
		case <-changed:
		case <-timeout.C:
			e.t.Fatalf("waiting for the end of the stream: it did not come; received:\n%s", e.transcript())
		}
	}
}

func (e *Editor) transcript() string {
	var b strings.Builder
	for _, m := range e.Received() {
		line, err := json.Marshal(m)
		if err != nil {
			line = []byte(err.Error())
		}
		if len(line) > 500 {
			line = append(line[:500:500], "…"...)
		}
		fmt.Fprintf(&b, "  %s\n", line)
	}
	return b.String()
}
