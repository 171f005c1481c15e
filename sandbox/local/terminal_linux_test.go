package local_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/confine-dev/confine/sandbox"
	"golang.org/x/sys/unix"
)

// terminal is a command with a terminal of 100 by 30.
func (f *fixture) terminal(command string) sandbox.Spec {
	spec := f.spec(command)
	spec.Terminal = &sandbox.TerminalSize{Columns: 100, Rows: 30}
	spec.Env = append(spec.Env, "TERM=xterm-256color")
	return spec
}

// typeInto gives a command input.
func typeInto(t testing.TB, p sandbox.Process, text string) {
	t.Helper()
	if n, err := p.Input().Write([]byte(text)); n != len(text) || err != nil {
		t.Fatalf("typing %q: %d, %v", text, n, err)
	}
}

// TestTerminals, and open input, on one engine for each level.
func TestTerminals(t *testing.T) {
	eachLevel(t, func(t *testing.T, f *fixture) {
		for _, test := range []struct {
			name string
			test func(*testing.T, *fixture)
		}{
			{"is one", terminalIsOne},
			{"takes input", terminalTakesInput},
			{"is resized", terminalIsResized},
			{"ends", terminalEnds},
			{"stays open", terminalStaysOpen},
			{"output is whole", terminalOutputIsWhole},
			{"is the only thing", terminalIsTheOnlyThing},
			{"denials are seen", terminalDenialsAreSeen},
			{"input of pipes", openInput},
		} {
			t.Run(test.name, func(t *testing.T) { test.test(t, f) })
		}
	})
}

// terminalIsOne: everything that programs ask a terminal for.
func terminalIsOne(t *testing.T, f *fixture) {
	o := finish(t, f.start(t, f.terminal(`
			for fd in 0 1 2; do test -t $fd || echo "no terminal: $fd"; done
			name=$(tty) || echo "tty failed"
			test -c "$name" || echo "no such device: $name"
			stty size
			stty -a | grep -o -w -e iutf8 -e icanon -e echo -e onlcr -e opost | tr '\n' ' '; echo
			echo to the name > "$name" || echo "cannot write to $name"
			echo to the controlling terminal > /dev/tty || echo "cannot write to /dev/tty"
			echo an error >&2
			test "$(ps -o tpgid= -p $$ | tr -d ' ')" = $$ || echo "not in the foreground"
			stty -F /dev/tty 2>&1 > /dev/null || echo "cannot control /dev/tty"
		`)))
	o.ended(t, 0, "")
	want := strings.Join([]string{"30 100", "iutf8 opost onlcr icanon echo ", "to the name", "to the controlling terminal", "an error", ""}, "\r\n")
	if o.stdout != want {
		t.Errorf("printed %q, want %q", o.stdout, want)
	}
	if o.stderr != "" || o.Denied {
		t.Errorf("stderr %q, denied: %v %+v", o.stderr, o.Denied, o.Denials)
	}
}

func terminalTakesInput(t *testing.T, f *fixture) {
	spec := f.terminal(`stty -echo; echo ready; while read -r line; do echo "[$line]"; done; echo over; cat`)
	p := f.start(t, spec)
	printed(t, p, "ready")
	typeInto(t, p, "one\rtwo€x\x7f\x7f\n")
	printed(t, p, "[one]\r\n[two]")
	typeInto(t, p, "\x04")
	printed(t, p, "over")
	typeInto(t, p, "\x03")
	finish(t, p).ended(t, 0, "SIGINT")
	if n, err := p.Input().Write([]byte("x")); n != 0 || !errors.Is(err, sandbox.ErrInputClosed) {
		t.Errorf("after the end %d bytes are taken, %v", n, err)
	}
}

func terminalIsResized(t *testing.T, f *fixture) {
	p := f.start(t, f.terminal(`trap 'stty size' WINCH; echo ready; while :; do read -r -t 0.01; done`))
	printed(t, p, "ready")
	if err := p.Resize(sandbox.TerminalSize{Columns: 7, Rows: 9}); err != nil {
		t.Fatal(err)
	}
	printed(t, p, "9 7\r\n")
	p.Cancel()
	finish(t, p).ended(t, 0, "SIGHUP")
	if err := p.Resize(sandbox.TerminalSize{Columns: 1, Rows: 1}); err != nil {
		t.Errorf("resizing after the end: %v", err)
	}
}

// terminalEnds: an interactive shell ignores TERM, and what hangs on to the
// terminal does not keep the run.
func terminalEnds(t *testing.T, f *fixture) {
	spec := f.terminal("")
	spec.Command, spec.Argv = "", []string{"bash", "--norc", "-i"}
	p := f.start(t, spec)
	printed(t, p, "bash")
	typeInto(t, p, "sleep 1000 &\nsleep 1001\n")
	printed(t, p, "sleep 1001\r\n")
	p.Cancel()
	finish(t, p).ended(t, 0, "SIGHUP")

	o := finish(t, f.start(t, f.terminal(`setsid sleep 1000 & (trap '' HUP; sleep 1000) & echo last words`)))
	o.ended(t, 0, "")
	if !strings.Contains(o.stdout, "last words\r\n") {
		t.Errorf("printed %q", o.stdout)
	}
}

// terminalStaysOpen: a command may let go of its terminal and come back.
func terminalStaysOpen(t *testing.T, f *fixture) {
	o := finish(t, f.start(t, f.terminal(`exec 3>&1 </dev/null >/dev/null 2>&1 3>&-; sleep 0.05; echo back > /dev/tty`)))
	o.ended(t, 0, "")
	if o.stdout != "back\r\n" {
		t.Errorf("printed %q", o.stdout)
	}
}

// terminalOutputIsWhole: more than a terminal holds, to the last byte.
func terminalOutputIsWhole(t *testing.T, f *fixture) {
	spec := f.terminal(`stty raw; seq 200000`)
	var total int
	spec.Output = func(c sandbox.Chunk) { total += len(c.Data) }
	o := finish(t, f.start(t, spec))
	o.ended(t, 0, "")
	if want := 9*2 + 90*3 + 900*4 + 9000*5 + 90000*6 + 100001*7; total != want || !strings.HasSuffix(o.stdout, "\n200000\n") {
		t.Errorf("%d bytes, want %d, at the end %q", total, want, o.stdout[len(o.stdout)-20:])
	}
}

// terminalIsTheOnlyThing: the other end is not the command's, nor any terminal of the
// host's.
func terminalIsTheOnlyThing(t *testing.T, f *fixture) {
	o := finish(t, f.start(t, f.terminal(`for fd in /proc/$$/fd/*; do readlink $fd; done`)))
	if strings.Contains(o.stdout, "ptmx") || !strings.Contains(o.stdout, "/dev/pts/") {
		t.Errorf("the command has %q", o.stdout)
	}
	master, err := os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer master.Close()
	number, err := unix.IoctlGetInt(int(master.Fd()), unix.TIOCGPTN)
	if err = errors.Join(err, unix.IoctlSetPointerInt(int(master.Fd()), unix.TIOCSPTLCK, 0)); err != nil {
		t.Fatal(err)
	}
	o = finish(t, f.start(t, f.terminal(fmt.Sprintf(`echo planted > /dev/pts/%d; ls /dev/pts`, number))))
	poll := []unix.PollFd{{Fd: int32(master.Fd()), Events: unix.POLLIN}}
	if n, err := unix.Poll(poll, 0); err != nil || (poll[0].Revents&unix.POLLIN != 0) != (f.level == unconfined) {
		t.Errorf("a terminal of the host's: %d, %v, events %#x", n, err, poll[0].Revents)
	}
	if f.level == namespaces && !strings.HasSuffix(o.stdout, "0  ptmx\r\n") {
		t.Errorf("the command sees %q", o.stdout)
	}
}

func terminalDenialsAreSeen(t *testing.T, f *fixture) {
	if f.level == unconfined {
		return
	}
	path := filepath.Join(realDir(t), "out")
	o := finish(t, f.start(t, f.terminal("echo x > "+path)))
	o.ended(t, 1, "")
	if !o.Denied || len(o.Denials) != 1 || o.Denials[0].Path != path {
		t.Errorf("denied %v: %+v", o.Denied, o.Denials)
	}
}

// openInput, of pipes: what comes while the command runs, and its end.
func openInput(t *testing.T, f *fixture) {
	spec := f.spec(`read -r line; echo "[$line]"; cat; echo over`)
	spec.Stdin, spec.StdinOpen = strings.NewReader("first "), true
	p := f.start(t, spec)
	typeInto(t, p, "line\n")
	printed(t, p, "[first line]\n")
	typeInto(t, p, "rest")
	p.Input().Close()
	o := finish(t, p)
	o.ended(t, 0, "")
	if o.stdout != "[first line]\nrestover\n" {
		t.Errorf("printed %q", o.stdout)
	}

	spec = f.spec(`exec < /dev/null; echo closed; sleep 1000`)
	spec.StdinOpen = true
	p = f.start(t, spec)
	printed(t, p, "closed")
	eventually(t, "the input that nobody reads to be closed", func() bool {
		_, err := p.Input().Write([]byte("x"))
		return errors.Is(err, sandbox.ErrInputClosed)
	})
	if err := p.Resize(sandbox.TerminalSize{Columns: 1, Rows: 1}); err == nil {
		t.Error("pipes are resized")
	}
}
