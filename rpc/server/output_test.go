package server_test

import (
	"encoding/base64"
	"encoding/json"
	"strings"
	"testing"
	"testing/synctest"
	"unicode/utf8"

	"github.com/confine-dev/confine/rpc/proto"
	"github.com/confine-dev/confine/rpc/rpctest"
	"github.com/confine-dev/confine/sandbox"
	"github.com/confine-dev/confine/sandbox/sandboxtest"
)

// pieces decodes what was received of a run's output and checks what holds for
// every piece.
func (w *world) pieces(runID string) []proto.Output {
	w.t.Helper()
	var all []proto.Output
	next := map[sandbox.Stream]int64{}
	for _, m := range w.editor.Received() {
		if m.Method != proto.MethodOutput {
			continue
		}
		var o proto.Output
		if err := json.Unmarshal(m.Params, &o); err != nil {
			w.t.Fatal(err)
		}
		if o.RunID != runID {
			continue
		}
		if o.Seq != int64(len(all)) {
			w.t.Errorf("piece %d has the number %d", len(all), o.Seq)
		}
		if o.Offset != next[o.Stream]+o.Skipped {
			w.t.Errorf("piece %d of %s begins at %d, want %d and %d skipped", o.Seq, o.Stream, o.Offset, next[o.Stream], o.Skipped)
		}
		if len(content(w.t, o)) > 64<<10 {
			w.t.Errorf("piece %d has %d bytes", o.Seq, len(content(w.t, o)))
		}
		next[o.Stream] = o.Offset + int64(len(content(w.t, o)))
		all = append(all, o)
	}
	return all
}

func content(t *testing.T, o proto.Output) string {
	t.Helper()
	data, err := base64.StdEncoding.DecodeString(o.Base64)
	if err != nil {
		t.Fatal(err)
	}
	return o.Data + string(data)
}

func TestOutputIsByteExact(t *testing.T) {
	const euro = "€" // three bytes
	large := strings.Repeat("a", 64<<10-1) + strings.Repeat(euro, 50_000)
	for name, test := range map[string]struct {
		printed []string
		text    bool // every piece is sent as text
	}{
		"text":                        {[]string{"one\n", "two\n"}, true},
		"nothing":                     {nil, true},
		"a character in two":          {[]string{"x" + euro[:1], euro[1:] + "y"}, true},
		"a character in three":        {[]string{euro[:1], euro[1:2], euro[2:]}, true},
		"an emoji byte by byte":       {strings.Split("\xf0|\x9f|\x98|\x80", "|"), true},
		"large, with borders inside":  {[]string{large}, true},
		"a character that never ends": {[]string{"x" + euro[:2]}, false},
		"one that is broken off":      {[]string{"x" + euro[:2], "y"}, false},
		"binary":                      {[]string{"\xff\xfe\x00", "\x80"}, false},
		"binary at a border":          {[]string{strings.Repeat("\x80", 200<<10)}, false},
		"overlong start":              {[]string{"\xc0", "\x80"}, false},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T) {
				w := open(t, nil)
				w.confined.Script("print", func(p *sandboxtest.FakeProcess) {
					for _, s := range test.printed {
						p.Stdout(s)
						synctest.Wait() // it has been sent, so nothing is left out
					}
					p.Exit(0)
				})
				r := w.run(proto.RunCommandParams{Command: "print", RunID: "r"})
				var got strings.Builder
				for _, o := range w.pieces("r") {
					if o.Skipped != 0 {
						t.Errorf("%d bytes were left out", o.Skipped)
					}
					if o.Data != "" && o.Base64 != "" {
						t.Error("a piece has both forms")
					}
					if test.text && o.Base64 != "" {
						t.Errorf("piece %d of a text is in base64", o.Seq)
					}
					got.WriteString(content(t, o))
				}
				if want := strings.Join(test.printed, ""); got.String() != want {
					t.Errorf("received %d bytes, want %d", got.Len(), len(want))
				}
				if r.Stdout.Bytes != int64(got.Len()) {
					t.Errorf("the result counts %d bytes", r.Stdout.Bytes)
				}
				if !utf8.ValidString(r.Stdout.Text) {
					t.Error("the text of the result is not UTF-8")
				}
			})
		})
	}
}

func TestOrderOfEverythingAboutARun(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		w := open(t, nil)
		w.confined.Script("make", func(p *sandboxtest.FakeProcess) {
			p.Stdout("out\n")
			p.Stderr("err\n")
			p.Stdout("half a character: \xe2")
			p.Exit(0)
		})
		id := w.editor.Request(proto.MethodRunCommand, proto.RunCommandParams{Command: "make", WorkDoneToken: proto.Token(`"t"`)})
		w.editor.Response(id, nil)
		var order []string
		for _, m := range w.editor.Received() {
			switch {
			case m.Method == proto.MethodOutput || m.Method == proto.MethodRunExit || m.Method == proto.MethodProgress:
				order = append(order, m.Method)
			case m.IsResponse() && string(m.ID) == jsonInt(id):
				order = append(order, "response")
			}
		}
		got := strings.Join(order, " ")
		// The progress may begin before or after the first output.
		got = strings.Replace(got, proto.MethodProgress+" ", "", 1)
		if strings.Count(got, proto.MethodOutput) != 4 {
			got = strings.Replace(got, proto.MethodOutput+" "+proto.MethodProgress, proto.MethodOutput, 1)
		}
		want := strings.Repeat("confine/output ", 4) + "$/progress confine/exit response"
		if got != want {
			t.Errorf("order %q, want %q", got, want)
		}
	})
}

// TestASlowEditorLosesOutputAndNothingElse prints 5 MiB to an editor that does
// not read.
func TestASlowEditorLosesOutputAndNothingElse(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		w := open(t, nil)
		line := strings.Repeat("x", 1023) + "\n"
		ended := make(chan struct{})
		w.confined.Script("flood", func(p *sandboxtest.FakeProcess) {
			w.editor.Stall()
			for range 5 << 10 {
				p.Stdout(line)
			}
			p.Stderr("end\n")
			p.Exit(0)
			close(ended)
		})
		id := w.editor.Request(proto.MethodRunCommand, proto.RunCommandParams{Command: "flood", RunID: "r"})
		<-ended // although nobody reads
		w.editor.Resume()
		var r proto.RunResult
		w.editor.Response(id, &r)
		received, skipped := 0, int64(0)
		for _, o := range w.pieces("r") {
			if o.Stream == sandbox.StdoutStream {
				received += len(o.Data)
				skipped += o.Skipped
			}
		}
		if total := int64(received) + skipped; total != 5<<20 || r.Stdout.Bytes != total {
			t.Errorf("%d bytes and %d skipped, %d counted", received, skipped, r.Stdout.Bytes)
		}
		if received > 1<<20+64<<10 || received < 1<<20-64<<10 {
			t.Errorf("%d bytes were on their way, want about 1 MiB", received)
		}
	})
}

func TestOnlyWhoWantsOutputGetsIt(t *testing.T) {
	for name, init := range map[string]rpctest.Init{
		"stock":     {},
		"no output": {Confine: &proto.ClientConfine{ProtocolVersion: 1, Approval: true}},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T) {
				w := newWorld(t, nil)
				w.editor.Initialize(init)
				w.confined.Script("print", func(p *sandboxtest.FakeProcess) { p.Stdout("x"); p.Exit(0) })
				r := w.run(proto.RunCommandParams{Command: "print", RunID: "r"})
				if n := len(w.pieces("r")); n != 0 || r.Stdout.Text != "x" {
					t.Errorf("%d pieces, text %q", n, r.Stdout.Text)
				}
			})
		})
	}
}
