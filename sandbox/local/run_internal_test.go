//go:build unix

package local

import (
	"bytes"
	"context"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/confine-dev/confine/sandbox"
)

// Output that waits in a pipe when draining is given up is told all the same,
// although something still holds the pipe.
func TestPumpReadsWhatWasWrittenInTime(t *testing.T) {
	read, write, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer write.Close()
	want := bytes.Repeat([]byte("output\n"), 8000)
	if _, err := write.Write(want); err != nil {
		t.Fatal(err)
	}
	if err := read.SetReadDeadline(time.Now().Add(-time.Second)); err != nil {
		t.Fatal(err)
	}
	var got []byte
	r := newRun(sandbox.Spec{Output: func(c sandbox.Chunk) { got = append(got, c.Data...) }}, sandbox.Facts{}, sandbox.CaptureOptions{})
	r.pump(sandbox.StdoutStream, read)
	if !bytes.Equal(got, want) {
		t.Errorf("%d bytes were told, want %d", len(got), len(want))
	}
}

func TestCheckSpec(t *testing.T) {
	good := sandbox.Spec{Command: "true", Dir: "/"}
	with := func(change func(*sandbox.Spec)) sandbox.Spec {
		s := good
		change(&s)
		return s
	}
	cases := []struct {
		name string
		spec sandbox.Spec
		want string // in the error; empty for none
	}{
		{"command", good, ""},
		{"argv", with(func(s *sandbox.Spec) { s.Command, s.Argv = "", []string{"true", ""} }), ""},
		{"nothing", with(func(s *sandbox.Spec) { s.Command = "" }), "exactly one"},
		{"both", with(func(s *sandbox.Spec) { s.Argv = []string{"true"} }), "exactly one"},
		{"empty argv", with(func(s *sandbox.Spec) { s.Command, s.Argv = "", []string{} }), "exactly one"},
		{"nameless program", with(func(s *sandbox.Spec) { s.Command, s.Argv = "", []string{"", "x"} }), "name"},
		{"no folder", with(func(s *sandbox.Spec) { s.Dir = "" }), "working directory"},
		{"NUL in the command", with(func(s *sandbox.Spec) { s.Command = "echo a\x00b" }), "NUL"},
		{"NUL in an argument", with(func(s *sandbox.Spec) { s.Command, s.Argv = "", []string{"echo", "a\x00b"} }), "NUL"},
		{"NUL in the program", with(func(s *sandbox.Spec) { s.Command, s.Argv = "", []string{"ec\x00ho"} }), "NUL"},
		{"NUL in the environment", with(func(s *sandbox.Spec) { s.Env = []string{"A=b", "C=\x00"} }), "NUL"},
	}
	for _, c := range cases {
		err := checkSpec(t.Context(), c.spec)
		if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: the error is %v, want one about %q", c.name, err, c.want)
		}
	}
	cancelled, cancel := context.WithCancel(t.Context())
	cancel()
	if err := checkSpec(cancelled, good); err != context.Canceled {
		t.Errorf("with a cancelled context the error is %v", err)
	}
}
