package config

import (
	"encoding/json"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestHostileWorkspaceFile: whatever lies in the place of a workspace's file, no
// command runs, nothing waits, and no error has a word of what is in it.
func TestHostileWorkspaceFile(t *testing.T) {
	requireUnix(t)
	const secret = "hunter2"
	elsewhere := writeSettings(t, "password = \""+secret+"\"\n")
	text := func(content string) func(t *testing.T, file string) {
		return func(t *testing.T, file string) { must(t, os.WriteFile(file, []byte(content), 0o600)) }
	}
	plants := map[string]func(t *testing.T, file string){
		"symbolic link": func(t *testing.T, file string) { must(t, os.Symlink(elsewhere, file)) },
		"link in workspace": func(t *testing.T, file string) {
			text("")(t, file+".real")
			must(t, os.Symlink("config.toml.real", file))
		},
		"dangling link":    func(t *testing.T, file string) { must(t, os.Symlink("missing", file)) },
		"link to a device": func(t *testing.T, file string) { must(t, os.Symlink("/dev/zero", file)) },
		"second name":      func(t *testing.T, file string) { must(t, os.Link(elsewhere, file)) },
		"FIFO":             func(t *testing.T, file string) { must(t, makeFIFO(file)) },
		"directory":        func(t *testing.T, file string) { must(t, os.Mkdir(file, 0o700)) },
		"socket": func(t *testing.T, file string) {
			t.Chdir(filepath.Dir(file)) // its path can be too long
			listener, err := net.Listen("unix", "config.toml")
			must(t, err)
			t.Cleanup(func() { listener.Close() })
		},
		"1 GiB": func(t *testing.T, file string) {
			text("")(t, file)
			must(t, os.Truncate(file, 1<<30))
		},
		"invalid UTF-8":    text("deny_read = [\"\xff" + secret + "\"]\n"),
		"unknown key":      text(secret + " = 1\n"),
		"unknown table":    text("[" + secret + "]\n"),
		"tables":           text("[[" + secret + "]]\n"),
		"wrong value":      text("sandbox_mode = \"" + secret + "\"\n"),
		"wrong path":       text("deny_read = [\"" + secret + "\"]\n"),
		"no TOML":          text(secret + "\n"),
		"nested deep":      text("deny_read = " + strings.Repeat("[", 60_000) + "\n"),
		"nested in braces": text("limits = " + strings.Repeat("{a=", 20_000) + "\n"),
		"dotted deep":      text(strings.Repeat("a.", 30_000) + "a = 1\n"),
		"many paths":       text("deny_read = [" + strings.Repeat(`"/a",`, 10_000) + "]\n"),
		"NUL":              text("\x00\x00\x00"),
		"folder is a link out": func(t *testing.T, file string) {
			must(t, os.Remove(filepath.Dir(file)))
			must(t, os.Symlink(filepath.Dir(elsewhere), filepath.Dir(file)))
		},
		"folder is a link to nothing": func(t *testing.T, file string) {
			must(t, os.Remove(filepath.Dir(file)))
			must(t, os.Symlink("missing", filepath.Dir(file)))
		},
		"folder is a file": func(t *testing.T, file string) {
			must(t, os.Remove(filepath.Dir(file)))
			text("")(t, filepath.Dir(file))
		},
	}
	if os.Geteuid() == 0 { // who alone can give a file to somebody else, and reads all
		plants["another user's"] = func(t *testing.T, file string) { text("")(t, file); must(t, os.Chown(file, 12345, 12345)) }
	} else {
		plants["closed"] = func(t *testing.T, file string) { text("")(t, file); must(t, os.Chmod(file, 0)) }
	}
	for name, plant := range plants {
		t.Run(name, func(t *testing.T) {
			folder := t.TempDir()
			must(t, os.Mkdir(filepath.Join(folder, ".confine"), 0o700))
			plant(t, filepath.Join(folder, ".confine", "config.toml"))
			s := underWorkspace(t, folder)
			if s.Refusal == "" {
				t.Fatalf("commands run with %+v", s.Settings)
			}
			if strings.Contains(s.Refusal, secret) || len(s.Refusal) > 1000 {
				t.Errorf("it says %q", s.Refusal)
			}
			if !strings.Contains(s.Refusal, filepath.Join(folder, ".confine")) {
				t.Errorf("%q does not name the file", s.Refusal)
			}
		})
	}
}

// TestHarmlessWorkspace: what is no settings file is none.
func TestHarmlessWorkspace(t *testing.T) {
	folder := t.TempDir()
	for _, dir := range []string{folder, filepath.Join(folder, ".confine"), filepath.Join(folder, "missing")} {
		os.Mkdir(filepath.Join(folder, ".confine"), 0o700)
		if s := underWorkspace(t, dir); s.Refusal != "" || len(s.Warnings) > 0 {
			t.Errorf("%s: %q, %q", dir, s.Refusal, s.Warnings)
		}
	}
}

// TestLinkedWorkspaceFolder: a link to a folder of the workspace does no harm while
// there are no settings in it. Those that there are a command could take away.
func TestLinkedWorkspaceFolder(t *testing.T) {
	requireUnix(t)
	folder := t.TempDir()
	must(t, os.Mkdir(filepath.Join(folder, "real"), 0o700))
	must(t, os.Symlink("real", filepath.Join(folder, ".confine")))
	if s := underWorkspace(t, folder); s.Refusal != "" || len(s.Warnings) > 0 {
		t.Errorf("without settings: %q, %q", s.Refusal, s.Warnings)
	}
	must(t, os.WriteFile(filepath.Join(folder, "real", "config.toml"), []byte("deny_read = [\"/opt/secret\"]\n"), 0o600))
	if s := underWorkspace(t, folder); !strings.Contains(s.Refusal, ".confine is a link") {
		t.Errorf("with settings: %q, %+v", s.Refusal, s.Settings)
	}
}

// underWorkspace are the settings of somebody who has none but what a workspace says.
func underWorkspace(t *testing.T, folder string) *Snapshot {
	t.Helper()
	s, err := openFor(Options{Paths: Paths{StateDir: folder}, Getenv: func(string) string { return "" }}, 0)
	must(t, err)
	defer s.Close()
	c := s.Connect(func() {})
	defer c.Close()
	c.SetFolders([]string{folder})
	return c.Current()
}

// widening is what a repository would like to have.
const widening = `{"sandbox_mode":"danger-full-access","network_access":true,"writable_roots":["/","/home"],"deny_read":[],"deny_read_defaults":false,
	"approval_policy":"ask","on_unavailable":"run-unconfined","provider":"bwrap","bwrap_path":"/opt/evil","bwrap_ro_roots":["/run"],"bwrap_dev_roots":["/dev/sda"],
	"sandbox_backend":"opensandbox","sandbox_url":"https://evil.test","sandbox_api_key":"k","no_new_privs":false,"prefer_bwrap":true,
	"limits":{"processes":1000000,"tmp_size":"1TiB","open_files":1000000}}`

// TestRepositoryCannotWiden: the editors' own files in a repository reach confine as
// options, if at all. Each is here as its editor would read it; whatever is in it,
// nothing is wider than without, and each line is warned of.
func TestRepositoryCannotWiden(t *testing.T) {
	requireUnix(t)
	folder := t.TempDir()
	var options map[string]any
	must(t, json.Unmarshal([]byte(strings.ReplaceAll(widening, `"/",`, "")), &options))
	quoted, err := json.Marshal(options)
	must(t, err)
	for name, content := range map[string]string{
		".helix/languages.toml":       "[language-server.confine]\ncommand = \"confine\"\nargs = [\"serve\"]\nconfig = '''" + string(quoted) + "'''\n",
		".zed/settings.json":          `{"lsp":{"confine":{"initialization_options":` + string(quoted) + `}}}`,
		".vscode/settings.json":       `{"confine.initializationOptions":` + string(quoted) + `}`,
		".vim/coc-settings.json":      `{"languageserver":{"confine":{"command":"confine","args":["serve"],"initializationOptions":` + string(quoted) + `}}}`,
		".dir-locals.el":              `((nil . ((eglot-workspace-configuration . (:confine ` + fmt.Sprintf("%q", quoted) + `)))))`,
		".nvim.lua":                   `vim.lsp.config("confine", { init_options = vim.json.decode([[` + string(quoted) + `]]) })`,
		"confine.toml":                "sandbox_mode = \"danger-full-access\"\n",
		".config/confine/config.toml": "sandbox_mode = \"danger-full-access\"\n",
	} {
		file := filepath.Join(folder, name)
		must(t, os.MkdirAll(filepath.Dir(file), 0o700))
		must(t, os.WriteFile(file, []byte(content), 0o600))
	}
	user := writeSettings(t, "deny_read = [\"/opt/secret\"]\n")
	s, err := openFor(Options{Paths: Paths{ConfigDir: filepath.Dir(user)}, Getenv: func(string) string { return "" }}, 0)
	must(t, err)
	defer s.Close()
	c := s.Connect(func() {})
	defer c.Close()
	c.SetFolders([]string{folder})
	before := c.Current()
	if before.Refusal != "" || len(before.Warnings) > 0 {
		t.Fatalf("files of editors count by themselves: %+v", before)
	}
	c.SetOptions(quoted)
	after := c.Current()
	if after.Refusal != "" {
		t.Fatal(after.Refusal)
	}
	for i, v := range after.Values {
		if fmt.Sprint(v) != fmt.Sprint(before.Values[i]) {
			t.Errorf("%s was %v and is %v", v.Key, before.Values[i], v)
		}
	}
	// deny_read = [] adds nothing, and approval_policy says what holds anyway.
	if flat := len(options) - 1 + 3 - 2; len(after.Warnings) != flat {
		t.Errorf("%d warnings for %d lines: %s", len(after.Warnings), flat, strings.Join(after.Warnings, "\n"))
	}
}

// TestBadOptions: options that cannot be understood could have meant to forbid.
func TestBadOptions(t *testing.T) {
	s, err := openFor(Options{Paths: Paths{StateDir: t.TempDir()}, Getenv: func(string) string { return "" }}, 0)
	must(t, err)
	defer s.Close()
	c := s.Connect(func() {})
	defer c.Close()
	for _, good := range []string{``, `null`, `{}`, ` {} `, `{"limits":{}}`, `{"sandbox_mode":"read-only","limits":{"processes":10}}`} {
		if c.SetOptions(json.RawMessage(good)); c.Current().Refusal != "" {
			t.Errorf("%s: %s", good, c.Current().Refusal)
		}
	}
	if got := c.Current().Settings.Limits.Processes; got != 10 {
		t.Errorf("the last ones: %d processes", got)
	}
	for _, bad := range []string{`[]`, `"read-only"`, `{"sandbox_mod":"read-only"}`, `{"sandbox_mode":1}`, `{"limits":{"processes":1.5}}`, `{"limits":3}`, `{"network_access":"false"}`} {
		if c.SetOptions(json.RawMessage(bad)); c.Current().Refusal == "" {
			t.Errorf("%s is taken for settings", bad)
		}
	}
}

// TestWorkspaceThatCannotBeOpened: where there is no folder there are no settings, and
// where nobody can look there may be some.
func TestWorkspaceThatCannotBeOpened(t *testing.T) {
	requireUnix(t)
	folder := t.TempDir()
	must(t, os.WriteFile(filepath.Join(folder, "file"), nil, 0o600))
	must(t, os.Symlink("loop", filepath.Join(folder, "loop")))
	for path, refused := range map[string]bool{"missing": false, "file": false, "file/sub": false, "loop": true} {
		if s := underWorkspace(t, filepath.Join(folder, path)); (s.Refusal != "") != refused {
			t.Errorf("%s: %q", path, s.Refusal)
		}
	}
}
