package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/confine-dev/confine/rpc/proto"
)

// terminal asks the person at the controlling terminal. Whatever is not the
// whole word yes refuses: another word, an empty line, end of file, an
// interrupt, the end of the time to answer, a terminal that misbehaves.
type terminal struct {
	file *os.File
}

// openTerminal opens the controlling terminal of the process. Close it.
func openTerminal() (*terminal, error) {
	file, err := os.OpenFile(controllingTerminal, os.O_RDWR, 0)
	if err != nil {
		return nil, fmt.Errorf("opening the terminal: %w", err)
	}
	// A question must be able to end while nobody types.
	if err := file.SetReadDeadline(time.Time{}); err != nil {
		file.Close()
		return nil, fmt.Errorf("preparing the terminal for a question: %w", err)
	}
	return &terminal{file}, nil
}

func (t *terminal) Close() error { return t.file.Close() }

// maxAnswer bounds the line that is read as the answer, in bytes.
const maxAnswer = 256

// legible ends an unfinished control string, colours and another character set, so that
// what is printed next can be read.
const legible = "\x18\x1b\\" + // CAN, ST
	"\x1b[0m" + "\x1b(B\x0f"

// sane undoes what the output of a command may have done to the terminal, so
// that the question can be seen and answered: it ends an unfinished control string,
// leaves the alternate screen, resets colours (redefined ones too), margins,
// character set and cursor, and begins a new line. Keys are sent as they are again,
// and what the mouse, the window's focus and pasting send of themselves is switched off.
const sane = legible +
	"\x1b[?1049l" + "\x1b[!p" + "\x1b>\x1b[?1l\x1b[=0u\x1b[>4m" +
	"\x1b[?1000l\x1b[?1002l\x1b[?1003l\x1b[?1006l\x1b[?1004l\x1b[?2004l" +
	legible + "\x1b[r" + "\x1b[?25h" +
	"\x1b]104\a\x1b]110\a\x1b]111\a" +
	"\x1b[999;1H\r\n"

// ifKnown is a control sequence, where the terminal is one that knows such.
func ifKnown(sequence string) string {
	if term := os.Getenv("TERM"); term == "" || term == "dumb" { // those print everything as it is
		return ""
	}
	return sequence
}

// ask shows the question and waits for the answer. It never fails: what is no
// yes is a refusal, and what is no answer is "cancelled".
func (t *terminal) ask(ctx context.Context, q proto.Question) proto.ApprovalAnswer {
	cancelled := proto.ApprovalAnswer{Outcome: proto.ApprovalOutcome{Outcome: proto.OutcomeCancelled}}
	allow, ok := onceOption(q.Options)
	if !ok {
		return cancelled
	}
	yes, err := t.confirm(ctx, wholeText(q))
	if err != nil {
		fmt.Fprintf(t.file, "\r\nconfine: refused: %s\r\n", printable(err.Error()))
		return cancelled
	}
	chosen := q.DefaultOptionID
	if yes {
		chosen = allow
	}
	return proto.ApprovalAnswer{Outcome: proto.ApprovalOutcome{Outcome: proto.OutcomeSelected, OptionID: chosen}}
}

// wholeText is the text of a question and all that did not fit into it: a terminal
// has room.
func wholeText(q proto.Question) string {
	text := strings.TrimRight(q.Text, "\n")
	if q.Unshown == 0 {
		return text
	}
	for _, warning := range q.Warnings {
		if !strings.Contains(q.Text, warning) {
			text += "\n" + warning
		}
	}
	add := func(label string, bodies ...string) {
		for _, body := range bodies {
			text += "\n" + label + ": «" + body + "»"
		}
	}
	add("The command, whole", q.Command)
	add("The folder, whole", q.Cwd)
	if q.Stdin != "" {
		add("The input, whole", q.Stdin)
	}
	add("Variable", q.Env...)
	if more := q.Wanted.Additional; more != nil {
		add("Becomes writable", more.Write...)
		add("Becomes readable", more.Read...)
	}
	return text
}

// onceOption finds the only option that allows this once and nothing more.
func onceOption(options []proto.Option) (id string, ok bool) {
	for _, option := range options {
		if option.Kind == "allow_once" {
			if ok {
				return "", false // which one is meant?
			}
			id, ok = option.OptionID, true
		}
	}
	return id, ok
}

// confirm shows the text and reports whether the whole answer was yes.
func (t *terminal) confirm(ctx context.Context, text string) (bool, error) {
	var b strings.Builder
	b.WriteString(ifKnown(sane))
	lines := 0
	for line := range strings.Lines(text) {
		b.WriteString(printable(strings.TrimRight(line, "\r\n")) + "\r\n")
		lines++
	}
	if lines > 20 || b.Len() > 1500 {
		fmt.Fprintf(&b, "(this question is long: %d lines; scroll up and read it from its beginning)\r\n", lines)
	}
	if _, err := io.WriteString(t.file, b.String()); err != nil {
		return false, fmt.Errorf("writing to the terminal: %w", err)
	}
	// Nothing typed before the question could be seen answers it.
	if err := discardTyped(t.file); err != nil {
		return false, fmt.Errorf("discarding what was typed before: %w", err)
	}
	if _, err := io.WriteString(t.file, `Type "yes" to allow this once; anything else refuses: `); err != nil {
		return false, fmt.Errorf("writing to the terminal: %w", err)
	}
	answer, err := t.readLine(ctx)
	if err != nil {
		return false, err
	}
	return strings.EqualFold(strings.TrimSpace(answer), "yes"), nil
}

// readLine reads one whole line, until ctx ends.
func (t *terminal) readLine(ctx context.Context) (string, error) {
	stop := context.AfterFunc(ctx, func() { t.file.SetReadDeadline(time.Unix(1, 0)) })
	defer stop()
	line, err := bufio.NewReader(io.LimitReader(t.file, maxAnswer)).ReadString('\n')
	switch {
	case ctx.Err() != nil:
		return "", errors.New("the question was withdrawn before it was answered")
	case errors.Is(err, io.EOF):
		return "", errors.New("no answer was given")
	case err != nil:
		return "", fmt.Errorf("reading the answer: %w", err)
	}
	return line, nil
}
