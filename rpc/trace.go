package rpc

import (
	"bytes"
	"fmt"
	"io"
	"log/slog"
	"sync/atomic"
	"time"
)

// traced is what the trace says about a message besides its text.
type traced struct {
	kind   kind
	method string
	id     string
	took   time.Duration // of an answer: since its request
}

// tracer writes messages as text in the manner of the LSP inspector; directions
// are those of this end. The methods do nothing on nil. One goroutine of its own
// uses the writer, so that it can neither fail nor delay the connection.
type tracer struct {
	limit   int // bytes of a message that are shown
	entries chan []byte
	missed  atomic.Int64  // entries left out since the last one written
	stop    chan struct{} // closed by close
	done    chan struct{} // closed when the goroutine has ended
}

// traceQueue is how many entries may wait for a slow writer.
const traceQueue = 128

func newTracer(w io.Writer, limit int, log *slog.Logger) *tracer {
	if w == nil {
		return nil
	}
	t := &tracer{
		limit:   limit,
		entries: make(chan []byte, traceQueue),
		stop:    make(chan struct{}),
		done:    make(chan struct{}),
	}
	go t.run(w, log)
	return t
}

// add queues one entry, or counts it as left out.
func (t *tracer) add(direction string, n traced, body []byte) {
	if t == nil {
		return
	}
	var b bytes.Buffer
	fmt.Fprintf(&b, "[Trace - %s] %s %s '", time.Now().Format("15:04:05.000 PM"), direction, n.kind)
	switch {
	case n.method != "" && n.id != "":
		fmt.Fprintf(&b, "%s - (%s)", printable(n.method, t.limit), n.id)
	case n.id != "":
		fmt.Fprintf(&b, "(%s)", n.id)
	default:
		b.Write(printable(n.method, t.limit))
	}
	b.WriteByte('\'')
	if n.took > 0 {
		fmt.Fprintf(&b, " in %dms", n.took.Milliseconds())
	}
	fmt.Fprintf(&b, ".\nMessage: %s", printable(body, t.limit))
	if len(body) > t.limit {
		fmt.Fprintf(&b, "… (%d bytes in all)", len(body))
	}
	b.WriteString("\n\n\n")
	select {
	case t.entries <- b.Bytes():
	default:
		t.missed.Add(1)
	}
}

// printable cuts text and replaces control characters, raw line feeds above all:
// JSON needs none, and with them a message could forge entries.
func printable[T string | []byte](text T, limit int) []byte {
	out := bytes.ToValidUTF8([]byte(text[:min(len(text), limit)]), []byte("?"))
	for i, b := range out {
		if b < ' ' || b == 0x7f {
			out[i] = ' '
		}
	}
	return out
}

func (t *tracer) run(w io.Writer, log *slog.Logger) {
	defer close(t.done)
	failed := false
	write := func(p []byte) {
		if failed || len(p) == 0 {
			return
		}
		if _, err := w.Write(p); err != nil {
			failed = true
			log.Warn("writing the trace failed, it ends here", "error", err)
		}
	}
	entry := func(p []byte) {
		if n := t.missed.Swap(0); n > 0 {
			write(fmt.Appendf(nil, "[Trace] %d messages were left out here: writing the trace is too slow\n\n\n", n))
		}
		write(p)
	}
	for {
		select {
		case p := <-t.entries:
			entry(p)
		case <-t.stop:
			for {
				select {
				case p := <-t.entries:
					entry(p)
				default:
					entry(nil)
					return
				}
			}
		}
	}
}

// close writes what is queued and ends the goroutine, unless the writer is stuck.
func (t *tracer) close() {
	if t != nil {
		close(t.stop)
		waitFor(t.done, unwindTime)
	}
}

// traceReceived traces a received message; an answer under the name of its call.
func (c *Conn) traceReceived(m message, body []byte) {
	if c.trace == nil {
		return
	}
	n := traced{kind: m.kind, method: m.method, id: m.key}
	if id, ok := callID(m); ok && m.method == "" {
		c.mu.Lock()
		if pending := c.calls[id]; pending != nil {
			n.method, n.took = pending.method, time.Since(pending.start)
		}
		c.mu.Unlock()
	}
	c.trace.add("Received", n, body)
}
