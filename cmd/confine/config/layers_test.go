package config

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// TestManagedFile: only its owner may have written it, and its folder; otherwise
// nothing runs at all.
func TestManagedFile(t *testing.T) {
	requireUnix(t)
	w := newPlace(t)
	open := func(owner int) error {
		s, err := openFor(Options{Paths: Paths{ConfigDir: w.user, ManagedFile: w.managed}, Getenv: func(string) string { return "" }}, owner)
		if err == nil {
			s.Close()
		}
		return err
	}
	us := os.Geteuid()
	if err := open(us + 1); err != nil {
		t.Errorf("without one: %v", err)
	}
	must(t, os.WriteFile(w.managed, []byte("sandbox_mode = \"read-only\"\n"), 0o644))
	folder := filepath.Dir(w.managed)
	for _, test := range []struct {
		name         string
		owner        int
		file, folder os.FileMode
		says         string
	}{
		{"well", us, 0o644, 0o755, ""},
		{"somebody else's", us + 1, 0o644, 0o755, "belongs to user"},
		{"writable for a group", us, 0o664, 0o755, "chmod go-w"},
		{"writable for all", us, 0o646, 0o755, "chmod o-w"},
		{"in a folder for all", us, 0o644, 0o777, "of its folder"},
	} {
		must(t, os.Chmod(w.managed, test.file))
		must(t, os.Chmod(folder, test.folder))
		err := open(test.owner)
		var mistake *Error
		if test.says == "" && err != nil || test.says != "" && (!errors.As(err, &mistake) || mistake.Path != w.managed || !strings.Contains(mistake.Reason, test.says)) {
			t.Errorf("%s: %v, want one that says %q", test.name, err, test.says)
		}
	}
	must(t, os.Chmod(folder, 0o755))
	must(t, os.WriteFile(w.managed, []byte("sandbox_mode = 1\n"), 0o644))
	must(t, os.Chmod(w.managed, 0o644))
	if err := open(us); err == nil || !strings.Contains(err.Error(), w.managed+":1: ") {
		t.Errorf("a mistake in it: %v", err)
	}
}

// TestEnvironment: an empty or blank variable is none, and a mistake is an error.
// TestVariables: no other variable than these is looked at.
func TestVariables(t *testing.T) {
	var asked []string
	if _, err := parseEnvironment(func(name string) string { asked = append(asked, name); return "" }); err != nil {
		t.Fatal(err)
	}
	want := []string{"CONFINE_NO_NEW_PRIVS", "CONFINE_SANDBOX_API_KEY", "CONFINE_SANDBOX_BACKEND", "CONFINE_SANDBOX_MODE", "CONFINE_SANDBOX_URL"}
	if slices.Sort(asked); !slices.Equal(asked, want) {
		t.Errorf("looked at %q, want %q", asked, want)
	}
}

func TestEnvironment(t *testing.T) {
	read := func(name, value string) (*Snapshot, error) {
		s, err := openFor(Options{Paths: Paths{StateDir: t.TempDir()}, Getenv: func(n string) string {
			if n == name {
				return value
			}
			return ""
		}}, 0)
		if err != nil {
			return nil, err
		}
		defer s.Close()
		return s.Base(), nil
	}
	for _, key := range []string{"CONFINE_SANDBOX_MODE", "CONFINE_SANDBOX_BACKEND", "CONFINE_SANDBOX_URL", "CONFINE_SANDBOX_API_KEY", "CONFINE_NO_NEW_PRIVS"} {
		for _, blank := range []string{"", " ", "\t"} {
			s, err := read(key, blank)
			must(t, err)
			for _, v := range s.Values {
				if v.Origin != "default" {
					t.Errorf("%s=%q set %s", key, blank, v.Key)
				}
			}
		}
	}
	for key, bad := range map[string]string{"CONFINE_SANDBOX_MODE": "Read-Only", "CONFINE_SANDBOX_BACKEND": "opensandbx", "CONFINE_SANDBOX_URL": "localhost"} {
		if _, err := read(key, bad); err == nil || !strings.Contains(err.Error(), "environment variable "+key) {
			t.Errorf("%s=%s: %v", key, bad, err)
		}
	}
	for value, want := range map[string]bool{"0": false, "OFF": false, "no": false, "1": true, "yes": true, "false-ish": true} {
		s, err := read("CONFINE_NO_NEW_PRIVS", value)
		must(t, err)
		if got := s.Settings.NoNewPrivs; got == nil || *got != want {
			t.Errorf("CONFINE_NO_NEW_PRIVS=%s: got %v, want %v", value, got, want)
		}
	}
	s, err := read("CONFINE_SANDBOX_API_KEY", "s3cret")
	must(t, err)
	for _, v := range s.Values {
		if v.Value == "s3cret" {
			t.Errorf("%s shows the key", v.Key)
		}
	}
	if s.Settings.Remote.APIKey != "s3cret" {
		t.Error("the key is lost")
	}
}

// TestSeveralWorkspaces tighten together.
func TestSeveralWorkspaces(t *testing.T) {
	s, err := openFor(Options{Paths: Paths{StateDir: t.TempDir()}, Getenv: func(string) string { return "" }, Named: map[string]any{"network_access": true}}, 0)
	must(t, err)
	defer s.Close()
	c := s.Connect(func() {})
	defer c.Close()
	var folders []string
	for _, text := range []string{"limits.processes = 50\n", "limits.processes = 70\nnetwork_access = false\n"} {
		folder := t.TempDir()
		must(t, os.Mkdir(filepath.Join(folder, ".confine"), 0o700))
		must(t, os.WriteFile(filepath.Join(folder, ".confine", "config.toml"), []byte(text), 0o600))
		folders = append(folders, folder)
	}
	for range 2 { // in either order
		c.SetFolders(folders)
		if got := c.Current().Settings; got.Network || got.Limits.Processes != 50 {
			t.Errorf("got %+v", got)
		}
		folders[0], folders[1] = folders[1], folders[0]
	}
	c.SetFolders(folders[:1])
	if got := c.Current().Settings; got.Limits.Processes != 50 || !got.Network {
		t.Errorf("one was closed: %+v", got)
	}
}
