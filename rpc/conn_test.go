package rpc

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

func TestNotificationsKeepTheirOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const n = 2000
		var got []string
		o := Options{
			Requests:      map[string]Handler{"echo": echo},
			Notifications: map[string]Notification{"n": func(_ context.Context, r *Request) { got = append(got, string(r.Params)) }},
		}
		p := newPeer(t, o)
		var wire, want strings.Builder
		for i := range n {
			wire.WriteString(frame(fmt.Sprintf(`{"jsonrpc":"2.0","method":"n","params":[%d]}`, i)))
			wire.WriteString(frame(fmt.Sprintf(`{"jsonrpc":"2.0","method":"echo","id":%d}`, i)))
			fmt.Fprintf(&want, "[%d] ", i)
		}
		p.raw(wire.String())
		if replies := p.take(); len(replies) != n {
			t.Errorf("%d replies to %d requests", len(replies), n)
		}
		p.endCleanly()
		if all := strings.Join(got, " ") + " "; all != want.String() {
			t.Errorf("out of order: %.300s", all)
		}
	})
}

// The cancellation comes in the same packet as its request, and must find it.
func TestCancelNeverOvertakesItsRequest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const n = 1000
		p := newPeer(t, Options{Requests: map[string]Handler{"wait": waiting}, MaxInFlight: n})
		var wire strings.Builder
		for i := range n {
			wire.WriteString(frame(fmt.Sprintf(`{"jsonrpc":"2.0","method":"wait","id":%d}`, i)))
			wire.WriteString(frame(fmt.Sprintf(`{"jsonrpc":"2.0","method":"$/cancelRequest","params":{"id":%d}}`, i)))
		}
		p.raw(wire.String())
		replies := map[string]int{}
		for _, r := range p.take() {
			replies[r]++
		}
		for i := range n {
			if want := fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"result":"the peer cancelled the request"}`, i); replies[want] != 1 {
				t.Fatalf("request %d was answered %d times", i, replies[want])
			}
		}
		p.endCleanly()
	})
}

// A cancellation has taken effect before the next message is looked at, so it
// cannot hit a later request that uses the id again.
func TestCancelIsDoneOnTheReadLoop(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var running context.Context
		before := true
		p := newPeer(t, Options{
			Requests: map[string]Handler{"wait": func(ctx context.Context, r *Request) (any, error) {
				running = ctx
				return waiting(ctx, r)
			}},
			Notifications: map[string]Notification{"check": func(context.Context, *Request) {
				before = before && running.Err() != nil
			}},
		})
		for range 100 {
			p.send(`{"jsonrpc":"2.0","id":1,"method":"wait"}`)
			synctest.Wait()
			p.raw(frame(`{"jsonrpc":"2.0","method":"$/cancelRequest","params":{"id":1}}`) + frame(`{"jsonrpc":"2.0","method":"check"}`))
			p.expect(`{"jsonrpc":"2.0","id":1,"result":"the peer cancelled the request"}`)
		}
		p.endCleanly()
		if !before {
			t.Error("the next message was handled before the cancellation")
		}
	})
}

// Close does not wait, Serve does; what a handler says after Close is dropped,
// what was queued before is written.
func TestCloseWhileHandlersRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		finish, cause := make(chan bool), make(chan error, 1)
		p := newPeer(t, Options{Requests: map[string]Handler{"slow": func(ctx context.Context, _ *Request) (any, error) {
			<-ctx.Done()
			cause <- context.Cause(ctx)
			<-finish
			return "too late", nil
		}}})
		p.send(`{"jsonrpc":"2.0","id":1,"method":"slow"}`)
		synctest.Wait()
		if err := p.conn.Notify("last", nil, nil); err != nil {
			t.Error(err)
		}
		if err := p.conn.Close(); err != nil {
			t.Error(err)
		}
		if err := <-cause; err != ErrClosed {
			t.Errorf("the handler's context ended by %v", err)
		}
		p.expect(`{"jsonrpc":"2.0","method":"last"}`)
		select {
		case err := <-p.served:
			t.Fatalf("Serve returned %v before the handler", err)
		default:
		}
		close(finish)
		if err := <-p.served; err != nil {
			t.Errorf("Serve returned %v", err)
		}
		p.expect()
		if err := p.conn.Notify("after", nil, nil); err != ErrClosed {
			t.Errorf("Notify after the end: %v", err)
		}
		if err := p.conn.Call(t.Context(), "after", nil, nil); err != ErrClosed {
			t.Errorf("Call after the end: %v", err)
		}
		if err := p.conn.Close(); err != nil {
			t.Errorf("closing twice: %v", err)
		}
	})
}

// A notification may close the connection (that is how exit works); nothing
// behind it is acted on.
func TestCloseFromANotification(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := conformanceOptions()
		o.Notifications["after"] = func(context.Context, *Request) { t.Error("a message behind the end was acted on") }
		p := newPeer(t, o)
		p.raw(frame(`{"jsonrpc":"2.0","method":"stop"}`) + frame(`{"jsonrpc":"2.0","method":"after"}`) +
			frame(`{"jsonrpc":"2.0","id":1,"method":"echo"}`))
		if err := <-p.served; err != nil {
			t.Errorf("Serve returned %v", err)
		}
		p.expect()
	})
}

// halves is a stream whose directions end separately, like standard input and
// output.
type halves struct {
	io.ReadCloser
	io.Writer
}

func (h halves) Close() error { return h.ReadCloser.Close() }

// After the end of file nobody sends any more, but somebody may still read.
func TestEndOfFileStillReplies(t *testing.T) {
	for _, test := range []struct {
		tail, reply string
		err         error
	}{
		{"", "", nil},
		{"Content-Length: 5\r\n\r\n{", `{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"the stream ended inside a message"}}`, io.ErrUnexpectedEOF},
	} {
		synctest.Test(t, func(t *testing.T) {
			in := frame(`{"jsonrpc":"2.0","id":1,"method":"wait"}`) + test.tail
			var out bytes.Buffer
			c := NewConn(halves{io.NopCloser(strings.NewReader(in)), &out}, Options{Requests: map[string]Handler{"wait": waiting}})
			if err := c.Serve(t.Context()); !errors.Is(err, test.err) || (err == nil) != (test.err == nil) {
				t.Errorf("Serve returned %v, want %v", err, test.err)
			}
			want := frame(`{"jsonrpc":"2.0","id":1,"result":"the connection is closed"}`)
			if test.reply != "" {
				want = frame(test.reply) + want
			}
			if out.String() != want {
				t.Errorf("got  %q\nwant %q", out.String(), want)
			}
		})
	}
}

// A peer that dies takes its requests with it, and that is a clean end.
func TestPeerGoesAway(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPeer(t, conformanceOptions())
		p.send(`{"jsonrpc":"2.0","id":1,"method":"wait"}`, `{"jsonrpc":"2.0","id":2,"method":"ask"}`)
		p.take()
		if err := p.end(); err != nil {
			t.Errorf("Serve returned %v", err)
		}
		if n := len(p.conn.inFlight) + len(p.conn.calls); n != 0 {
			t.Errorf("%d entries are left behind", n)
		}
	})
}

func TestServeContextEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ours, theirs := net.Pipe()
		defer ours.Close()
		reason := errors.New("told to stop")
		ctx, cancel := context.WithCancelCause(t.Context())
		c := NewConn(theirs, Options{Requests: map[string]Handler{"wait": waiting}})
		served := make(chan error)
		go func() { served <- c.Serve(ctx) }()
		synctest.Wait()
		if err := c.Serve(ctx); err != ErrClosed {
			t.Errorf("serving twice: %v", err)
		}
		io.WriteString(ours, frame(`{"jsonrpc":"2.0","id":1,"method":"wait"}`))
		synctest.Wait()
		cancel(reason)
		body, err := readFrame(bufio.NewReader(ours))
		if want := `{"jsonrpc":"2.0","id":1,"result":"told to stop"}`; body != want || err != nil {
			t.Errorf("got %q, %v", body, err)
		}
		if err := <-served; err != reason {
			t.Errorf("Serve returned %v", err)
		}
	})
}

func TestCloseWithoutServe(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ours, theirs := net.Pipe()
		c := NewConn(theirs, Options{})
		var sent atomic.Int32
		if err := c.Notify("early", nil, func() { sent.Add(1) }); err != nil {
			t.Error(err)
		}
		if err := c.Close(); err != nil {
			t.Error(err)
		}
		if _, err := ours.Read(make([]byte, 1)); err != io.EOF {
			t.Errorf("the stream is open: %v", err)
		}
		if err := c.Serve(t.Context()); err != ErrClosed {
			t.Errorf("Serve after Close: %v", err)
		}
		synctest.Wait()
		if n := sent.Load(); n != 1 {
			t.Errorf("sent was called %d times", n)
		}
	})
}

// A read or write of standard input or output cannot be interrupted. Serve must
// return all the same.
func TestServeEndsAlthoughTheStreamIsStuck(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := stuck{make(chan bool)}
		c := NewConn(s, Options{Trace: s})
		ctx, cancel := context.WithCancel(t.Context())
		var sent atomic.Int32
		for range 3 {
			c.Notify("n", nil, func() { sent.Add(1) })
		}
		served := make(chan error)
		go func() { served <- c.Serve(ctx) }()
		synctest.Wait()
		cancel()
		start := time.Now()
		if err := <-served; err != context.Canceled {
			t.Errorf("Serve returned %v", err)
		}
		if took := time.Since(start); took > 2*time.Second {
			t.Errorf("that took %v", took)
		}
		if n := sent.Load(); n != 2 {
			t.Errorf("sent was called %d times for the two messages that cannot be written any more", n)
		}
		close(s.release)
		synctest.Wait()
		if n := sent.Load(); n != 3 {
			t.Errorf("sent was called %d times for 3 messages", n)
		}
	})
}

type stuck struct{ release chan bool }

func (s stuck) Read([]byte) (int, error)  { <-s.release; return 0, io.EOF }
func (s stuck) Write([]byte) (int, error) { <-s.release; return 0, io.ErrClosedPipe }
func (s stuck) Close() error              { return nil }

// What cannot be sent to a peer that does not read: notifications are refused
// while replies and calls still fit, and all that was accepted arrives.
func TestBacklogOfNotifications(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newMutePeer(t, Options{Requests: map[string]Handler{"echo": echo}, MaxQueued: 10_000})
		var accepted, sent atomic.Int32
		text := strings.Repeat("x", 500)
		for {
			err := p.conn.Notify("n", text, func() { sent.Add(1) })
			if err == ErrBacklog {
				break
			} else if err != nil {
				t.Fatal(err)
			}
			accepted.Add(1)
		}
		synctest.Wait()
		if n := accepted.Load(); n < 5 || n > 10 || sent.Load() != 1 {
			t.Errorf("%d were accepted and %d are done with, before anything was read", n, sent.Load())
		}
		p.send(`{"jsonrpc":"2.0","id":1,"method":"echo","params":[1]}`)
		synctest.Wait()
		go p.read()
		got := p.take()
		if n := int(accepted.Load()); len(got) != n+1 || got[n] != `{"jsonrpc":"2.0","id":1,"result":[1]}` {
			t.Errorf("got %d messages, the last %.100q", len(got), got[len(got)-1])
		}
		if sent.Load() != accepted.Load()+1 {
			t.Errorf("sent was called %d times for %d notifications", sent.Load(), accepted.Load()+1)
		}
		if err := p.conn.Notify("n", text, nil); err != nil {
			t.Errorf("after the peer has read: %v", err)
		}
		p.take()
		p.endCleanly()
	})
}

// Replies and calls are never lost in silence: when they do not fit any more the
// connection is broken off, and the reason is logged.
func TestBacklogOfReplies(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log lockedBuffer
		o := Options{
			Requests:  map[string]Handler{"echo": echo},
			MaxQueued: 10_000,
			Log:       slog.New(slog.NewTextHandler(&log, nil)),
		}
		p := newMutePeer(t, o)
		var sent atomic.Int32
		if err := p.conn.Notify("n", nil, func() { sent.Add(1) }); err != nil {
			t.Error(err)
		}
		request := frame(`{"jsonrpc":"2.0","id":1,"method":"echo","params":["` + strings.Repeat("x", 3000) + `"]}`)
		for range 4 {
			io.WriteString(p.stream, request) // the last ones are not read any more
			synctest.Wait()
		}
		err := <-p.served
		if err == nil || !strings.Contains(err.Error(), "the peer does not read") || !strings.Contains(log.String(), err.Error()) {
			t.Errorf("Serve returned %v, the log says %q", err, log.String())
		}
		synctest.Wait()
		if n := sent.Load(); n != 1 {
			t.Errorf("sent was called %d times", n)
		}
	})
}

// One message may be larger than the whole queue.
func TestLargeReplyFitsIntoAnEmptyQueue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPeer(t, Options{Requests: map[string]Handler{"echo": echo}, MaxQueued: 1000})
		p.send(`{"jsonrpc":"2.0","id":1,"method":"echo","params":"` + strings.Repeat("x", 5000) + `"}`)
		p.expect(`{"jsonrpc":"2.0","id":1,"result":"xxx*"}`)
		p.endCleanly()
	})
}

// A write error ends the connection and every call, and tells every sender.
func TestWriteFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, w := io.Pipe()
		defer w.Close()
		broken := errors.New("broken pipe")
		c := NewConn(halves{r, failing{broken}}, Options{})
		served := make(chan error)
		go func() { served <- c.Serve(t.Context()) }()
		if err := c.Call(t.Context(), "m", nil, nil); err != ErrClosed {
			t.Errorf("Call returned %v", err)
		}
		if err := <-served; !errors.Is(err, broken) {
			t.Errorf("Serve returned %v", err)
		}
		sent := make(chan bool)
		var mu sync.Mutex
		mu.Lock() // sent may need a lock that the caller of Notify holds
		if err := c.Notify("m", nil, func() { mu.Lock(); close(sent) }); err != ErrClosed {
			t.Errorf("Notify returned %v", err)
		}
		mu.Unlock()
		<-sent
	})
}

type failing struct{ err error }

func (f failing) Write([]byte) (int, error) { return 0, f.err }

func TestNotifyThatDoesNotEncode(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPeer(t, Options{})
		sent := make(chan bool, 2)
		if err := p.conn.Notify("m", func() {}, func() { sent <- true }); err == nil {
			t.Error("a function was encoded")
		}
		<-sent
		if err := p.conn.Call(t.Context(), "m", func() {}, nil); err == nil {
			t.Error("a function was encoded")
		}
		if n := len(p.conn.calls); n != 0 {
			t.Errorf("%d calls are left behind", n)
		}
		p.conn.Notify("m", nil, func() { sent <- true; panic("sent") })
		p.conn.Notify("m", map[string]string{"html": "<&>\u2028"}, nil)
		p.expect(`{"jsonrpc":"2.0","method":"m"}`, `{"jsonrpc":"2.0","method":"m","params":{"html":"<&>\u2028"}}`)
		p.endCleanly()
	})
}

// Everything at once, for the race detector.
func TestConcurrentUse(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const n = 100
		p := newPeer(t, conformanceOptions())
		var all sync.WaitGroup
		var ids sync.Map
		for i := range n {
			all.Go(func() {
				ctx, cancel := context.WithTimeout(t.Context(), time.Duration(i)*time.Millisecond)
				defer cancel()
				if err := p.conn.Call(ctx, "question", i, nil); !errors.Is(err, context.DeadlineExceeded) {
					t.Errorf("the call ended with %v", err)
				}
			})
			all.Go(func() { p.conn.Notify("n", i, func() { ids.Store(i, true) }) })
		}
		for i := range n {
			p.send(fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"say"}`, i))
		}
		all.Wait()
		p.take()
		for i := range n {
			if _, ok := ids.Load(i); !ok {
				t.Fatalf("the sender of notification %d was not told", i)
			}
		}
		p.endCleanly()
	})
}

// lockedBuffer is a bytes.Buffer for several goroutines.
type lockedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lockedBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lockedBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}
