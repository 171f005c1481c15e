package main

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// TestScripts plays the stories in testdata/script, each a file of its own.
// A line is a step; words are split at spaces, a word in single quotes may hold
// some, and ” is a quote within it. $WORK and $HOME are replaced everywhere.
//
//	confine ARGUMENT…     run confine in $WORK; it must exit 0 unless the next
//	                      step is about its status
//	status N              confine exited with N
//	stdout RE, stderr RE  the output matches; with ! in front, it does not
//	prints TEXT           standard output is exactly TEXT and a line feed
//	stdin TEXT            standard input of the next confine (else closed)
//	env NAME=VALUE        for every confine that follows
//	sh COMMAND            run COMMAND outside any sandbox; it must succeed
//	file NAME TEXT        the file holds exactly TEXT and a line feed
//	missing NAME          there is no such file
//	need sandbox          skip the story where nothing can be enforced
//	need bwrap            … and where bubblewrap is not usable
//	slow                  what follows is played only where tests may take long
//
// Files for $WORK follow at the end, each behind a line "-- NAME --".
func TestScripts(t *testing.T) {
	names, err := filepath.Glob("testdata/script/*.txt")
	if err != nil || len(names) == 0 {
		t.Fatalf("no scripts were found: %v", err)
	}
	for _, name := range names {
		t.Run(strings.TrimSuffix(filepath.Base(name), ".txt"), func(t *testing.T) {
			t.Parallel()
			data, err := os.ReadFile(name)
			if err != nil {
				t.Fatal(err)
			}
			play(t, string(data))
		})
	}
}

// story is a script that is being played.
type story struct {
	world
	stdin          string
	stdout, stderr bytes.Buffer
	status         int
	unchecked      bool // the status was not 0 and no step has looked at it
}

func play(t *testing.T, text string) {
	s := &story{world: newWorld(t)}
	steps, files := splitFiles(text)
	for name, content := range files {
		if err := os.WriteFile(filepath.Join(s.work, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for i, line := range strings.Split(steps, "\n") {
		if line = strings.TrimSpace(line); line == "" || line[0] == '#' {
			continue
		}
		if line == "slow" {
			if slow() {
				continue
			}
			break
		}
		line = strings.NewReplacer("$WORK", s.work, "$HOME", s.home).Replace(line)
		if err := s.step(t, splitWords(line)); err != nil {
			t.Fatalf("line %d: %s\n%v\nstatus %d\nstdout: %s\nstderr: %s", i+1, line, err, s.status, &s.stdout, &s.stderr)
		}
	}
	if s.unchecked {
		t.Fatalf("the last confine exited with %d\nstderr: %s", s.status, &s.stderr)
	}
}

func (s *story) step(t *testing.T, words []string) error {
	name, args := words[0], words[1:]
	if s.unchecked && name != "status" {
		return errors.New("confine failed before this")
	}
	switch name {
	case "need":
		requireSandbox(t)
		if args[0] == "bwrap" {
			requireBubblewrap(t)
		}
	case "env":
		s.env = append(s.env, args[0])
	case "stdin":
		s.stdin = args[0]
	case "confine":
		return s.run(t, args)
	case "status":
		s.unchecked = false
		if want := args[0]; strconv.Itoa(s.status) != want {
			return fmt.Errorf("the status is not %s", want)
		}
	case "stdout", "stderr", "!stdout", "!stderr":
		return s.match(name, args[0])
	case "prints":
		return same(s.stdout.String(), args[0]+"\n")
	case "file":
		data, err := os.ReadFile(filepath.Join(s.work, args[0]))
		return errors.Join(err, same(string(data), args[1]+"\n"))
	case "missing":
		if _, err := os.Lstat(filepath.Join(s.work, args[0])); !os.IsNotExist(err) {
			return fmt.Errorf("%s exists (%v)", args[0], err)
		}
	case "sh":
		cmd := exec.Command("sh", "-c", args[0])
		cmd.Dir = s.work
		if out, err := cmd.CombinedOutput(); err != nil {
			return fmt.Errorf("%v: %s", err, out)
		}
	default:
		return fmt.Errorf("unknown step %q", name)
	}
	return nil
}

func (s *story) run(t *testing.T, args []string) error {
	s.stdout.Reset()
	s.stderr.Reset()
	cmd := s.confine(t, args...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = strings.NewReader(s.stdin), &s.stdout, &s.stderr
	s.stdin = ""
	err := cmd.Run()
	if _, ended := errors.AsType[*exec.ExitError](err); err != nil && !ended {
		return err
	}
	s.status = cmd.ProcessState.ExitCode()
	s.unchecked = s.status != 0
	return nil
}

func (s *story) match(what, pattern string) error {
	stream, wanted := &s.stdout, !strings.HasPrefix(what, "!")
	if strings.HasSuffix(what, "stderr") {
		stream = &s.stderr
	}
	re, err := regexp.Compile("(?m)" + pattern)
	if err == nil && re.Match(stream.Bytes()) != wanted {
		return fmt.Errorf("the match is not %v", wanted)
	}
	return err
}

func same(got, want string) error {
	if got != want {
		return fmt.Errorf("got %q, want %q", got, want)
	}
	return nil
}

// splitFiles cuts a script before its first file.
func splitFiles(text string) (steps string, files map[string]string) {
	files = map[string]string{}
	parts := regexp.MustCompile(`(?m)^-- (\S+) --\n`).Split(text, -1)
	for i, header := range regexp.MustCompile(`(?m)^-- (\S+) --\n`).FindAllStringSubmatch(text, -1) {
		files[header[1]] = parts[i+1]
	}
	return parts[0], files
}

// splitWords splits a line at spaces outside single quotes.
func splitWords(line string) []string {
	var words []string
	for line = strings.TrimSpace(line); line != ""; line = strings.TrimLeft(line, " ") {
		var word strings.Builder
		if line[0] != '\'' {
			plain, rest, _ := strings.Cut(line, " ")
			words, line = append(words, plain), rest
			continue
		}
		for line = line[1:]; ; {
			part, rest, _ := strings.Cut(line, "'")
			word.WriteString(part)
			if line = rest; !strings.HasPrefix(line, "'") {
				break
			}
			word.WriteByte('\'')
			line = line[1:]
		}
		words = append(words, word.String())
	}
	return words
}
