package rpc

import (
	"bufio"
	"bytes"
	"encoding/json"
	"io"
	"testing"
)

// FuzzConn lets a whole connection read arbitrary bytes, as they are and as one
// message, followed by a good request. Serve must return, everything it wrote
// must be framed JSON, and behind the one message the good request has exactly
// one reply.
func FuzzConn(f *testing.F) {
	for _, body := range []string{
		`{"jsonrpc":"2.0","id":1,"method":"wait"}`,
		`{"id":1,"method":"ask","params":[1]}`,
		`{"id":"call-1","result":1}`,
		`{"method":"$/cancelRequest","params":{"id":1}}`,
		`[{"id":null,"method":"panic","error":{}}]`,
		frame(`{"id":5}`) + "X: y\n\n{}" + frame(`{"id":1,"method":"echo"}`),
	} {
		f.Add([]byte(body))
	}
	all := conformanceOptions()
	o := Options{MaxMessage: 1 << 10, MaxInFlight: 3, MaxQueued: 1 << 20, Trace: io.Discard, Requests: map[string]Handler{}}
	for _, method := range []string{"echo", "wait", "ask", "say", "wrapped", "panic", "decode"} {
		o.Requests[method] = all.Requests[method]
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		good := frame(`{"jsonrpc":"2.0","id":"good","method":"echo","params":7}`)
		for _, framed := range []bool{false, true} {
			input := string(data)
			if framed {
				input = frame(input)
			}
			var out bytes.Buffer
			in := io.NopCloser(bytes.NewReader([]byte(input + good)))
			NewConn(halves{in, &out}, o).Serve(t.Context())
			replies, r := 0, bufio.NewReader(&out)
			for {
				body, err := readFrame(r)
				if err == io.EOF {
					break
				}
				if err != nil || !json.Valid([]byte(body)) {
					t.Fatalf("the connection wrote %q: %v", body, err)
				}
				if body == `{"jsonrpc":"2.0","id":"good","result":7}` {
					replies++
				}
			}
			if framed && replies != 1 && !bytes.Contains(data, []byte("good")) {
				t.Fatalf("%d replies to the good request", replies)
			}
		}
	})
}
