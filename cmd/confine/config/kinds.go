package config

import (
	"encoding/json"
	"fmt"
	"net/url"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/confine-dev/confine/sandbox"
	"github.com/confine-dev/confine/sandbox/harden"
	"github.com/confine-dev/confine/sandbox/opensandbox"
)

// Kind is the type of a key's values.
type Kind string

// The kinds, with the Go types of their values.
const (
	Text   Kind = "text"   // string
	Switch Kind = "switch" // bool
	List   Kind = "list"   // []string
	Count  Kind = "count"  // int64, at least 1
	Size   Kind = "size"   // int64, bytes, at least 1
	Names  Kind = "names"  // []string, not of paths

	RuleList Kind = "rules" // rules.Rules
)

// maxPaths is how many items one list may have: each path can cost every run a mount.
const maxPaths = 256

// form reads a text that must be more than a text. fault completes a sentence
// that begins with the key.
type form func(text string) (value, fault string)

// read checks a value of a file or an editor: string, bool, int64, json.Number,
// []any or, of one rule, map[string]any. fault completes a sentence that begins with the key and may quote
// the value.
func (k *Key) read(raw any) (value any, fault string) {
	switch k.Kind {
	case Switch:
		if yes, ok := raw.(bool); ok {
			return yes, ""
		}
		return nil, "must be true or false, without quotes"
	case Text:
		text, ok := raw.(string)
		if !ok {
			return nil, "must be a text in quotes"
		}
		return k.readText(text)
	case List:
		return k.readList(raw, "paths", `must be a list of absolute paths, such as ["/opt/data"]`)
	case Names:
		return k.readList(raw, "names", `must be a list of texts in quotes, such as ["name"]`)
	case RuleList:
		return readRules(raw)
	case Count:
		if n, ok := whole(raw); ok && n >= 1 {
			return n, ""
		}
		return nil, "must be a whole number, at least 1"
	case Size:
		return readSize(raw)
	}
	return nil, "cannot be set"
}

func (k *Key) readText(text string) (value any, fault string) {
	if k.Choices != nil && !slices.Contains(k.Choices, text) {
		return nil, fmt.Sprintf("cannot be %q: use one of %s", text, strings.Join(k.Choices, ", "))
	}
	if k.form != nil {
		return check(k.form(text))
	}
	if text == "" {
		return nil, "must not be empty"
	}
	return text, ""
}

// readList reads a list of items, each once. wanted completes a sentence about one that
// is none.
func (k *Key) readList(raw any, items, wanted string) (value any, fault string) {
	list, ok := raw.([]any)
	if !ok {
		return nil, wanted
	}
	if len(list) > maxPaths {
		return nil, fmt.Sprintf("has %d %s, and at most %d can be given", len(list), items, maxPaths)
	}
	all := []string{}
	for _, item := range list {
		text, ok := item.(string)
		if !ok {
			return nil, wanted
		}
		item, fault := k.form(text)
		if fault != "" {
			return nil, fault
		}
		if !slices.Contains(all, item) {
			all = append(all, item)
		}
	}
	return all, ""
}

// readVariable reads the text of an environment variable, which is not blank.
func (k *Key) readVariable(text string) (value any, fault string) {
	if k.Name == KeyNoNewPrivs {
		wanted, _ := harden.ParseNoNewPrivs(text)
		return wanted, ""
	}
	return k.read(text)
}

func check(value, fault string) (any, string) {
	if fault != "" {
		return nil, fault
	}
	return value, ""
}

// whole reads a whole number.
func whole(raw any) (int64, bool) {
	switch n := raw.(type) {
	case int64:
		return n, true
	case json.Number:
		value, err := n.Int64()
		return value, err == nil
	}
	return 0, false
}

// units are what a size may end in.
var units = []struct {
	name  string
	bytes int64
}{{"KiB", 1 << 10}, {"MiB", 1 << 20}, {"GiB", 1 << 30}, {"TiB", 1 << 40}}

func readSize(raw any) (value any, fault string) {
	const wanted = `must be a number of bytes, at least 1, or a text such as "512MiB" (KiB, MiB, GiB, TiB)`
	n, ok := whole(raw)
	if text, isText := raw.(string); isText {
		for _, unit := range units {
			digits, found := strings.CutSuffix(text, unit.name)
			if !found || strings.Trim(digits, "0123456789") != "" {
				continue
			}
			if count, err := strconv.ParseInt(digits, 10, 64); err == nil && count <= 1<<62/unit.bytes {
				n, ok = count*unit.bytes, true
			}
		}
	}
	if !ok || n < 1 {
		return nil, wanted
	}
	return n, ""
}

// absolutePath reads a path that is absolute and not the whole file system.
func absolutePath(text string) (path, fault string) {
	path = filepath.Clean(text)
	switch {
	case strings.ContainsRune(text, 0):
		return "", "names a path with a NUL byte"
	case !filepath.IsAbs(path):
		return "", fmt.Sprintf("names %q, which is not an absolute path", text)
	case path == filepath.Dir(path):
		return "", fmt.Sprintf("names %q, which is the whole file system", text)
	}
	return path, ""
}

// anyPath reads a path that is absolute or begins with ~/, the home folder.
func anyPath(text string) (path, fault string) {
	rest, ok := strings.CutPrefix(text, "~/")
	if !ok {
		return absolutePath(text)
	}
	path, fault = absolutePath("/" + rest)
	if up := strings.HasPrefix(filepath.Clean(rest), ".."); up || fault != "" {
		return "", fmt.Sprintf("names %q, which is no path below the home folder", text)
	}
	return "~" + path, ""
}

// hidablePath is anyPath without what no command can do without.
func hidablePath(text string) (path, fault string) {
	path, fault = anyPath(text)
	if fault == "" && (path == "/dev" || sandbox.Within(path, "/proc")) {
		fault = fmt.Sprintf("names %q, which every command needs", text)
	}
	return path, fault
}

// webAddress reads the address of a service. A password or token in it would be shown.
func webAddress(text string) (address, fault string) {
	u, err := url.Parse(text)
	switch {
	case err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https":
		return "", "must be an address such as \"https://host:8080\""
	case u.User != nil:
		return "", "must not have a user or password in it; use " + KeyAPIKey
	case u.RawQuery != "" || u.Fragment != "":
		return "", "must not have anything behind a ? or #, where tokens stand; use " + KeyAPIKey
	}
	return text, ""
}

var hostForm = regexp.MustCompile(`^[A-Za-z0-9]([A-Za-z0-9.:-]{0,252}[A-Za-z0-9])?$`)

// hostName reads the name or address of a host, without a port.
func hostName(text string) (name, fault string) {
	port := strings.Count(text, ":") == 1 // an IPv6 address has more
	if port || !hostForm.MatchString(text) {
		return "", fmt.Sprintf("names %q, which is not the name of a host; give it without scheme and port", text)
	}
	return text, ""
}

// processors reads a number of processors.
func processors(text string) (number, fault string) {
	return text, opensandbox.CPUFault(text)
}

// skipped reads the name of a file or folder, or a path below a folder.
func skipped(text string) (name, fault string) {
	if strings.ContainsRune(text, 0) || text == "." || !filepath.IsLocal(text) || filepath.ToSlash(filepath.Clean(text)) != text {
		return "", fmt.Sprintf("names %q, which is neither a name nor a path below a folder", text)
	}
	return text, ""
}
