package protect

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// entry is one setting of a git configuration. Section and key are in lower case,
// the subsection as it is written.
type entry struct{ section, subsection, key, value string }

// maxConfig bounds how much of a configuration is read, in bytes.
const maxConfig = 1 << 20

// parseConfig reads a git configuration (git-config(1), "Syntax"). What git would
// refuse is read as far as it goes.
func parseConfig(text string) (list []entry) {
	text = strings.ReplaceAll(strings.ReplaceAll(text, "\r\n", "\n"), "\\\n", "")
	var section, subsection string
	for line := range strings.SplitSeq(text, "\n") {
		line = strings.TrimSpace(line)
		if strings.HasPrefix(line, "[") {
			var rest string
			section, subsection, rest = parseSection(line[1:])
			line = strings.TrimSpace(rest)
		}
		if line == "" || line[0] == '#' || line[0] == ';' {
			continue
		}
		key, value, _ := strings.Cut(line, "=")
		list = append(list, entry{section, subsection, strings.ToLower(strings.TrimSpace(key)), parseValue(value)})
	}
	return list
}

// parseSection reads what follows the bracket of a header.
func parseSection(text string) (section, subsection, rest string) {
	var quoted bool
	var parts [2]strings.Builder
	for i := 0; i < len(text); i++ {
		switch c := text[i]; {
		case quoted && c == '\\' && i+1 < len(text):
			i++
			parts[1].WriteByte(text[i])
		case c == '"':
			quoted = !quoted
		case quoted:
			parts[1].WriteByte(c)
		case c == ']':
			section, subsection, _ = strings.Cut(parts[0].String(), ".") // [filter.lfs], an old form
			if parts[1].Len() > 0 {
				subsection = parts[1].String()
			}
			return strings.ToLower(section), subsection, text[i+1:]
		case c != ' ' && c != '\t':
			parts[0].WriteByte(c)
		}
	}
	return "", "", ""
}

// parseValue takes quotes, escapes and comments off a value.
func parseValue(text string) string {
	var value strings.Builder
	var quoted bool
	text = strings.TrimSpace(text)
	for i := 0; i < len(text); i++ {
		switch c := text[i]; {
		case c == '\\' && i+1 < len(text):
			i++
			switch text[i] {
			case 'n':
				value.WriteByte('\n')
			case 't':
				value.WriteByte('\t')
			default:
				value.WriteByte(text[i])
			}
		case c == '"':
			quoted = !quoted
		case !quoted && (c == '#' || c == ';'):
			return strings.TrimSpace(value.String())
		default:
			value.WriteByte(c)
		}
	}
	return value.String()
}

// commandKeys are settings whose value git, or what works with it, runs as a
// command. A star stands for every subsection or key.
var commandKeys = map[string][]string{
	"core":        {"fsmonitor", "sshcommand", "editor", "pager", "askpass", "gitproxy", "alternaterefscommand"},
	"sequence":    {"editor"},
	"gpg":         {"program", "defaultkeycommand"},
	"filter":      {"clean", "smudge", "process"},
	"diff":        {"external", "command", "textconv"},
	"merge":       {"driver"},
	"mergetool":   {"cmd", "path"},
	"difftool":    {"cmd", "path"},
	"credential":  {"helper"},
	"alias":       {"*"},
	"pager":       {"*"},
	"interactive": {"difffilter"},
	"uploadpack":  {"packobjectshook"},
	"remote":      {"uploadpack", "receivepack"},
	"submodule":   {"update"},
	"trailer":     {"cmd", "command"},
	"hook":        {"command"},
	"sendemail":   {"smtpserver", "sendmailcmd", "tocmd", "cccmd", "headercmd"},
	"browser":     {"cmd", "path"},
	"man":         {"cmd", "path"},
	"guitool":     {"cmd"},
}

func (e entry) runs() bool {
	keys := commandKeys[e.section]
	return slices.Contains(keys, e.key) || slices.Contains(keys, "*")
}

// words are the parts of a command that may be names of files.
func words(command string) []string {
	return strings.FieldsFunc(command, func(r rune) bool { return strings.ContainsRune(" \t\n\"'`;|&()<>$={}!", r) })
}

// expand resolves a path of a configuration as git does: ~/ is the home folder,
// and relative ones start from base.
func expand(path, base string) string {
	if rest, ok := strings.CutPrefix(path, "~/"); ok {
		if home, err := os.UserHomeDir(); err == nil {
			return filepath.Join(home, rest)
		}
	}
	if !filepath.IsAbs(path) {
		return filepath.Join(base, path)
	}
	return filepath.Clean(path)
}
