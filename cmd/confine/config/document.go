package config

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/confine-dev/confine/approval/rules"
	"github.com/pelletier/go-toml/v2"
	"github.com/pelletier/go-toml/v2/unstable"
)

// entry is one value that a layer has for a key.
type entry struct {
	key    *Key
	value  any
	origin string
}

// newEntry is an entry of one place.
func newEntry(key *Key, value any, origin string) entry {
	if list, ok := value.(rules.Rules); ok {
		value = from(origin, list)
	}
	return entry{key, value, origin}
}

// maxBrackets bounds what a document can nest: a parser goes as deep.
const maxBrackets = 1000

// document is a settings file, or what stands for one.
type document struct {
	path  string
	alien bool // somebody who is not trusted wrote it: no error quotes it

	entries []entry
	tree    map[string]any
	rules   ruleTables
}

// parseTOML reads a settings file. The entries are never nil.
func parseTOML(path string, data []byte, alien bool) ([]entry, error) {
	if bytes.Count(data, []byte("["))+bytes.Count(data, []byte("{")) > maxBrackets {
		return nil, &Error{Path: path, Reason: fmt.Sprintf("it has more than %d brackets", maxBrackets)}
	}
	d := &document{path: path, alien: alien, entries: []entry{}}
	// The library checks the grammar and repeated keys; the walk below checks
	// names, places and types, exactly and with lines, which decoding into a
	// struct would not: it takes SANDBOX_MODE for sandbox_mode.
	if err := toml.Unmarshal(data, &d.tree); err != nil {
		return nil, d.syntaxError(err)
	}
	var parser unstable.Parser
	parser.Reset(data)
	var table []string
	for parser.NextExpression() {
		node := parser.Expression()
		parts, line := partsOf(&parser, node)
		if node.Kind != unstable.KeyValue {
			if err := d.endRule(); err != nil {
				return nil, err
			}
		}
		switch node.Kind {
		case unstable.Table:
			if table = parts; len(parts) != 1 || !slices.Contains(tables, parts[0]) {
				return nil, d.mistake(line, "it has a table of an unknown name", "there is no table [%s], only [%s] and [[%s]]; a key in the wrong table counts for nothing", strings.Join(parts, "."), strings.Join(tables, "], ["), KeyRules)
			}
		case unstable.ArrayTable:
			if table = parts; len(parts) != 1 || parts[0] != KeyRules {
				return nil, d.mistake(line, "it has a table of an unknown name", "there is no table [[%s]], only [[%s]]", strings.Join(parts, "."), KeyRules)
			}
			d.beginRule(line)
		case unstable.KeyValue:
			if d.rules.open {
				if err := d.setOfRule(parts, line); err != nil {
					return nil, err
				}
				continue
			}
			if err := d.set(&parser, slices.Concat(table, parts), line, node.Value()); err != nil {
				return nil, err
			}
		}
	}
	if err := d.endRules(); err != nil {
		return nil, err
	}
	if err := parser.Error(); err != nil {
		return nil, d.syntaxError(err)
	}
	return d.entries, nil
}

// set gives the key at a place of the document its value; a table in braces is
// walked.
func (d *document) set(parser *unstable.Parser, parts []string, line int, value *unstable.Node) error {
	if value.Kind == unstable.InlineTable && len(parts) == 1 && slices.Contains(tables, parts[0]) {
		for it := value.Children(); it.Next(); {
			inner, at := partsOf(parser, it.Node())
			if err := d.set(parser, slices.Concat(parts, inner), at, it.Node().Value()); err != nil {
				return err
			}
		}
		return nil
	}
	name := strings.Join(parts, ".")
	key := keyOf(name)
	if key == nil || strings.Count(name, ".") != len(parts)-1 {
		return d.mistake(line, "it has an unknown key", "unknown key %q; known keys: %s", name, strings.Join(KeyNames(), ", "))
	}
	found, fault := key.read(lookUp(d.tree, parts))
	if fault != "" {
		return d.mistake(line, key.Name+" has a value that it cannot have", "%s %s", key.Name, fault)
	}
	d.entries = append(d.entries, newEntry(key, found, fmt.Sprintf("%s:%d", d.path, line)))
	return nil
}

func lookUp(tree map[string]any, parts []string) any {
	var value any = tree
	for _, part := range parts {
		inner, _ := value.(map[string]any)
		value = inner[part]
	}
	return value
}

// mistake is an error about a line: plain says of an alien document what is wrong
// without a word of it.
func (d *document) mistake(line int, plain, format string, args ...any) error {
	reason := fmt.Sprintf(format, args...)
	if d.alien {
		reason = plain
	}
	return &Error{Path: d.path, Line: line, Reason: reason}
}

func (d *document) syntaxError(err error) error {
	var decode *toml.DecodeError
	if !errors.As(err, &decode) {
		return d.mistake(0, "it is not valid TOML", "%v", err)
	}
	line, _ := decode.Position()
	return d.mistake(line, "it is not valid TOML", "%s", strings.TrimPrefix(decode.Error(), "toml: "))
}

// partsOf returns the key of a pair or table and its line.
func partsOf(parser *unstable.Parser, node *unstable.Node) (parts []string, line int) {
	for it := node.Key(); it.Next(); {
		if line == 0 {
			line = parser.Shape(it.Node().Raw).Start.Line
		}
		parts = append(parts, string(it.Node().Data))
	}
	return parts, line
}

// parseJSON reads an object of settings, such as an editor's options. Nothing, null
// and the empty object are no settings.
func parseJSON(origin string, data json.RawMessage) ([]entry, error) {
	if len(bytes.TrimSpace(data)) == 0 {
		return nil, nil
	}
	mistake := func(format string, args ...any) error {
		return &Error{Path: origin, Reason: fmt.Sprintf(format, args...)}
	}
	decoder := json.NewDecoder(bytes.NewReader(data))
	decoder.UseNumber()
	var object map[string]any
	if err := decoder.Decode(&object); err != nil || decoder.More() {
		return nil, mistake("they must be an object of settings")
	}
	for _, table := range tables {
		inner, ok := object[table].(map[string]any)
		if !ok {
			continue
		}
		delete(object, table)
		for name, value := range inner {
			object[table+"."+name] = value
		}
	}
	var entries []entry
	for _, name := range slices.Sorted(maps.Keys(object)) {
		key := keyOf(name)
		if key == nil {
			return nil, mistake("unknown key %q; known keys: %s", name, strings.Join(KeyNames(), ", "))
		}
		value, fault := key.read(object[name])
		if fault != "" {
			return nil, mistake("%s %s", name, fault)
		}
		entries = append(entries, newEntry(key, value, origin))
	}
	return entries, nil
}

// parseEnvironment reads the variables that set something. An empty or blank one
// counts as unset.
func parseEnvironment(getenv func(string) string) ([]entry, error) {
	var entries []entry
	for i := range Keys {
		key := &Keys[i]
		if key.Env == "" || strings.TrimSpace(getenv(key.Env)) == "" {
			continue
		}
		value, fault := key.readVariable(getenv(key.Env))
		if fault != "" {
			return nil, &Error{Path: "environment variable " + key.Env, Reason: fault}
		}
		entries = append(entries, entry{key, value, "environment variable " + key.Env})
	}
	return entries, nil
}
