// Package mounts reads Linux's table of mounts and finds the names that a file has
// by several of them. It mounts nothing.
package mounts

import (
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/confine-dev/confine/sandbox"
)

// File is the table of the calling process.
const File = "/proc/self/mountinfo"

// Mount is one line of the table (proc_pid_mountinfo(5)).
type Mount struct {
	Device string // major:minor of the file system
	Root   string // what of it is shown
	Place  string // where
	Kind   string // of file system
}

// Table lists mounts in the order in which they were made.
type Table []Mount

// Parse reads the text of a table. What it does not understand it leaves out.
func Parse(table string) Table {
	var all Table
	for line := range strings.Lines(table) {
		fields := strings.Fields(line)
		if dash := slices.Index(fields, "-"); dash > 4 && dash+1 < len(fields) { // optional fields come before it
			all = append(all, Mount{fields[2], unescape(fields[3]), unescape(fields[4]), fields[dash+1]})
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

// Aliases are the other paths at which a file or folder, or part of it, may be
// seen. path is canonical.
func (t Table) Aliases(path string) []string {
	home := t.Of(path)
	inside := filepath.Join(home.Root, strings.TrimPrefix(path, home.Place)) // in the file system
	var found []string
	for _, m := range t {
		var alias string
		switch {
		case m.Device != home.Device || home.Place == "":
			continue
		case sandbox.Within(inside, m.Root):
			alias = filepath.Join(m.Place, strings.TrimPrefix(inside, m.Root))
		case sandbox.Within(m.Root, inside):
			alias = m.Place
		}
		if alias != "" && !sandbox.Within(alias, path) && !sandbox.Within(path, alias) {
			found = append(found, alias)
		}
	}
	return found
}

// Of is the mount in which a canonical path lies.
func (t Table) Of(path string) (home Mount) {
	for _, m := range t { // later ones lie over earlier ones
		if len(m.Place) >= len(home.Place) && sandbox.Within(path, m.Place) {
			home = m
		}
	}
	return home
}
