package rpc

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"runtime"
	"strings"
	"testing"
	"testing/iotest"
)

// readOnly makes a stream's other half out of a reader.
type readOnly struct{ io.Reader }

func (readOnly) Write(p []byte) (int, error) { return len(p), nil }
func (readOnly) Close() error                { return nil }

// Text inside a string cannot pass for a header, whatever the peer miscounts: a
// string is closed by a quote before its line can end.
func TestContentLength(t *testing.T) {
	tests := []struct {
		line string
		want string // length, "junk", or "error"
	}{
		{"Content-Length: 5", "5"},
		{"content-LENGTH:5", "5"},
		{"Content-Length : 005", "5"},
		{`"}}Content-Length: 5`, "5"},
		{`]} Content-Length: 5`, "5"},
		{"\xa9\"}Content-Length: 5", "5"},
		{`"Content-Length: 7"}Content-Length: 5`, "5"},
		{"X-Content-Length: 5", "junk"},
		{`{"s":"Content-Length: 5`, "junk"},
		{"Content-Length", "junk"},
		{"Content-Lengths: 5", "junk"},
		{`}Content-Length: 5"}`, "error"},
		{`}Content-Length: 5",`, "error"},
		{`}Content-Length: 5":1`, "error"},
		{"Content-Length: +5", "error"},
		{"Content-Length: -5", "error"},
		{"Content-Length: 0x5", "error"},
		{"Content-Length: 5 5", "error"},
		{"Content-Length:", "error"},
		{"Content-Length: 1234567890123", "error"},
	}
	for _, test := range tests {
		got := "junk"
		if value, _, found := contentLength([]byte(test.line)); found {
			n, err := parseLength(value)
			if got = fmt.Sprint(n); err != nil {
				got = "error"
			}
		}
		if got != test.want {
			t.Errorf("%q: got %s, want %s", test.line, got, test.want)
		}
	}
}

func TestReadObjectEnds(t *testing.T) {
	tests := []struct {
		input string
		want  error
	}{
		{"", io.EOF},
		{"\r\n\r\n", io.EOF},
		{"Content-Le", io.ErrUnexpectedEOF},
		{"Content-Length: 5\r\n", io.ErrUnexpectedEOF},
		{"Content-Length: 5\r\n\r\n", io.ErrUnexpectedEOF},
		{"Content-Length: 5\r\n\r\n{", io.ErrUnexpectedEOF},
		{"Content-Length: 50\r\n\r\n{", io.ErrUnexpectedEOF}, // over the limit
	}
	for _, test := range tests {
		s := newStream(readOnly{strings.NewReader(test.input)}, 10)
		var body json.RawMessage
		if err := s.ReadObject(&body); err != test.want {
			t.Errorf("%q: got %v, want %v", test.input, err, test.want)
		}
	}
}

// Of a very long line only the end is looked at; that is no line of its own.
func TestLongLineIsNoHeader(t *testing.T) {
	header := "Content-Length: 2"
	header += strings.Repeat(" ", maxLine-len(header)-1) + "\n"
	for prefix, want := range map[string]bool{"": true, "x": false, strings.Repeat("x", 100_000): false} {
		s := newStream(readOnly{strings.NewReader(prefix + header + "\n{}")}, 10)
		var body json.RawMessage
		if err := s.ReadObject(&body); (err == nil) != want {
			t.Errorf("behind %d bytes: %q, %v", len(prefix), body, err)
		}
	}
}

// An endless header line and a message far over the limit cost no memory.
func TestReadObjectMemory(t *testing.T) {
	const size = 4 << 20
	endless := func(n int64) io.Reader { return io.LimitReader(forever('x'), n) }
	input := io.MultiReader(
		endless(size), strings.NewReader("\n"),
		strings.NewReader(fmt.Sprintf("Content-Length: %d\r\n\r\n", size)), endless(size),
		strings.NewReader(frame("{}")),
	)
	s := newStream(readOnly{input}, 1000)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	var body json.RawMessage
	err := s.ReadObject(&body)
	if _, ok := errors.AsType[*frameError](err); !ok {
		t.Fatalf("the large message gave %v", err)
	}
	if err := s.ReadObject(&body); err != nil || string(body) != "{}" {
		t.Fatalf("the message behind it: %q, %v", body, err)
	}
	runtime.ReadMemStats(&after)
	if grown := after.TotalAlloc - before.TotalAlloc; grown > size/4 {
		t.Errorf("allocated %d bytes for %d bytes of nothing", grown, 2*size)
	}
	if s.junk == 0 {
		t.Error("the skipped line was not counted")
	}
}

type forever byte

func (f forever) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = byte(f)
	}
	return len(p), nil
}

func TestIDKey(t *testing.T) {
	same := [][]string{
		{`1`, `1.0`, `1e0`, `10E-1`},
		{`-1`, `-1.0`},
		{`"1"`, `"\u0031"`},
		{`"a\n"`, `"\u0061\u000a"`},
		{`1.5`, `15e-1`},
		{`9007199254740993`},
		{`9007199254740992`},
		{`1e999`},
		{`"` + strings.Repeat("x", maxID-2) + `"`},
	}
	seen := map[string]int{}
	for i, group := range same {
		for _, raw := range group {
			key, ok := idKey(json.RawMessage(raw))
			if !ok {
				t.Errorf("%s is refused", raw)
			}
			if j, ok := seen[key]; ok && j != i {
				t.Errorf("%s has the key %q of another id", raw, key)
			}
			seen[key] = i
		}
	}
	if len(seen) != len(same) {
		t.Errorf("%d keys for %d ids: %v", len(seen), len(same), seen)
	}
	for _, raw := range []string{``, `null`, `true`, `[1]`, `{}`, `01`, `"`, `1 2`, `"` + strings.Repeat("x", maxID-1) + `"`} {
		if key, ok := idKey(json.RawMessage(raw)); ok {
			t.Errorf("%s is taken for the id %q", raw, key)
		}
	}
}

// FuzzCodec feeds arbitrary bytes. Reading must end, use no more memory than the
// limit, give the same messages in packets of one byte, and lose no frame that
// begins where another one ended.
func FuzzCodec(f *testing.F) {
	f.Add([]byte("Content-Length: 2\r\n\r\n{}"))
	f.Add([]byte("content-length:5\n\n[1,2]Content-Length: 3000\r\n\r\n{\"id\":1}"))
	f.Add([]byte("x\r\n\r\n{}Content-Length: 2\r\n\r\n{}"))
	f.Add([]byte("Content-Length: 99999999999999999999\r\n\r\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		const limit = 64
		whole := readAll(t, bytes.NewReader(data), limit, len(data))
		bytewise := readAll(t, iotest.OneByteReader(bytes.NewReader(data)), limit, len(data))
		if fmt.Sprint(whole) != fmt.Sprint(bytewise) {
			t.Fatalf("in one piece: %q\nbyte by byte: %q", whole, bytewise)
		}

		// The same bytes as bodies survive between headers of every kind.
		var wire bytes.Buffer
		var want []string
		for i, n := 0, 0; i <= len(data); i, n = i+limit/2, n+1 {
			body := data[i:min(len(data), i+limit/2)]
			fmt.Fprintf(&wire, headers[n%len(headers)], len(body))
			wire.Write(body)
			want = append(want, string(body))
			if n%3 == 0 {
				fmt.Fprintf(&wire, "Content-Length: %d\r\n\r\n%s", limit+len(body)+1, strings.Repeat("x", limit+1))
				wire.Write(body)
				want = append(want, "lost")
			}
		}
		if got := readAll(t, &wire, limit, wire.Len()); fmt.Sprint(got) != fmt.Sprint(want) {
			t.Fatalf("got %q\nwant %q", got, want)
		}
	})
}

var headers = []string{
	"Content-Length: %d\r\n\r\n",
	"content-length:%d\r\n\r\n",
	"Content-Type: x; charset=utf-8\r\nContent-Length : %d \r\n\r\n",
	"\r\nCONTENT-LENGTH: %d\nX: y\n\n",
}

// readAll reads to the end and returns the bodies, "lost" for each lost message.
func readAll(t *testing.T, r io.Reader, limit, size int) []string {
	s := newStream(readOnly{r}, limit)
	var all []string
	for {
		var body json.RawMessage
		err := s.ReadObject(&body)
		if _, ok := errors.AsType[*frameError](err); ok {
			all = append(all, "lost")
		} else if err == io.EOF || err == io.ErrUnexpectedEOF {
			return all
		} else if err != nil {
			t.Fatal(err)
		} else {
			all = append(all, string(body))
			if len(body) > limit {
				t.Fatalf("a body of %d bytes", len(body))
			}
		}
		if len(all) > size {
			t.Fatalf("%d messages in %d bytes", len(all), size)
		}
	}
}

// FuzzOutline compares the outline of JSON objects with the real decoder.
func FuzzOutline(f *testing.F) {
	f.Add([]byte(`{"jsonrpc":"2.0","id":5,"method":"m","params":{"id":6,"s":["\"}"]}}`))
	f.Add([]byte(`{"id":"a\"b" , "id" : -1.5e3,"x":[{"method":1}]}`))
	f.Add([]byte(`{"params":"\\","id":{"id":1}}`))
	f.Add([]byte(`{"id":[5],"x":{"method":"m","id":6}}`))
	f.Add([]byte(`{"method":null,"id":"` + strings.Repeat("x", maxID) + `"}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		var o outline
		for _, b := range data { // split anywhere
			o.Write([]byte{b})
		}
		var real map[string]json.RawMessage
		if json.Unmarshal(data, &real) != nil || bytes.Contains(data, []byte(`\u`)) {
			return // names spelled with escapes are not worth the code
		}
		wantID, wantOK := idKey(real["id"])
		id, ok := idKey(o.id)
		if id != wantID || ok != wantOK {
			t.Errorf("id %q, want %q", o.id, real["id"])
		}
		if _, has := real["method"]; has != o.method {
			t.Errorf("method: %v", o.method)
		}
	})
}
