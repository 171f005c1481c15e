package config

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"github.com/pelletier/go-toml/v2"
	"github.com/pelletier/go-toml/v2/unstable"

	"github.com/confine-dev/confine/sandbox"
)

// maxFileSize bounds the settings file, in bytes. Real ones are a few hundred.
const maxFileSize = 1 << 20

// Error is a mistake in the settings file that the person has to mend.
type Error struct {
	Path   string
	Line   int // from 1; 0 if the file as a whole is meant
	Reason string
}

func (e *Error) Error() string {
	if e.Line > 0 {
		return fmt.Sprintf("reading settings: %s:%d: %s", e.Path, e.Line, e.Reason)
	}
	return fmt.Sprintf("reading settings: %s: %s", e.Path, e.Reason)
}

// Load reads the settings file over the defaults. A file that does not exist
// leaves the defaults and so does an empty path; one that exists and cannot be
// read or understood is an *Error. The file may be a symbolic link.
func Load(path string) (Settings, error) {
	settings := Defaults()
	if path == "" {
		return settings, nil
	}
	data, err := readFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return settings, nil
	}
	if err != nil {
		return Settings{}, err
	}
	if err := settings.apply(path, data); err != nil {
		return Settings{}, err
	}
	return settings, nil
}

// readFile reads a regular file of bounded size that only its owner, or a
// group the owner trusts, can have written.
func readFile(path string) ([]byte, error) {
	// A FIFO in place of the file would block the open for ever.
	file, err := os.OpenFile(path, os.O_RDONLY|openNonblock, 0)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, danglingLink(path, err)
	}
	if err != nil {
		return nil, &Error{Path: path, Reason: fmt.Sprintf("it exists but cannot be opened (%v)", unwrapPath(err))}
	}
	defer file.Close()
	info, err := file.Stat()
	switch {
	case err != nil:
		return nil, &Error{Path: path, Reason: unwrapPath(err).Error()}
	case !info.Mode().IsRegular():
		return nil, &Error{Path: path, Reason: "it is not a regular file"}
	case info.Mode().Perm()&0o002 != 0 && runtime.GOOS != "windows": // Windows shows 0666 for every file
		return nil, &Error{Path: path, Reason: "every user of this machine can write to it; run chmod o-w on it and check what it says"}
	}
	data, err := io.ReadAll(io.LimitReader(file, maxFileSize+1))
	if err != nil {
		return nil, &Error{Path: path, Reason: fmt.Sprintf("it exists but cannot be read (%v)", unwrapPath(err))}
	}
	if len(data) > maxFileSize {
		return nil, &Error{Path: path, Reason: fmt.Sprintf("it is larger than %d bytes", maxFileSize)}
	}
	return data, nil
}

// danglingLink tells a missing file from a link that leads nowhere: the person
// who made the link believes that there are settings.
func danglingLink(path string, notExist error) error {
	if _, err := os.Lstat(path); err == nil {
		return &Error{Path: path, Reason: "it is a symbolic link to a file that does not exist"}
	}
	return notExist
}

// apply puts the values of a document over the settings.
func (s *Settings) apply(path string, data []byte) error {
	// The library checks the grammar and repeated keys; the walk below checks
	// names, places and types, exactly and with lines, which decoding into a
	// struct would not: it takes SANDBOX_MODE for sandbox_mode.
	if err := toml.Unmarshal(data, &map[string]any{}); err != nil {
		return syntaxError(path, err)
	}
	var parser unstable.Parser
	parser.Reset(data)
	for parser.NextExpression() {
		node := parser.Expression()
		key, line := keyOf(&parser, node)
		fail := func(format string, args ...any) error {
			return &Error{Path: path, Line: line, Reason: fmt.Sprintf(format, args...)}
		}
		if node.Kind != unstable.KeyValue {
			return fail("there are no tables in this file, but it has [%s]; known keys, all at the top: %s", key, strings.Join(Keys, ", "))
		}
		if err := s.set(key, node.Value(), fail); err != nil {
			return err
		}
		s.Origins[key] = fmt.Sprintf("%s:%d", path, line)
	}
	return parser.Error()
}

// set gives one key its value. fail makes the error that names the place.
func (s *Settings) set(key string, value *unstable.Node, fail func(string, ...any) error) error {
	switch key {
	case KeyNetwork, KeyPreferBwrap, KeyDenyReadStores:
		if value.Kind != unstable.Bool {
			return fail("%s must be true or false, without quotes", key)
		}
		yes := string(value.Data) == "true"
		switch key {
		case KeyNetwork:
			s.Network = yes
		case KeyPreferBwrap:
			s.PreferBwrap = yes
		case KeyDenyReadStores:
			s.DenyReadDefaults = yes
		}
		return nil
	case KeyDenyRead:
		paths, reason := pathsOf(value, hiddenPathOf)
		if reason != "" {
			return fail("%s %s", key, reason)
		}
		s.DenyRead = paths
		return nil
	case KeyBwrapReadOnly, KeyBwrapDevices:
		paths, reason := pathsOf(value, pathOf)
		if reason != "" {
			return fail("%s %s", key, reason)
		}
		if key == KeyBwrapReadOnly {
			s.BwrapReadOnly = paths
		} else {
			s.BwrapDevices = paths
		}
		return nil
	case KeyMode, KeyProvider, KeyApprovalPolicy, KeyBwrapPath:
		if value.Kind != unstable.String {
			return fail("%s must be a text in quotes", key)
		}
		return s.setText(key, string(value.Data), fail)
	}
	return fail("unknown key %q; known keys: %s", key, strings.Join(Keys, ", "))
}

// setText gives a key whose value is a text its value.
func (s *Settings) setText(key, text string, fail func(string, ...any) error) error {
	switch key {
	case KeyMode:
		mode, err := sandbox.ParseMode(text)
		if err != nil {
			return fail("%v", err)
		}
		s.Mode = mode
	case KeyProvider:
		if !slices.Contains(Providers, text) {
			return fail("unknown provider %q: use one of %s", text, strings.Join(Providers, ", "))
		}
		s.Provider = text
	case KeyApprovalPolicy:
		if !slices.Contains(approvalPolicies, text) {
			return fail("unknown approval policy %q: use one of %s", text, strings.Join(approvalPolicies, ", "))
		}
		s.ApprovalPolicy = text
	case KeyBwrapPath:
		path, reason := pathOf(text)
		if reason != "" {
			return fail("%s %s", key, reason)
		}
		s.BwrapPath = path
	}
	return nil
}

// pathsOf reads a list of paths, each by read. reason completes a sentence about
// the key.
func pathsOf(list *unstable.Node, read func(string) (path, reason string)) (paths []string, reason string) {
	const form = `must be a list of absolute paths, such as ["/opt/data"]`
	if list.Kind != unstable.Array {
		return nil, form
	}
	for it := list.Children(); it.Next(); {
		if it.Node().Kind != unstable.String {
			return nil, form
		}
		path, reason := read(string(it.Node().Data))
		if reason != "" {
			return nil, reason
		}
		paths = append(paths, path)
	}
	return paths, ""
}

// hiddenPathOf reads a path that is absolute or begins with ~/, the home folder.
func hiddenPathOf(text string) (path, reason string) {
	if rest, ok := strings.CutPrefix(text, "~/"); ok {
		path, reason = pathOf("/" + rest)
		if up := strings.HasPrefix(filepath.Clean(rest), ".."); up || reason != "" {
			return "", fmt.Sprintf("names %q, which is no path below the home folder", text)
		}
		return "~" + path, ""
	}
	path, reason = pathOf(text)
	if reason == "" && (path == "/proc" || path == "/dev") {
		reason = fmt.Sprintf("names %q, which every command needs", text)
	}
	return path, reason
}

// Hidden are the paths of DenyRead, all absolute. Without a home folder those
// below it mean nothing.
func (s Settings) Hidden(home string) []string {
	var paths []string
	for _, path := range s.DenyRead {
		if rest, below := strings.CutPrefix(path, "~/"); !below {
			paths = append(paths, path)
		} else if home != "" {
			paths = append(paths, filepath.Join(home, rest))
		}
	}
	return paths
}

// pathOf reads one path below the root of the file system.
func pathOf(text string) (path, reason string) {
	switch path = filepath.Clean(text); {
	case !filepath.IsAbs(text):
		return "", fmt.Sprintf("names %q, which is not an absolute path", text)
	case strings.ContainsRune(text, 0):
		return "", fmt.Sprintf("names %q, which no file can be called", text)
	case path == filepath.Dir(path):
		return "", fmt.Sprintf("names %q, which is the whole file system", text)
	}
	return path, ""
}

// keyOf returns the dotted key of a key-value pair or table and its line.
func keyOf(parser *unstable.Parser, node *unstable.Node) (key string, line int) {
	var parts []string
	for it := node.Key(); it.Next(); {
		if line == 0 {
			line = parser.Shape(it.Node().Raw).Start.Line
		}
		parts = append(parts, string(it.Node().Data))
	}
	return strings.Join(parts, "."), line
}

func syntaxError(path string, err error) error {
	var decode *toml.DecodeError
	if !errors.As(err, &decode) {
		return &Error{Path: path, Reason: err.Error()}
	}
	line, _ := decode.Position()
	return &Error{Path: path, Line: line, Reason: strings.TrimPrefix(decode.Error(), "toml: ")}
}

// unwrapPath drops the path of a *fs.PathError, for messages that name it.
func unwrapPath(err error) error {
	var pathErr *fs.PathError
	if errors.As(err, &pathErr) {
		return pathErr.Err
	}
	return err
}
