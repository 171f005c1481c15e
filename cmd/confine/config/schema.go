package config

import (
	"encoding/json"
	"fmt"
	"strings"
)

// Schema is the JSON Schema of a settings file, for editors that complete and check
// TOML, and for whoever writes initializationOptions.
func Schema() map[string]any {
	top := object()
	for i := range Keys {
		k := &Keys[i]
		into, name := top, k.Name
		if table, inner, nested := strings.Cut(k.Name, "."); nested {
			known := top["properties"].(map[string]any)
			if known[table] == nil {
				known[table] = object()
			}
			into, name = known[table].(map[string]any), inner
		}
		into["properties"].(map[string]any)[name] = k.schema()
	}
	top["$schema"] = "https://json-schema.org/draft/2020-12/schema"
	top["title"] = "Settings of confine"
	return top
}

func object() map[string]any {
	return map[string]any{"type": "object", "additionalProperties": false, "properties": map[string]any{}}
}

func (k *Key) schema() map[string]any {
	s := map[string]any{"description": k.Meaning}
	if k.Default != nil && k.Kind != Count {
		s["default"] = k.Default
	}
	switch k.Kind {
	case Switch:
		s["type"] = "boolean"
	case List, Names:
		s["type"], s["items"], s["maxItems"] = "array", map[string]any{"type": "string"}, maxPaths
	case RuleList:
		s["type"], s["items"], s["maxItems"] = "array", ruleSchema(), maxRules
	case Count:
		s["type"], s["minimum"] = "integer", 1
	case Size:
		s["anyOf"] = []any{
			map[string]any{"type": "integer", "minimum": 1},
			map[string]any{"type": "string", "pattern": "^[0-9]+(KiB|MiB|GiB|TiB)$"},
		}
	case Text:
		s["type"] = "string"
		if k.Choices != nil {
			s["enum"] = k.Choices
		}
	}
	return s
}

// Reference is the table of all keys for the documentation, in Markdown.
func Reference() string {
	var b strings.Builder
	b.WriteString("| Key | Values | Meaning | Tightened by |\n|---|---|---|---|\n")
	for i := range Keys {
		k := &Keys[i]
		meaning := k.Meaning
		if k.Env != "" {
			meaning += " Variable `" + k.Env + "`."
		}
		fmt.Fprintf(&b, "| `%s` | %s | %s | %s |\n", k.Name, k.accepts(), meaning, k.order.words())
	}
	return b.String()
}

// accepts lists what a key can be set to.
func (k *Key) accepts() string {
	var all []string
	switch {
	case k.Choices != nil:
		for _, choice := range k.Choices {
			all = append(all, k.mark(choice))
		}
	case k.Kind == Switch:
		all = []string{k.mark(false), k.mark(true)}
	case k.Kind == List:
		all = []string{"a list of paths"}
	case k.Kind == Names:
		all = []string{"a list of texts"}
	case k.Kind == RuleList:
		all = []string{"tables"}
	case k.Kind == Count:
		all = []string{"a whole number"}
	case k.Kind == Size:
		all = []string{"bytes, or `\"512MiB\"`"}
	default:
		all = []string{"a text"}
	}
	return strings.Join(all, ", ")
}

// mark spells a value as it is written in a file, the default in bold.
func (k *Key) mark(value any) string {
	text, _ := json.Marshal(value) // texts and booleans look alike in TOML
	if k.Default == value {
		return "**`" + string(text) + "`**"
	}
	return "`" + string(text) + "`"
}
