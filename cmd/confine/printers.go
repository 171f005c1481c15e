package main

// What confine prints, and where, is decided in this file alone:
//
//   - standard output holds what was asked for and nothing else: the output of
//     the command, one JSON value with --json, frames with serve;
//   - standard error holds confine's own words, each line beginning with
//     "confine: ", and what to do next on a line of its own beginning "hint: ";
//   - a message says what happened, why, and what to do next, in lower case and
//     without a final full stop;
//   - text that came from elsewhere (paths, commands, messages of the system) is
//     printed with control and direction-changing characters escaped, so that
//     it can neither hide nor imitate what confine says; names in a sentence
//     are escaped by whoever puts them in, since here a new line is a new line.
//
// The one exception is the output of a command, which passes byte for byte, as
// it would without confine.

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"unicode"
	"unicode/utf8"
)

// hinter is an error that knows what the person can do next.
type hinter interface {
	error
	Hint() string
}

// printError prints why confine itself could not do what was asked.
func printError(err error) {
	printNote("%v", err)
	if h, ok := errors.AsType[hinter](err); ok && h.Hint() != "" {
		printHint("%s", h.Hint())
	}
}

// printNote prints something that the person should know.
func printNote(format string, args ...any) {
	printLines("confine: ", fmt.Sprintf(format, args...))
}

// printHint prints what the person can do next.
func printHint(format string, args ...any) {
	printLines("hint: ", fmt.Sprintf(format, args...))
}

func printLines(prefix, text string) {
	var b strings.Builder
	for line := range strings.Lines(text) {
		b.WriteString(prefix + printable(strings.TrimRight(line, "\n")) + "\n")
	}
	io.WriteString(os.Stderr, b.String())
}

// printJSON prints one value on one line of standard output.
func printJSON(value any) error {
	encoder := json.NewEncoder(os.Stdout)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(value); err != nil {
		return fmt.Errorf("writing the result: %w", err)
	}
	return nil
}

// withHint adds what the person can do next to an error.
func withHint(err error, hint string) error { return &hintedError{err, hint} }

type hintedError struct {
	error
	hint string
}

func (e *hintedError) Hint() string  { return e.hint }
func (e *hintedError) Unwrap() error { return e.error }

// printable escapes what could move, hide or recolour text on a terminal. It is
// for lines of confine's own; the text of a question is made safe by package
// approval already and passes unchanged.
func printable(text string) string {
	var b strings.Builder
	for len(text) > 0 {
		r, size := utf8.DecodeRuneInString(text)
		switch {
		case r == utf8.RuneError && size == 1:
			fmt.Fprintf(&b, `\x%02x`, text[0])
		case unicode.IsPrint(r) && !unicode.Is(unicode.Other_Default_Ignorable_Code_Point, r):
			b.WriteRune(r)
		default:
			fmt.Fprintf(&b, `\u{%X}`, r)
		}
		text = text[size:]
	}
	return b.String()
}
