package rpc

import (
	"encoding/json"
	"errors"
	"fmt"

	"github.com/sourcegraph/jsonrpc2"
)

// Error is a JSON-RPC error: what a handler returns to choose code and data,
// and what Call returns when the peer answered with one.
type Error struct {
	Code    int64
	Message string
	Data    any // anything that encodes as JSON; nil is left out. In received errors a json.RawMessage
}

// Errorf makes an Error without data.
func Errorf(code int64, format string, args ...any) *Error {
	return &Error{Code: code, Message: fmt.Sprintf(format, args...)}
}

// Error is the message alone, so that the text of a wrapped Error can go to the
// peer as it is.
func (e *Error) Error() string {
	if e == nil {
		return "unknown error"
	}
	return e.Message
}

// The codes that package rpc itself sends. -32800 to -32802 are never among
// them: a cancelled request is answered by its handler.
const (
	CodeParseError     = jsonrpc2.CodeParseError
	CodeInvalidRequest = jsonrpc2.CodeInvalidRequest
	CodeMethodNotFound = jsonrpc2.CodeMethodNotFound
	CodeInvalidParams  = jsonrpc2.CodeInvalidParams
	CodeInternalError  = jsonrpc2.CodeInternalError
	CodeRequestFailed  = -32803 // LSP; here: Options.MaxInFlight requests are running, data {"code":"SERVER_BUSY"}
)

var (
	// ErrClosed says that the connection has ended or is ending. It is also the
	// cancellation cause of handlers that were running then.
	ErrClosed = errors.New("the connection is closed")
	// ErrCancelled is the cancellation cause (context.Cause) of a request that
	// the peer cancelled.
	ErrCancelled = errors.New("the peer cancelled the request")
	// ErrBacklog says that a notification was left out because the peer is not
	// reading; the connection lives.
	ErrBacklog = errors.New("too much is waiting to be read by the peer")
)

// wireError is err as the peer sees it: the code and data of an Error found
// anywhere in the chain, the text of the whole chain. Any other error is -32603.
func wireError(err error) *jsonrpc2.Error {
	w := &jsonrpc2.Error{Code: CodeInternalError, Message: err.Error()}
	e, ok := errors.AsType[*Error](err)
	if !ok || e == nil {
		return w
	}
	if e.Code != 0 {
		w.Code = e.Code
	}
	if e.Data != nil {
		data, err := encode(e.Data)
		if err != nil { // the code matters more than the data
			data = json.RawMessage(`null`)
		}
		w.Data = &data
	}
	return w
}

// readError reads the error member of an answer. One that cannot be read is
// still an error: an answer is never taken for a result by mistake.
func readError(raw json.RawMessage) *jsonrpc2.Error {
	var w jsonrpc2.Error
	if err := json.Unmarshal(raw, &w); err != nil {
		w = jsonrpc2.Error{Code: CodeInternalError, Message: "the answer's error cannot be read: " + err.Error()}
	}
	return &w
}

// remoteError is an error of the peer as Call returns it.
func remoteError(w *jsonrpc2.Error) *Error {
	e := &Error{Code: w.Code, Message: w.Message}
	if w.Data != nil {
		e.Data = *w.Data
	}
	return e
}
