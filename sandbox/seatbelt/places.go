package seatbelt

import (
	"path"
	"slices"
	"strings"

	"github.com/confine-dev/confine/sandbox"
)

// place is a file or folder and what holds for all in it, unless a place inside
// says otherwise.
type place struct {
	path string
	open bool
	file bool // that was granted by itself
}

func openRoot(r *sandbox.Root) place { return place{canonical(r.Path), true, r.File} }

// inward sorts places so that the last of those around a path is the innermost; of
// equal ones the later.
func inward(places []place) []place {
	slices.SortStableFunc(places, func(a, b place) int { return len(a.path) - len(b.path) })
	return places
}

// reading lists what can be read, where everything else can.
func reading(p sandbox.Policy, s Session) (places []place) {
	for _, root := range slices.Concat(p.Roots, p.Writable) {
		places = append(places, openRoot(root))
	}
	return narrowed(places, slices.Concat(s.State, p.Unreadable), p.Readable, s.Own)
}

// writing lists what can be written, where nothing else can.
func writing(p sandbox.Policy, s Session) (places []place) {
	if p.Mode == sandbox.WorkspaceWrite {
		for _, root := range p.Roots {
			places = append(places, openRoot(root))
		}
	}
	return narrowed(places, slices.Concat(s.State, p.Unreadable, p.Protected), p.Writable, s.Own)
}

// narrowed adds what is closed, and what is open in it all the same.
func narrowed(places []place, closed []string, granted []*sandbox.Root, own []string) []place {
	for _, path := range closed {
		places = append(places, place{path: canonical(path)})
	}
	for _, root := range granted {
		places = append(places, openRoot(root))
	}
	for _, path := range own {
		places = append(places, place{path: canonical(path), open: true})
	}
	return inward(places)
}

// fixed lists folders that must not be moved: what is open is found by its name, and
// what is closed would be open under another. A file can be replaced. places are those
// of writing.
func fixed(places []place) (paths []string) {
	for _, p := range places {
		outermost := ""
		for _, around := range places { // shortest first
			if around.open && within(p.path, around.path) {
				outermost = around.path
				break
			}
		}
		switch {
		case outermost == "":
		case p.open && !p.file && outermost == p.path:
			paths = append(paths, p.path)
		case !p.open:
			for folder := path.Dir(p.path); len(folder) >= len(outermost); folder = path.Dir(folder) {
				paths = append(paths, folder)
			}
		}
	}
	slices.Sort(paths)
	return slices.Compact(paths)
}

// passages lists the folders on the way to what can be read inside what cannot:
// programs look at each before they open what is in it.
func passages(places []place) (paths []string) {
	for _, inner := range places {
		if !inner.open {
			continue
		}
		for _, outer := range places {
			if outer.open || !within(inner.path, outer.path) {
				continue
			}
			for folder := path.Dir(inner.path); len(folder) >= len(outer.path); folder = path.Dir(folder) {
				paths = append(paths, folder)
			}
		}
	}
	slices.Sort(paths)
	return slices.Compact(paths)
}

// canonical is the name under which the system hands a path to its rules: through
// the links at the top of the file system, and without the volume behind it. It
// does not look at the file system.
func canonical(name string) string {
	name = path.Clean(name)
	if rest, ok := strings.CutPrefix(name, dataVolume); ok && firmlinked(rest) {
		name = rest
	}
	for _, link := range []string{"/tmp", "/var", "/etc"} {
		if within(name, link) {
			return "/private" + name
		}
	}
	return name
}

// spellings are the names of something that must stay closed, under whichever of
// them it is asked for.
func spellings(name string) []string {
	name = canonical(name)
	if firmlinked(name) {
		return []string{name, dataVolume + name}
	}
	return []string{name}
}

// dataVolume is where everything lies that is not the system's own. Folders of it
// stand at the top of the file system as if they were there.
const dataVolume = "/System/Volumes/Data"

func firmlinked(name string) bool {
	return slices.ContainsFunc([]string{"/Users", "/Applications", "/Library", "/Volumes", "/cores", "/opt", "/private", "/usr/local", "/home", "/mnt"},
		func(top string) bool { return within(name, top) })
}

// within is sandbox.Within for the paths of macOS, whatever this system's are like.
func within(name, folder string) bool {
	return name == folder || folder == "/" || strings.HasPrefix(name, folder+"/")
}

// folded is a regular expression for an absolute path and all in it, in which the
// letters of its last name are of either case: most volumes do not tell them apart,
// and what does not exist yet is known by the name that it is given.
func folded(name string) (expression string, ok bool) {
	var b strings.Builder
	b.WriteByte('^')
	for i := range len(name) {
		c := name[i]
		letter := c|0x20 >= 'a' && c|0x20 <= 'z'
		switch {
		case c < ' ' || c > '~':
			return "", false
		case letter && i > strings.LastIndexByte(name, '/'):
			b.WriteString("[" + strings.ToLower(string(c)) + strings.ToUpper(string(c)) + "]")
		case letter, c >= '0' && c <= '9', strings.IndexByte("/-_ ", c) >= 0:
			b.WriteByte(c)
		default:
			b.WriteString(`\` + string(c))
		}
	}
	b.WriteString("(/|$)")
	return b.String(), true
}
