package rpc

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

func TestTrace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var trace lockedBuffer
		o := conformanceOptions()
		o.Trace, o.TraceLine = &trace, 70
		o.Requests["slow"] = func(context.Context, *Request) (any, error) { time.Sleep(1500 * time.Millisecond); return nil, nil }
		p := newPeer(t, o)
		p.send(`{"jsonrpc":"2.0","id":1,"method":"slow"}`)
		time.Sleep(2 * time.Second)
		p.send(`{"jsonrpc":"2.0","id":2,"method":"ask"}`)
		p.take()
		time.Sleep(time.Second)
		p.send(`{"jsonrpc":"2.0","id":"call-1","result":true}`,
			`{"jsonrpc":"2.0","method":"note","params":"`+strings.Repeat("é", 50)+`"}`,
			"{\"jsonrpc\":\"2.0\",\n\n\n\"method\":\"[Trace - now]\\nforged\"}",
			"not\x1b[2J\nJSON")
		p.take()
		p.end()

		var got []string
		for entry := range strings.SplitSeq(strings.TrimSuffix(trace.String(), "\n\n\n"), "\n\n\n") {
			got = append(got, regexp.MustCompile(`\d\d:\d\d:\d\d\.\d\d\d (AM|PM)`).ReplaceAllString(entry, "TIME"))
		}
		want := []string{
			"[Trace - TIME] Received request 'slow - (1)'.\nMessage: {\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"slow\"}",
			"[Trace - TIME] Sent response 'slow - (1)' in 1500ms.\nMessage: {\"jsonrpc\":\"2.0\",\"id\":1,\"result\":null}",
			"[Trace - TIME] Received request 'ask - (2)'.\nMessage: {\"jsonrpc\":\"2.0\",\"id\":2,\"method\":\"ask\"}",
			"[Trace - TIME] Sent request 'question - (call-1)'.\nMessage: {\"jsonrpc\":\"2.0\",\"id\":\"call-1\",\"method\":\"question\",\"params\":null}",
			"[Trace - TIME] Received response 'question - (\"call-1\")' in 1000ms.\nMessage: {\"jsonrpc\":\"2.0\",\"id\":\"call-1\",\"result\":true}",
		}
		replied := "[Trace - TIME] Sent response 'ask - (2)' in 1000ms.\nMessage: {\"jsonrpc\":\"2.0\",\"id\":2,\"result\":true}"
		others := []string{
			"[Trace - TIME] Received notification 'note'.\nMessage: {\"jsonrpc\":\"2.0\",\"method\":\"note\",\"params\":\"" +
				strings.Repeat("é", 13) + "?… (145 bytes in all)",
			"[Trace - TIME] Received notification '[Trace - now] forged'.\nMessage: {\"jsonrpc\":\"2.0\",   \"method\":\"[Trace - now]\\nforged\"}",
			"[Trace - TIME] Received invalid message ''.\nMessage: not [2J JSON",
		}
		for i, w := range want {
			if i >= len(got) || got[i] != w {
				t.Fatalf("got:\n%s\nwant entry %d:\n%s", strings.Join(got, "\n---\n"), i, w)
			}
		}
		for _, w := range append(others, replied) { // read and written at once
			if strings.Count(strings.Join(got, "\n\n\n")+"\n\n\n", w+"\n\n\n") != 1 {
				t.Errorf("got:\n%s\nwant once:\n%s", strings.Join(got, "\n---\n"), w)
			}
		}
	})
}

// A trace that fails or hangs costs trace lines and nothing else.
func TestTraceFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log lockedBuffer
		p := newPeer(t, Options{
			Requests: map[string]Handler{"echo": echo},
			Trace:    failing{errors.New("disk full")},
			Log:      slog.New(slog.NewTextHandler(&log, nil)),
		})
		for range 3 {
			p.send(`{"jsonrpc":"2.0","id":1,"method":"echo"}`)
			p.expect(`{"jsonrpc":"2.0","id":1,"result":null}`)
		}
		p.endCleanly()
		if n := strings.Count(log.String(), "disk full"); n != 1 {
			t.Errorf("the failure was logged %d times", n)
		}
	})
}

func TestTraceHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := &hanging{release: make(chan bool)}
		p := newPeer(t, Options{Requests: map[string]Handler{"echo": echo}, Trace: w})
		const n = 3 * traceQueue
		for i := range n {
			p.send(fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"echo"}`, i))
		}
		if got := p.take(); len(got) != n {
			t.Errorf("%d replies to %d requests", len(got), n)
		}
		close(w.release)
		p.endCleanly()
		text := w.b.String()
		written := strings.Count(text, "Message: ")
		missed := 0
		for _, line := range regexp.MustCompile(`\[Trace\] (\d+) messages were left out`).FindAllStringSubmatch(text, -1) {
			n, _ := strconv.Atoi(line[1])
			missed += n
		}
		if written == 2*n || written+missed != 2*n {
			t.Errorf("%d entries were written and %d left out, of %d", written, missed, 2*n)
		}
	})
}

// hanging writes nothing until released.
type hanging struct {
	release chan bool
	b       lockedBuffer
}

func (h *hanging) Write(p []byte) (int, error) {
	<-h.release
	return h.b.Write(p)
}
