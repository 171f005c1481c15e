package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/confine-dev/confine/rpc/proto"
	"github.com/confine-dev/confine/sandbox"
)

// outsideFiles are two files beside the workspace, where commands can see them.
func outsideFiles(t *testing.T) (file, sibling string) {
	t.Helper()
	folder, err := os.MkdirTemp("/var/tmp", "confine-test-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(folder) })
	file, sibling = filepath.Join(folder, "file"), filepath.Join(folder, "sibling")
	for _, path := range []string{file, sibling} {
		if err := os.WriteFile(path, []byte("host\n"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return file, sibling
}

func requireContent(t *testing.T, path, want string) {
	t.Helper()
	if data, err := os.ReadFile(path); err != nil || string(data) != want {
		t.Errorf("%s holds %q (%v), want %q", path, data, err, want)
	}
}

func TestPersonAtTheTerminalAddsFiles(t *testing.T) {
	requireSandbox(t)
	file, sibling := outsideFiles(t)
	command := fmt.Sprintf("echo one > %s && echo two > %s && echo all written", file, sibling)
	s, cmd := startAtTerminal(t, newWorld(t), "run", command)
	s.await(asking)
	for _, shown := range []string{"with 1 path to WRITE?", "Becomes writable: the file «" + file + "»."} {
		if !strings.Contains(s.text(), shown) {
			t.Errorf("the question does not show %q: %q", shown, s.text())
		}
	}
	s.typed("yes\n")
	s.awaitTimes(asking, 2)
	if !strings.Contains(s.text(), "with 2 paths to WRITE?") {
		t.Errorf("the next file is not asked for with the first one kept: %q", s.text())
	}
	requireContent(t, file, "one\n")
	requireContent(t, sibling, "host\n")
	s.typed("yes\n")
	s.await("\nall written")
	cmd.Wait()
	requireContent(t, sibling, "two\n")
	if status := cmd.ProcessState.ExitCode(); status != 0 {
		t.Errorf("status %d; the screen shows %q", status, s.text())
	}
}

// TestEditorAddsOneFile: what a result advises is asked for, allowed, and opens
// that file and nothing beside it.
func TestEditorAddsOneFile(t *testing.T) {
	requireSandbox(t)
	file, sibling := outsideFiles(t)
	w := newWorld(t)
	e := startServe(t, w)
	request, result := grantsEditor(t, e, w)

	command := fmt.Sprintf("echo more >> %s; echo more >> %s; cat %s", sibling, file, file)
	request(2, proto.MethodRunCommand, proto.RunCommandParams{Command: fmt.Sprintf("echo x > %s", file), RunID: "one"})
	request(3, proto.MethodRunCommand, proto.RunCommandParams{Command: command + "; exit 1", RunID: "both"})
	var both proto.RunResult
	for range 2 { // in any order
		answer := e.await(func(m map[string]json.RawMessage) bool { return m["result"] != nil })
		var r proto.RunResult
		if err := json.Unmarshal(answer["result"], &r); err != nil {
			t.Fatal(err)
		}
		want := []string{file}
		if r.RunID == "both" {
			both, want = r, []string{file, sibling}
		}
		if r.Escalation == nil || r.Escalation.Additional == nil || !slices.Equal(r.Escalation.Additional.Write, want) || !slices.Equal(r.Escalation.Targets, []sandbox.Mode{sandbox.DangerFullAccess}) {
			t.Fatalf("run %s: denials %+v, escalation %+v", r.RunID, r.Sandbox.Denials, r.Escalation)
		}
	}
	request(4, proto.MethodRequestEscalation, proto.EscalationParams{
		RunID: both.RunID, NewRunID: "again", Additional: &proto.Additional{Write: []string{file}}, Justification: "x",
	})
	asked := e.await(func(m map[string]json.RawMessage) bool {
		return string(m["method"]) == `"`+proto.MethodRequestApproval+`"`
	})
	var q proto.Question
	if err := json.Unmarshal(asked["params"], &q); err != nil || q.Wanted.Mode != sandbox.ReadOnly || !slices.Equal(q.Wanted.Additional.Write, []string{file}) {
		t.Fatalf("asked %+v, %v", q, err)
	}
	e.send(fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"result":{"outcome":{"outcome":"selected","optionId":%q}}}`, asked["id"], q.Options[1].OptionID))
	r := result(4)
	requireContent(t, file, "host\nmore\n")
	requireContent(t, sibling, "host\n")
	if r.Stdout.Text != "host\nmore\n" || r.Sandbox.Mode != sandbox.ReadOnly || r.Escalation == nil || !slices.Equal(r.Escalation.Additional.Write, []string{sibling}) {
		t.Errorf("result %+v, sandbox %+v, escalation %+v", r, r.Sandbox, r.Escalation)
	}
	e.leave()
}

// TestNobodyIsAskedAboutWhatWorked: a command that did without is not run again.
func TestNobodyIsAskedAboutWhatWorked(t *testing.T) {
	requireSandbox(t)
	file, _ := outsideFiles(t)
	s, cmd := startAtTerminal(t, newWorld(t), "run", fmt.Sprintf("{ echo x > %s; } 2>/dev/null; echo worked", file))
	cmd.Wait()
	s.await("worked")
	if status := cmd.ProcessState.ExitCode(); status != 0 || strings.Contains(s.text(), asking) {
		t.Errorf("status %d; the screen shows %q", status, s.text())
	}
}

// TestEditorAsksForACredential: what is hidden by default is asked for by itself,
// allowed, and opens nothing beside it.
func TestEditorAsksForACredential(t *testing.T) {
	requireSandbox(t)
	w := newWorld(t)
	token, sibling := filepath.Join(w.home, ".netrc"), filepath.Join(w.home, ".git-credentials")
	for _, path := range []string{token, sibling} {
		if err := os.WriteFile(path, []byte("token\n"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	e := startServe(t, w)
	request, result := grantsEditor(t, e, w)

	request(2, proto.MethodRunCommand, proto.RunCommandParams{Command: fmt.Sprintf("cat %s %s", token, sibling), RunID: "first"})
	first := result(2)
	if first.Sandbox.Facets[sandbox.FileRead].State != sandbox.Enforced {
		t.Skipf("nothing can be hidden here: %+v", first.Sandbox.Facets[sandbox.FileRead])
	}
	if first.Stdout.Text != "" || !first.Sandbox.Denied || first.Escalation == nil || !slices.Equal(first.Escalation.Additional.Read, []string{sibling, token}) {
		t.Fatalf("stdout %q, sandbox %+v, escalation %+v", first.Stdout.Text, first.Sandbox, first.Escalation)
	}
	request(3, proto.MethodRequestEscalation, proto.EscalationParams{
		RunID: "first", NewRunID: "again", Additional: &proto.Additional{Read: []string{token}}, Justification: "x",
	})
	asked := e.await(func(m map[string]json.RawMessage) bool {
		return string(m["method"]) == `"`+proto.MethodRequestApproval+`"`
	})
	var q proto.Question
	if err := json.Unmarshal(asked["params"], &q); err != nil || !slices.Equal(q.Wanted.Additional.Read, []string{token}) {
		t.Fatalf("asked %+v, %v", q, err)
	}
	e.send(fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"result":{"outcome":{"outcome":"selected","optionId":%q}}}`, asked["id"], q.Options[1].OptionID))
	again := result(3)
	if again.Stdout.Text != "token\n" || again.Escalation == nil || !slices.Equal(again.Escalation.Additional.Read, []string{sibling}) {
		t.Errorf("stdout %q, sandbox %+v, escalation %+v", again.Stdout.Text, again.Sandbox, again.Escalation)
	}
	e.leave()
}

// grantsEditor greets the server as an editor that shows questions, and returns what
// sends a request and what waits for the result of a run.
func grantsEditor(t *testing.T, e *editor, w world) (request func(id int, method string, params any), result func(id int) proto.RunResult) {
	t.Helper()
	request = func(id int, method string, params any) {
		message, err := json.Marshal(map[string]any{"jsonrpc": "2.0", "id": id, "method": method, "params": params})
		if err != nil {
			t.Fatal(err)
		}
		e.send(string(message))
	}
	result = func(id int) (r proto.RunResult) {
		answer := e.answer(fmt.Sprint(id))
		if err := json.Unmarshal(answer["result"], &r); err != nil {
			t.Fatalf("%v: error %s", err, answer["error"])
		}
		return r
	}
	request(1, proto.MethodInitialize, map[string]any{
		"capabilities":     map[string]any{"experimental": map[string]any{"confine": proto.ClientConfine{ProtocolVersion: 1, Approval: true}}},
		"workspaceFolders": []proto.WorkspaceFolder{{URI: fileURI(w.work), Name: "work"}},
	})
	e.answer("1")
	e.send(`{"jsonrpc":"2.0","method":"initialized","params":{}}`)
	return request, result
}
