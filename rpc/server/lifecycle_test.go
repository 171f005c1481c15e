package server_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"testing"
	"testing/synctest"

	"github.com/confine-dev/confine/rpc/proto"
	"github.com/confine-dev/confine/rpc/rpctest"
	"github.com/confine-dev/confine/rpc/server"
	"github.com/confine-dev/confine/sandbox"
)

func TestLifecycle(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		w := newWorld(t, nil)
		for _, method := range []string{proto.MethodRunCommand, proto.MethodShutdown, "no/such"} {
			if e := w.editor.CallError(method, map[string]any{"command": "x"}); e.Code != -32002 {
				t.Errorf("%s before initialize: %v, want -32002", method, e)
			}
		}
		w.editor.Notify("no/such", nil)
		w.editor.Initialize(full(w.folder))
		if e := w.editor.CallError(proto.MethodInitialize, full(w.folder).Params()); e.Code != -32600 {
			t.Errorf("second initialize: %v, want -32600", e)
		}
		if e := w.editor.CallError("no/such", nil); e.Code != -32601 {
			t.Errorf("unknown request: %v, want -32601", e)
		}
		w.editor.Notify("no/such", nil)
		w.editor.Call(proto.MethodShutdown, nil, nil)
		for _, method := range []string{proto.MethodRunCommand, proto.MethodInitialize, proto.MethodShutdown, "no/such"} {
			if e := w.editor.CallError(method, map[string]any{"command": "x"}); e.Code != -32600 {
				t.Errorf("%s after shutdown: %v, want -32600", method, e)
			}
		}
		w.editor.Notify(proto.MethodExit, nil)
		w.editor.AwaitEnd()
		if s := <-w.served; !s.clean || s.err != nil {
			t.Errorf("shutdown and exit are the orderly end: %+v", s)
		}
		if n := len(w.confined.Specs()); n != 0 {
			t.Errorf("%d commands ran", n)
		}
	})
}

func TestEndsThatAreNotOrderly(t *testing.T) {
	for name, end := range map[string]struct {
		do    func(*rpctest.Editor)
		clean bool
	}{
		"exit alone": {func(e *rpctest.Editor) { e.Notify(proto.MethodExit, nil) }, false},
		// The probes are over, so that nothing is being written.
		"end of file":            {func(e *rpctest.Editor) { synctest.Wait(); e.Close() }, false},
		"shutdown, then closing": {func(e *rpctest.Editor) { synctest.Wait(); e.Call(proto.MethodShutdown, nil, nil); e.Close() }, true},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T) {
				w := open(t, nil)
				end.do(w.editor)
				if s := <-w.served; s.clean != end.clean || s.err != nil {
					t.Errorf("served %+v, want clean = %v", s, end.clean)
				}
			})
		})
	}
}

// TestExitRightBehindShutdown: some editors send both without waiting.
func TestExitRightBehindShutdown(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		w := open(t, nil)
		var both bytes.Buffer
		for _, body := range []string{`{"jsonrpc":"2.0","id":99,"method":"shutdown"}`, `{"jsonrpc":"2.0","method":"exit"}`} {
			fmt.Fprintf(&both, "Content-Length: %d\r\n\r\n%s", len(body), body)
		}
		w.editor.SendRaw(both.Bytes())
		if s := <-w.served; !s.clean || s.err != nil {
			t.Errorf("served %+v, want a clean end", s)
		}
	})
}

func TestExitBeforeInitialize(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		w := newWorld(t, nil)
		w.editor.Notify(proto.MethodExit, nil)
		w.editor.AwaitEnd()
	})
}

func TestInitializeDoesNotWaitForProbes(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		w := newWorld(t, nil)
		release := w.confined.HoldProbe()
		var answer rpctest.Initialized
		w.editor.Call(proto.MethodInitialize, full(w.folder).Params(), &answer)
		c := answer.Capabilities.Experimental.Confine
		if c.State != proto.StateProbing || c.ProtocolVersion != 1 {
			t.Errorf("announced %+v", c)
		}
		var now proto.Capabilities
		w.editor.Call(proto.MethodCapabilities, nil, &now)
		if now.State != proto.StateProbing || len(now.Providers) != 0 {
			t.Errorf("while probing: %s, %d providers", now.State, len(now.Providers))
		}
		release()
		synctest.Wait() // the probe is over, and the editor has not said initialized
		for _, m := range w.editor.Received() {
			if m.Method != "" {
				t.Errorf("%s was sent before initialized", m.Method)
			}
		}
		w.editor.Notify(proto.MethodInitialized, nil)
		var changed proto.CapabilitiesChanged
		w.editor.AwaitNotification(proto.MethodCapabilitiesChanged, &changed)
		if changed.State != proto.StateReady {
			t.Errorf("changed to %q", changed.State)
		}
		w.editor.Call(proto.MethodCapabilities, nil, &now)
		if now.State != proto.StateReady || len(now.Providers) != 1 || !now.Providers[0].Usable {
			t.Errorf("after probing: %+v", now)
		}
	})
}

func TestCapabilitiesCanWait(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		w := newWorld(t, nil)
		release := w.confined.HoldProbe()
		w.editor.Initialize(full(w.folder))
		id := w.editor.Request(proto.MethodCapabilities, proto.CapabilitiesParams{Wait: true})
		synctest.Wait()
		release()
		var c proto.Capabilities
		w.editor.Response(id, &c)
		if c.State != proto.StateReady || len(c.Providers) != 1 {
			t.Errorf("waited for %+v", c)
		}
	})
}

func TestNegotiation(t *testing.T) {
	for name, test := range map[string]struct {
		experimental string
		announced    bool
	}{
		"version 1":              {`{"confine":{"protocolVersion":1,"approval":true}}`, true},
		"a later version":        {`{"confine":{"protocolVersion":7,"approval":true,"more":[1]}}`, true},
		"version 0":              {`{"confine":{"protocolVersion":0,"approval":true}}`, false},
		"no version":             {`{"confine":{"approval":true}}`, false},
		"not an object":          {`{"confine":true}`, false},
		"experimental is a list": {`["confine"]`, false},
		"experimental is null":   {`null`, false},
		"another extension":      {`{"other":{"confine":1}}`, false},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T) {
				w := newWorld(t, nil)
				params := rpctest.Init{Folders: []string{fileURI(w.folder)}}.Params()
				params["capabilities"] = map[string]any{"experimental": json.RawMessage(test.experimental)}
				var answer rpctest.Initialized
				w.editor.Call(proto.MethodInitialize, params, &answer)
				w.editor.Notify(proto.MethodInitialized, nil)
				if v := answer.Capabilities.Experimental.Confine.ProtocolVersion; v != 1 {
					t.Errorf("answered version %d", v)
				}
				w.confined.Script("true", exit0)
				w.run(proto.RunCommandParams{Command: "true"})
				told := false
				for _, m := range w.editor.Received() {
					told = told || m.Method == proto.MethodRunExit
				}
				if told != test.announced {
					t.Errorf("confine's own notifications: %v, want %v", told, test.announced)
				}
			})
		})
	}
}

func TestInitializeCanBeCorrected(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		w := newWorld(t, nil)
		if e := w.editor.CallError(proto.MethodInitialize, map[string]any{"workspaceFolders": 5}); e.Code != -32602 {
			t.Errorf("%v, want -32602", e)
		}
		w.editor.Initialize(full(w.folder))
	})
}

func TestGreeting(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		w := newWorld(t, func(o *server.Options) { o.Version = "1.2.3" })
		answer := w.editor.Initialize(full(w.folder))
		if answer.ServerInfo.Name != "confine" || answer.ServerInfo.Version != "1.2.3" {
			t.Errorf("server info %+v", answer.ServerInfo)
		}
		commands := answer.Capabilities.ExecuteCommandProvider.Commands
		want := []string{"confine.server.run", "confine.server.escalate", "confine.server.kill", "confine.server.doctor"}
		if len(commands) != len(want) {
			t.Fatalf("commands %q", commands)
		}
		for i := range want {
			if commands[i] != want[i] {
				t.Errorf("command %d is %q", i, commands[i])
			}
		}
	})
}

// TestEveryMethodIsServed keeps the table of package proto and the server's
// own in step.
func TestEveryMethodIsServed(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		w := open(t, nil)
		for _, m := range proto.Methods {
			if m.ToEditor || !m.IsRequest || m.Name == proto.MethodShutdown {
				continue
			}
			id := w.editor.Request(m.Name, map[string]any{"runId": "none", "command": "", "timeoutMs": 1})
			answer := w.editor.Await("the answer of "+m.Name, func(got rpctest.Message) bool {
				return got.IsResponse() && string(got.ID) == jsonInt(id)
			})
			if answer.Error != nil && answer.Error.Code == -32601 {
				t.Errorf("%s is in the table and not served", m.Name)
			}
		}
	})
}

// TestTheEndOfTheConnectionEndsEverything is about runs of every kind.
func TestTheEndOfTheConnectionEndsEverything(t *testing.T) {
	for name, end := range map[string]func(*rpctest.Editor){
		"closing":  func(e *rpctest.Editor) { e.Close() },
		"exit":     func(e *rpctest.Editor) { e.Notify(proto.MethodExit, nil) },
		"shutdown": func(e *rpctest.Editor) { e.Shutdown() },
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T) {
				w := open(t, nil)
				w.editor.Call(proto.MethodRunCommand, proto.RunCommandParams{Command: "server", Background: true, Session: "s"}, nil)
				background := w.next(w.confined)
				w.editor.Request(proto.MethodRunCommand, proto.RunCommandParams{Command: "build"})
				foreground := w.next(w.confined)
				w.editor.Request(proto.MethodRunCommand, proto.RunCommandParams{
					Command: "asks", SandboxPermissions: sandbox.DangerFullAccess, Justification: "needed",
				})
				w.question()
				end(w.editor)
				<-w.served
				for _, p := range []interface{ Done() <-chan struct{} }{background, foreground} {
					select {
					case <-p.Done():
					default:
						t.Error("a command is still running after Serve returned")
					}
				}
				if n := len(w.unconfined.Specs()); n != 0 {
					t.Error("the command that nobody allowed ran")
				}
				if got := w.confined.ClosedSessions(); len(got) != 2 || got[0] == got[1] {
					t.Errorf("closed the sessions %q, want the connection's and the named one", got)
				}
			})
		})
	}
}

// TestATrappingCommandDoesNotDelayTheOthers: when the editor dies, a command
// that takes its time to end must not keep background runs alive.
func TestATrappingCommandDoesNotDelayTheOthers(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		w := open(t, nil)
		w.editor.Call(proto.MethodRunCommand, proto.RunCommandParams{Command: "server", Background: true}, nil)
		background := w.next(w.confined)
		w.editor.Request(proto.MethodRunCommand, proto.RunCommandParams{Command: "stubborn"})
		foreground := w.next(w.confined)
		foreground.Trap()
		w.editor.Close()
		<-foreground.Cancelled()
		<-background.Done()
		select {
		case <-w.served:
			t.Error("Serve returned while a command was running")
		default:
		}
		foreground.Exit(0)
		<-w.served
	})
}
