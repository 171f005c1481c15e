package main

import (
	"fmt"
	"os"
	"strings"
	"syscall"
	"testing"
	"unsafe"

	"github.com/confine-dev/confine/rpc/proto"
)

// settings are those of the terminal now.
func (s *screen) settings() syscall.Termios {
	s.t.Helper()
	settings, err := terminalSettings(s.far)
	if err != nil {
		s.t.Fatal(err)
	}
	return settings
}

// resize changes the size of the window.
func (s *screen) resize(columns, rows uint16) {
	s.t.Helper()
	size := struct{ rows, columns, width, height uint16 }{rows, columns, 0, 0}
	if err := ioctl(s.keyboard, syscall.TIOCSWINSZ, uintptr(unsafe.Pointer(&size))); err != nil {
		s.t.Fatal(err)
	}
}

// signs prints the size of its terminal, at first and whenever it changes.
const signs = `trap 'echo "size $(stty size)"' WINCH; echo "at $(stty size)"; `

const forever = `while :; do sleep 0.05; done`

func TestCommandHasATerminal(t *testing.T) {
	requireSandbox(t)
	w := newWorld(t)
	s, cmd := startAtTerminal(t, w, "run", "--pty", signs+`trap 'echo interrupted; go=on' INT; echo "$TERM, $(tty)"; `+
		`until [ "$go" ]; do sleep 0.05; done; read -r line; echo "<$line>"; `+
		`stty -echo raw; printf ready; dd bs=1 count=2 2>/dev/null | od -An -tx1; exit 7`)
	before := s.settings()
	s.await("at 24 80") // nobody chose one for this terminal
	s.await("xterm, /dev/pts/0")
	s.resize(101, 37)
	s.await("size 37 101")
	s.typed("\x03")
	s.await("interrupted")
	s.typed("hello\r")
	s.await("<hello>\r\n")
	s.await("ready")
	s.typed("\x03\x04")
	s.await("03 04")
	cmd.Wait()
	if status := cmd.ProcessState.ExitCode(); status != 7 {
		t.Errorf("status %d; the screen shows %q", status, s.text())
	}
	if s.settings() != before {
		t.Error("the terminal is not as it was")
	}
}

func TestPersonNamesTheTerminal(t *testing.T) {
	requireSandbox(t)
	s, cmd := startAtTerminal(t, newWorld(t), "run", "--pty", "--env", "TERM=vt100", `echo "it is $TERM"`)
	cmd.Wait()
	s.await("it is vt100")
}

func TestTerminalIsGivenBack(t *testing.T) {
	requireSandbox(t)
	deaf := `trap 'echo deaf' HUP TERM; echo begun; ` + forever
	for _, test := range []struct {
		name    string
		args    []string
		command string
		signals []syscall.Signal // the next is sent when the command has said so
		status  int
		tidied  bool // what the command may have left on the screen is undone
	}{
		{"the command ends", nil, `echo begun`, nil, 0, false},
		{"its time is over", []string{"--timeout", "300ms"}, `echo begun; ` + forever, nil, 124, true},
		{"it is killed", nil, `echo begun; kill -KILL $$`, nil, 137, true},
		{"TERM", nil, `echo begun; ` + forever, []syscall.Signal{syscall.SIGTERM}, 143, true},
		{"TERM twice", nil, deaf, []syscall.Signal{syscall.SIGTERM, syscall.SIGTERM}, 143, false},
		{"QUIT", nil, `echo begun; ` + forever, []syscall.Signal{syscall.SIGQUIT}, 2, false},
		{"there is no such program", nil, "", nil, 127, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			args := append([]string{"run", "--pty"}, test.args...)
			if test.command == "" {
				args = append(args, "--", "no-such-program", "x")
			} else {
				args = append(args, test.command)
			}
			s, cmd := startAtTerminal(t, newWorld(t), args...)
			before := s.settings()
			for i, sig := range test.signals {
				s.await([]string{"begun", "deaf"}[i])
				if now := s.settings(); now.Lflag&(syscall.ICANON|syscall.ECHO|syscall.ISIG) != 0 {
					t.Errorf("the terminal is not lent: %+v", now)
				}
				cmd.Process.Signal(sig)
			}
			cmd.Wait()
			if status := cmd.ProcessState.ExitCode(); status != test.status {
				t.Errorf("status %d, want %d; the screen shows %q", status, test.status, s.text())
			}
			if s.settings() != before {
				t.Error("the terminal is not as it was")
			}
			if tidied := strings.Contains(s.text(), "\x1b[?1049l"); tidied != test.tidied {
				t.Errorf("tidied up behind the command: %v; the screen shows %q", tidied, s.text())
			}
		})
	}
}

func TestTerminalIsGivenBackWhileStopped(t *testing.T) {
	requireSandbox(t)
	s, cmd := startAtTerminal(t, newWorld(t), "run", "--pty", signs+forever)
	before := s.settings()
	s.await("at 24 80")
	lent := s.settings()
	cmd.Process.Signal(syscall.SIGTSTP)
	var status syscall.WaitStatus
	if _, err := syscall.Wait4(cmd.Process.Pid, &status, syscall.WUNTRACED, nil); err != nil || !status.Stopped() {
		t.Fatalf("confine did not stop: %v, %v", status, err)
	}
	if s.settings() != before {
		t.Error("the terminal is not given back")
	}
	s.resize(90, 33)
	cmd.Process.Signal(syscall.SIGCONT)
	s.await("size 33 90")
	if s.settings() != lent {
		t.Error("the terminal is not lent again")
	}
	cmd.Process.Signal(syscall.SIGTERM)
	cmd.Wait()
	if s.settings() != before {
		t.Error("the terminal is not as it was")
	}
}

func TestQuestionAfterTheTerminalIsBack(t *testing.T) {
	requireSandbox(t)
	// The command draws a question of its own, and more is typed than it reads.
	fake := `printf '\033[?1049h\033[8mconfine: ` + asking + `'; read -r x; echo "$x" > new && cat new`
	for _, test := range []struct {
		typed   string
		written bool
	}{{"yes\n", true}, {"\n", false}} {
		t.Run(fmt.Sprintf("%q", test.typed), func(t *testing.T) {
			w := newWorld(t)
			s, cmd := startAtTerminal(t, w, "run", "--pty", fake)
			s.await("\x1b[8mconfine: " + asking)
			s.typed("yes\ryes\ryes\r")
			s.await("run a command again") // the real question
			s.await("Becomes writable")
			s.await(`Type "yes" to allow this once; ` + asking)
			if _, err := os.Stat(w.work + "/new"); err == nil {
				t.Fatal("what was typed for the command answered the question")
			}
			if lflag := s.settings().Lflag; lflag&syscall.ICANON == 0 || lflag&syscall.ECHO == 0 {
				t.Error("the terminal is still lent while the person is asked")
			}
			s.typed(test.typed)
			if test.written {
				s.awaitTimes("\x1b[8mconfine: "+asking, 2)
				s.typed("again\r")
			}
			cmd.Wait()
			data, err := os.ReadFile(w.work + "/new")
			if (err == nil) != test.written || test.written && string(data) != "again\n" {
				t.Errorf("new holds %q (%v); the screen shows %q", data, err, s.text())
			}
		})
	}
}

func TestNobodyIsAskedWhileTheTerminalIsLent(t *testing.T) {
	s := openScreen(t)
	r := &runner{loan: &loan{file: s.far}}
	if answer := r.ask(t.Context(), testQuestion()); answer.Outcome.Outcome != proto.OutcomeCancelled {
		t.Errorf("got %+v", answer.Outcome)
	}
	if s.text() != "" {
		t.Errorf("the screen shows %q", s.text())
	}
}

// A command cannot make what confine says of it invisible.
func TestWordsBehindTheOutputCanBeRead(t *testing.T) {
	requireSandbox(t)
	const hides = `printf '\033[8;30;40m\016\033]0;'`
	for _, test := range []struct {
		name, command, said string
		args                []string
	}{
		{"planted", `mkdir .git; echo x > .git/config; ` + hides, "confine: made or changed during the run", []string{"--mode", "workspace-write"}},
		{"refused", `echo x > new; ` + hides, "confine: the sandbox (read-only) refused", nil},
		{"planted, at its own terminal", `mkdir .git; echo x > .git/config; ` + hides, "confine: made or changed during the run", []string{"--mode", "workspace-write", "--pty"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			s, cmd := startAtTerminal(t, newWorld(t), append(append([]string{"run"}, test.args...), test.command)...)
			cmd.Wait()
			s.await(test.said)
			_, behind, _ := strings.Cut(s.text(), "\x1b]0;")
			if between, _, found := strings.Cut(behind, test.said); !found || !strings.Contains(between, legible) {
				t.Errorf("the screen shows %q", s.text())
			}
		})
	}
}

func TestNothingIsAddedBehindTheOutput(t *testing.T) {
	requireSandbox(t)
	s, cmd := startAtTerminal(t, newWorld(t), "run", `printf '\033[32mgreen'; printf ' end'`)
	cmd.Wait()
	s.await("end")
	if s.text() != "\x1b[32mgreen end" {
		t.Errorf("the screen shows %q", s.text())
	}
}
