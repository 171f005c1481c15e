package rpc

import (
	"bytes"
	"encoding/json"
	"errors"
	"strconv"
	"strings"
	"unicode/utf8"
)

// kind tells received messages apart.
type kind string

const (
	request      kind = "request"
	notification kind = "notification"
	answer       kind = "response"
	invalid      kind = "invalid message"
)

// message is one received message.
type message struct {
	kind   kind
	id     json.RawMessage // verbatim; "null" if there is none that could be used
	key    string          // see idKey; empty if id is "null"
	method string
	params json.RawMessage
	result json.RawMessage // nil if absent
	err    json.RawMessage // nil if absent
	wrong  *Error          // why the message is invalid
}

// version is what every message carries as jsonrpc.
const version = "2.0"

// maxID is how long an id may be on the wire, in bytes.
const maxID = 256

var null = json.RawMessage("null")

// parse reads one message. Invalid UTF-8 is malformed JSON, not something to
// repair: what the peer meant would change. A message that does not say which
// protocol it speaks is none.
func parse(body []byte) message {
	m := message{kind: invalid, id: null}
	if !utf8.Valid(body) {
		m.wrong = Errorf(CodeParseError, "the message is not UTF-8")
		return m
	}
	var wire struct{ JSONRPC, ID, Method, Params, Result, Error json.RawMessage }
	err := json.Unmarshal(body, &wire)
	if syntax, ok := errors.AsType[*json.SyntaxError](err); ok {
		m.wrong = Errorf(CodeParseError, "the message is not JSON: %v", syntax)
		return m
	}
	if err != nil || bytes.TrimLeft(body, " \t\r\n")[0] != '{' {
		m.wrong = Errorf(CodeInvalidRequest, "a message must be one JSON object (batches are not supported)")
		return m
	}
	if key, ok := idKey(wire.ID); ok {
		m.id, m.key = wire.ID, key
	}
	m.params, m.result, m.err = wire.Params, wire.Result, wire.Error
	spoken, _ := idKey(wire.JSONRPC) // which knows all spellings of a text
	isAnswer := m.result != nil || m.err != nil
	switch {
	case spoken != strconv.Quote(version):
		m.wrong = Errorf(CodeInvalidRequest, "a message must have jsonrpc: %q", version)
	case isAnswer == (wire.Method != nil):
		m.wrong = Errorf(CodeInvalidRequest, "a message must have a method, or a result or error")
	case isAnswer:
		m.kind = answer
	case wire.Method[0] != '"' || json.Unmarshal(wire.Method, &m.method) != nil:
		m.wrong = Errorf(CodeInvalidRequest, "the method must be a string")
	case wire.ID == nil:
		m.kind = notification
	case m.key == "":
		m.wrong = Errorf(CodeInvalidRequest, "the id must be a number or a string, of at most %d bytes", maxID)
	default:
		m.kind = request
	}
	return m
}

// idKey is equal for ids that mean the same (1, 1.0 and 1e0; "a" and "\u0061"),
// however they are written. It is printable: a number, or a quoted string. It is
// false for everything that is no id.
func idKey(raw json.RawMessage) (string, bool) {
	if len(raw) == 0 || len(raw) > maxID || !json.Valid(raw) {
		return "", false
	}
	switch c := raw[0]; {
	case c == '"':
		var s string
		if json.Unmarshal(raw, &s) != nil {
			return "", false
		}
		return strconv.QuoteToASCII(s), true
	case c == '-' || '0' <= c && c <= '9':
		number := string(raw)
		if !strings.ContainsAny(number, ".eE") {
			return number, true
		}
		f, err := strconv.ParseFloat(number, 64)
		if err != nil {
			return number, true // out of range: only the same spelling is equal
		}
		return strconv.FormatFloat(f, 'f', -1, 64), true
	}
	return "", false
}

// encode is v as JSON on one line, without the escapes for HTML.
func encode(v any) (json.RawMessage, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return nil, err
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), nil
}

// encodeCall is a request, or a notification if id is empty. Absent params are
// left out.
func encodeCall(id, method string, params any) (json.RawMessage, error) {
	return encode(struct {
		Version string `json:"jsonrpc"`
		ID      string `json:"id,omitempty"`
		Method  string `json:"method"`
		Params  any    `json:"params,omitempty"`
	}{version, id, method, params})
}
