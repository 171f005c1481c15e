package seatbelt

import (
	"fmt"
	"strings"
)

// This file reads the profile language as the system does, from its text alone, so
// that no mistake of the writer is shared by the reader.

// node is an expression: a list if list is set, else a string or a symbol.
type node struct {
	list   []node
	isList bool
	isText bool // in quotes
	atom   string
}

func (n node) String() string {
	if !n.isList {
		return n.atom
	}
	parts := make([]string, len(n.list))
	for i, c := range n.list {
		parts[i] = c.String()
	}
	return "(" + strings.Join(parts, " ") + ")"
}

// head is the symbol that a list begins with.
func (n node) head() string {
	if len(n.list) == 0 || n.list[0].isList || n.list[0].isText {
		return ""
	}
	return n.list[0].atom
}

// parse reads all expressions of a text.
func parse(text string) ([]node, error) {
	p := &parser{text: text}
	var all []node
	for {
		p.space()
		if p.at == len(p.text) {
			return all, nil
		}
		n, err := p.expression()
		if err != nil {
			return nil, fmt.Errorf("byte %d: %w", p.at, err)
		}
		if !n.isList {
			return nil, fmt.Errorf("byte %d: %s stands alone", p.at, n)
		}
		all = append(all, n)
	}
}

type parser struct {
	text string
	at   int
}

func (p *parser) space() {
	for p.at < len(p.text) {
		switch c := p.text[p.at]; {
		case c == ';':
			for p.at < len(p.text) && p.text[p.at] != '\n' {
				p.at++
			}
		case strings.IndexByte(" \t\r\n", c) >= 0:
			p.at++
		default:
			return
		}
	}
}

func (p *parser) expression() (node, error) {
	switch rest := p.text[p.at:]; {
	case rest[0] == '(':
		return p.inParentheses()
	case rest[0] == ')':
		return node{}, fmt.Errorf("unbalanced parenthesis")
	case rest[0] == '"':
		p.at++
		return p.quoted(true)
	case strings.HasPrefix(rest, `#"`):
		p.at += 2
		return p.quoted(false)
	default:
		end := strings.IndexAny(rest, " \t\r\n();\"")
		if end < 0 {
			end = len(rest)
		}
		p.at += end
		return node{atom: rest[:end]}, nil
	}
}

func (p *parser) inParentheses() (node, error) {
	p.at++
	n := node{isList: true}
	for {
		p.space()
		if p.at == len(p.text) {
			return node{}, fmt.Errorf("a list is not closed")
		}
		if p.text[p.at] == ')' {
			p.at++
			return n, nil
		}
		inner, err := p.expression()
		if err != nil {
			return node{}, err
		}
		n.list = append(n.list, inner)
	}
}

func (p *parser) quoted(escapes bool) (node, error) {
	var b strings.Builder
	for ; p.at < len(p.text); p.at++ {
		switch c := p.text[p.at]; {
		case c == '"':
			p.at++
			return node{isText: true, atom: b.String()}, nil
		case c == '\\' && escapes && p.at+1 < len(p.text):
			p.at++
			b.WriteByte(p.text[p.at])
		default:
			b.WriteByte(c)
		}
	}
	return node{}, fmt.Errorf("a string is not closed")
}
