package rules

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"

	"mvdan.cc/sh/v3/syntax"
)

// Limits of what is read. What is beyond is not understood, and so asked.
const (
	maxScript = 64 << 10 // bytes
	maxOpened = 4000     // characters that can nest: the parser's stack grows with them
	maxDepth  = 12       // scripts and wrappers within each other
	maxCalls  = 2000
)

// call is one simple command: a program, or a function or builtin, with arguments.
type call struct {
	words []word // at least one
	inner bool   // another call of the script runs it
	guess bool   // it is run only if an unknown option of a wrapper takes a value
}

// texts are the words of a call that is literal.
func (c call) texts() []string {
	texts := make([]string, len(c.words))
	for i, w := range c.words {
		texts[i] = w.text
	}
	return texts
}

// script is what was read of a command.
type script struct {
	calls  []call
	loose  string // why it is not a plain list of literal commands; empty if it is
	unread string // why there can be commands that are not in calls; empty if there are none
	depth  int
}

// read finds the commands that c runs, as far as they can be seen.
func read(c Command) *script {
	s := &script{}
	if len(c.Argv) > 0 {
		words := make([]word, len(c.Argv))
		for i, arg := range c.Argv {
			words[i] = word{text: arg, known: true, single: true}
			s.visible(arg)
		}
		s.call(words, false)
		return s
	}
	s.visible(c.Script)
	if file := s.parse(c.Script); file != nil {
		s.plain(file.Stmts)
		s.walk(file)
	}
	return s
}

// loosen notes why no rule can allow the script; the first reason stands.
func (s *script) loosen(format string, args ...any) {
	if s.loose == "" {
		s.loose = fmt.Sprintf(format, args...)
	}
}

// miss notes why something of the script cannot be seen.
func (s *script) miss(format string, args ...any) {
	why := fmt.Sprintf(format, args...)
	if s.unread == "" {
		s.unread = why
	}
	s.loosen("%s", why)
}

// visible wants characters that look like what they are.
func (s *script) visible(text string) {
	if !utf8.ValidString(text) {
		s.loosen("it is not valid UTF-8")
	}
	for _, r := range text {
		if !unicode.IsPrint(r) && r != '\n' && r != '\t' { // IsPrint knows one space only
			s.loosen("it has invisible or misleading characters")
			return
		}
	}
}

// parse returns nil for what cannot be understood, and says so.
func (s *script) parse(text string) (file *syntax.File) {
	if len(text) > maxScript {
		s.miss("it is longer than %d bytes", maxScript)
		return nil
	}
	if strings.Count(text, "(")+strings.Count(text, "{")+strings.Count(text, "?")+strings.Count(text, "`") > maxOpened {
		s.miss("it has more than %d brackets", maxOpened)
		return nil
	}
	defer func() {
		if fault := recover(); fault != nil {
			s.miss("it cannot be parsed")
			file = nil
		}
	}()
	file, err := syntax.NewParser(syntax.Variant(syntax.LangBash)).Parse(strings.NewReader(text), "")
	if err != nil {
		s.miss("it cannot be parsed as a shell command")
		return nil
	}
	if continuesComment(text) {
		s.miss("it has a comment that ends in a backslash")
	}
	return file
}

// continuesComment reports whether a comment may end in a backslash: the parser takes
// the next line for part of the comment, and a shell runs it. Lines are looked at as
// they are, since the parser drops some comments.
func continuesComment(text string) bool {
	lines := strings.Split(text, "\n")
	for _, line := range lines[:len(lines)-1] {
		if !strings.HasSuffix(line, "\\") {
			continue
		}
		for i := range len(line) {
			if line[i] == '#' && (i == 0 || strings.IndexByte(" \t;&|()<>`", line[i-1]) >= 0) {
				return true
			}
		}
	}
	return false
}

// plain checks that statements are what an allow rule may be about.
func (s *script) plain(stmts []*syntax.Stmt) {
	for _, stmt := range stmts {
		if stmt.Background || stmt.Coprocess || stmt.Disown {
			s.loosen("it leaves something running in the background")
		}
		for _, r := range stmt.Redirs {
			s.plainRedirect(r)
		}
		switch cmd := stmt.Cmd.(type) {
		case *syntax.CallExpr:
			s.plainCall(cmd)
		case *syntax.BinaryCmd:
			s.plain([]*syntax.Stmt{cmd.X, cmd.Y})
		case *syntax.Block:
			s.plain(cmd.Stmts)
		case *syntax.Subshell:
			s.plain(cmd.Stmts)
		default:
			s.loosen("it has more than simple commands")
		}
	}
}

func (s *script) plainCall(cmd *syntax.CallExpr) {
	if len(cmd.Assigns) > 0 {
		s.loosen("it sets variables")
	}
	for _, arg := range cmd.Args {
		if !readWord(arg).plain {
			s.loosen("it has words that the shell would expand")
		}
	}
}

// plainRedirect lets pass what writes nothing and has no second reading.
func (s *script) plainRedirect(r *syntax.Redirect) {
	target := readWord(r.Word)
	discards := target.text == "/dev/null"
	duplicates := len(target.text) == 1 && strings.Contains("012", target.text)
	inside := strings.Contains(target.text, "/dev/") || strings.Contains(target.text, "/proc/") // /dev/tcp is the network
	switch {
	case !target.plain || r.N != nil && strings.Trim(r.N.Value, "012") != "":
		s.loosen("it redirects to what the shell would expand")
	case r.Op == syntax.RdrIn && (discards || !inside):
	case r.Op == syntax.WordHdoc:
	case (r.Op == syntax.RdrOut || r.Op == syntax.AppOut || r.Op == syntax.RdrAll || r.Op == syntax.AppAll) && discards:
	case r.Op == syntax.DplOut && duplicates:
	default:
		s.loosen("it has a redirection that can write, or a here-document")
	}
}

// walk adds every command below a node, whether it would be reached or not.
func (s *script) walk(top syntax.Node) {
	syntax.Walk(top, func(node syntax.Node) bool {
		stmt, ok := node.(*syntax.Stmt)
		if !ok {
			return true
		}
		if cmd, ok := stmt.Cmd.(*syntax.CallExpr); ok && len(cmd.Args) > 0 {
			words := make([]word, len(cmd.Args))
			for i, arg := range cmd.Args {
				words[i] = readWord(arg)
			}
			if len(words) > 1 && words[0].text == "--" {
				words = words[1:] // behind the keyword time
			}
			fed := s.fed(words, stmt.Redirs)
			s.call(words, fed)
		}
		return true
	})
}

// fed reads the here-documents that a shell or source is given, and reports whether there
// are any.
func (s *script) fed(words []word, redirects []*syntax.Redirect) bool {
	if name := words[0].base(); !words[0].known || !shells[name] && name != "source" && name != "." {
		return false
	}
	fed := false
	for _, r := range redirects {
		body := r.Hdoc
		if r.Op == syntax.WordHdoc {
			body = r.Word
		}
		if body == nil {
			continue
		}
		fed = true
		s.nested(readWord(body))
	}
	return fed
}

// nested reads a text that a command takes for a script.
func (s *script) nested(text word) {
	s.loosen("it runs a text as a script")
	if !text.known {
		s.miss("it runs a text that is not known beforehand")
		return
	}
	if s.depth++; s.depth > maxDepth {
		s.miss("it has too many scripts within each other")
	} else if file := s.parse(text.text); file != nil {
		s.walk(file)
	}
	s.depth--
}

// call adds a command and what it runs itself.
func (s *script) call(words []word, fed bool) { s.add(call{words: words}, fed) }

func (s *script) add(c call, fed bool) {
	if len(s.calls) == maxCalls {
		s.miss("it has more than %d commands", maxCalls)
		return
	}
	c.inner = s.depth > 0
	s.calls = append(s.calls, c)
	if s.depth++; s.depth > maxDepth {
		s.miss("it has too many commands within each other")
	} else {
		s.unfold(c, fed)
	}
	s.depth--
}
