package server_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/confine-dev/confine/rpc/proto"
	"github.com/confine-dev/confine/sandbox"
)

// TestPinsEnd: what is held across a question is let go of with its run, however
// that ends, and with a request that is refused.
func TestPinsEnd(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		at := outside(t)
		w := open(t, forbidding(at, sandbox.WorkspaceWrite))
		w.deniedOf(refused("write", at("out/file")))
		held := func() int {
			n := 0
			names, err := os.ReadDir("/proc/self/fd")
			if err != nil {
				t.Fatal(err)
			}
			for _, name := range names {
				if target, err := os.Readlink(filepath.Join("/proc/self/fd", name.Name())); err == nil && strings.HasPrefix(target, at("")+"/") {
					n++
				}
			}
			return n
		}
		w.confined.Script("make", exit0)
		for _, kind := range []string{"allow_once", "reject_once"} {
			id := w.editor.Request(proto.MethodRequestEscalation, proto.EscalationParams{RunID: "first", Additional: &proto.Additional{Write: []string{at("out/file"), at("out/new")}}, Justification: "x"})
			m, q := w.question()
			if held() == 0 {
				t.Error("nothing is held across the question")
			}
			w.choose(m, q, kind)
			w.editor.Response(id, nil)
			if n := held(); n != 0 {
				t.Errorf("%s: %d are held after the run", kind, n)
			}
		}
		for _, p := range []proto.EscalationParams{
			{RunID: "first", Additional: &proto.Additional{Write: []string{at("out"), at("home/me")}}, Justification: "x"},
			{RunID: "first", NewRunID: "first", Additional: &proto.Additional{Write: []string{at("out")}}, Justification: "x"},
		} {
			w.editor.CallError(proto.MethodRequestEscalation, p)
		}
		w.editor.Response(w.ask(proto.Additional{Write: []string{w.folder}}), nil)
		if n := held(); n != 0 {
			t.Errorf("%d are held by requests that came to nothing", n)
		}
	})
}
