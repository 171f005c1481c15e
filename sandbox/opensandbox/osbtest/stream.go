package osbtest

import (
	"bufio"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"strconv"
	"sync"
	"time"
)

// event is one of the stream that answers a command. A time of 0 ms is left out,
// like everything that is empty.
type event struct {
	Type          string   `json:"type"`
	Text          string   `json:"text,omitempty"`
	ExecutionTime int64    `json:"execution_time,omitempty"`
	Timestamp     int64    `json:"timestamp"`
	Error         *failure `json:"error,omitempty"`
}

type failure struct {
	Name      string   `json:"ename"`
	Value     string   `json:"evalue"`
	Traceback []string `json:"traceback"`
}

// stream writes events: bare objects with an empty line behind each.
type stream struct {
	w     http.ResponseWriter
	r     *http.Request
	fault Fault

	mu    sync.Mutex // guards what follows
	begun bool
}

func (s *Server) newStream(w http.ResponseWriter, r *http.Request, fault Fault) *stream {
	return &stream{w: w, r: r, fault: fault}
}

// discards reports whether nobody reads the answer.
func (st *stream) discards() bool {
	_, recorded := st.w.(*httptest.ResponseRecorder)
	return recorded
}

func (st *stream) send(e event) {
	e.Timestamp = time.Now().UnixMilli()
	data, err := json.Marshal(e) // which makes U+FFFD of what is no UTF-8
	if err != nil {
		panic(err)
	}
	st.raw(string(data))
	if st.fault.Kind == Duplicate {
		st.raw(string(data))
	}
	if st.fault.Kind == BadEvent && e.Type == "init" {
		st.raw(st.fault.Text)
	}
}

// raw writes a line and the empty line behind it.
func (st *stream) raw(line string) {
	st.write(line + "\n\n")
}

func (st *stream) write(text string) {
	st.mu.Lock()
	defer st.mu.Unlock()
	if !st.begun {
		st.begun = true
		st.w.Header().Set("Content-Type", "text/event-stream")
		st.w.Header().Set("Cache-Control", "no-cache")
	}
	_, _ = io.WriteString(st.w, text) // who left is noticed by the request's context
	_ = http.NewResponseController(st.w).Flush()
}

// outcome is how a command ended, in the words of an event.
type outcome struct {
	code    int // -1 for a signal
	message string
	took    time.Duration
}

func (st *stream) complete(took time.Duration) { st.end(outcome{took: took}) }

// end sends the final event: without a code if it is 0, else an error with the
// code as text.
func (st *stream) end(o outcome) {
	final := event{Type: "execution_complete", ExecutionTime: o.took.Milliseconds()}
	if o.code != 0 {
		final = event{Type: "error", Error: &failure{"CommandExecError", strconv.Itoa(o.code), []string{o.message}}}
	}
	switch st.fault.Kind {
	case BadExit:
		final = event{Type: "error", Error: &failure{"CommandExecError", st.fault.Text, []string{o.message}}}
	case ErrorZero:
		final = event{Type: "error", Error: &failure{"CommandExecError", "0", []string{o.message}}}
	case CutFinal:
		panic(http.ErrAbortHandler)
	case CutEvent:
		st.write(`{"type":"execution_complete","execution_ti`)
		panic(http.ErrAbortHandler)
	case Silent, Pinging:
		return
	}
	st.send(final)
	switch st.fault.Kind {
	case FinalTwice:
		st.send(final)
	case AfterFinal:
		st.send(event{Type: "stdout", Text: "printed after the end"})
		st.send(event{Type: "error", Error: &failure{"CommandExecError", "99", []string{"exit status 99"}}})
		st.send(event{Type: "execution_complete", ExecutionTime: 1})
	}
}

// cannotStart is what comes for a command that never ran: no number where the exit
// code is, or, in the background, an answer of another shape behind the first event.
func (st *stream) cannotStart(id string, background bool) {
	const reason = "fork/exec /usr/bin/bash: resource temporarily unavailable"
	st.send(event{Type: "init", Text: id})
	if background {
		st.write(`{"code":"RUNTIME_ERROR","message":"error running commands failed to start commands: ` + reason + `"}`)
		return
	}
	st.send(event{Type: "error", Error: &failure{"CommandExecError", reason, []string{reason}}})
}

// tail reads what was added to a file and cuts it into lines.
type tail struct {
	offset  int64
	pending []byte
	afterCR bool
}

// read hands over each line without its end, which is a line feed, a carriage
// return or both. An empty line is handed over as a line feed. An unfinished line
// is kept, unless this is the last time.
func (t *tail) read(name string, last bool, emit func(string)) {
	file, err := os.Open(name)
	if err != nil {
		return // the sandbox is gone, and the file with it
	}
	defer file.Close()
	if _, err := file.Seek(t.offset, io.SeekStart); err != nil {
		return
	}
	reader := bufio.NewReader(file)
	for {
		b, err := reader.ReadByte()
		if err != nil {
			break
		}
		t.offset++
		if b != '\n' && b != '\r' {
			t.pending, t.afterCR = append(t.pending, b), false
			continue
		}
		if len(t.pending) > 0 {
			emit(string(t.pending))
		} else if b != '\n' || !t.afterCR {
			emit("\n")
		}
		t.pending, t.afterCR = nil, b == '\r'
	}
	if last && len(t.pending) > 0 {
		emit(string(t.pending))
		t.pending = nil
	}
}
