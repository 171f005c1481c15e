package config

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/confine-dev/confine/approval/rules"
)

// maxRules is how many rules one layer may have: each is compared with each command.
const maxRules = 300

// Keys of a rule.
const (
	ruleDecision = "decision"
	ruleCommand  = "command"
	ruleReason   = "reason"
)

// readRules checks a list of rules. Their origin is not set.
func readRules(raw any) (value any, fault string) {
	list, ok := raw.([]any)
	if !ok {
		return nil, "must be tables, each under a line [[rules]]"
	}
	if len(list) > maxRules {
		return nil, fmt.Sprintf("are %d, and at most %d can be given", len(list), maxRules)
	}
	all := rules.Rules{}
	for i, item := range list {
		rule, fault := readRule(item)
		if fault != "" {
			return nil, fmt.Sprintf("number %d %s", i+1, fault)
		}
		all = append(all, rule)
	}
	return all, ""
}

// readRule checks one rule; fault completes a sentence about it.
func readRule(raw any) (r rules.Rule, fault string) {
	table, ok := raw.(map[string]any)
	if !ok {
		return r, "must be a table"
	}
	for _, name := range slices.Sorted(maps.Keys(table)) {
		if fault := setRule(&r, name, table[name]); fault != "" {
			return r, fault
		}
	}
	return r, r.Check()
}

// setRule gives one key of a rule its value.
func setRule(r *rules.Rule, name string, value any) (fault string) {
	switch name {
	case ruleDecision, ruleReason:
		text, ok := value.(string)
		if !ok {
			return fmt.Sprintf("needs a text in quotes as its %s", name)
		}
		if name == ruleReason {
			r.Reason = strings.TrimSpace(text)
		} else {
			r.Decision = rules.Decision(text)
		}
	case ruleCommand:
		words, ok := texts(value)
		if !ok {
			return `needs a list of words as its command, such as ["git", "push"]`
		}
		r.Command = words
	default:
		return fmt.Sprintf("has an unknown key %q; known keys: %s, %s, %s", name, ruleDecision, ruleCommand, ruleReason)
	}
	return ""
}

// ruleTables are the tables [[rules]] of a document, as it is walked.
type ruleTables struct {
	all  rules.Rules
	rule rules.Rule // the last one, while open
	line int        // of its beginning
	open bool
}

func (d *document) beginRule(line int) {
	d.rules.rule, d.rules.line, d.rules.open = rules.Rule{Origin: fmt.Sprintf("%s:%d", d.path, line)}, line, true
}

// setOfRule reads a line of the open rule.
func (d *document) setOfRule(parts []string, line int) error {
	tables, _ := d.tree[KeyRules].([]any)
	table, _ := tables[len(d.rules.all)].(map[string]any)
	if fault := setRule(&d.rules.rule, strings.Join(parts, "."), table[parts[0]]); fault != "" {
		return d.mistake(line, "it has a rule that cannot be understood", "a rule %s", fault)
	}
	return nil
}

// endRule checks the open rule as a whole, if there is one.
func (d *document) endRule() error {
	if !d.rules.open {
		return nil
	}
	d.rules.open = false
	if fault := d.rules.rule.Check(); fault != "" {
		return d.mistake(d.rules.line, "it has a rule that cannot be understood", "a rule %s", fault)
	}
	d.rules.all = append(d.rules.all, d.rules.rule)
	if len(d.rules.all) > maxRules {
		return d.mistake(d.rules.line, "it has too many rules", "at most %d rules can be given", maxRules)
	}
	return nil
}

// endRules makes the rules of the document one entry.
func (d *document) endRules() error {
	if err := d.endRule(); err != nil || d.rules.all == nil {
		return err
	}
	d.entries = append(d.entries, entry{keyOf(KeyRules), d.rules.all, d.rules.all[0].Origin})
	return nil
}

// texts reads a list of texts.
func texts(raw any) (list []string, ok bool) {
	items, ok := raw.([]any)
	for _, item := range items {
		text, isText := item.(string)
		list, ok = append(list, text), ok && isText
	}
	return list, ok
}

// from is the rules with their origin.
func from(origin string, list rules.Rules) rules.Rules {
	list = slices.Clone(list)
	for i := range list {
		list[i].Origin = origin
	}
	return list
}

func ruleSchema() map[string]any {
	s := object()
	s["required"] = []string{ruleDecision, ruleCommand}
	s["properties"] = map[string]any{
		ruleDecision: map[string]any{"type": "string", "enum": []string{string(rules.Allow), string(rules.Ask), string(rules.Deny)}},
		ruleCommand:  map[string]any{"type": "array", "items": map[string]any{"type": "string"}, "minItems": 1, "description": "The words that the command begins with."},
		ruleReason:   map[string]any{"type": "string", "description": "Why; it is shown with the question or the refusal."},
	}
	return s
}
