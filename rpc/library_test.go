package rpc

import (
	"context"
	"encoding/json"
	"errors"
	"net"
	"testing"
	"testing/synctest"

	"github.com/sourcegraph/jsonrpc2"
)

// The library's own connection is an independent peer, over its codec and over
// our stream.
func TestLibraryAsPeer(t *testing.T) {
	for name, stream := range map[string]func(net.Conn) jsonrpc2.ObjectStream{
		"its codec": func(c net.Conn) jsonrpc2.ObjectStream {
			return jsonrpc2.NewBufferedStream(c, jsonrpc2.VSCodeObjectCodec{})
		},
		"our stream": func(c net.Conn) jsonrpc2.ObjectStream { return newStream(c, 1000) },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := newMutePeer(t, conformanceOptions())
				said := 0
				handler := jsonrpc2.HandlerWithError(func(_ context.Context, _ *jsonrpc2.Conn, r *jsonrpc2.Request) (any, error) {
					if r.Notif {
						said++
						return nil, nil
					}
					return map[string]any{"asked": r.Params}, nil
				})
				lib := jsonrpc2.NewConn(t.Context(), stream(p.stream), handler)

				var done string
				if err := lib.Call(t.Context(), "say", nil, &done); err != nil || done != "done" || said != 3 {
					t.Errorf("say: %q, %v, %d notifications", done, err, said)
				}
				var answer json.RawMessage
				if err := lib.Call(t.Context(), "ask", []int{1}, &answer); err != nil || string(answer) != `{"asked":[1]}` {
					t.Errorf("ask: %s, %v", answer, err)
				}
				var e *jsonrpc2.Error
				if err := lib.Call(t.Context(), "wrapped", nil, nil); !errors.As(err, &e) || e.Code != -32050 || string(*e.Data) != `{"n":1}` {
					t.Errorf("wrapped: %v", err)
				}
				if err := lib.Notify(t.Context(), "note", 5); err != nil {
					t.Error(err)
				}
				var notes []string
				if err := lib.Call(t.Context(), "notes", nil, &notes, jsonrpc2.StringID()); err != nil || len(notes) != 1 || notes[0] != "5" {
					t.Errorf("notes: %q, %v", notes, err)
				}
				lib.Close()
				if err := <-p.served; err != nil {
					t.Errorf("Serve returned %v", err)
				}
			})
		})
	}
}
