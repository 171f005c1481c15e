package config

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/confine-dev/confine/sandbox"
)

func writeSettings(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "config.toml")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// loaded is what holds with a file of the person's and nothing else.
type loaded struct {
	Settings
	Origins map[string]string
}

func load(path string) (loaded, error) {
	entries, err := readUserFile(path)
	if err != nil {
		return loaded{}, err
	}
	s := compose([]layer{{entries: entries}}, nil)
	l := loaded{s.Settings, map[string]string{}}
	for _, value := range s.Values {
		l.Origins[value.Key] = value.Origin
	}
	return l, nil
}

func TestLoadValuesAndOrigins(t *testing.T) {
	path := writeSettings(t, `# comment
sandbox_mode = "workspace-write"

network_access = true
`)
	got, err := load(path)
	if err != nil {
		t.Fatal(err)
	}
	if got.Mode != sandbox.WorkspaceWrite || !got.Network || got.Provider != "auto" || got.ApprovalPolicy != "ask" {
		t.Errorf("got %+v", got)
	}
	want := map[string]string{}
	for _, key := range KeyNames() {
		want[key] = "default"
	}
	want["sandbox_mode"], want["network_access"] = path+":2", path+":4"
	if !maps.Equal(got.Origins, want) {
		t.Errorf("origins: got %v, want %v", got.Origins, want)
	}
}

func TestLoadWhatIsHidden(t *testing.T) {
	requireUnix(t)
	got, err := load(writeSettings(t, "deny_read = [\"~/private/keys/\", '/opt/a \"b\"']\ndeny_read_defaults = false\n"))
	if err != nil {
		t.Fatal(err)
	}
	if got.DenyReadDefaults || !slices.Equal(got.DenyRead, []string{"~/private/keys", `/opt/a "b"`}) {
		t.Errorf("got %+v", got)
	}
	if paths := got.Hidden("/home/me"); !slices.Equal(paths, []string{"/home/me/private/keys", `/opt/a "b"`}) {
		t.Errorf("hidden are %q", paths)
	}
	if paths := got.Hidden(""); !slices.Equal(paths, []string{`/opt/a "b"`}) {
		t.Errorf("without a home folder hidden are %q", paths)
	}
}

func TestLoadWithoutFile(t *testing.T) {
	for name, path := range map[string]string{
		"no path": "",
		"no file": filepath.Join(t.TempDir(), "no", "such", "config.toml"),
		"empty":   writeSettings(t, ""),
	} {
		got, err := load(path)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if got.Mode != "read-only" || got.Network || got.Provider != "auto" || got.ApprovalPolicy != "ask" || !got.DenyReadDefaults || len(got.DenyRead) > 0 {
			t.Errorf("%s: got %+v", name, got)
		}
	}
}

func TestLoadAcceptsEveryDocumentedValue(t *testing.T) {
	requireUnix(t)
	documented := map[string]bool{}
	for key, values := range map[string][]string{
		"sandbox_mode":    {`"read-only"`, `"workspace-write"`, `"danger-full-access"`, `"external-sandbox"`},
		"network_access":  {`true`, `false`},
		"provider":        {`"auto"`, `"bwrap"`, `"landlock"`, `"seatbelt"`},
		"approval_policy": {`"ask"`, `"untrusted"`, `"never"`, `'never'`},
		"rules":           {`[]`, `[{decision = "ask", command = ["git", "push"], reason = "why"}]`},
		"prefer_bwrap":    {`true`, `false`},
		"bwrap_ro_roots":  {`[]`},
		"bwrap_dev_roots": {`[]`},

		"deny_read":           {`[]`},
		"deny_read_defaults":  {`true`, `false`},
		"writable_roots":      {`["/opt/out", "~/out"]`},
		"on_unavailable":      {`"refuse"`, `"run-unconfined"`},
		"sandbox_backend":     {`"none"`, `"opensandbox"`},
		"sandbox_url":         {`"https://host.test:8080/base"`},
		"sandbox_api_key":     {`"k"`},
		"sandbox_api":         {`"lifecycle"`, `"run"`},
		"sandbox_plain_http":  {`[]`, `["host.test", "10.0.0.1", "fd00::1"]`},
		"sandbox_image":       {`"registry.test/image:tag"`},
		"sandbox_cpu":         {`"2"`, `"500m"`},
		"sandbox_memory":      {`"512MiB"`},
		"sandbox_workspace":   {`"none"`, `"upload"`, `"mount"`},
		"sandbox_upload_size": {`"1GiB"`},
		"sandbox_upload_skip": {`[]`, `["node_modules", ".git/objects"]`},
		"sandbox_output":      {`"lines"`, `"bytes"`},
		"no_new_privs":        {`true`, `false`},
		"exclude_tmpdir":      {`true`, `false`},
		"exclude_slash_tmp":   {`true`, `false`},
		"bwrap_path":          {`"/usr/bin/bwrap"`},
		"limits.processes":    {`1`, `4_096`},
		"limits.memory":       {`1`, `"512MiB"`, `"4GiB"`, `"1TiB"`, `"16KiB"`},
		"limits.open_files":   {`1`},
		"limits.file_size":    {`"1GiB"`},
		"limits.tmp_size":     {`0x1000`},
	} {
		documented[key] = true
		for _, value := range values {
			if _, err := load(writeSettings(t, key+" = "+value+"\n")); err != nil {
				t.Errorf("%s = %s: %v", key, value, err)
			}
		}
	}
	for _, key := range KeyNames() {
		if !documented[key] {
			t.Errorf("no value of %s is tried", key)
		}
	}
}

func TestLoadLimitsInEitherSpelling(t *testing.T) {
	for _, text := range []string{
		"[limits]\nmemory = \"512MiB\"\nprocesses = 77\n",
		"limits = { memory = 536870912, processes = 77 }\n",
		"limits.memory = \"524288KiB\"\nlimits.processes = 77\n",
	} {
		path := writeSettings(t, text)
		got, err := load(path)
		if err != nil || got.Limits.Memory != 512<<20 || got.Limits.Processes != 77 {
			t.Errorf("%q: got %+v, %v", text, got.Settings, err)
		}
		if !strings.HasPrefix(got.Origins["limits.memory"], path+":") {
			t.Errorf("%q: it comes from %s", text, got.Origins["limits.memory"])
		}
	}
}

func TestLoadPaths(t *testing.T) {
	requireUnix(t)
	path := writeSettings(t, `prefer_bwrap = true
bwrap_path = "/opt/bin/bwrap"
bwrap_ro_roots = [
	"/opt/data/", # a comment
	'/opt/a "b"',
]
bwrap_dev_roots = ["/dev/kvm"]
`)
	got, err := load(path)
	if err != nil {
		t.Fatal(err)
	}
	if !got.PreferBwrap || got.BwrapPath != "/opt/bin/bwrap" || !slices.Equal(got.BwrapReadOnly, []string{"/opt/data", `/opt/a "b"`}) ||
		!slices.Equal(got.BwrapDevices, []string{"/dev/kvm"}) {
		t.Errorf("got %+v", got)
	}
	for key, line := range map[string]int{"prefer_bwrap": 1, "bwrap_path": 2, "bwrap_ro_roots": 3, "bwrap_dev_roots": 7} {
		if want := fmt.Sprintf("%s:%d", path, line); got.Origins[key] != want {
			t.Errorf("%s comes from %s, want %s", key, got.Origins[key], want)
		}
	}
}

func TestLoadMistakes(t *testing.T) {
	for _, test := range []struct {
		name, text string
		line       int
		says       string
	}{
		{"unknown key", "network_access = true\nsandbox_mod = \"read-only\"\n", 2, `unknown key "sandbox_mod"`},
		{"other case", "Sandbox_Mode = \"danger-full-access\"\n", 1, `unknown key "Sandbox_Mode"`},
		{"in a table", "\n[sandbox]\nsandbox_mode = \"read-only\"\n", 2, "no table [sandbox]"},
		{"in an array of tables", "[[rule]]\n", 1, "no table [[rule]]"},
		{"dotted", "sandbox.sandbox_mode = \"read-only\"\n", 1, `unknown key "sandbox.sandbox_mode"`},
		{"number for a mode", "# x\nsandbox_mode = 1\n", 2, "text in quotes"},
		{"list for a mode", "sandbox_mode = [\"read-only\"]\n", 1, "text in quotes"},
		{"quoted bool", "network_access = \"true\"\n", 1, "without quotes"},
		{"unknown mode", "sandbox_mode = \"full\"\n", 1, "read-only, workspace-write"},
		{"empty mode", "sandbox_mode = \"\"\n", 1, `cannot be ""`},
		{"none is no provider to choose", "provider = \"none\"\n", 1, `cannot be "none"`},
		{"unknown policy", "approval_policy = \"always\"\n", 1, "ask, untrusted, never"},
		{"number for a preference", "prefer_bwrap = 1\n", 1, "without quotes"},
		{"list for a path", "bwrap_path = [\"/usr/bin/bwrap\"]\n", 1, "text in quotes"},
		{"relative path", "bwrap_path = \"bwrap\"\n", 1, "not an absolute path"},
		{"empty path", "bwrap_path = \"\"\n", 1, "not an absolute path"},
		{"path from home", "\nbwrap_ro_roots = [\"~/data\"]\n", 2, "not an absolute path"},
		{"text for a list", "bwrap_ro_roots = \"/opt\"\n", 1, "list of absolute paths"},
		{"numbers in a list", "bwrap_dev_roots = [1]\n", 1, "list of absolute paths"},
		{"list in a list", "bwrap_dev_roots = [[\"/dev/kvm\"]]\n", 1, "list of absolute paths"},
		{"relative path to hide", "deny_read = [\"data\"]\n", 1, "not an absolute path"},
		{"another user's home", "deny_read = [\"~root/data\"]\n", 1, "not an absolute path"},
		{"the whole home folder", "deny_read = [\"~/\"]\n", 1, "below the home folder"},
		{"out of the home folder", "deny_read = [\"~/../other\"]\n", 1, "below the home folder"},
		{"the whole file system", "deny_read = [\"/\"]\n", 1, "whole file system"},
		{"what commands need", "deny_read = [\"/proc/\"]\n", 1, "every command needs"},
		{"part of what commands need", "deny_read = [\"/proc/self\"]\n", 1, "every command needs"},
		{"text for what is hidden", "deny_read = \"/opt\"\n", 1, "list of"},
		{"text for the defaults", "deny_read_defaults = \"yes\"\n", 1, "without quotes"},
		{"limit outside of its table", "memory = 1\n", 1, `unknown key "memory"`},
		{"key in the wrong table", "[limits]\nsandbox_mode = \"read-only\"\n", 2, `unknown key "limits.sandbox_mode"`},
		{"dotted name in quotes", "\"limits.memory\" = 1\n", 1, "unknown key"},
		{"no limit", "limits.memory = 0\n", 1, "at least 1"},
		{"negative limit", "[limits]\n\nprocesses = -1\n", 3, "at least 1"},
		{"size with another unit", "limits.memory = \"1GB\"\n", 1, "KiB"},
		{"size out of range", "limits.memory = \"9999999999TiB\"\n", 1, "KiB"},
		{"number as text", "limits.processes = \"9\"\n", 1, "whole number"},
		{"misspelled backend", "sandbox_backend = \"open-sandbox\"\n", 1, "none, opensandbox"},
		{"host with a port", "sandbox_plain_http = [\"host.test:80\"]\n", 1, "without scheme and port"},
		{"host with a scheme", "sandbox_plain_http = [\"http://host.test\"]\n", 1, "without scheme and port"},
		{"number of processors", "sandbox_cpu = \"many\"\n", 1, "number of processors"},
		{"path that leads out", "sandbox_upload_skip = [\"../x\"]\n", 1, "below a folder"},
		{"absolute path", "sandbox_upload_skip = [\"/x\"]\n", 1, "below a folder"},
		{"misspelled workspace", "sandbox_workspace = \"copy\"\n", 1, "none, upload, mount"},
		{"password in an address", "sandbox_url = \"https://me:secret@host.test\"\n", 1, "sandbox_api_key"},
		{"token in an address", "sandbox_url = \"https://host.test/?token=secret\"\n", 1, "sandbox_api_key"},
		{"fragment of an address", "sandbox_url = \"https://host.test/#secret\"\n", 1, "sandbox_api_key"},
		{"empty rule", "\n[[rules]]\n", 2, "allow, ask or deny"},
		{"rule that decides nothing", "[[rules]]\ncommand = [\"ls\"]\n", 1, "allow, ask or deny"},
		{"rule with another decision", "[[rules]]\ncommand = [\"ls\"]\ndecision = \"permit\"\n", 1, "permit"},
		{"rule without a command", "[[rules]]\ndecision = \"deny\"\n\n[[rules]]\ndecision = \"deny\"\ncommand = [\"ls\"]\n", 1, "needs a command"},
		{"rule with an empty command", "[[rules]]\ndecision = \"deny\"\ncommand = []\n", 1, "needs a command"},
		{"command as one text", "[[rules]]\ndecision = \"deny\"\ncommand = \"git push\"\n", 3, "list of words"},
		{"words in one", "[[rules]]\ndecision = \"deny\"\ncommand = [\"git push\"]\n", 1, "each word"},
		{"number for a word", "[[rules]]\ndecision = \"deny\"\ncommand = [\"kill\", 9]\n", 3, "list of words"},
		{"unknown key of a rule", "[[rules]]\ndecision = \"deny\"\ncommands = [\"ls\"]\n", 3, `unknown key "commands"`},
		{"dotted key of a rule", "[[rules]]\ndecision.x = \"deny\"\n", 2, `unknown key "decision.x"`},
		{"key in a rule", "[[rules]]\ndecision = \"deny\"\ncommand = [\"ls\"]\nsandbox_mode = \"read-only\"\n", 4, `unknown key "sandbox_mode"`},
		{"one table for all rules", "[rules]\ndecision = \"deny\"\n", 1, "[[rules]]"},
		{"table in a rule", "[[rules]]\ndecision = \"deny\"\ncommand = [\"ls\"]\n[rules.more]\n", 4, "no table [rules.more]"},
		{"rules in a text", "rules = \"deny ls\"\n", 1, "[[rules]]"},
		{"rule in a list", "rules = [{decision = \"deny\"}]\n", 1, "number 1 needs a command"},
		{"many rules", strings.Repeat("[[rules]]\ndecision = \"deny\"\ncommand = [\"x\"]\n", 301), 901, "at most 300"},
		{"brackets", "deny_read = " + strings.Repeat("[", 2000) + "\n", 0, "brackets"},
		{"many paths", "deny_read = [" + strings.Repeat("\"/a\",", 300) + "]\n", 1, "at most 256"},
		{"twice", "provider = \"auto\"\nprovider = \"auto\"\n", 2, "provider"},
		{"no value", "provider = \"auto\"\nsandbox_mode =\n", 2, ""},
		{"not TOML", "sandbox_mode: read-only\n", 1, ""},
		{"not text", "sandbox_mode = \"read-only\"\n\xff\xfe\n", 2, ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			path := writeSettings(t, test.text)
			got, err := load(path)
			var mistake *Error
			if !errors.As(err, &mistake) {
				t.Fatalf("got %+v, %v; want an *Error", got, err)
			}
			if mistake.Path != path || mistake.Line != test.line {
				t.Errorf("got %s:%d, want line %d", mistake.Path, mistake.Line, test.line)
			}
			if !strings.Contains(err.Error(), test.says) {
				t.Errorf("%q does not say %q", err, test.says)
			}
			if place := fmt.Sprintf("%s:%d: ", path, test.line); test.line > 0 && !strings.Contains(err.Error(), place) {
				t.Errorf("%q does not name the place %q", err, place)
			}
			if got.Mode != "" {
				t.Errorf("settings %+v came with the error", got)
			}
		})
	}
}

func TestLoadUnusableFiles(t *testing.T) {
	requireUnix(t)
	dir := t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }

	must(t, os.Mkdir(at("folder"), 0o700))
	must(t, os.Symlink(at("missing"), at("dangling")))
	must(t, os.WriteFile(at("writable"), nil, 0o600))
	must(t, os.Chmod(at("writable"), 0o666))
	must(t, os.WriteFile(at("large"), []byte(strings.Repeat("# filler\n", 1<<17)), 0o600))
	must(t, makeFIFO(at("fifo")))
	tests := map[string]string{
		"folder":   "not a regular file",
		"dangling": "symbolic link",
		"writable": "chmod o-w",
		"large":    "larger than",
		"fifo":     "not a regular file",
	}
	if os.Geteuid() != 0 { // root reads it all the same
		must(t, os.WriteFile(at("closed"), nil, 0))
		tests["closed"] = "cannot be opened"
	}
	for name, says := range tests {
		_, err := load(at(name))
		var mistake *Error
		if !errors.As(err, &mistake) || !strings.Contains(err.Error(), says) {
			t.Errorf("%s: got %v, want an *Error that says %q", name, err, says)
		}
	}
}

func TestLoadThroughLink(t *testing.T) {
	requireUnix(t)
	target := writeSettings(t, "sandbox_mode = \"workspace-write\"\n")
	link := filepath.Join(t.TempDir(), "config.toml")
	must(t, os.Symlink(target, link))
	got, err := load(link)
	if err != nil || got.Mode != sandbox.WorkspaceWrite {
		t.Errorf("got %+v, %v", got, err)
	}
}

func TestWholeFileSystemIsNoPath(t *testing.T) {
	requireUnix(t)
	for _, text := range []string{"/", "//", "/opt/..", "/\\u0000"} {
		if got, err := load(writeSettings(t, "bwrap_ro_roots = [\""+text+"\"]\n")); err == nil {
			t.Errorf("%q was accepted: %+v", text, got)
		}
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
