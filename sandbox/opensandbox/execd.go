package opensandbox

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"mime/multipart"
	"net/http"
	"net/textproto"
	"net/url"
	"regexp"
	"strconv"
)

// cursorHeader says where the next part of logs begins.
const cursorHeader = "EXECD-COMMANDS-TAIL-CURSOR"

// execd is the API inside a sandbox.
type execd struct {
	*service
	at peer
}

// order is the body of a command's start.
type order struct {
	Command    string            `json:"command"`
	Cwd        string            `json:"cwd,omitempty"`
	Background bool              `json:"background,omitempty"`
	Timeout    int64             `json:"timeout,omitempty"` // milliseconds
	Envs       map[string]string `json:"envs,omitempty"`
}

// start begins a command. The answer is a stream of events.
func (e *execd) start(ctx context.Context, o order) (*http.Response, *failure) {
	return e.open(ctx, e.fresh, e.at, call{method: http.MethodPost, path: "/command", json: o})
}

// run runs a command of confine's own to its end.
func (e *execd) run(ctx context.Context, o order) (verdict, *failure) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	response, f := e.start(ctx, o)
	if f != nil {
		return verdict{}, f
	}
	defer response.Body.Close()
	stream := newEvents(response.Body)
	for {
		event, end, ok := stream.next()
		if !ok {
			return verdict{}, &failure{sent: true, text: e.shown(end.text)}
		}
		if v, last := event.final(); last {
			return v, nil
		}
	}
}

func (e *execd) ping(ctx context.Context) *failure {
	return e.insist(ctx, e.at, call{method: http.MethodGet, path: "/ping"}, nil)
}

// interrupt ends a command: TERM, and KILL after some seconds.
func (e *execd) interrupt(ctx context.Context, id string) *failure {
	return e.ask(ctx, e.kept, e.at, call{method: http.MethodDelete, path: "/command", query: url.Values{"id": {id}}}, nil)
}

// status is what execd knows of a command.
type status struct {
	ID       string `json:"id"`
	Running  *bool  `json:"running"`
	ExitCode *int   `json:"exit_code"`
	Error    string `json:"error"`
}

// status asks once. What cannot be about that command is a failure.
func (e *execd) status(ctx context.Context, id string) (status, *failure) {
	var s status
	failed := e.ask(ctx, e.kept, e.at, call{method: http.MethodGet, path: "/command/status/" + id}, &s)
	if failed == nil && (s.ID != id || s.Running == nil || *s.Running && s.ExitCode != nil) {
		failed = &failure{sent: true, text: "the status that the service gives is not one of the command"}
	}
	return s, failed
}

var exitMessage = regexp.MustCompile(`^(exit status [0-9]+)?$`)

// verdict is how the command ended, as the status has it.
func (s status) verdict() verdict {
	switch {
	case *s.Running || s.ExitCode == nil:
		return verdict{kind: unknown, text: "its status has no exit code"}
	case *s.ExitCode == -1 && signalIn(s.Error) != "":
		return verdict{kind: killed, signal: signalIn(s.Error)}
	case *s.ExitCode < 0 || *s.ExitCode > 255:
		return verdict{kind: unknown, text: "its status has no exit code that can be"}
	case !exitMessage.MatchString(s.Error): // a code of execd's own stands beside such a message
		return verdict{kind: broken, text: s.Error}
	}
	return verdict{kind: exited, code: *s.ExitCode}
}

// logs reads what a background command printed from a byte on. take gets each piece.
// end is how much it had printed then; 0 if that was not said.
func (e *execd) logs(ctx context.Context, id string, from int64, take func([]byte)) (read, end int64, failed *failure) {
	ctx, cancel := context.WithTimeout(ctx, e.config.Patience)
	defer cancel()
	response, failed := e.open(ctx, e.kept, e.at, call{method: http.MethodGet, path: "/command/" + id + "/logs", query: url.Values{"cursor": {strconv.FormatInt(from, 10)}}})
	if failed != nil {
		return 0, 0, failed
	}
	defer response.Body.Close()
	next, err := strconv.ParseInt(response.Header.Get(cursorHeader), 10, 64)
	if err != nil || next < from {
		return 0, 0, &failure{sent: true, text: "the service does not say which part of the output it sends"}
	}
	buffer := make([]byte, 32<<10)
	for {
		n, err := response.Body.Read(buffer)
		n = int(min(int64(n), next-from-read)) // what lies behind the cursor comes again
		if n > 0 {
			take(buffer[:n])
			read += int64(n)
		}
		switch {
		case err == nil:
			continue
		case err == io.EOF && from+read == next:
			return read, next, nil
		case err == io.EOF:
			return read, next, &failure{sent: true, text: "the service sends less output than it says"}
		}
		return read, next, &failure{sent: true, text: "reading output: " + e.shown(reason(ctx, err))}
	}
}

// makeFolders makes folders and those above them.
func (e *execd) makeFolders(ctx context.Context, paths []string) *failure {
	body := map[string]map[string]int{}
	for _, path := range paths {
		body[path] = map[string]int{"mode": 755}
	}
	return e.insist(ctx, e.at, call{method: http.MethodPost, path: "/directories", json: body}, nil)
}

// upload writes one file.
func (e *execd) upload(ctx context.Context, path string, content io.Reader) *failure {
	about, err := json.Marshal(map[string]any{"path": path, "mode": 600})
	if err != nil {
		return &failure{text: err.Error()}
	}
	var head bytes.Buffer
	form := multipart.NewWriter(&head)
	part := func(field, name, kind string) {
		if err == nil {
			_, err = form.CreatePart(textproto.MIMEHeader{
				"Content-Disposition": {fmt.Sprintf("form-data; name=%q; filename=%q", field, name)}, "Content-Type": {kind}})
		}
	}
	part("metadata", "metadata.json", "application/json")
	head.Write(about)
	part("file", "file", "application/octet-stream")
	if err != nil {
		return &failure{text: err.Error()}
	}
	tail := "\r\n--" + form.Boundary() + "--\r\n"
	c := call{method: http.MethodPost, path: "/files/upload", body: io.MultiReader(&head, content, bytes.NewReader([]byte(tail))), bodyType: form.FormDataContentType()}
	response, failed := e.open(ctx, e.fresh, e.at, c)
	if failed != nil {
		return failed
	}
	return closed(response)
}

// closed is for an answer whose body says nothing.
func closed(response *http.Response) *failure {
	response.Body.Close()
	return nil
}
