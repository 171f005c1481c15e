package main

import (
	"fmt"
	"path/filepath"

	"github.com/confine-dev/confine/cmd/confine/config"
	"github.com/confine-dev/confine/sandbox"
)

// hostHints says what the environment that confine was started with lacks, as that
// of an editor started from a desktop or by a service may, and what to do.
func hostHints(getenv func(string) string, paths config.Paths) []string {
	var hints []string
	hint := func(format string, args ...any) { hints = append(hints, fmt.Sprintf(format, args...)) }
	const remedy = "let whatever starts confine set it, as an editor that is started from a terminal does"
	switch {
	case getenv("HOME") != "" && filepath.IsAbs(getenv("HOME")):
	case paths.Home != "":
		hint("HOME is not set, or to no absolute path, and commands get no other; confine itself uses %s, from the user database; %s", paths.Home, remedy)
	default:
		hint("there is no home folder: HOME is not set to an absolute path, and the user database has none; confine reads no settings of yours unless XDG_CONFIG_HOME is set, and keeps its own files in %s; %s", paths.StateDir, remedy)
	}
	if getenv("PATH") == "" {
		hint("PATH is not set: commands find only what the shell looks for by itself; %s", remedy)
	}
	for _, name := range []string{"XDG_CONFIG_HOME", "XDG_STATE_HOME"} {
		if value := getenv(name); value != "" && !filepath.IsAbs(value) {
			hint("%s is %q, which is no absolute path and counts for nothing; correct or remove it", name, value)
		}
	}
	if outer := getenv(sandbox.MarkerSandbox); outer != "" {
		hint("confine itself runs in a sandbox of confine (%s=%s) and may be unable to confine anything; run it outside of that", sandbox.MarkerSandbox, outer)
	}
	return hints
}
