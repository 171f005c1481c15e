package sandbox

import (
	"errors"
	"io/fs"
	"strings"
	"testing"
)

// The sentence as the specification has it, for mode read-only.
const unavailableSentence = "sandbox mode \"read-only\" is requested but no sandbox backend is usable on this host; " +
	"refusing to run the command unconfined. Install bubblewrap or run a Landlock-enforcing kernel (Linux), " +
	"ensure sandbox-exec is usable (macOS) \u2014 Windows has no confinement backend yet \u2014 or switch the consumer to danger-full-access."

func TestUnavailableError(t *testing.T) {
	if got := (&UnavailableError{Mode: "read-only", Remedies: []string{"x"}}).Error(); got != unavailableSentence {
		t.Errorf("got  %q\nwant %q", got, unavailableSentence)
	}
	got := (&UnavailableError{Mode: "read-only", Detail: "bwrap: Can't mount proc"}).Error()
	if want := unavailableSentence + " Runner failure: bwrap: Can't mount proc"; got != want {
		t.Errorf("got  %q\nwant %q", got, want)
	}
	got = (&UnavailableError{Mode: "read-only", Detail: "the init died", Started: true}).Error()
	if want := unavailableSentence + " Runner failure: the command had begun, and what it did until then stays done: the init died"; got != want {
		t.Errorf("got  %q\nwant %q", got, want)
	}
	for _, e := range []UnavailableError{{}, {Started: true}, {Started: true, Unsure: true}} {
		e.Mode, e.Detail, e.Remote = "read-only", "provider opensandbox: HTTP 503", true
		got := e.Error()
		if !strings.HasSuffix(got, e.Detail) || strings.Contains(got, "bubblewrap") || strings.Contains(got, "danger-full-access") || strings.Contains(got, "had begun") != (e.Started && !e.Unsure) {
			t.Errorf("of a service: %q", got)
		}
	}
	if UnavailableCode != "SANDBOX_UNAVAILABLE" {
		t.Errorf("code %q", UnavailableCode)
	}
}

func TestStartError(t *testing.T) {
	cause := fs.ErrPermission
	for kind, want := range map[StartErrorKind]struct{ code, text string }{
		ProgramNotFound:      {"PROGRAM_NOT_FOUND", "was not found"},
		ProgramNotExecutable: {"PROGRAM_NOT_EXECUTABLE", "cannot be executed (permission denied)"},
		BadWorkingDirectory:  {"BAD_WORKING_DIRECTORY", "cannot be used (permission denied)"},
		ArgumentListTooLong:  {"ARGUMENT_LIST_TOO_LONG", "too long"},
		"OTHER":              {"OTHER", "starting"},
	} {
		err := &StartError{Kind: kind, Path: "/a\x1b[2Jb", Err: cause}
		if string(kind) != want.code {
			t.Errorf("code %q, want %q", kind, want.code)
		}
		if text := err.Error(); !strings.Contains(text, want.text) || strings.Contains(text, "\x1b") || !strings.Contains(text, `"/a\x1b[2Jb"`) {
			t.Errorf("%s: %q", kind, text)
		}
		if !errors.Is(err, cause) {
			t.Errorf("%s hides its cause", kind)
		}
	}
}
