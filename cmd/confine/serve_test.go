package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/textproto"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// editor talks to a real `confine serve` in raw frames.
type editor struct {
	t   *testing.T
	cmd *exec.Cmd
	in  io.WriteCloser
	out *bufio.Reader
	err *strings.Builder
}

func startServe(t *testing.T, w world, args ...string) *editor {
	t.Helper()
	e := &editor{t: t, cmd: w.confine(t, append([]string{"serve"}, args...)...), err: &strings.Builder{}}
	e.cmd.Stderr = e.err
	var err error
	if e.in, err = e.cmd.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	out, err := e.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	e.out = bufio.NewReader(out)
	if err := e.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if e.cmd.ProcessState == nil {
			e.cmd.Process.Kill()
			e.cmd.Wait()
		}
	})
	return e
}

func (e *editor) send(message string) {
	e.t.Helper()
	if _, err := fmt.Fprintf(e.in, "Content-Length: %d\r\n\r\n%s", len(message), message); err != nil {
		e.t.Fatalf("sending %s: %v\nstderr: %s", message, err, e.err)
	}
}

// answer reads frames up to the answer with an id.
func (e *editor) answer(id string) map[string]json.RawMessage {
	e.t.Helper()
	return e.await(func(message map[string]json.RawMessage) bool {
		_, request := message["method"]
		return !request && string(message["id"]) == id
	})
}

// await reads frames up to one that matches. Anything on the stream that is no
// frame fails the test.
func (e *editor) await(match func(message map[string]json.RawMessage) bool) map[string]json.RawMessage {
	e.t.Helper()
	for {
		header, err := textproto.NewReader(e.out).ReadMIMEHeader()
		if err != nil {
			e.t.Fatalf("reading a header: %v\nstderr: %s", err, e.err)
		}
		length, err := strconv.Atoi(header.Get("Content-Length"))
		if err != nil {
			e.t.Fatalf("header %v: %v", header, err)
		}
		body := make([]byte, length)
		if _, err := io.ReadFull(e.out, body); err != nil {
			e.t.Fatal(err)
		}
		var message map[string]json.RawMessage
		if err := json.Unmarshal(body, &message); err != nil {
			e.t.Fatalf("%s: %v", body, err)
		}
		if match(message) {
			return message
		}
	}
}

// leave waits for the end of the program and returns its status and what was
// left on its standard output.
func (e *editor) leave() (status int, rest string) {
	e.t.Helper()
	e.in.Close()
	left, err := io.ReadAll(e.out)
	if err != nil {
		e.t.Fatal(err)
	}
	err = e.cmd.Wait()
	if _, ended := errors.AsType[*exec.ExitError](err); err != nil && !ended {
		e.t.Fatal(err)
	}
	return e.cmd.ProcessState.ExitCode(), string(left)
}

const initialize = `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"processId":null,"capabilities":{}}}`

func TestServeEndsWithStatus0OnlyAfterShutdown(t *testing.T) {
	for _, test := range []struct {
		name   string
		end    []string
		status int
	}{
		{"shutdown and exit", []string{`{"jsonrpc":"2.0","id":2,"method":"shutdown"}`, `{"jsonrpc":"2.0","method":"exit"}`}, 0},
		{"shutdown, then the stream ends", []string{`{"jsonrpc":"2.0","id":2,"method":"shutdown"}`}, 0},
		{"exit without shutdown", []string{`{"jsonrpc":"2.0","method":"exit"}`}, 1},
		{"the stream ends", nil, 1},
	} {
		t.Run(test.name, func(t *testing.T) {
			e := startServe(t, newWorld(t), "--stdio")
			e.send(initialize)
			if answer := e.answer("1"); answer["result"] == nil {
				t.Fatalf("initialize was answered with %s", answer["error"])
			}
			for _, message := range test.end {
				e.send(message)
				if strings.Contains(message, `"id":2`) {
					e.answer("2")
				}
			}
			status, rest := e.leave()
			if status != test.status {
				t.Errorf("status %d, want %d\nstderr: %s", status, test.status, e.err)
			}
			if rest != "" && !strings.HasPrefix(rest, "Content-Length: ") {
				t.Errorf("standard output ends with %q, which is no frame", rest)
			}
		})
	}
}

func TestServeEndsOnSignal(t *testing.T) {
	// What a script starts in the background ignores this signal, and so would its
	// children.
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, os.Interrupt)
	defer signal.Stop(signals)
	w := newWorld(t)
	e := startServe(t, w)
	e.send(initialize)
	e.answer("1")
	if err := e.cmd.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	e.cmd.Wait() // the stream stays open: the signal alone must do
	if status := e.cmd.ProcessState.ExitCode(); status != 1 {
		t.Errorf("status %d, want 1\nstderr: %s", status, e.err)
	}
	left, err := filepath.Glob(w.home + "/.local/state/confine/servers/*")
	if err != nil || len(left) > 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
}

func TestServeWritesPrivateLogAndTrace(t *testing.T) {
	w := newWorld(t)
	e := startServe(t, w, "--trace", w.home+"/trace", "--log", w.home+"/log")
	e.send(initialize)
	e.answer("1")
	e.send(`{"jsonrpc":"2.0","id":2,"method":"shutdown"}`)
	e.answer("2")
	if status, _ := e.leave(); status != 0 {
		t.Errorf("status %d\nstderr: %s", status, e.err)
	}
	if e.err.String() != "" {
		t.Errorf("standard error has %q although there is a log file", e.err)
	}
	data, err := os.ReadFile(w.home + "/trace")
	if err != nil || !strings.Contains(string(data), "initialize") {
		t.Errorf("the trace has %q, %v", data, err)
	}
	for _, name := range []string{"trace", "log"} {
		if info, err := os.Stat(w.home + "/" + name); err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("%s: %v, %v", name, info, err)
		}
	}
}

func TestServeRefusesALogThatOthersCanRead(t *testing.T) {
	w := newWorld(t)
	if err := os.WriteFile(w.home+"/trace", nil, 0o644); err != nil {
		t.Fatal(err)
	}
	e := startServe(t, w, "--trace", w.home+"/trace")
	if status, _ := e.leave(); status != 1 || !strings.Contains(e.err.String(), "hint: run chmod 600") {
		t.Errorf("status %d, standard error %q", status, e.err)
	}
}

// TestStrayPrintsStayOutOfTheStream shows that nothing else in the process can
// write to the editor's stream.
func TestStrayPrintsStayOutOfTheStream(t *testing.T) {
	stdin, stdout := os.Stdin, os.Stdout
	defer func() { os.Stdin, os.Stdout = stdin, stdout }()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	os.Stdout = w
	stream := takeStdio()
	if os.Stdout != os.Stderr {
		t.Error("fmt.Print would still write to the stream")
	}
	if n, err := os.Stdin.Read(make([]byte, 1)); err == nil {
		t.Errorf("standard input can still be read: %d bytes", n)
	}
	io.WriteString(stream, "frame")
	stream.out.Close()
	if got, err := io.ReadAll(r); err != nil || string(got) != "frame" {
		t.Errorf("got %q, %v", got, err)
	}
}
