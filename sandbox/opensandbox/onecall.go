package opensandbox

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptrace"
	"strings"
	"sync"

	"github.com/confine-dev/confine/sandbox"
)

// maxOneCall bounds the answer to a command of the one-call interface, which comes as
// a whole.
const maxOneCall = 32 << 20

// oneCall is the answer. Each field must be there.
type oneCall struct {
	stdout, stderr string
	code           int32
}

// startCall sends a command. The interface says nothing until it is over, so that the
// command counts as begun as soon as something was sent.
func (p *Provider) startCall(ctx context.Context, spec sandbox.Spec, text string) (sandbox.Process, error) {
	facts := p.facts(spec.Policy)
	r := p.newRun(spec, facts)
	p.mu.Lock()
	p.runs[r] = spec.Session
	p.working.Add(1) // Start is among them still
	p.mu.Unlock()

	body := map[string]any{"cmd": p.inFolder(spec, text), "env": variables(spec, facts)}
	sent := make(chan struct{})
	answered := make(chan struct{})
	noteSent := sync.OnceFunc(func() { close(sent) })
	sending, leave := context.WithCancel(httptrace.WithClientTrace(p.ctx, &httptrace.ClientTrace{GotConn: func(httptrace.GotConnInfo) { noteSent() }}))
	var answer oneCall
	var f *failure
	go func() {
		defer close(answered)
		answer, f = p.sendCall(sending, p.callPeer(), body)
	}()
	stopStart := context.AfterFunc(ctx, func() {
		select {
		case <-sent:
		default:
			leave()
		}
	})
	select {
	case <-sent:
	case <-answered:
	}
	stopStart()
	lift := r.limit()
	follow := func() {
		defer p.working.Done()
		defer leave()
		select {
		case <-answered:
		case <-r.stopping:
			leave()
			<-answered
		}
		lift()
		r.finish(p.endOfCall(r, answer, f))
		p.mu.Lock()
		delete(p.runs, r)
		p.mu.Unlock()
	}
	select {
	case <-sent:
		go follow()
		return r, nil
	default: // it was answered without being sent
		follow()
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		return nil, r.err
	}
}

// callPeer is the service as this interface has it.
func (p *Provider) callPeer() peer {
	at := peer{base: p.base, headers: map[string]string{}}
	if p.config.APIKey != "" {
		at.headers["Authorization"] = "Bearer " + p.config.APIKey
	}
	return at
}

// inFolder begins a command in its folder. A folder of the workspace is made, empty.
func (p *Provider) inFolder(spec sandbox.Spec, text string) string {
	var b strings.Builder
	for _, root := range spec.Policy.Roots {
		if sandbox.Within(spec.Dir, root.Path) {
			fmt.Fprintf(&b, "mkdir -p -- %s 2>/dev/null; ", quote(spec.Dir))
			break
		}
	}
	fmt.Fprintf(&b, "cd -- %s || exit\nexec bash -c %s", quote(spec.Dir), quote(text))
	return b.String()
}

// sendCall makes the call and reads its answer.
func (p *Provider) sendCall(ctx context.Context, at peer, body any) (oneCall, *failure) {
	response, f := p.open(ctx, p.fresh, at, call{method: http.MethodPost, path: "/v1/sandbox/run", json: body})
	if f != nil {
		return oneCall{}, f
	}
	defer response.Body.Close()
	bad := func(format string, args ...any) *failure {
		return &failure{sent: true, text: "the answer of the service cannot be used: " + fmt.Sprintf(format, args...)}
	}
	data, err := io.ReadAll(io.LimitReader(response.Body, maxOneCall+1))
	switch {
	case err != nil:
		return oneCall{}, bad("%s", p.shown(reason(ctx, err)))
	case len(data) > maxOneCall:
		return oneCall{}, bad("it is longer than %d bytes", maxOneCall)
	}
	var fields map[string]json.RawMessage // names count as they are spelled
	if json.Unmarshal(data, &fields) != nil {
		return oneCall{}, bad("it is no object: %s", p.shown(string(data[:min(len(data), 16<<10)])))
	}
	var answer oneCall
	for name, into := range map[string]any{"stdout": &answer.stdout, "stderr": &answer.stderr, "exit_code": &answer.code} {
		if raw, ok := fields[name]; !ok || string(raw) == "null" || json.Unmarshal(raw, into) != nil {
			return oneCall{}, bad("%s is missing or of another type", name)
		}
	}
	if answer.code < 0 || answer.code > 255 {
		return oneCall{}, bad("exit_code is %d, which no command ends with", answer.code)
	}
	return answer, nil
}

// endOfCall is what the answer says of the command, or that nobody can tell.
func (p *Provider) endOfCall(r *run, answer oneCall, f *failure) (verdict, string, error) {
	r.mu.Lock()
	timedOut, cancelled := r.timedOut, r.cancelled
	r.mu.Unlock()
	const beyond = `sandbox_api = "run" has no way of ending a command: it may go on at the service`
	switch {
	case f == nil:
		r.emit(sandbox.StdoutStream, []byte(answer.stdout))
		r.emit(sandbox.StderrStream, []byte(answer.stderr))
		return verdict{kind: exited, code: int(answer.code)}, "", nil
	case timedOut:
		return verdict{}, "", r.fault("the command did not end within %v, and %s", r.spec.Timeout, beyond)
	case cancelled:
		return verdict{}, "", r.fault("the command was to be ended, and %s", beyond)
	}
	remedies := []string{seeDoctor}
	if !f.sent || f.status >= 300 && f.status < 500 { // else it may have run: no remedy has it run twice
		remedies = append(f.remedies(), seeDoctor)
	}
	err := unusable(r.spec.Policy, f.text, remedies...)
	err.Started, err.Unsure = f.sent, f.sent
	return verdict{}, "", err
}
