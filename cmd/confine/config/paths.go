package config

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/user"
	"path/filepath"
	"runtime"
	"strconv"
)

// Paths are the places that confine reads from and writes to. All are absolute.
type Paths struct {
	Home      string // the person's home folder; empty if there is none
	ConfigDir string // empty if there is no home folder and XDG_CONFIG_HOME is not set
	StateDir  string // see EnsurePrivate

	// ManagedFile is the settings file of whoever administers the machine; empty
	// where there is no place for one.
	ManagedFile string
}

// SettingsFile is the person's settings file; empty without a ConfigDir.
func (p Paths) SettingsFile() string {
	if p.ConfigDir == "" {
		return ""
	}
	return filepath.Join(p.ConfigDir, "config.toml")
}

// FindPaths follows XDG_CONFIG_HOME and XDG_STATE_HOME, which count only if
// they are absolute, and the home folder. Without a home folder the state lies
// in the system's folder for temporary files. Nothing is created.
func FindPaths() Paths {
	home := homeDir()
	paths := Paths{
		Home:      home,
		ConfigDir: baseDir("XDG_CONFIG_HOME", home, ".config"),
		StateDir:  baseDir("XDG_STATE_HOME", home, ".local/state"),
	}
	if runtime.GOOS != "windows" {
		paths.ManagedFile = "/etc/confine/managed.toml"
	}
	if paths.StateDir == "" {
		// The name is guessable, so EnsurePrivate refuses one that is not ours.
		paths.StateDir = filepath.Join(os.TempDir(), "confine-"+strconv.Itoa(os.Geteuid()))
	}
	return paths
}

func baseDir(variable, home, below string) string {
	if dir := os.Getenv(variable); filepath.IsAbs(dir) {
		return filepath.Join(dir, "confine")
	}
	if home == "" {
		return ""
	}
	return filepath.Join(home, filepath.FromSlash(below), "confine")
}

func homeDir() string {
	if home, err := os.UserHomeDir(); err == nil && filepath.IsAbs(home) {
		return filepath.Clean(home)
	}
	if me, err := user.Current(); err == nil && filepath.IsAbs(me.HomeDir) && me.HomeDir != "/" {
		return filepath.Clean(me.HomeDir)
	}
	return ""
}

// EnsurePrivate creates a folder that only its owner may enter, with its
// parents, or checks an existing one: it must be a real folder of ours with
// no access for anybody else. Nothing is repaired, because whoever made it
// otherwise may have put something into it.
func EnsurePrivate(dir string) error {
	if err := os.MkdirAll(filepath.Dir(dir), 0o700); err != nil {
		return fmt.Errorf("creating %s: %w", filepath.Dir(dir), err)
	}
	if err := os.Mkdir(dir, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return fmt.Errorf("creating %s: %w", dir, err)
	}
	info, err := os.Lstat(dir)
	if err != nil {
		return fmt.Errorf("checking %s: %w", dir, err)
	}
	if reason := notPrivate(info); reason != "" {
		return fmt.Errorf("using %s for confine's own files: %s", dir, reason)
	}
	return nil
}

// notPrivate says what is wrong with the folder; empty if nothing is.
func notPrivate(info fs.FileInfo) string {
	switch {
	case info.Mode()&fs.ModeSymlink != 0:
		return "it is a symbolic link"
	case !info.IsDir():
		return "it is not a folder"
	case foreign(info):
		return "it belongs to another user"
	case readableByOthers(info):
		return fmt.Sprintf("its mode %#o lets other users in, 0700 does not", info.Mode().Perm())
	}
	return ""
}
