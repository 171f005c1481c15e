package rpc

import (
	"context"
	"fmt"
	"io"
	"net"
	"os"
	"strings"
	"testing"
)

// BenchmarkNotify sends 64 KiB of text in one notification through a pipe that is
// read as fast as possible.
func BenchmarkNotify(b *testing.B) {
	r, w, err := os.Pipe()
	if err != nil {
		b.Fatal(err)
	}
	never, end := net.Pipe()
	go io.Copy(io.Discard, r)
	defer r.Close()
	c := NewConn(duplex{never, w}, Options{})
	served := make(chan error)
	go func() { served <- c.Serve(context.Background()) }()
	params := map[string]string{"data": strings.Repeat("ok  \tgithub.com/confine-dev/confine/rpc\t0.2s\n", 64<<10/45)}
	b.SetBytes(64 << 10)
	b.ReportAllocs()
	done := make(chan bool, 8)
	for b.Loop() {
		done <- true
		if err := c.Notify("output", params, func() { <-done }); err != nil {
			b.Fatal(err)
		}
	}
	end.Close()
	<-served
}

// BenchmarkRequest is one small request and its reply over an in-memory pipe.
func BenchmarkRequest(b *testing.B) {
	ours, theirs := net.Pipe()
	c := NewConn(theirs, Options{Requests: map[string]Handler{"echo": echo}})
	served := make(chan error)
	go func() { served <- c.Serve(context.Background()) }()
	reply := make([]byte, len(frame(`{"jsonrpc":"2.0","id":1,"result":{"command":"true"}}`)))
	request := frame(`{"jsonrpc":"2.0","id":1,"method":"echo","params":{"command":"true"}}`)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := fmt.Fprint(ours, request); err != nil {
			b.Fatal(err)
		}
		if _, err := io.ReadFull(ours, reply); err != nil {
			b.Fatal(err)
		}
	}
	ours.Close()
	<-served
}

// duplex reads from one stream and writes to another.
type duplex struct {
	io.Reader
	w io.WriteCloser
}

func (d duplex) Write(p []byte) (int, error) { return d.w.Write(p) }
func (d duplex) Close() error                { return d.w.Close() }
