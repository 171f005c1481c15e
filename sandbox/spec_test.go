package sandbox

import (
	"context"
	"errors"
	"strings"
	"testing"
)

func TestSpecCheck(t *testing.T) {
	good := Spec{Command: "true", Dir: "/"}
	with := func(change func(*Spec)) Spec {
		s := good
		change(&s)
		return s
	}
	cases := []struct {
		name string
		spec Spec
		want string // in the error; empty for none
	}{
		{"command", good, ""},
		{"argv", with(func(s *Spec) { s.Command, s.Argv = "", []string{"true", ""} }), ""},
		{"nothing", with(func(s *Spec) { s.Command = "" }), "exactly one"},
		{"both", with(func(s *Spec) { s.Argv = []string{"true"} }), "exactly one"},
		{"empty argv", with(func(s *Spec) { s.Command, s.Argv = "", []string{} }), "exactly one"},
		{"nameless program", with(func(s *Spec) { s.Command, s.Argv = "", []string{"", "x"} }), "name"},
		{"no folder", with(func(s *Spec) { s.Dir = "" }), "working directory"},
		{"NUL in the folder", with(func(s *Spec) { s.Dir = "/\x00" }), "NUL"},
		{"NUL in the command", with(func(s *Spec) { s.Command = "echo a\x00b" }), "NUL"},
		{"NUL in an argument", with(func(s *Spec) { s.Command, s.Argv = "", []string{"echo", "a\x00b"} }), "NUL"},
		{"NUL in the program", with(func(s *Spec) { s.Command, s.Argv = "", []string{"ec\x00ho"} }), "NUL"},
		{"NUL in the environment", with(func(s *Spec) { s.Env = []string{"A=b", "C=\x00"} }), "NUL"},
	}
	for _, c := range cases {
		err := c.spec.Check(t.Context())
		if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: the error is %v, want one about %q", c.name, err, c.want)
		}
	}
	cancelled, cancel := context.WithCancel(t.Context())
	cancel()
	if err := good.Check(cancelled); err != context.Canceled {
		t.Errorf("with a cancelled context the error is %v", err)
	}
	// A folder that cannot be is told like one that is not there.
	bad := with(func(s *Spec) { s.Dir = "/\x00" })
	if start, ok := errors.AsType[*StartError](bad.Check(t.Context())); !ok || start.Kind != BadWorkingDirectory || start.Path != bad.Dir {
		t.Errorf("a folder with a NUL byte gives %v", bad.Check(t.Context()))
	}
}
