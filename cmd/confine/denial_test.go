package main

import (
	"reflect"
	"strings"
	"testing"

	"github.com/confine-dev/confine/rpc/proto"
	"github.com/confine-dev/confine/sandbox"
)

func deniedResult(mode sandbox.Mode, denials ...sandbox.Denial) proto.RunResult {
	result := proto.RunResult{Sandbox: &proto.SandboxFacts{Mode: mode, Denied: true, Denials: denials}}
	if wider := mode.WiderModes(); len(wider) > 0 {
		result.Escalation = &proto.EscalationHint{Targets: wider}
	}
	return result
}

func TestHelpfulMode(t *testing.T) {
	inside := sandbox.Denial{Op: "write", Path: "/no-such/ws/file"}
	outside := sandbox.Denial{Op: "write", Path: "/no-such/ws-other/file"}
	network := sandbox.Denial{Op: "connect", Address: "192.0.2.1:80"}
	for _, test := range []struct {
		name   string
		result proto.RunResult
		want   sandbox.Mode
	}{
		{"inside the workspace", deniedResult("read-only", inside, inside), "workspace-write"},
		{"outside", deniedResult("read-only", outside), "danger-full-access"},
		{"both", deniedResult("read-only", inside, outside), "danger-full-access"},
		{"network", deniedResult("read-only", inside, network), "danger-full-access"},
		{"not known", deniedResult("read-only"), "danger-full-access"},
		{"already writable", deniedResult("workspace-write", inside), "danger-full-access"},
	} {
		if got := helpfulMode(test.result, test.result.Escalation.Targets, "/no-such/ws"); got != test.want {
			t.Errorf("%s: got %s, want %s", test.name, got, test.want)
		}
	}
}

func TestNextStep(t *testing.T) {
	narrow := &proto.Additional{Write: []string{"/f"}}
	modes := []sandbox.Mode{sandbox.WorkspaceWrite, sandbox.DangerFullAccess}
	for _, test := range []struct {
		name string
		hint *proto.EscalationHint
		want proto.EscalationParams
		ok   bool
	}{
		{"nobody can be asked", nil, proto.EscalationParams{}, false},
		{"nothing would help", &proto.EscalationHint{}, proto.EscalationParams{}, false},
		{"a mode", &proto.EscalationHint{Targets: modes}, proto.EscalationParams{SandboxPermissions: sandbox.WorkspaceWrite}, true},
		{"less than a mode", &proto.EscalationHint{Targets: modes, Additional: narrow}, proto.EscalationParams{Additional: narrow}, true},
	} {
		got, ok := nextStep(proto.RunResult{Escalation: test.hint})
		if ok != test.ok || !reflect.DeepEqual(got, test.want) {
			t.Errorf("%s: %+v, %v", test.name, got, ok)
		}
	}
}

// TestWholeText: a terminal shows what does not fit into a message.
func TestWholeText(t *testing.T) {
	q := proto.Question{Text: "Run?\nBecomes writable: «/a».\n", Warnings: []string{"Becomes writable: «/a».", "Becomes writable: «/b»."}}
	if got, want := wholeText(q), "Run?\nBecomes writable: «/a»."; got != want {
		t.Errorf("nothing is missing, and got %q, want %q", got, want)
	}
	q.Unshown, q.Command, q.Cwd, q.Stdin, q.Env = 2, "ls", "/d", "in", []string{"A=1"}
	q.Wanted.Additional = &proto.Additional{Write: []string{"/w"}, Read: []string{"/r"}}
	want := "Run?\nBecomes writable: «/a».\nBecomes writable: «/b».\n" +
		"The command, whole: «ls»\nThe folder, whole: «/d»\nThe input, whole: «in»\nVariable: «A=1»\nBecomes writable: «/w»\nBecomes readable: «/r»"
	if got := wholeText(q); got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestWideningHint(t *testing.T) {
	for _, test := range []struct {
		result proto.RunResult
		says   string
	}{
		{deniedResult("read-only", sandbox.Denial{Op: "write", Path: "/no-such/ws/f"}), "--mode workspace-write"},
		{deniedResult("read-only", sandbox.Denial{Op: "write", Path: "/etc/f"}), "--mode danger-full-access"},
		{deniedResult("read-only", sandbox.Denial{Op: "read", Path: "/no-such/ws/hidden"}), "--mode danger-full-access"},
		{deniedResult("workspace-write", sandbox.Denial{Op: "connect", Address: "192.0.2.1:80"}), "--network"},
		{deniedResult("workspace-write", sandbox.Denial{Op: "connect", Address: "@/tmp/.X11-unix/X0"}), "--mode danger-full-access"},
	} {
		if got := wideningHint(test.result, "/no-such/ws"); !strings.Contains(got, test.says) {
			t.Errorf("got %q, want it to say %q", got, test.says)
		}
	}
}

func TestPrintable(t *testing.T) {
	for text, want := range map[string]string{
		"plain äöü 漢字":     "plain äöü 漢字",
		"a\x1b[2Kb\rc\x07": `a\u{1B}[2Kb\u{D}c\u{7}`,
		"x\u202ey\u200bz":  `x\u{202E}y\u{200B}z`,
		"bad \xff":         `bad \xff`,
		"\u3164":           `\u{3164}`,
	} {
		if got := printable(text); got != want {
			t.Errorf("%q: got %q, want %q", text, got, want)
		}
	}
}

func TestSignalNumber(t *testing.T) {
	for name, want := range map[string]int{"SIGINT": 2, "SIGKILL": 9, "SIGTERM": 15, "SIG34": 34, "nonsense": 9, "": 9} {
		if got := signalNumber(name); got != want {
			t.Errorf("%q: got %d, want %d", name, got, want)
		}
	}
}
