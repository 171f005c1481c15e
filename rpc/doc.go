// Package rpc runs one JSON-RPC 2.0 connection over any byte stream: framing of
// the LSP base protocol, order, cancellation, calls to the peer, tracing and
// orderly close. It knows no method but $/cancelRequest and no lifecycle: the
// owner brings tables of handlers and an Admit function.
//
//	conn := rpc.NewConn(stdio, rpc.Options{Requests: map[string]rpc.Handler{"ping": ping}})
//	err := conn.Serve(ctx) // returns when the peer is gone and every handler has returned
//
// # Order
//
// One goroutine reads. On it, in the order of the wire, messages are admitted,
// notifications run, requests are registered and answers are handed to the
// calls that wait for them. Each request then runs on its own goroutine, so it
// may call the peer and wait. Cancelling is done on the read loop: it can
// neither overtake the request it names nor queue behind work. One goroutine
// writes, first in, first out: what a handler sends before it returns arrives
// before its reply.
//
// # What is used of sourcegraph/jsonrpc2
//
// Its ObjectStream interface (stream implements it, so the library's own Conn
// runs over our framing; the tests use that as an independent peer), its ID and
// Response for the answers to our calls, whose ids are strings that we chose,
// its Error as the form of errors on the wire, and its error codes.
//
// Not used, because each would break a promise of ours: its codec (exact header
// spelling, closes on malformed JSON, loses frames with trailing white space),
// its Conn (handlers on the read loop or unordered, no $/cancelRequest, no
// per-request context, calls that are never forgotten), its Request (re-encodes
// params, turns id -1 into 18446744073709551615 and id null into a notification,
// refuses fractions) and its ID for the peer's ids, which are echoed byte for
// byte instead.
package rpc
