//go:build unix

package osbtest_test

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"mime/multipart"
	"net/http"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/confine-dev/confine/sandbox/opensandbox/osbtest"
)

// The expected bytes in this file are those that a real server and execd were seen
// to send. They are not to be changed because the fake changes.

func TestEventStream(t *testing.T) {
	for _, test := range []struct {
		name    string
		command string
		want    []string // patterns of the lines behind init and ping
	}{
		{"success has no code", `echo hi`, []string{
			`{"type":"stdout","text":"hi","timestamp":N}`, `{"type":"execution_complete",T"timestamp":N}`}},
		{"failure has the code as text and is the last", `exit 3`, []string{
			`{"type":"error","timestamp":N,"error":{"ename":"CommandExecError","evalue":"3","traceback":["exit status 3"]}}`}},
		{"signal", `kill -9 $$`, []string{
			`{"type":"error","timestamp":N,"error":{"ename":"CommandExecError","evalue":"-1","traceback":["signal: killed"]}}`}},
		{"line feed is dropped", `printf x`, []string{
			`{"type":"stdout","text":"x","timestamp":N}`, `{"type":"execution_complete",T"timestamp":N}`}},
		{"the same with one", `echo x`, []string{
			`{"type":"stdout","text":"x","timestamp":N}`, `{"type":"execution_complete",T"timestamp":N}`}},
		{"carriage returns split", `printf 'a\rb\r\nc\n'`, []string{
			`{"type":"stdout","text":"a","timestamp":N}`, `{"type":"stdout","text":"b","timestamp":N}`,
			`{"type":"stdout","text":"c","timestamp":N}`, `{"type":"execution_complete",T"timestamp":N}`}},
		{"an empty line is a line feed", `printf 'a\n\nb'`, []string{
			`{"type":"stdout","text":"a","timestamp":N}`, `{"type":"stdout","text":"\\n","timestamp":N}`,
			`{"type":"stdout","text":"b","timestamp":N}`, `{"type":"execution_complete",T"timestamp":N}`}},
		{"bytes that are no UTF-8", `printf 'a\377b'`, []string{
			`{"type":"stdout","text":"a\\ufffdb","timestamp":N}`, `{"type":"execution_complete",T"timestamp":N}`}},
		{"markup is escaped", `echo '<&>'`, []string{
			`{"type":"stdout","text":"\\u003c\\u0026\\u003e","timestamp":N}`, `{"type":"execution_complete",T"timestamp":N}`}},
		{"the streams are not in order", `echo first; echo second >&2`, []string{
			`{"type":"stderr","text":"second","timestamp":N}`, `{"type":"stdout","text":"first","timestamp":N}`,
			`{"type":"execution_complete",T"timestamp":N}`}},
	} {
		t.Run(test.name, func(t *testing.T) {
			w := newWorld(t, osbtest.Options{Poll: time.Hour}) // so all is read at the end
			answer := w.command(t, map[string]any{"command": test.command})
			if got := answer.Header.Get("Content-Type"); got != "text/event-stream" {
				t.Errorf("Content-Type: %q", got)
			}
			body, err := io.ReadAll(answer.Body)
			if err != nil {
				t.Fatal(err)
			}
			want := `^{"type":"init","text":"[0-9a-f]{32}","timestamp":\d+}` + "\n\n" + `{"type":"ping","text":"pong","timestamp":\d+}` + "\n\n"
			for _, line := range test.want {
				line = regexp.QuoteMeta(strings.ReplaceAll(line, `\\`, `\`))
				line = strings.ReplaceAll(strings.ReplaceAll(line, `:N`, `:\d+`), `,T"`, `,("execution_time":\d+,)?"`)
				want += line + "\n\n"
			}
			if !regexp.MustCompile(want + "$").Match(body) {
				t.Errorf("got:\n%swant:\n%s", body, want)
			}
		})
	}
}

func TestLongLineIsOneEvent(t *testing.T) {
	w := newWorld(t, osbtest.Options{})
	events := w.run(t, `head -c 200000 /dev/zero | tr '\0' y`)
	if got := texts(events, "stdout"); len(got) != 1 || got[0] != strings.Repeat("y", 200000) {
		t.Errorf("%d events", len(got))
	}
}

func TestPings(t *testing.T) {
	w := newWorld(t, osbtest.Options{Ping: time.Millisecond})
	answer := w.command(t, map[string]any{"command": `until [ -e go ]; do sleep 0.01; done`})
	lines := bufio.NewScanner(answer.Body)
	for pings := 0; pings < 3 && lines.Scan(); {
		if strings.HasPrefix(lines.Text(), `{"type":"ping"`) {
			pings++
		}
	}
	w.touch(t, "go")
	if _, err := io.ReadAll(answer.Body); err != nil {
		t.Error(err)
	}
}

// TestHeldConnection: after the last event the connection stays open for a time, so
// that its end is not what a client should wait for.
func TestHeldConnection(t *testing.T) {
	for _, test := range []struct {
		grace time.Duration
		held  bool
	}{{0, false}, {time.Hour, true}} {
		w := newWorld(t, osbtest.Options{Grace: test.grace})
		lines := bufio.NewReader(w.command(t, map[string]any{"command": "true"}).Body)
		for {
			line, err := lines.ReadString('\n')
			if err != nil {
				t.Fatal(err)
			}
			if strings.Contains(line, "execution_complete") {
				break
			}
		}
		if test.held { // what ends it then is the server
			if err := w.Close(); err != nil {
				t.Error(err)
			}
		}
		if _, err := io.ReadAll(lines); (err != nil) != test.held {
			t.Errorf("held for %v: the stream ended with %v", test.grace, err)
		}
	}
}

func TestDisconnectDoesNotStop(t *testing.T) {
	w := newWorld(t, osbtest.Options{})
	answer := w.command(t, map[string]any{"command": `until [ -e go ]; do sleep 0.01; done; exit 7`})
	answer.Body.Close()
	w.touch(t, "go")
	w.await(t, func(l osbtest.Ledger) bool { return !l.Commands[0].Running })
	if got := w.Ledger().Commands[0]; got.ExitCode != 7 || got.Signal != "" || got.Interrupted {
		t.Errorf("got %+v", got)
	}
}

func TestBackground(t *testing.T) {
	w := newWorld(t, osbtest.Options{})
	answer := w.command(t, map[string]any{"command": `printf 'a\r\n\377'; echo b >&2; until [ -e go ]; do sleep 0.01; done; printf c; exit 5`, "background": true})
	events := decode(t, answer.Body) // ends although the command does not
	if kinds := typesOf(events); !slices.Equal(kinds, []string{"init", "ping", "execution_complete"}) {
		t.Errorf("events: %v", kinds)
	}
	id := events[0].Text

	running := w.status(t, id)
	if running["running"] != true || running["exit_code"] != nil || running["finished_at"] != nil {
		t.Errorf("while it runs: %v", running)
	}
	w.touch(t, "go")
	w.await(t, func(l osbtest.Ledger) bool { return !l.Commands[0].Running })
	ended := w.status(t, id)
	if ended["running"] != false || ended["exit_code"] != 5.0 || ended["error"] != "exit status 5" || ended["finished_at"] == nil || ended["id"] != id {
		t.Errorf("after its end: %v", ended)
	}

	// Both streams in one, byte by byte, from a byte on.
	for _, test := range []struct{ cursor, want, next string }{
		{"0", "a\r\n\xffb\nc", "7"},
		{"3", "\xffb\nc", "7"},
		{"7", "", "7"},
		{"100", "", "7"},
	} {
		answer := w.execd(t, "GET", "/command/"+id+"/logs?cursor="+test.cursor, nil, "")
		body, _ := io.ReadAll(answer.Body)
		if string(body) != test.want || answer.Header.Get("EXECD-COMMANDS-TAIL-CURSOR") != test.next || answer.Header.Get("Content-Type") != "text/plain; charset=utf-8" {
			t.Errorf("from %s: %q, then %s", test.cursor, body, answer.Header.Get("EXECD-COMMANDS-TAIL-CURSOR"))
		}
	}
}

func TestLogsAreOfTheBackgroundOnly(t *testing.T) {
	w := newWorld(t, osbtest.Options{})
	id := w.run(t, "echo hi")[0].Text
	for _, id := range []string{id, "unknown"} {
		if answer := w.execd(t, "GET", "/command/"+id+"/logs", nil, ""); answer.StatusCode != 400 {
			t.Errorf("%s: status %d", id, answer.StatusCode)
		}
	}
	if got := w.status(t, id); got["running"] != false || got["exit_code"] != 0.0 {
		t.Errorf("status: %v", got)
	}
	if answer := w.execd(t, "GET", "/command/status/unknown", nil, ""); answer.StatusCode != 404 {
		t.Errorf("status of an unknown command: %d", answer.StatusCode)
	}
}

func TestTimeoutOfTheService(t *testing.T) {
	w := newWorld(t, osbtest.Options{})
	events := decode(t, w.command(t, map[string]any{"command": "sleep 1000", "timeout": 20}).Body)
	last := events[len(events)-1]
	if last.Error == nil || last.Error.Value != "-1" || !slices.Equal(last.Error.Traceback, []string{"signal: killed"}) {
		t.Errorf("got %+v", last)
	}
}

func TestInterrupt(t *testing.T) {
	w := newWorld(t, osbtest.Options{Kill: 20 * time.Millisecond})
	for _, test := range []struct{ command, signal, traceback string }{
		{"echo up; exec sleep 1000", "SIGTERM", "signal: terminated"},
		{"trap '' TERM; echo up; while :; do sleep 0.01; done", "SIGKILL", "signal: killed"},
	} {
		answer := w.command(t, map[string]any{"command": test.command})
		lines := bufio.NewReader(answer.Body)
		id := w.until(t, lines, "up")
		if got := w.execd(t, "DELETE", "/command?id="+id, nil, ""); got.StatusCode != 200 {
			t.Errorf("status %d", got.StatusCode)
		}
		last := decode(t, lines)
		if e := last[len(last)-1].Error; e == nil || e.Value != "-1" || e.Traceback[0] != test.traceback {
			t.Errorf("%s: %+v", test.command, last)
		}
		if got := w.Ledger().With(test.command)[0]; got.Signal != test.signal || !got.Interrupted {
			t.Errorf("ledger: %+v", got)
		}
		// What is over cannot be interrupted, like what never was.
		for _, id := range []string{id, "unknown"} {
			if got := w.execd(t, "DELETE", "/command?id="+id, nil, ""); got.StatusCode != 500 {
				t.Errorf("%s again: status %d", id, got.StatusCode)
			}
		}
	}
}

func TestRefusedCommands(t *testing.T) {
	w := newWorld(t, osbtest.Options{})
	for _, body := range []map[string]any{{}, {"command": ""}, {"command": "true", "argv": []string{"true"}}, {"command": "true", "cwd": "/missing"}} {
		answer := w.command(t, body)
		var got struct{ Code, Message string }
		if err := json.NewDecoder(answer.Body).Decode(&got); err != nil || answer.StatusCode != 400 || got.Code != "INVALID_REQUEST_BODY" {
			t.Errorf("%v: %d %+v (%v)", body, answer.StatusCode, got, err)
		}
	}
	if ran := w.Ledger().Commands; len(ran) != 0 {
		t.Errorf("ran: %+v", ran)
	}
}

func TestKeys(t *testing.T) {
	w := newWorld(t, osbtest.Options{})
	request := func(url, header, key string) (int, string) {
		r, _ := http.NewRequest("GET", url, nil)
		if header != "" {
			r.Header.Set(header, key)
		}
		answer, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		defer answer.Body.Close()
		body, _ := io.ReadAll(answer.Body)
		return answer.StatusCode, string(body)
	}
	if status, body := request(w.URL()+"/v1/sandboxes", "", ""); status != 401 || !strings.HasPrefix(body, `{"code":"`) {
		t.Errorf("lifecycle without a key: %d %s", status, body)
	}
	if status, _ := request(w.URL()+"/v1/sandboxes", "OPEN-SANDBOX-API-KEY", "wrong"); status != 401 {
		t.Errorf("lifecycle with a wrong key: %d", status)
	}
	if status, _ := request(w.URL()+"/health", "", ""); status != 200 {
		t.Errorf("health without a key: %d", status)
	}
	if status, body := request("http://"+w.endpoint+"/ping", "X-EXECD-ACCESS-TOKEN", "wrong"); status != 401 || !strings.HasPrefix(body, `{"error":"`) {
		t.Errorf("execd with a wrong token: %d %s", status, body)
	}
	if strays := w.Strays(); len(strays) != 0 {
		t.Errorf("strays: %v", strays)
	}
	request("http://"+w.endpoint+"/ping", "OPEN-SANDBOX-API-KEY", w.Key())
	if strays := w.Strays(); len(strays) != 1 {
		t.Errorf("a key at the wrong place: %v", strays)
	}
}

func TestLifecycle(t *testing.T) {
	s := newServer(t, osbtest.Options{PendingPolls: 2, PendingState: "Provisioning"})
	w := &world{Server: s}
	state := func(answer *http.Response) (string, string, string) {
		var got struct {
			ID        string
			Status    struct{ State string }
			ExpiresAt string
		}
		if err := json.NewDecoder(answer.Body).Decode(&got); err != nil {
			t.Fatal(err)
		}
		return got.ID, got.Status.State, got.ExpiresAt
	}
	created := w.lifecycle(t, "POST", "/v1/sandboxes", creation)
	id, first, expires := state(created)
	if created.StatusCode != 202 || first != "Provisioning" || expires == "" {
		t.Errorf("created: %d, %s, expires %q", created.StatusCode, first, expires)
	}
	for _, want := range []string{"Provisioning", "Provisioning", "Running"} {
		answer := w.lifecycle(t, "GET", "/v1/sandboxes/"+id, "")
		if _, got, _ := state(answer); got != want || answer.StatusCode != 200 {
			t.Errorf("got %s (%d), want %s", got, answer.StatusCode, want)
		}
	}
	var endpoint struct {
		Endpoint string
		Headers  map[string]string
	}
	if err := json.NewDecoder(w.lifecycle(t, "GET", "/v1/sandboxes/"+id+"/endpoints/44772", "").Body).Decode(&endpoint); err != nil {
		t.Fatal(err)
	}
	if !regexp.MustCompile(`^127\.0\.0\.1:\d+/`).MatchString(endpoint.Endpoint) || endpoint.Headers["X-EXECD-ACCESS-TOKEN"] == "" {
		t.Errorf("endpoint: %+v", endpoint)
	}

	later := time.Now().Add(time.Hour).UTC().Format(time.RFC3339)
	if answer := w.lifecycle(t, "POST", "/v1/sandboxes/"+id+"/renew-expiration", `{"expiresAt":"`+later+`"}`); answer.StatusCode != 200 {
		t.Errorf("renewing: %d", answer.StatusCode)
	}
	s.Advance(30 * time.Minute)
	if answer := w.lifecycle(t, "DELETE", "/v1/sandboxes/"+id, ""); answer.StatusCode != 204 {
		t.Errorf("deleting: %d", answer.StatusCode)
	}
	for _, method := range []string{"GET", "DELETE"} {
		if answer := w.lifecycle(t, method, "/v1/sandboxes/"+id, ""); answer.StatusCode != 404 {
			t.Errorf("%s of a deleted one: %d", method, answer.StatusCode)
		}
	}
}

func TestExpiry(t *testing.T) {
	w := newWorld(t, osbtest.Options{})
	answer := w.command(t, map[string]any{"command": "echo up; sleep 1000"})
	lines := bufio.NewReader(answer.Body)
	w.until(t, lines, "up")
	w.Advance(61 * time.Second)
	if _, err := io.ReadAll(lines); err == nil {
		t.Error("the stream ended as if nothing had happened")
	}
	l := w.Ledger()
	if len(l.Existing()) != 0 || len(l.Running()) != 0 || l.Commands[0].Signal != "SIGKILL" {
		t.Errorf("ledger: %+v", l)
	}
}

func TestRefusedCreations(t *testing.T) {
	w := &world{Server: newServer(t, osbtest.Options{})}
	for _, body := range []string{
		`{}`, `[]`, `{"image":{"uri":"x"},"resourceLimits":{}}`,
		`{"image":{"uri":"x"},"entrypoint":["x"],"resourceLimits":{},"timeout":59}`,
		`{"image":{"uri":"x"},"entrypoint":["x"],"timeout":60}`,
		`{"image":{"uri":"x"},"entrypoint":["x"],"resourceLimits":{},"metadata":{"a":"not a label"}}`,
	} {
		if answer := w.lifecycle(t, "POST", "/v1/sandboxes", body); answer.StatusCode != 400 {
			t.Errorf("%s: %d", body, answer.StatusCode)
		}
	}
	if got := w.Ledger().Sandboxes; len(got) != 0 {
		t.Errorf("made: %+v", got)
	}
}

func TestList(t *testing.T) {
	w := &world{Server: newServer(t, osbtest.Options{})}
	for range 3 {
		w.lifecycle(t, "POST", "/v1/sandboxes", creation)
	}
	w.lifecycle(t, "POST", "/v1/sandboxes", strings.Replace(creation, `"one"`, `"other"`, 1))
	var got struct {
		Items      []struct{ ID string }
		Pagination struct {
			TotalItems  int
			HasNextPage bool
		}
	}
	answer := w.lifecycle(t, "GET", "/v1/sandboxes?metadata=who%3Done&state=Running&pageSize=2", "")
	if err := json.NewDecoder(answer.Body).Decode(&got); err != nil || len(got.Items) != 2 || got.Pagination.TotalItems != 3 || !got.Pagination.HasNextPage {
		t.Errorf("got %+v (%v)", got, err)
	}
}

func TestUpload(t *testing.T) {
	w := newWorld(t, osbtest.Options{})
	form := func(asFile bool) (*bytes.Buffer, string) {
		var body bytes.Buffer
		parts := multipart.NewWriter(&body)
		about := parts.CreateFormFile
		if !asFile {
			about = func(name, _ string) (io.Writer, error) { return parts.CreateFormField(name) }
		}
		part, _ := about("metadata", "metadata")
		fmt.Fprint(part, `{"path":"/home/me/project/../project/run.sh","mode":755}`)
		part, _ = parts.CreateFormFile("file", "run.sh")
		fmt.Fprint(part, "echo uploaded\n")
		parts.Close()
		return &body, parts.FormDataContentType()
	}
	body, kind := form(false)
	if answer := w.execd(t, "POST", "/files/upload", body, kind); answer.StatusCode != 400 {
		t.Errorf("metadata that is no file: %d", answer.StatusCode)
	}
	body, kind = form(true)
	if answer := w.execd(t, "POST", "/files/upload", body, kind); answer.StatusCode != 200 {
		t.Errorf("status %d", answer.StatusCode)
	}
	events := decode(t, w.command(t, map[string]any{"command": "./run.sh", "cwd": "/home/me/project"}).Body)
	if got := texts(events, "stdout"); !slices.Equal(got, []string{"uploaded"}) {
		t.Errorf("got %q", got)
	}
}

func TestOneCall(t *testing.T) {
	w := &world{Server: newServer(t, osbtest.Options{})}
	post := func(key, body string) (int, string) {
		r, _ := http.NewRequest("POST", w.URL()+"/v1/sandbox/run", strings.NewReader(body))
		r.Header.Set("Authorization", key)
		answer, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		defer answer.Body.Close()
		data, _ := io.ReadAll(answer.Body)
		return answer.StatusCode, string(data)
	}
	status, body := post("Bearer "+w.Key(), `{"cmd":"printf \"$A\"; echo e >&2; exit 4","env":{"A":"1"}}`)
	var got struct {
		Stdout, Stderr string
		ExitCode       int `json:"exit_code"`
	}
	if err := json.Unmarshal([]byte(body), &got); err != nil || status != 200 || got.Stdout != "1" || got.Stderr != "e\n" || got.ExitCode != 4 {
		t.Errorf("%d %s (%v)", status, body, err)
	}
	if status, _ := post("Bearer wrong", `{"cmd":"true"}`); status != 401 {
		t.Errorf("wrong key: %d", status)
	}
	if status, _ := post("Bearer "+w.Key(), `{}`); status != 400 {
		t.Errorf("no command: %d", status)
	}
	if ran := w.Ledger().Commands; len(ran) != 1 || ran[0].ExitCode != 4 || ran[0].Sandbox != "" {
		t.Errorf("ledger: %+v", ran)
	}
}

// TestServerProxy: the way through the lifecycle server asks for no API key.
func TestServerProxy(t *testing.T) {
	w := newWorld(t, osbtest.Options{})
	var got struct{ Endpoint string }
	if err := json.NewDecoder(w.lifecycle(t, "GET", "/v1/sandboxes/"+w.sandbox+"/endpoints/44772?use_server_proxy=true", "").Body).Decode(&got); err != nil {
		t.Fatal(err)
	}
	if want := strings.TrimPrefix(w.URL(), "http://") + "/"; !strings.HasPrefix(got.Endpoint, want) {
		t.Errorf("endpoint %q, want it to begin with %q", got.Endpoint, want)
	}
	w.endpoint = got.Endpoint
	if texts := texts(w.run(t, "echo through"), "stdout"); !slices.Equal(texts, []string{"through"}) {
		t.Errorf("got %q", texts)
	}
}

func TestCloseLeavesNothing(t *testing.T) {
	dir := t.TempDir()
	w := newWorld(t, osbtest.Options{Dir: dir})
	w.command(t, map[string]any{"command": "sleep 1000 & sleep 1000", "background": true})
	if err := w.Close(); err != nil {
		t.Error(err)
	}
	if left, _ := os.ReadDir(dir); len(left) != 0 {
		t.Errorf("files are left: %v", left)
	}
	if left := w.Marked(""); len(left) != 0 {
		t.Errorf("processes are left: %v", left)
	}
}
