package server_test

import (
	"encoding/base64"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/confine-dev/confine/rpc/proto"
	"github.com/confine-dev/confine/rpc/server"
	"github.com/confine-dev/confine/sandbox"
	"github.com/confine-dev/confine/sandbox/sandboxtest"
)

// write calls confine/runs/write.
func (w *world) write(p proto.WriteParams) proto.WriteResult {
	w.t.Helper()
	var result proto.WriteResult
	w.editor.Call(proto.MethodRunsWrite, p, &result)
	return result
}

// begin starts a run in the background and returns what the test plays.
func (w *world) begin(p proto.RunCommandParams) *sandboxtest.FakeProcess {
	w.t.Helper()
	p.Background = true
	w.run(p)
	return w.next(w.confined)
}

func TestWritesReachTheCommand(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		w := open(t, nil)
		p := w.begin(proto.RunCommandParams{Command: "cat", RunID: "r", Stdin: "first ", StdinOpen: true})
		if first, err := io.ReadAll(p.Spec.Stdin); err != nil || string(first) != "first " || !p.Spec.StdinOpen || p.Spec.Terminal != nil {
			t.Errorf("the command is given %q, %v, and the spec %+v", first, err, p.Spec)
		}
		if got, want := w.write(proto.WriteParams{RunID: "r", Data: "dé"}), (proto.WriteResult{RunID: "r", Taken: 3, Queued: 3, Open: true}); got != want {
			t.Errorf("%+v, want %+v", got, want)
		}
		if got := w.write(proto.WriteParams{RunID: "r", Base64: base64.StdEncoding.EncodeToString([]byte{0xff, 0})}); got.Taken != 2 || got.Queued != 5 {
			t.Errorf("%+v", got)
		}
		if got, want := w.write(proto.WriteParams{RunID: "r", Close: true}), (proto.WriteResult{RunID: "r", Queued: 5}); got != want {
			t.Errorf("%+v, want %+v", got, want)
		}
		read, err := io.ReadAll(p.Input())
		if err != nil || string(read) != "d\xc3\xa9\xff\x00" {
			t.Errorf("the command reads %q, %v", read, err)
		}
		if e := w.editor.CallError(proto.MethodRunsWrite, proto.WriteParams{RunID: "r", Data: "late"}); e.Code != -32803 || !strings.Contains(string(e.Data), `"INPUT_CLOSED"`) {
			t.Errorf("after the end of input: %+v", e)
		}
	})
}

// TestWritesAreBounded: what is not taken is told, and no character is cut.
func TestWritesAreBounded(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		w := open(t, nil)
		w.begin(proto.RunCommandParams{Command: "sleep", RunID: "r", StdinOpen: true})
		got := w.write(proto.WriteParams{RunID: "r", Data: "xy" + strings.Repeat("€", 400000), Close: true})
		if want := (proto.WriteResult{RunID: "r", Taken: 1048574, Queued: 1048574, Open: true}); got != want { // of 1 MiB, 2 + 3 × 349524
			t.Errorf("%+v, want %+v", got, want)
		}
		if got := w.write(proto.WriteParams{RunID: "r", Base64: base64.StdEncoding.EncodeToString(make([]byte, 10))}); got.Taken != 2 || got.Queued != 1048576 {
			t.Errorf("bytes are cut anywhere: %+v", got)
		}
		if got := w.write(proto.WriteParams{RunID: "r", Data: "more", Close: true}); got.Taken != 0 || !got.Open {
			t.Errorf("a full queue takes %+v", got)
		}
	})
}

func TestWritesThatAreRefused(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		w := open(t, nil)
		w.begin(proto.RunCommandParams{Command: "a", RunID: "closed"})
		ended := w.begin(proto.RunCommandParams{Command: "b", RunID: "ended", StdinOpen: true})
		ended.Exit(0)
		w.begin(proto.RunCommandParams{Command: "c", RunID: "tty", Pty: &proto.TerminalSize{}})
		w.begin(proto.RunCommandParams{Command: "d", RunID: "open", StdinOpen: true})
		waits := wider()
		waits.RunID, waits.StdinOpen = "waits", true
		w.editor.Request(proto.MethodRunCommand, waits)
		w.question()
		synctest.Wait()
		for name, test := range map[string]struct {
			params proto.WriteParams
			code   int64
			data   string
		}{
			"no such run":       {proto.WriteParams{RunID: "none", Data: "x"}, -32602, ""},
			"input not open":    {proto.WriteParams{RunID: "closed", Data: "x"}, -32602, ""},
			"both":              {proto.WriteParams{RunID: "open", Data: "x", Base64: "eA=="}, -32602, ""},
			"no base64":         {proto.WriteParams{RunID: "open", Base64: "?"}, -32602, ""},
			"end of a terminal": {proto.WriteParams{RunID: "tty", Close: true}, -32602, ""},
			"ended":             {proto.WriteParams{RunID: "ended", Data: "x"}, -32803, "INPUT_CLOSED"},
			"not begun":         {proto.WriteParams{RunID: "waits", Data: "x"}, -32803, "INPUT_CLOSED"},
		} {
			e := w.editor.CallError(proto.MethodRunsWrite, test.params)
			if e.Code != test.code || !strings.Contains(string(e.Data), test.data) {
				t.Errorf("%s: %+v, want %d %s", name, e, test.code, test.data)
			}
		}
	})
}

// TestWritesKeepTheirOrder: requests run at the same time, these do not.
func TestWritesKeepTheirOrder(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		w := open(t, nil)
		p := w.begin(proto.RunCommandParams{Command: "cat", RunID: "r", StdinOpen: true})
		want := ""
		for i := range 500 {
			text := fmt.Sprintf("%d ", i)
			want += text
			w.editor.Request(proto.MethodRunsWrite, proto.WriteParams{RunID: "r", Data: text})
		}
		w.write(proto.WriteParams{RunID: "r", Close: true})
		if read, err := io.ReadAll(p.Input()); err != nil || string(read) != want {
			t.Errorf("the command reads %q, %v", read, err)
		}
	})
}

func TestTerminals(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		w := open(t, func(o *server.Options) { o.HostEnv = append(o.HostEnv, "LINES=7", "TERM=dumb", "PAGER=less") })
		p := w.begin(proto.RunCommandParams{Command: "top", RunID: "r", Pty: &proto.TerminalSize{Columns: 132}})
		if p.Spec.Terminal == nil || *p.Spec.Terminal != (sandbox.TerminalSize{Columns: 132, Rows: 24}) || p.Input() == nil {
			t.Errorf("the terminal is %+v", p.Spec.Terminal)
		}
		for _, entry := range []string{"TERM=xterm-256color", "PAGER=less"} {
			if !slices.Contains(p.Spec.Env, entry) {
				t.Errorf("%s is not in %q", entry, p.Spec.Env)
			}
		}
		for _, entry := range p.Spec.Env {
			if strings.HasPrefix(entry, "LINES=") || strings.HasPrefix(entry, "NO_COLOR=") {
				t.Errorf("the environment has %s", entry)
			}
		}
		var none any
		w.editor.Call(proto.MethodRunsResize, proto.ResizeParams{RunID: "r", Columns: 10, Rows: 20}, &none)
		if got := p.Size(); none != nil || got != (sandbox.TerminalSize{Columns: 10, Rows: 20}) {
			t.Errorf("answered %v, and the size is %+v", none, got)
		}
		w.begin(proto.RunCommandParams{Command: "cat", RunID: "pipes", StdinOpen: true})
		for _, bad := range []proto.ResizeParams{{RunID: "pipes", Columns: 1, Rows: 1}, {RunID: "r", Columns: 0, Rows: 1}, {RunID: "r", Columns: 1, Rows: 10001}, {RunID: "x", Columns: 1, Rows: 1}} {
			if e := w.editor.CallError(proto.MethodRunsResize, bad); e.Code != -32602 {
				t.Errorf("%+v: %+v", bad, e)
			}
		}
		var list proto.ListResult
		w.editor.Call(proto.MethodRunsList, nil, &list)
		for _, info := range list.Runs {
			if !info.StdinOpen || info.Pty != (info.RunID == "r") {
				t.Errorf("listed as %+v", info)
			}
		}
		p.Exit(0)
		synctest.Wait()
		w.editor.Call(proto.MethodRunsResize, proto.ResizeParams{RunID: "r", Columns: 5, Rows: 5}, &none)
		w.editor.Call(proto.MethodRunsList, nil, &list)
		if last := list.Runs[len(list.Runs)-1]; last.RunID != "r" || last.StdinOpen || !last.Pty {
			t.Errorf("an ended run is listed as %+v", last)
		}
	})
}

// TestSizeBeforeTheBeginning: who waits for an answer may change windows meanwhile.
func TestSizeBeforeTheBeginning(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		w := open(t, nil)
		params := wider()
		params.RunID, params.Pty = "r", &proto.TerminalSize{Columns: 80, Rows: 24}
		w.editor.Request(proto.MethodRunCommand, params)
		m, q := w.question()
		w.editor.Call(proto.MethodRunsResize, proto.ResizeParams{RunID: "r", Columns: 100, Rows: 50}, nil)
		w.choose(m, q, "allow_once")
		p := w.next(w.unconfined)
		if *p.Spec.Terminal != (sandbox.TerminalSize{Columns: 100, Rows: 50}) {
			t.Errorf("it begins with %+v", *p.Spec.Terminal)
		}
	})
}

// TestOpenInputInQuestions: nobody can allow in one yes what is never shown.
func TestOpenInputInQuestions(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		w := open(t, nil)
		for name, test := range map[string]struct {
			change func(*proto.RunCommandParams)
			warns  string
		}{
			"input":    {func(p *proto.RunCommandParams) { p.StdinOpen = true }, "More INPUT"},
			"terminal": {func(p *proto.RunCommandParams) { p.Pty = &proto.TerminalSize{} }, "a TERMINAL"},
		} {
			params := proto.RunCommandParams{Command: "make", RunID: name, SandboxPermissions: sandbox.WorkspaceWrite, Justification: "x"}
			test.change(&params)
			asked := w.editor.Request(proto.MethodRunCommand, params)
			m, q := w.question()
			if !slices.ContainsFunc(q.Warnings, func(s string) bool { return strings.Contains(s, test.warns) }) || !strings.Contains(q.Text, test.warns) {
				t.Errorf("%s: the question warns of %q, its text is %q", name, q.Warnings, q.Text)
			}
			for _, o := range q.Options {
				if o.Kind == "allow_always" {
					t.Errorf("%s: the question offers %+v", name, o)
				}
			}
			w.choose(m, q, "allow_once")
			first := w.next(w.confined)
			first.Deny(denial)
			w.editor.Response(asked, nil)

			w.editor.Request(proto.MethodRequestEscalation, proto.EscalationParams{RunID: name, SandboxPermissions: sandbox.DangerFullAccess, Justification: "x"})
			m, q = w.question()
			if !slices.ContainsFunc(q.Warnings, func(s string) bool { return strings.Contains(s, "not written to it again") }) {
				t.Errorf("%s: asked again, the question warns of %q", name, q.Warnings)
			}
			w.choose(m, q, "allow_once")
			again := w.next(w.unconfined)
			if again.Spec.StdinOpen != first.Spec.StdinOpen || (again.Spec.Terminal == nil) != (first.Spec.Terminal == nil) {
				t.Errorf("%s: the second run gets %+v", name, again.Spec)
			}
			again.Exit(0)
		}
	})
}

// TestWhereThereIsNoTerminal: nobody is asked about what cannot be.
func TestWhereThereIsNoTerminal(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		w := open(t, nil)
		w.confined.SetInteraction(sandbox.Interaction{Input: true})
		params := proto.RunCommandParams{Command: "make", SandboxPermissions: sandbox.WorkspaceWrite, Justification: "x"}
		params.Pty = &proto.TerminalSize{}
		if e := w.editor.CallError(proto.MethodRunCommand, params); e.Code != -32602 || !strings.Contains(e.Message, "pty") {
			t.Errorf("a terminal: %+v", e)
		}
		w.begin(proto.RunCommandParams{Command: "cat", StdinOpen: true})
		var can proto.Capabilities
		w.editor.Call(proto.MethodCapabilities, nil, &can)
		if can.Pty || !can.StdinOpen {
			t.Errorf("capabilities: pty %v, stdinOpen %v", can.Pty, can.StdinOpen)
		}
		w.confined.SetInteraction(sandbox.Interaction{})
		if e := w.editor.CallError(proto.MethodRunCommand, proto.RunCommandParams{Command: "cat", StdinOpen: true}); e.Code != -32602 || !strings.Contains(e.Message, "stdinOpen") {
			t.Errorf("open input: %+v", e)
		}
	})
}
