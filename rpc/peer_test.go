package rpc

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
)

// peer is the other end of a served connection, in raw bytes. It shares no code
// with the package under test and belongs in a synctest bubble.
type peer struct {
	t      *testing.T
	conn   *Conn
	stream net.Conn
	served chan error // what Serve returned

	mu   sync.Mutex
	got  []string // bodies received and not taken yet
	fail error    // why reading ended, unless at an end of file
}

// newPeer serves a connection with o and reads everything it sends.
func newPeer(t *testing.T, o Options) *peer {
	p := newMutePeer(t, o)
	go p.read()
	return p
}

// newMutePeer is a peer that reads nothing.
func newMutePeer(t *testing.T, o Options) *peer {
	ours, theirs := net.Pipe()
	p := &peer{t: t, conn: NewConn(theirs, o), stream: ours, served: make(chan error, 1)}
	go func() { p.served <- p.conn.Serve(t.Context()) }()
	return p
}

func (p *peer) read() {
	r := bufio.NewReader(p.stream)
	for {
		body, err := readFrame(r)
		p.mu.Lock()
		if err == nil {
			p.got = append(p.got, body)
		} else if !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrClosedPipe) {
			p.fail = err
		}
		p.mu.Unlock()
		if err != nil {
			return
		}
	}
}

// readFrame accepts the one spelling of a header that every client reads.
func readFrame(r *bufio.Reader) (string, error) {
	line, err := r.ReadString('\n')
	if err != nil {
		return "", err
	}
	digits, ok := strings.CutPrefix(line, "Content-Length: ")
	digits, ok2 := strings.CutSuffix(digits, "\r\n")
	n, err := strconv.Atoi(digits)
	blank, err2 := r.ReadString('\n')
	if !ok || !ok2 || err != nil || err2 != nil || blank != "\r\n" {
		return "", fmt.Errorf("bad header %q %q", line, blank)
	}
	body := make([]byte, n)
	_, err = io.ReadFull(r, body)
	return string(body), err
}

func frame(body string) string { return fmt.Sprintf("Content-Length: %d\r\n\r\n%s", len(body), body) }

// raw sends bytes as they are, in one write.
func (p *peer) raw(bytes string) {
	p.t.Helper()
	if _, err := p.stream.Write([]byte(bytes)); err != nil {
		p.t.Fatalf("the connection did not take %.200q: %v", bytes, err)
	}
}

// send sends messages, each with its own header.
func (p *peer) send(bodies ...string) {
	p.t.Helper()
	for _, body := range bodies {
		p.raw(frame(body))
	}
}

// take waits until nothing moves any more and returns what came.
func (p *peer) take() []string {
	p.t.Helper()
	synctest.Wait()
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.fail != nil {
		p.t.Fatalf("reading what the connection wrote: %v", p.fail)
	}
	got := p.got
	p.got = nil
	return got
}

// expect compares everything that came since the last time with patterns, in
// which * stands for any text.
func (p *peer) expect(want ...string) {
	p.t.Helper()
	got := p.take()
	same := len(got) == len(want)
	for i := 0; same && i < len(want); i++ {
		same = matches(want[i], got[i])
	}
	if !same {
		p.t.Fatalf("got:\n  %s\nwant:\n  %s", strings.Join(got, "\n  "), strings.Join(want, "\n  "))
	}
}

func matches(pattern, text string) bool {
	parts := strings.Split(pattern, "*")
	text, ok := strings.CutPrefix(text, parts[0])
	if len(parts) == 1 {
		return ok && text == ""
	}
	for _, part := range parts[1 : len(parts)-1] {
		i := strings.Index(text, part)
		if i < 0 {
			return false
		}
		text = text[i+len(part):]
	}
	return ok && strings.HasSuffix(text, parts[len(parts)-1])
}

// end closes the peer's side and returns what Serve returned.
func (p *peer) end() error {
	p.stream.Close()
	return <-p.served
}

// endCleanly is end for connections that must have lived to the end.
func (p *peer) endCleanly() {
	p.t.Helper()
	p.expect()
	if err := p.end(); err != nil {
		p.t.Fatalf("Serve returned %v", err)
	}
}

// waiting is a handler that waits for its context and answers with the cause.
func waiting(ctx context.Context, _ *Request) (any, error) {
	<-ctx.Done()
	return context.Cause(ctx).Error(), nil
}

func echo(_ context.Context, req *Request) (any, error) { return req.Params, nil }
