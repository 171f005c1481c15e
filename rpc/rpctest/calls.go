package rpctest

import (
	"encoding/json"
	"reflect"
	"strconv"

	"github.com/confine-dev/confine/rpc/proto"
)

// Request sends a request and returns its id.
func (e *Editor) Request(method string, params any) int64 {
	e.t.Helper()
	e.mu.Lock()
	e.nextID++
	id := e.nextID
	e.mu.Unlock()
	e.send(map[string]any{"jsonrpc": "2.0", "id": id, "method": method, "params": params})
	return id
}

// Notify sends a notification.
func (e *Editor) Notify(method string, params any) {
	e.t.Helper()
	message := map[string]any{"jsonrpc": "2.0", "method": method}
	if params != nil {
		message["params"] = params
	}
	e.send(message)
}

// Cancel asks the server to cancel a request.
func (e *Editor) Cancel(id int64) {
	e.t.Helper()
	e.Notify(proto.MethodCancelRequest, map[string]any{"id": id})
}

// Response waits for the answer to a request and decodes its result, unless
// result is nil. The test fails if the answer is an error.
func (e *Editor) Response(id int64, result any) {
	e.t.Helper()
	m := e.response(id)
	if m.Error != nil {
		e.t.Fatalf("request %d: %v %s", id, m.Error, m.Error.Data)
	}
	if result != nil {
		e.decode(m.Result, result)
	}
}

// ResponseError waits for the answer to a request, which must be an error.
func (e *Editor) ResponseError(id int64) *Error {
	e.t.Helper()
	m := e.response(id)
	if m.Error == nil {
		e.t.Fatalf("request %d: want an error, got the result %s", id, m.Result)
	}
	return m.Error
}

func (e *Editor) response(id int64) Message {
	e.t.Helper()
	want := strconv.FormatInt(id, 10)
	return e.Await("the answer to request "+want, func(m Message) bool {
		return m.IsResponse() && string(m.ID) == want
	})
}

// Call is Request and Response.
func (e *Editor) Call(method string, params, result any) {
	e.t.Helper()
	e.Response(e.Request(method, params), result)
}

// CallError is Request and ResponseError.
func (e *Editor) CallError(method string, params any) *Error {
	e.t.Helper()
	return e.ResponseError(e.Request(method, params))
}

// AwaitRequest waits for a request of the server.
func (e *Editor) AwaitRequest(method string) Message {
	e.t.Helper()
	return e.Await("the request "+method, func(m Message) bool { return m.IsRequest() && m.Method == method })
}

// AwaitNotification waits for a notification of the server and decodes its
// params, unless params is nil.
func (e *Editor) AwaitNotification(method string, params any) Message {
	e.t.Helper()
	m := e.Await("the notification "+method, func(m Message) bool { return m.IsNotification() && m.Method == method })
	if params != nil {
		e.decode(m.Params, params)
	}
	return m
}

// Reply answers a request of the server.
func (e *Editor) Reply(m Message, result any) {
	e.t.Helper()
	e.ReplyWith(m, Answer{Result: result})
}

// ReplyError answers a request of the server with an error.
func (e *Editor) ReplyError(m Message, code int64, text string) {
	e.t.Helper()
	e.ReplyWith(m, Answer{Err: &Error{Code: code, Message: text}})
}

// ReplyWith answers a request of the server. It may be called from any
// goroutine.
func (e *Editor) ReplyWith(m Message, a Answer) {
	if a.Err != nil {
		e.send(map[string]any{"jsonrpc": "2.0", "id": m.ID, "error": a.Err})
		return
	}
	e.send(map[string]any{"jsonrpc": "2.0", "id": m.ID, "result": a.Result})
}

// send writes a message. That the server has closed the stream is not held
// against it here: whoever waits for the answer will say so.
func (e *Editor) send(message map[string]any) {
	body, err := json.Marshal(message)
	if err != nil {
		e.t.Errorf("rpctest: encoding %v: %v", message["method"], err)
		return
	}
	e.SendRaw(frame(body))
}

// SendRaw writes bytes as they are.
func (e *Editor) SendRaw(data []byte) {
	e.writing.Lock()
	defer e.writing.Unlock()
	e.stream.Write(data) // see send
}

// decode replaces what v points at: a field that is left out must not keep the
// value of an earlier message.
func (e *Editor) decode(data json.RawMessage, v any) {
	e.t.Helper()
	reflect.ValueOf(v).Elem().SetZero()
	if err := json.Unmarshal(data, v); err != nil {
		e.t.Fatalf("decoding %s: %v", data, err)
	}
}

// Init is what an editor announces. The zero value is a stock editor without a
// folder and without any capability.
type Init struct {
	Confine   *proto.ClientConfine // nil announces nothing
	Folders   []string             // URIs
	RootURI   string
	Window    *proto.WindowCapabilities
	ProcessID *int64
}

// Params are the params of the initialize request.
func (i Init) Params() map[string]any {
	capabilities := map[string]any{}
	if i.Confine != nil {
		capabilities["experimental"] = map[string]any{"confine": i.Confine}
	}
	if i.Window != nil {
		capabilities["window"] = i.Window
	}
	params := map[string]any{"processId": i.ProcessID, "capabilities": capabilities, "rootUri": nil}
	if i.RootURI != "" {
		params["rootUri"] = i.RootURI
	}
	if i.Folders != nil {
		folders := []map[string]string{}
		for _, uri := range i.Folders {
			folders = append(folders, map[string]string{"uri": uri, "name": "folder"})
		}
		params["workspaceFolders"] = folders
	}
	return params
}

// Initialized is what is read of the server's answer to initialize.
type Initialized struct {
	Capabilities struct {
		ExecuteCommandProvider struct {
			Commands []string `json:"commands"`
		} `json:"executeCommandProvider"`
		Experimental struct {
			Confine proto.ServerConfine `json:"confine"`
		} `json:"experimental"`
	} `json:"capabilities"`
	ServerInfo proto.ServerInfo `json:"serverInfo"`
}

// Initialize does the handshake.
func (e *Editor) Initialize(i Init) Initialized {
	e.t.Helper()
	var result Initialized
	e.Call(proto.MethodInitialize, i.Params(), &result)
	e.Notify(proto.MethodInitialized, map[string]any{})
	return result
}

// Shutdown ends the connection in the orderly way.
func (e *Editor) Shutdown() {
	e.t.Helper()
	e.Call(proto.MethodShutdown, nil, nil)
	e.Notify(proto.MethodExit, nil)
	e.AwaitEnd()
}
