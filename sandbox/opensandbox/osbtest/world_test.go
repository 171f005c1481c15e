//go:build unix

package osbtest_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/confine-dev/confine/sandbox/opensandbox/osbtest"
)

const creation = `{"image":{"uri":"debian:12"},"entrypoint":["tail","-f","/dev/null"],"timeout":60,"resourceLimits":{"cpu":"1"},"metadata":{"who":"one"}}`

// world is a server with one sandbox, used by plain calls.
type world struct {
	*osbtest.Server
	sandbox  string
	endpoint string
	token    string
}

func newServer(t *testing.T, options osbtest.Options) *osbtest.Server {
	t.Helper()
	if options.Dir == "" {
		options.Dir = t.TempDir()
	}
	s, err := osbtest.New(options)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

func newWorld(t *testing.T, options osbtest.Options) *world {
	t.Helper()
	w := &world{Server: newServer(t, options)}
	var box struct{ ID string }
	if err := json.NewDecoder(w.lifecycle(t, "POST", "/v1/sandboxes", creation).Body).Decode(&box); err != nil {
		t.Fatal(err)
	}
	var found struct {
		Endpoint string
		Headers  map[string]string
	}
	if err := json.NewDecoder(w.lifecycle(t, "GET", "/v1/sandboxes/"+box.ID+"/endpoints/44772", "").Body).Decode(&found); err != nil {
		t.Fatal(err)
	}
	w.sandbox, w.endpoint, w.token = box.ID, found.Endpoint, found.Headers["X-EXECD-ACCESS-TOKEN"]
	return w
}

func (w *world) call(t *testing.T, method, url, header, key string, body io.Reader, kind string) *http.Response {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, url, body)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set(header, key)
	if kind != "" {
		r.Header.Set("Content-Type", kind)
	}
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { answer.Body.Close() })
	return answer
}

func (w *world) lifecycle(t *testing.T, method, path, body string) *http.Response {
	t.Helper()
	return w.call(t, method, w.URL()+path, "OPEN-SANDBOX-API-KEY", w.Key(), strings.NewReader(body), "application/json")
}

func (w *world) execd(t *testing.T, method, path string, body io.Reader, kind string) *http.Response {
	t.Helper()
	return w.call(t, method, "http://"+w.endpoint+path, "X-EXECD-ACCESS-TOKEN", w.token, body, kind)
}

func (w *world) command(t *testing.T, order map[string]any) *http.Response {
	t.Helper()
	body, err := json.Marshal(order)
	if err != nil {
		t.Fatal(err)
	}
	return w.execd(t, "POST", "/command", bytes.NewReader(body), "application/json")
}

func (w *world) run(t *testing.T, command string) []streamEvent {
	t.Helper()
	return decode(t, w.command(t, map[string]any{"command": command}).Body)
}

func (w *world) status(t *testing.T, id string) map[string]any {
	t.Helper()
	var got map[string]any
	if err := json.NewDecoder(w.execd(t, "GET", "/command/status/"+id, nil, "").Body).Decode(&got); err != nil {
		t.Fatal(err)
	}
	return got
}

// until reads events until a text comes, and returns the command's id.
func (w *world) until(t *testing.T, lines *bufio.Reader, text string) string {
	t.Helper()
	var id string
	for {
		line, err := lines.ReadBytes('\n')
		if err != nil {
			t.Fatal(err)
		}
		var e streamEvent
		if json.Unmarshal(line, &e) != nil {
			continue
		}
		if e.Type == "init" {
			id = e.Text
		}
		if e.Type == "stdout" && e.Text == text {
			return id
		}
	}
}

// touch makes a file in the sandbox, by a command.
func (w *world) touch(t *testing.T, name string) {
	t.Helper()
	w.run(t, "touch "+strconv.Quote(filepath.Base(name)))
}

func (w *world) await(t *testing.T, wanted func(osbtest.Ledger) bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	if err := w.Await(ctx, wanted); err != nil {
		t.Fatal(err)
	}
}

type streamEvent struct {
	Type  string
	Text  string
	Error *struct {
		Name      string `json:"ename"`
		Value     string `json:"evalue"`
		Traceback []string
	}
}

func decode(t *testing.T, body io.Reader) []streamEvent {
	t.Helper()
	var events []streamEvent
	for decoder := json.NewDecoder(body); ; {
		var e streamEvent
		if err := decoder.Decode(&e); err == io.EOF {
			return events
		} else if err != nil {
			t.Fatal(err)
		}
		events = append(events, e)
	}
}

func typesOf(events []streamEvent) (types []string) {
	for _, e := range events {
		types = append(types, e.Type)
	}
	return types
}

func texts(events []streamEvent, kind string) (texts []string) {
	for _, e := range events {
		if e.Type == kind {
			texts = append(texts, e.Text)
		}
	}
	return texts
}
