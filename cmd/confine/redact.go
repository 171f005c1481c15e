package main

import (
	"net/url"
	"os"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/confine-dev/confine/sandbox"
)

// The placeholders of what is taken out of a report.
const (
	hiddenSecret = "<secret>"
	hiddenHome   = "<home>"
	hiddenUser   = "<user>"
	hiddenHost   = "<host>"
)

// redactor takes out of texts what nobody else shall know, and counts it. Doubt
// means that it is taken out.
type redactor struct {
	known  []telling
	counts map[string]int // by placeholder
}

// telling is a text that is to be replaced wherever it stands.
type telling struct {
	text, placeholder string
	begins, ends      bool // only where no longer word or name goes on before or after it
}

// identity is who a report must not name.
type identity struct {
	homes, users, hosts []string
}

// thisIdentity asks the system and the environment, and believes both.
func thisIdentity(home string, getenv func(string) string) identity {
	id := identity{homes: []string{home, getenv("HOME")}, users: []string{getenv("USER"), getenv("LOGNAME"), getenv("SUDO_USER")}, hosts: []string{getenv("HOSTNAME")}}
	if me, err := user.Current(); err == nil {
		id.homes, id.users = append(id.homes, me.HomeDir), append(id.users, me.Username)
	}
	if name, err := os.Hostname(); err == nil {
		short, _, _ := strings.Cut(name, ".")
		id.hosts = append(id.hosts, name, short)
	}
	for _, home := range slices.Clone(id.homes) {
		if real, err := filepath.EvalSymlinks(home); err == nil {
			id.homes = append(id.homes, real)
		}
	}
	return id
}

// ordinary names say nothing about anybody.
var ordinary = []string{"", "/", ".", "root", "nobody", "localhost"}

func newRedactor(secrets []string, id identity) *redactor {
	r := &redactor{counts: map[string]int{hiddenSecret: 0, hiddenHome: 0, hiddenUser: 0, hiddenHost: 0}}
	for _, secret := range secrets {
		r.know(telling{text: secret, placeholder: hiddenSecret})
		for line := range strings.Lines(secret) { // texts are looked at line by line
			if line = strings.TrimSpace(line); len(line) >= shortestSecret {
				r.know(telling{text: line, placeholder: hiddenSecret})
			}
		}
	}
	for _, home := range id.homes {
		if home != "" && filepath.IsAbs(home) {
			r.know(telling{text: filepath.Clean(home), placeholder: hiddenHome, ends: true})
		}
	}
	for _, name := range id.users {
		r.know(telling{text: name, placeholder: hiddenUser, begins: true, ends: true})
	}
	for _, name := range id.hosts {
		r.know(telling{text: name, placeholder: hiddenHost, begins: true, ends: true})
	}
	// A secret may have a name in it, and a home folder has the user's.
	rank := []string{hiddenSecret, hiddenHome, hiddenUser, hiddenHost}
	slices.SortStableFunc(r.known, func(a, b telling) int {
		if a.placeholder != b.placeholder {
			return slices.Index(rank, a.placeholder) - slices.Index(rank, b.placeholder)
		}
		return len(b.text) - len(a.text)
	})
	return r
}

// know adds a text with the ways in which it may be spelled.
func (r *redactor) know(k telling) {
	if slices.Contains(ordinary, k.text) {
		return
	}
	quoted := strconv.Quote(k.text)
	for _, spelled := range []string{k.text, quoted[1 : len(quoted)-1], url.QueryEscape(k.text), url.PathEscape(k.text), (&url.URL{Path: k.text}).EscapedPath()} {
		k.text = spelled
		if !slices.Contains(r.known, k) {
			r.known = append(r.known, k)
		}
	}
}

// clean is a line of text without what nobody shall know.
func (r *redactor) clean(text string) string {
	for _, k := range r.known {
		if k.placeholder == hiddenSecret {
			text = r.replace(text, k)
		}
	}
	for _, shape := range secretShapes {
		text = shape.ReplaceAllStringFunc(text, func(found string) string { return r.cleanShape(shape.FindStringSubmatch(found)) })
	}
	if sandbox.LooksSecret("", strings.ReplaceAll(text, hiddenSecret, " ")) { // nobody knows which part of it
		r.counts[hiddenSecret]++
		return hiddenSecret
	}
	for _, k := range r.known {
		if k.placeholder != hiddenSecret {
			text = r.replace(text, k)
		}
	}
	return text
}

// cleanShape replaces a match but for its first and last group.
func (r *redactor) cleanShape(match []string) string {
	before, after := "", ""
	if len(match) > 1 {
		before = match[1]
	}
	if len(match) > 2 {
		after = match[2]
	}
	if match[0] != before+hiddenSecret+after { // found by another one already
		r.counts[hiddenSecret]++
	}
	return before + hiddenSecret + after
}

// replace replaces a known text where it stands for itself.
func (r *redactor) replace(text string, k telling) string {
	var b strings.Builder
	for {
		at := strings.Index(text, k.text)
		if at < 0 {
			b.WriteString(text)
			return b.String()
		}
		end := at + len(k.text)
		before, _ := utf8.DecodeLastRuneInString(text[:at])
		if at == 0 {
			before, _ = utf8.DecodeLastRuneInString(b.String())
		}
		after, _ := utf8.DecodeRuneInString(text[end:])
		if k.begins && inWord(before) || k.ends && inWord(after) {
			b.WriteString(text[:end])
		} else {
			b.WriteString(text[:at] + k.placeholder)
			r.counts[k.placeholder]++
		}
		text = text[end:]
	}
}

// inWord reports whether a name would go on with the character.
func inWord(r rune) bool {
	return r != utf8.RuneError && (unicode.IsLetter(r) || unicode.IsDigit(r) || r == '_')
}

// cleanAll is a value as encoding/json decodes it, with every text in it clean.
func (r *redactor) cleanAll(value any) any {
	switch v := value.(type) {
	case string:
		return r.clean(v)
	case []any:
		for i := range v {
			v[i] = r.cleanAll(v[i])
		}
	case map[string]any:
		for key := range v { // the names are confine's own
			if words, ok := commandLine(v[key]); ok && key == "command" {
				v[key] = words
			}
			v[key] = r.cleanAll(v[key])
		}
	}
	return value
}

// commandLine is a list of words as one text: what is secret in one word, another
// one may say.
func commandLine(value any) (line string, ok bool) {
	list, ok := value.([]any)
	var words []string
	for _, item := range list {
		word, isText := item.(string)
		words, ok = append(words, word), ok && isText
	}
	return strings.Join(words, " "), ok
}
