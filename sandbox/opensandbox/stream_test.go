package opensandbox

import (
	"fmt"
	"strings"
	"testing"
)

// TestStream reads streams as services send them, and as none should.
func TestStream(t *testing.T) {
	long := strings.Repeat("x", 200<<10)
	for name, test := range map[string]struct {
		stream string
		want   string // what was printed, with the name of its stream, and the end
	}{
		"bare objects": {`{"type":"init","text":"id1","timestamp":1}` + "\n\n" + `{"type":"ping"}` + "\n\n" + `{"type":"stdout","text":"a"}` + "\n\n" + `{"type":"execution_complete","execution_time":3}` + "\n\n",
			"init:id1 ping: stdout:a exited 0"},
		"prefixed objects": {"event: x\nid: 7\n: comment\ndata: {\"type\":\"stdout\",\"text\":\"a\"}\r\n\r\ndata:{\"type\":\"execution_complete\"}\n", "stdout:a exited 0"},
		"no end of line":   {`{"type":"execution_complete"}`, "exited 0"},
		"a long line":      {`{"type":"stdout","text":"` + long + `"}` + "\n\n" + `{"type":"execution_complete"}` + "\n\n", "stdout:" + long + " exited 0"},
		"unknown type":     {`{"type":"news","text":"?","more":{"a":[1]}}` + "\n\n" + `{"type":"execution_complete"}` + "\n\n", "news:? exited 0"},
		"what follows":     {`{"type":"execution_complete"}` + "\n\n" + `{"type":"error","error":{"ename":"E","evalue":"9"}}` + "\n\n", "exited 0"},
		"exit code":        {errorEvent("7", "exit status 7"), "exited 7"},
		"killed":           {errorEvent("-1", "signal: killed"), "killed SIGKILL"},
		"terminated":       {errorEvent("-1", "signal: terminated"), "killed SIGTERM"},
		"core":             {errorEvent("-1", "signal: segmentation fault (core dumped)"), "killed SIGSEGV"},
		"no signal":        {errorEvent("-1", "exit status 1"), "unknown over"},
		"new signal":       {errorEvent("-1", "signal: signal 99"), "unknown over"},
		"success as error": {errorEvent("0", ""), "unknown over"},
		"too large":        {errorEvent("256", ""), "unknown over"},
		"huge":             {errorEvent("999999999999999999999", ""), "unknown over"},
		"negative":         {errorEvent("-2", ""), "unknown over"},
		"padded":           {errorEvent("07", ""), "unknown over"},
		"spaced":           {errorEvent("7 ", ""), "unknown over"},
		"text":             {errorEvent("fork/exec /bin/bash: no", ""), "unknown over"},
		"empty":            {errorEvent("", ""), "unknown over"},
		"no details":       {`{"type":"error"}` + "\n", "unknown over"},
		"nothing":          {"", "unknown"},
		"cut":              {`{"type":"stdout","text":"a"}` + "\n\n" + `{"type":"execution_comp`, "stdout:a unknown"},
		"a page":           {"<html>\n", "unknown"},
		"null":             {"null\n", "unknown"},
		"a list":           {"[]\n", "unknown"},
		"two on a line":    {`{"type":"execution_complete"}{"type":"ping"}` + "\n", "unknown"},
		"a number as type": {`{"type":7}` + "\n", "unknown"},
		"an error answer":  {`{"code":"RUNTIME_ERROR","message":"no"}` + "\n", "unknown over"},
	} {
		t.Run(name, func(t *testing.T) {
			var got []string
			stream := newEvents(strings.NewReader(test.stream))
			for {
				e, end, ok := stream.next()
				if !ok {
					got = append(got, inWords(end))
					break
				}
				if v, last := e.final(); last {
					got = append(got, inWords(v))
					break
				}
				got = append(got, e.Type+":"+e.Text)
			}
			if text := strings.Join(got, " "); text != test.want {
				t.Errorf("got %.300s, want %.300s", text, test.want)
			}
		})
	}
}

func errorEvent(value, traceback string) string {
	return fmt.Sprintf(`{"type":"error","error":{"ename":"CommandExecError","evalue":%q,"traceback":[%q]},"timestamp":1}`+"\n\n", value, traceback)
}

func inWords(v verdict) string {
	switch {
	case v.kind == exited:
		return fmt.Sprintf("exited %d", v.code)
	case v.kind == killed:
		return "killed " + v.signal
	case v.kind == broken:
		return "broken"
	case v.over:
		return "unknown over"
	}
	return "unknown"
}

// TestEventsAreBounded: a line that does not end takes no more memory than an event may.
func TestEventsAreBounded(t *testing.T) {
	endless := &endlessReader{}
	_, end, ok := newEvents(endless).next()
	if ok || end.kind != unknown || endless.read > maxEvent+1<<20 {
		t.Errorf("ok %v, %+v, after %d bytes", ok, end, endless.read)
	}
}

type endlessReader struct{ read int }

func (r *endlessReader) Read(p []byte) (int, error) {
	r.read += len(p)
	return len(p), nil // NUL bytes
}

// TestStatus has what the status of a command says of its end.
func TestStatus(t *testing.T) {
	code := func(n int) *int { return &n }
	no, yes := false, true
	for name, test := range map[string]struct {
		status status
		want   string
	}{
		"success":         {status{Running: &no, ExitCode: code(0)}, "exited 0"},
		"failure":         {status{Running: &no, ExitCode: code(3), Error: "exit status 3"}, "exited 3"},
		"without message": {status{Running: &no, ExitCode: code(3)}, "exited 3"},
		"killed":          {status{Running: &no, ExitCode: code(-1), Error: "signal: killed"}, "killed SIGKILL"},
		"minus one":       {status{Running: &no, ExitCode: code(-1)}, "unknown"},
		"running":         {status{Running: &yes}, "unknown"},
		"no code":         {status{Running: &no}, "unknown"},
		"no such code":    {status{Running: &no, ExitCode: code(256)}, "unknown"},
		"execd's own":     {status{Running: &no, ExitCode: code(255), Error: "fork/exec /bin/bash: no such file or directory"}, "broken"},
	} {
		if got := inWords(test.status.verdict()); got != test.want {
			t.Errorf("%s: %s, want %s", name, got, test.want)
		}
	}
}
