package sandboxtest

import (
	"strings"
	"testing"

	"github.com/confine-dev/confine/sandbox"
)

func givenTerminal(s *sandbox.Spec) {
	s.Terminal = &sandbox.TerminalSize{Columns: 101, Rows: 31}
	s.Env = append(s.Env, "TERM=xterm-256color")
}

// ownTerminals: a command can do with its terminal what programs do with theirs, and
// nothing with that of somebody else.
func ownTerminals(t *testing.T, w *place) {
	defer w.confined.CloseSession("terminal")
	said := func(lines ...string) string { return strings.Join(lines, "\r\n") }
	for _, mode := range bothModes {
		must(t, said("31 101", "named", "controlled", "in front"))(w.shell(t, mode, "terminal", `
			stty size
			name=$(tty) && test -t 1 && echo named > "$name"
			echo controlled > /dev/tty
			test "$(ps -o tpgid= -p $$ | tr -d ' ')" = $$ && echo in front`, givenTerminal))
	}
	must(t, "none")(w.shell(t, sandbox.ReadOnly, "terminal", `{ echo x > /dev/tty; } 2> /dev/null || echo none`))

	ready := make(chan bool, 1)
	spec := w.shellSpec(sandbox.WorkspaceWrite, "terminal", `tty > name; echo ready; cat`, givenTerminal)
	spec.Output = func(sandbox.Chunk) {
		select {
		case ready <- true:
		default: // it was said
		}
	}
	other, err := w.confined.Start(t.Context(), spec)
	if err != nil {
		t.Fatal(err)
	}
	defer other.Wait()
	defer other.Cancel()
	<-ready
	must(t, "")(w.shell(t, sandbox.WorkspaceWrite, "terminal", `{ echo injected > "$(cat name)"; } 2> /dev/null; rm name`))
	if text, _ := other.Output(sandbox.StdoutStream).Tail(); strings.Contains(text, "injected") {
		t.Errorf("another run of the session wrote to the terminal: %q", text)
	}
	if n, err := other.Input().Write([]byte("typed\n\x04")); n != 7 || err != nil {
		t.Fatalf("typing: %d, %v", n, err)
	}
	result, err := other.Wait()
	if text, _ := other.Output(sandbox.StdoutStream).Tail(); err != nil || result.ExitCode != 0 || text != "ready\r\ntyped\r\ntyped\r\n" {
		t.Errorf("ended with %d, %v, and printed %q", result.ExitCode, err, text)
	}
}
