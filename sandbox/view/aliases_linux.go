package view

import (
	"math"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/confine-dev/confine/sandbox"
)

// mounted is one line of mountinfo (proc_pid_mountinfo(5)).
type mounted struct {
	device string // major:minor of the file system
	root   string // what of it is shown
	place  string // where
	kind   string // of file system
}

// mounts reads what is mounted here.
func mounts() ([]mounted, error) {
	list, err := listed("/proc/self/mountinfo", math.MaxInt)
	return parseMounts(string(list)), err
}

func parseMounts(table string) []mounted {
	var all []mounted
	for line := range strings.Lines(table) {
		fields := strings.Fields(line)
		if dash := slices.Index(fields, "-"); dash > 4 && dash+1 < len(fields) { // optional fields come before it
			all = append(all, mounted{fields[2], unescape(fields[3]), unescape(fields[4]), fields[dash+1]})
		}
	}
	return all
}

// unescape replaces \040 and the like, by which mountinfo writes blanks.
func unescape(s string) string {
	var b strings.Builder
	for {
		before, after, found := strings.Cut(s, `\`)
		b.WriteString(before)
		if !found {
			return b.String()
		}
		if len(after) >= 3 {
			if n, err := strconv.ParseUint(after[:3], 8, 8); err == nil {
				b.WriteByte(byte(n))
				s = after[3:]
				continue
			}
		}
		b.WriteByte('\\')
		s = after
	}
}

// withAliases adds the names that paths have by other mounts of their file
// systems. Those that would hide a root with what it lies in are left out.
func withAliases(paths []string, table []mounted, roots []*sandbox.Root) []string {
	all := slices.Clone(paths)
	for _, path := range paths {
		for _, alias := range aliases(path, table) {
			if !slices.ContainsFunc(roots, func(r *sandbox.Root) bool { return r.Path == alias }) {
				all = append(all, alias)
			}
		}
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// aliases are the other paths at which a file or folder, or part of it, may be
// seen. path is canonical.
func aliases(path string, table []mounted) []string {
	home := mountOf(path, table)
	inside := filepath.Join(home.root, strings.TrimPrefix(path, home.place)) // in the file system
	var found []string
	for _, m := range table {
		var alias string
		switch {
		case m.device != home.device || home.place == "":
			continue
		case sandbox.Within(inside, m.root):
			alias = filepath.Join(m.place, strings.TrimPrefix(inside, m.root))
		case sandbox.Within(m.root, inside):
			alias = m.place
		}
		if alias != "" && !sandbox.Within(alias, path) && !sandbox.Within(path, alias) {
			found = append(found, alias)
		}
	}
	return found
}

// mountOf is the mount in which a canonical path lies.
func mountOf(path string, table []mounted) (home mounted) {
	for _, m := range table { // later ones lie over earlier ones
		if len(m.place) >= len(home.place) && sandbox.Within(path, m.place) {
			home = m
		}
	}
	return home
}
