package main

import (
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
		if got := helpfulMode(test.result, targets(test.result), "/no-such/ws"); got != test.want {
			t.Errorf("%s: got %s, want %s", test.name, got, test.want)
		}
	}
}

func TestOnlyNetwork(t *testing.T) {
	file := sandbox.Denial{Op: "write", Path: "/f"}
	network := sandbox.Denial{Op: "connect", Address: "192.0.2.1:80"}
	for _, test := range []struct {
		denials []sandbox.Denial
		want    bool
	}{{nil, false}, {[]sandbox.Denial{file}, false}, {[]sandbox.Denial{network, file}, false}, {[]sandbox.Denial{network, network}, true}} {
		if got := onlyNetwork(deniedResult("read-only", test.denials...)); got != test.want {
			t.Errorf("%+v: %v", test.denials, got)
		}
	}
}

func TestWideningHint(t *testing.T) {
	for _, test := range []struct {
		result proto.RunResult
		says   string
	}{
		{deniedResult("read-only", sandbox.Denial{Op: "write", Path: "/no-such/ws/f"}), "--mode workspace-write"},
		{deniedResult("read-only", sandbox.Denial{Op: "write", Path: "/etc/f"}), "--mode danger-full-access"},
		{deniedResult("workspace-write", sandbox.Denial{Op: "connect", Address: "192.0.2.1:80"}), "--network"},
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
