package sandbox

import (
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// Housekeeping tells the places in which programs write on their own account,
// whatever they were asked to do, and do without if they cannot: caches, histories
// and statistics. A refusal there is no reason to ask anybody for more.
type Housekeeping struct {
	Home   string // of the command; empty if it has none
	Cache  string // its XDG_CACHE_HOME; empty means .cache in its home
	Config string // its XDG_CONFIG_HOME; empty means .config in its home
}

// HousekeepingOf reads the environment of a command.
func HousekeepingOf(env []string) Housekeeping {
	var h Housekeeping
	for _, entry := range env {
		switch name, value, _ := strings.Cut(entry, "="); name {
		case "HOME":
			h.Home = value
		case "XDG_CACHE_HOME":
			h.Cache = value
		case "XDG_CONFIG_HOME":
			h.Config = value
		}
	}
	return h
}

// housekeeping are files and folders in a home folder.
var housekeeping = []string{
	".config/go/telemetry", ".config/procps",
	".npm/_logs", ".npm/_cacache", ".npm/_update-notifier-last-checked",
	".cargo/.package-cache", ".cargo/.package-cache-mutate", ".cargo/.global-cache",
	".bash_history", ".python_history", ".node_repl_history", ".sqlite_history", ".psql_history", ".lesshst", ".lesshsQ", ".wget-hsts", ".viminfo",
}

// shared are such places outside the home folder, which a sandbox without a view
// refuses: statistics of Java, what a core file is to hold, and the folder for
// sockets of GnuPG, which else makes them in its own.
var shared = regexp.MustCompile(`^(/tmp/hsperfdata_[^/]+(/\d+)?|/proc/(\d+|self)/coredump_filter|/run/user/\d+/gnupg)$`)

// owns reports whether a folder lies in the person's own, so that a program may
// make it on the way to something else.
func (h Housekeeping) owns(path string) bool {
	for _, own := range []string{h.Home, h.Config} {
		if own != "" && path != h.Home && Within(path, own) {
			return true
		}
	}
	return false
}

// isGitFolder goes by the name that metadata of a repository usually has, also
// where .git is a link to it.
func isGitFolder(name string) bool { return strings.HasSuffix(name, ".git") }

// Holds reports whether a path is such a place, or a folder that would first have
// to be made for one.
func (h Housekeeping) Holds(path string) bool {
	dir, base := filepath.Split(path)
	if base == "__pycache__" || filepath.Base(dir) == "__pycache__" || strings.HasSuffix(base, ".pyc") {
		return true // compiled modules beside their sources
	}
	if base == "index.lock" && slices.ContainsFunc(strings.Split(dir, "/"), isGitFolder) {
		return true // git notes what it found out of the work tree's files, if it can
	}
	if shared.MatchString(path) {
		return true
	}
	places := []string{"/var/cache/fontconfig", "/usr/lib/chromium/extensions"}
	if h.Cache != "" {
		places = append(places, h.Cache)
	}
	if h.Config != "" {
		places = append(places, filepath.Join(h.Config, "go", "telemetry"))
	}
	if h.Home != "" {
		places = append(places, filepath.Join(h.Home, ".cache"))
		for _, name := range housekeeping {
			places = append(places, filepath.Join(h.Home, name))
		}
	}
	return slices.ContainsFunc(places, func(place string) bool {
		return filepath.IsAbs(place) && (Within(path, place) || Within(place, path) && h.owns(path))
	})
}
