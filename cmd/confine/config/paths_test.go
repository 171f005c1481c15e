package config

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestFindPaths(t *testing.T) {
	requireUnix(t)
	temp := t.TempDir()
	for _, test := range []struct {
		name                string
		home, config, state string // of the environment
		want                Paths
	}{
		{"only home", "/h", "", "", Paths{"/h", "/h/.config/confine", "/h/.local/state/confine", "/etc/confine/managed.toml"}},
		{"all set", "/h", "/c", "/s", Paths{"/h", "/c/confine", "/s/confine", "/etc/confine/managed.toml"}},
		{"relative ones do not count", "/h", "c", "./s", Paths{"/h", "/h/.config/confine", "/h/.local/state/confine", "/etc/confine/managed.toml"}},
	} {
		t.Setenv("HOME", test.home)
		t.Setenv("XDG_CONFIG_HOME", test.config)
		t.Setenv("XDG_STATE_HOME", test.state)
		t.Setenv("TMPDIR", temp)
		if got := FindPaths(); got != test.want {
			t.Errorf("%s: got %+v, want %+v", test.name, got, test.want)
		}
	}
}

func TestFindPathsWithoutHome(t *testing.T) {
	requireUnix(t)
	temp := t.TempDir()
	t.Setenv("HOME", "")
	t.Setenv("XDG_CONFIG_HOME", "")
	t.Setenv("XDG_STATE_HOME", "")
	t.Setenv("TMPDIR", temp)
	got := FindPaths()
	if !filepath.IsAbs(got.StateDir) {
		t.Fatalf("state folder %q is not absolute", got.StateDir)
	}
	// The user database may still know a home folder; without one it is temporary.
	if got.Home == "" && filepath.Dir(got.StateDir) != temp {
		t.Errorf("state folder %q is not below %q", got.StateDir, temp)
	}
	if got.Home == "" && got.SettingsFile() != "" {
		t.Errorf("settings file %q without a home folder", got.SettingsFile())
	}
}

func TestEnsurePrivate(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "a", "b", "confine")
	for range 2 { // the second time it exists
		if err := EnsurePrivate(dir); err != nil {
			t.Fatal(err)
		}
	}
	requireUnix(t)
	for _, made := range []string{dir, filepath.Dir(dir)} {
		if info, err := os.Stat(made); err != nil || info.Mode().Perm() != 0o700 {
			t.Errorf("%s: %v, %v", made, info.Mode(), err)
		}
	}
}

func TestEnsurePrivateRefuses(t *testing.T) {
	requireUnix(t)
	dir := t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }
	must(t, os.Mkdir(at("real"), 0o700))
	must(t, os.Symlink(at("real"), at("link")))
	must(t, os.WriteFile(at("file"), nil, 0o600))
	must(t, os.Mkdir(at("open"), 0o700))
	must(t, os.Chmod(at("open"), 0o750))
	tests := map[string]string{
		"link":      "symbolic link",
		"file":      "not a folder",
		"open":      "0750",
		"file/deep": "creating",
	}
	if os.Geteuid() == 0 {
		must(t, os.Mkdir(at("foreign"), 0o700))
		must(t, os.Chown(at("foreign"), 65534, 65534))
		tests["foreign"] = "another user"
	}
	for name, says := range tests {
		if err := EnsurePrivate(at(name)); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%s: got %v, want an error that says %q", name, err, says)
		}
	}
}
