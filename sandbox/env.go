package sandbox

import (
	"cmp"
	"maps"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Environment is the whole environment of a command, sorted, each name once:
// the host's entries (as from os.Environ) without what a command must not
// have, then confine's own settings for output that is read and not watched,
// then the request's entries, which beat both. dropped lists the names that
// were left out, sorted; it never holds values, and a name that cannot be shown
// as it is comes quoted.
//
// From the host are left out: secrets, by name and by value; addresses of
// services that act for the person (ssh-agent, desktop, editor, containers);
// variables that make loaders, shells and interpreters run something else;
// those that wait for a person; and everything that begins with CONFINE_.
// Messages are forced to English without touching the character set.
//
// The request comes from a model, through the editor. It may set loader and
// shell variables all the same: inside the sandbox the command could do so
// itself, nothing reads them before confinement, and the question shows every
// change. What judges a command by its text, such as an allow rule, must not
// judge a request that changes the environment. Only names and values that no
// environment can hold, and CONFINE_ names, are dropped from it: no request can
// pretend to be confined (Markers).
//
// Markers and folders for temporary files are the provider's to set, which knows what the
// command may write.
func Environment(host []string, request map[string]string) (env, dropped []string) {
	return environmentWith(host, request, readOutput)
}

// TerminalEnvironment is the environment of a command with a terminal of its own, at
// which a person sits: nothing tells it to leave out colours, paging and questions.
func TerminalEnvironment(host []string, request map[string]string) (env, dropped []string) {
	return environmentWith(host, request, ownTerminal)
}

// audience is who sees what a command prints.
type audience struct {
	overrides  map[string]string // beat the host's
	serverOnly map[string]bool   // are left out without a word
}

func environmentWith(host []string, request map[string]string, a audience) (env, dropped []string) {
	vars, out := map[string]string{}, map[string]bool{}
	seen := map[string]bool{}
	for _, entry := range host {
		name, value, found := cutEntry(entry)
		if entry == "" || foldName(name) == "" || seen[foldName(name)] {
			continue // of two entries with one name, programs see the first
		}
		seen[foldName(name)] = true
		switch {
		case a.serverOnly[name]:
		case !found || !validEntry(name, value) || withheld(foldName(name), value):
			out[name] = true
		default:
			vars[name] = value
		}
	}
	speakEnglish(vars)
	for name, value := range a.overrides {
		deleteFold(vars, name)
		vars[name] = value
	}
	for _, name := range slices.Sorted(maps.Keys(request)) {
		value := request[name]
		if !validEntry(name, value) || strings.HasPrefix(foldName(name), ownPrefix) {
			out[name] = true
			continue
		}
		deleteFold(vars, name)
		deleteFold(out, name)
		vars[name] = value
	}
	for name, value := range vars {
		env = append(env, name+"="+value)
	}
	for name := range out {
		dropped = append(dropped, reportedName(name))
	}
	slices.Sort(env)
	slices.Sort(dropped)
	return env, dropped
}

const ownPrefix = "CONFINE_"

// readOutput suits output that a program reads: no colour, no paging, no question
// that nobody sees. FORCE_COLOR and its kind are dropped for it. What describes the
// server's own shell would lie to the command.
var readOutput = audience{
	overrides: map[string]string{
		"NO_COLOR":            "1",
		"TERM":                "dumb",
		"PAGER":               "cat",
		"GIT_PAGER":           "cat",
		"MANPAGER":            "cat",
		"GIT_TERMINAL_PROMPT": "0",
		"GCM_INTERACTIVE":     "never", // git's credential manager opens windows
	},
	serverOnly: map[string]bool{"PWD": true, "OLDPWD": true, "SHLVL": true, "_": true},
}

// ownTerminal suits a terminal that is not the one in which the server was started.
var ownTerminal = audience{
	overrides: map[string]string{
		"TERM":            "xterm-256color", // what those who show terminals emulate
		"GCM_INTERACTIVE": "never",
	},
	serverOnly: map[string]bool{"PWD": true, "OLDPWD": true, "SHLVL": true, "_": true, "LINES": true, "COLUMNS": true, "TERMCAP": true,
		"WINDOWID": true, "TERM_PROGRAM": true, "TERM_PROGRAM_VERSION": true, "TERM_SESSION_ID": true, "VTE_VERSION": true, "KONSOLE_VERSION": true},
}

// localeCategories are those that LC_ALL stands for, without LC_MESSAGES.
var localeCategories = []string{
	"LC_ADDRESS", "LC_COLLATE", "LC_CTYPE", "LC_IDENTIFICATION", "LC_MEASUREMENT", "LC_MONETARY",
	"LC_NAME", "LC_NUMERIC", "LC_PAPER", "LC_TELEPHONE", "LC_TIME",
}

// speakEnglish makes programs word messages in English, since denials are read from
// them. Where they do so anyway nothing is changed: compilers' caches take another
// locale for another command. Elsewhere LC_ALL, which would beat our LC_MESSAGES,
// moves to the other categories.
func speakEnglish(vars map[string]string) {
	delete(vars, "LANGUAGE")
	if isEnglish(cmp.Or(vars["LC_ALL"], vars["LC_MESSAGES"], vars["LANG"])) {
		return
	}
	if all := vars["LC_ALL"]; all != "" {
		for _, category := range localeCategories {
			vars[category] = all
		}
	}
	delete(vars, "LC_ALL")
	vars["LC_MESSAGES"] = "C"
}

// isEnglish reports whether messages in a locale are English. No locale is C.
func isEnglish(locale string) bool {
	language, _, _ := strings.Cut(locale, ".")
	language, _, _ = strings.Cut(language, "_")
	return slices.Contains([]string{"", "C", "POSIX", "en"}, language)
}

// cutEntry splits an entry at its first =. On Windows a name may begin with
// one (=C:=C:\x holds the folder of a drive).
func cutEntry(entry string) (name, value string, found bool) {
	if runtime.GOOS == "windows" && strings.HasPrefix(entry, "=") {
		name, value, found = strings.Cut(entry[1:], "=")
		return "=" + name, value, found
	}
	return strings.Cut(entry, "=")
}

// reportedName is the name itself if it can be shown, else a quoted beginning.
func reportedName(name string) string {
	if cut := name[:min(len(name), 100)]; cut != name || !validEntry(name, "") {
		return strconv.QuoteToASCII(cut)
	}
	return name
}

func validEntry(name, value string) bool {
	if runtime.GOOS == "windows" {
		name = strings.TrimPrefix(name, "=")
	}
	return name != "" && utf8.ValidString(name) && !strings.Contains(name, "=") &&
		!strings.ContainsFunc(name, unicode.IsControl) && !strings.Contains(value, "\x00")
}

// foldName is what tells two names apart: on Windows case does not.
func foldName(name string) string {
	if runtime.GOOS == "windows" {
		return strings.ToUpper(name)
	}
	return name
}

func deleteFold[V any](m map[string]V, name string) {
	delete(m, name)
	if runtime.GOOS != "windows" {
		return
	}
	for other := range m {
		if foldName(other) == foldName(name) {
			delete(m, other)
		}
	}
}
