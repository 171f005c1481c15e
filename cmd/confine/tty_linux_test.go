package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
	"unsafe"

	"github.com/confine-dev/confine/rpc/proto"
)

// screen is the far side of a terminal: it types and collects what is shown.
type screen struct {
	t        *testing.T
	keyboard *os.File
	far      *os.File // the terminal itself

	mu    sync.Mutex // guards shown and more
	shown bytes.Buffer
	more  chan struct{} // closed and replaced when shown grows
}

func openScreen(t *testing.T) *screen {
	t.Helper()
	near, err := os.OpenFile("/dev/ptmx", os.O_RDWR|syscall.O_NOCTTY, 0)
	require(t, err == nil, fmt.Sprintf("no pseudo terminal can be opened: %v", err))
	var unlock, number int32
	err = errors.Join(
		ioctl(near, syscall.TIOCSPTLCK, uintptr(unsafe.Pointer(&unlock))),
		ioctl(near, syscall.TIOCGPTN, uintptr(unsafe.Pointer(&number))))
	if err != nil {
		t.Fatal(err)
	}
	far, err := os.OpenFile(fmt.Sprintf("/dev/pts/%d", number), os.O_RDWR|syscall.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	s := &screen{t: t, keyboard: near, far: far, more: make(chan struct{})}
	collected := make(chan struct{})
	go func() { defer close(collected); s.collect() }()
	t.Cleanup(func() { far.Close(); near.Close(); <-collected })
	return s
}

func (s *screen) collect() {
	buffer := make([]byte, 4096)
	for {
		n, err := s.keyboard.Read(buffer)
		s.mu.Lock()
		s.shown.Write(buffer[:n])
		close(s.more)
		s.more = make(chan struct{})
		s.mu.Unlock()
		if err != nil {
			return
		}
	}
}

func (s *screen) text() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.shown.String()
}

// await waits until the screen shows a text.
func (s *screen) await(text string) {
	s.t.Helper()
	s.awaitTimes(text, 1)
}

// awaitTimes waits until the screen has shown a text so often.
func (s *screen) awaitTimes(text string, n int) {
	s.t.Helper()
	limit := time.After(20 * time.Second)
	for {
		s.mu.Lock()
		found, more := strings.Count(s.shown.String(), text) >= n, s.more
		s.mu.Unlock()
		if found {
			return
		}
		select {
		case <-more:
		case <-limit:
			s.t.Fatalf("the screen never showed %q but\n%q", text, s.text())
		}
	}
}

func (s *screen) typed(text string) {
	s.t.Helper()
	if _, err := s.keyboard.WriteString(text); err != nil {
		s.t.Fatal(err)
	}
}

func openQuestion(s *screen) *terminal {
	s.t.Helper()
	file, err := os.OpenFile(s.far.Name(), os.O_RDWR|syscall.O_NOCTTY, 0)
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() { file.Close() })
	if err := file.SetReadDeadline(time.Time{}); err != nil {
		s.t.Fatal(err)
	}
	return &terminal{file}
}

const asking = "anything else refuses: "

func testQuestion() proto.Question {
	return proto.Question{
		Text: "Run it again?\n  rm -rf \x1b[8mhidden\n",
		Options: []proto.Option{
			{OptionID: "no", Name: "Refuse", Kind: "reject_once"},
			{OptionID: "yes", Name: "Allow once", Kind: "allow_once"},
			{OptionID: "more", Name: "Allow for this session", Kind: "allow_always"},
		},
		DefaultOptionID: "no",
	}
}

func TestTerminalAnswers(t *testing.T) {
	for _, test := range []struct {
		name, typed string
		want        string // option; empty for cancelled
	}{
		{"yes", "yes\n", "yes"},
		{"yes in capitals, with spaces", " YES \n", "yes"},
		{"y is not enough", "y\n", "no"},
		{"more than yes", "yes please\n", "no"},
		{"empty line", "\n", "no"},
		{"no", "no\n", "no"},
		{"end of file", "\x04", ""},
		{"yes without return, then end of file", "yes\x04\x04", ""},
		{"a very long line", strings.Repeat("yes ", 200) + "\n", ""},
		{"an escape sequence before it", "\x1b[5;1Ryes\n", "no"},
	} {
		t.Run(test.name, func(t *testing.T) {
			s := openScreen(t)
			question := openQuestion(s)
			answers := make(chan proto.ApprovalAnswer, 1)
			go func() { answers <- question.ask(context.Background(), testQuestion()) }()
			s.await(asking)
			s.typed(test.typed)
			answer := <-answers
			want := proto.ApprovalOutcome{Outcome: proto.OutcomeSelected, OptionID: test.want}
			if test.want == "" {
				want = proto.ApprovalOutcome{Outcome: proto.OutcomeCancelled}
			}
			if answer.Outcome != want {
				t.Errorf("got %+v, want %+v", answer.Outcome, want)
			}
			if shown := s.text(); !strings.Contains(shown, `rm -rf \u{1B}[8mhidden`) {
				t.Errorf("the question is not shown safely: %q", shown)
			}
		})
	}
}

func TestTerminalIgnoresWhatWasTypedBefore(t *testing.T) {
	s := openScreen(t)
	s.typed("yes\n")
	s.await("yes") // echoed, so it waits to be read
	question := openQuestion(s)
	answers := make(chan proto.ApprovalAnswer, 1)
	go func() { answers <- question.ask(context.Background(), testQuestion()) }()
	s.await(asking)
	s.typed("\n")
	if answer := <-answers; answer.Outcome.OptionID != "no" {
		t.Errorf("got %+v", answer.Outcome)
	}
}

func TestTerminalStopsWhenWithdrawn(t *testing.T) {
	s := openScreen(t)
	question := openQuestion(s)
	ctx, cancel := context.WithCancel(context.Background())
	answers := make(chan proto.ApprovalAnswer, 1)
	go func() { answers <- question.ask(ctx, testQuestion()) }()
	s.await(asking)
	cancel()
	if answer := <-answers; answer.Outcome.Outcome != proto.OutcomeCancelled {
		t.Errorf("got %+v", answer.Outcome)
	}
}

func TestTerminalRefusesOddOptions(t *testing.T) {
	q := testQuestion()
	for _, options := range [][]proto.Option{nil, q.Options[:1], {q.Options[1], q.Options[1]}, {q.Options[2]}} {
		q.Options = options
		// Asking at all would fail: there is no terminal.
		if answer := (&terminal{}).ask(t.Context(), q); answer.Outcome.Outcome != proto.OutcomeCancelled {
			t.Errorf("%v: got %+v", options, answer.Outcome)
		}
	}
}

func TestIsTerminal(t *testing.T) {
	s := openScreen(t)
	if !isTerminal(s.far) {
		t.Error("a terminal is not recognised")
	}
	null, err := os.Open(os.DevNull)
	if err != nil {
		t.Fatal(err)
	}
	defer null.Close()
	if isTerminal(null) {
		t.Error("/dev/null is taken for a terminal")
	}
}

// startAtTerminal starts the program under test as a shell would at a terminal.
func startAtTerminal(t *testing.T, w world, args ...string) (*screen, *exec.Cmd) {
	t.Helper()
	s := openScreen(t)
	cmd := w.confine(t, args...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = s.far, s.far, s.far
	cmd.Env = append(cmd.Env, "TERM=xterm")
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if cmd.ProcessState == nil {
			cmd.Process.Kill()
			cmd.Wait()
		}
	})
	return s, cmd
}

func TestPersonAtTheTerminalWidensOnce(t *testing.T) {
	requireSandbox(t)
	for _, test := range []struct {
		name, typed string
		status      int
		written     bool
	}{
		{"yes", "yes\n", 0, true},
		{"no", "no\n", 1, false},
		{"return", "\n", 1, false},
		{"interrupt", "\x03", 130, false},
		{"end of file", "\x04", 1, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			w := newWorld(t)
			// The output tries to blank out what follows on the screen.
			s, cmd := startAtTerminal(t, w, "run", `printf 'trying\033[8m\033]0;'; echo x > new`)
			s.await(asking)
			for _, shown := range []string{"echo x > new", "workspace-write"} {
				if !strings.Contains(s.text(), shown) {
					t.Errorf("the question does not show %q: %q", shown, s.text())
				}
			}
			visible := strings.LastIndex(s.text(), "\x1b\\") > strings.LastIndex(s.text(), "\x1b]0;")
			if !visible || !regexp.MustCompile(`\x1b\[0m[^\n]*\n`).MatchString(s.text()) {
				t.Errorf("the terminal is not brought back before the question: %q", s.text())
			}
			s.typed(test.typed)
			cmd.Wait()
			if status := cmd.ProcessState.ExitCode(); status != test.status {
				t.Errorf("status %d, want %d; the screen shows %q", status, test.status, s.text())
			}
			if _, err := os.Stat(w.work + "/new"); (err == nil) != test.written {
				t.Errorf("new exists: %v, want %v", err == nil, test.written)
			}
		})
	}
}

func TestNobodyIsAskedAgainstTheirWish(t *testing.T) {
	requireSandbox(t)
	w := newWorld(t)
	w.configure(t, "approval_policy = \"never\"\n")
	s, cmd := startAtTerminal(t, w, "run", "echo x > new")
	s.typed("yes\nyes\n")
	cmd.Wait()
	s.await("confine: the sandbox (read-only) refused")
	if status := cmd.ProcessState.ExitCode(); status != 1 || strings.Contains(s.text(), asking) {
		t.Errorf("status %d; the screen shows %q", status, s.text())
	}
	if _, err := os.Stat(w.work + "/new"); err == nil {
		t.Error("the command ran wider")
	}
}

func TestInterruptEndsTheCommand(t *testing.T) {
	requireSandbox(t)
	s, cmd := startAtTerminal(t, newWorld(t), "run", `trap 'echo tidied; exit 3' TERM; echo begun; while :; do sleep 0.05; done`)
	s.await("begun")
	s.typed("\x03")
	cmd.Wait()
	if status := cmd.ProcessState.ExitCode(); status != 130 {
		t.Errorf("status %d, want 130", status)
	}
	if !strings.Contains(s.text(), "tidied") {
		t.Errorf("the command had no chance to tidy up: %q", s.text())
	}
}

func TestSecondInterruptEndsAtOnce(t *testing.T) {
	requireSandbox(t)
	s, cmd := startAtTerminal(t, newWorld(t), "run", `trap 'echo deaf' TERM; echo begun; while :; do sleep 0.05; done`)
	s.await("begun")
	s.typed("\x03")
	s.await("deaf")
	s.typed("\x03")
	cmd.Wait()
	if status := cmd.ProcessState.ExitCode(); status != 130 {
		t.Errorf("status %d, want 130", status)
	}
}
