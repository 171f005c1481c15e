package sandbox

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"unicode/utf8"
)

// Grant is one file or folder that is opened to a command beyond its mode,
// resolved and pinned before anybody is asked about it.
type Grant struct {
	*Root // what is really opened

	// Missing is what does not exist below the folder that is opened in its
	// place: a relative path, empty if what was asked for exists.
	Missing string
}

// GrantKind says what a grant opens a file or folder for.
type GrantKind string

// The closed set of kinds.
const (
	GrantWrite GrantKind = "write" // changing it and, of a folder, everything in it
	GrantRead  GrantKind = "read"  // reading it although it is hidden
)

func (k GrantKind) doing() string {
	if k == GrantRead {
		return "reading"
	}
	return "writing"
}

// DeclareGrant resolves an absolute path and pins the file or folder there; for
// one that does not exist, and is to be written, the nearest folder above it
// that does. Nothing is opened in earnest, so FIFOs, devices and file systems of
// others are not disturbed. The caller closes the root.
//
// The error is a *RootError for what can never be granted one by one: the root
// of the file system, the home folder and what lies above it, what is confine's
// own, what is neither file nor folder, and the places that every command has
// of its own or in which services keep their sockets.
func DeclareGrant(path string, forbidden Forbidden, kind GrantKind) (*Grant, error) {
	refuse := func(reason string) (*Grant, error) { return nil, &RootError{Path: path, Reason: reason, Grant: kind} }
	switch {
	case !filepath.IsAbs(path):
		return refuse("it is not an absolute path")
	case len(path) > maxPath:
		return refuse(fmt.Sprintf("it is longer than %d bytes", maxPath))
	case strings.ContainsRune(path, 0):
		return refuse("it has a NUL byte")
	case unsayable(path):
		return refuse("it is not UTF-8, so that no message can name it" + toWide)
	}
	real, missing, err := settle(path)
	if err != nil {
		return nil, fmt.Errorf("resolving %q: %w", path, err)
	}
	if missing != "" && kind == GrantRead {
		return refuse("it does not exist")
	}
	root, err := pinGrant(real)
	if errors.Is(err, errSpecial) {
		return refuse(special)
	}
	if err != nil {
		return nil, fmt.Errorf("opening %q: %w", path, err)
	}
	reason := forbidden.grantReason(real, root.File)
	if missing != "" && root.File {
		reason = "there is a file where a folder should be"
	} else if missing != "" && reason != "" {
		reason = fmt.Sprintf("it does not exist, and of %q, where it would be made, %s", real, reason)
	}
	if reason != "" {
		_ = root.Close()
		return refuse(reason)
	}
	return &Grant{root, missing}, nil
}

// unsayable reports whether a path cannot be told apart from others in a message:
// JSON has one sign for all bytes that are not UTF-8.
func unsayable(path string) bool { return strings.ContainsRune(path, utf8.RuneError) }

// Reopen pins the same file or folder once more. The error says that its path
// leads to something else by now.
func (r *Root) Reopen() (*Root, error) {
	again, err := pinGrant(r.Path)
	if err != nil {
		return nil, fmt.Errorf("opening %q again: %w", r.Path, err)
	}
	if again.Dev != r.Dev || again.Ino != r.Ino || again.File != r.File {
		_ = again.Close()
		return nil, fmt.Errorf("%q is not what it was any more: something else is in its place", r.Path)
	}
	return again, nil
}

// errSpecial is returned by pinGrant for sockets, FIFOs and devices.
var errSpecial = errors.New(special)

const (
	special  = "it is neither a file nor a folder; only a wider mode reaches it"
	toWide   = "; only a wider mode can be asked for"
	maxParts = 1024 // of one path, links followed
)

// grantReason is empty if real may be granted.
func (f Forbidden) grantReason(real string, file bool) string {
	if reason := f.wide(real); reason != "" {
		return reason + toWide
	}
	if reason := f.own(real); reason != "" {
		return reason + toWide
	}
	if reason := emptied(real); reason != "" {
		return reason + toWide
	}
	for _, place := range servicePlaces() {
		if !file && Within(real, place) && projectPlace(real, place) == "" {
			return fmt.Sprintf("services keep their sockets in %q%s", place, toWide)
		}
	}
	if !file && projectPlace(real, "/") != "" {
		return services(real) // hidden until now, and a mount keeps nobody from connecting
	}
	return ""
}

// emptied says why a place can neither be a root nor granted, as a whole: commands
// have one of their own there, or see it empty.
func emptied(real string) string {
	for _, own := range ownPlaces {
		if Within(real, own) && !(Within(real, sharedMemory) && real != sharedMemory) {
			return "commands have a " + own + " of their own"
		}
	}
	for _, place := range servicePlaces() {
		if Within(place, real) {
			return fmt.Sprintf("services keep their sockets in %q, so that commands see it empty", place)
		}
	}
	return ""
}

// ownPlaces are file systems that a command has of its own, or that are the
// kernel's: a file in them is not what its path says.
var ownPlaces = []string{"/proc", "/dev", "/sys"}

const (
	tmpPlace     = "/tmp"
	sharedMemory = "/dev/shm"
)

// servicePlaces are folders that commands see empty, because services of the
// host keep their sockets there. A link is followed: its target is meant.
func servicePlaces() []string {
	places := []string{Canonical(tmpPlace), "/private/tmp", "/run", Canonical("/var/run")}
	if dir := os.Getenv("XDG_RUNTIME_DIR"); filepath.IsAbs(dir) {
		places = append(places, Canonical(dir))
	}
	return places
}

// projectPlace is the place within a folder in which a path lies and people have
// folders of their own, although commands see it empty: temporary files, files in
// memory, disks that were plugged in. It is empty if there is none.
func projectPlace(real, folder string) string {
	for _, place := range []string{Canonical(tmpPlace), sharedMemory, "/run/media"} {
		if Within(place, folder) && Within(real, place) && real != place {
			return place
		}
	}
	return ""
}

// maxSearched bounds how many files of a folder are looked at.
const maxSearched = 20000

// services says where in a folder of the hidden places there is something that
// somebody may listen at.
func services(folder string) (reason string) {
	searched := 0
	_ = filepath.WalkDir(folder, func(path string, d fs.DirEntry, err error) error {
		switch searched++; {
		case searched > maxSearched:
			reason = fmt.Sprintf("it holds more than %d files, too many to make sure that nobody listens in it", maxSearched)
		case err == nil && d.Type()&^(fs.ModeDir|fs.ModeSymlink) != 0:
			reason = fmt.Sprintf("%q in it is neither a file nor a folder", path)
		default:
			return nil // what cannot be listed, commands cannot either
		}
		return filepath.SkipAll
	})
	return reason
}

// settle follows an absolute path as the system does when it makes a file,
// through links that lead nowhere, too: real is what exists of it, missing the
// rest.
func settle(path string) (real, missing string, err error) {
	separator := string(filepath.Separator)
	real = filepath.VolumeName(path) + separator
	rest := strings.Split(path[len(filepath.VolumeName(path)):], separator)
	for parts, links := 0, 0; len(rest) > 0; {
		part := rest[0]
		rest = rest[1:]
		if parts++; parts > maxParts {
			return "", "", errors.New("it has too many parts")
		}
		switch part {
		case "", ".":
			continue
		case "..":
			real = filepath.Dir(real)
			continue
		}
		next := filepath.Join(real, part)
		info, err := os.Lstat(next)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			missing, err := plainRest(append([]string{part}, rest...))
			return real, missing, err
		case err != nil:
			return "", "", err
		case info.Mode()&fs.ModeSymlink == 0:
			if !info.IsDir() && len(rest) > 0 {
				return "", "", fmt.Errorf("%q is not a folder", next)
			}
			real = next
			continue
		}
		target, err := os.Readlink(next)
		if err != nil {
			return "", "", err
		}
		if links++; links > maxLinks {
			return "", "", errors.New("it leads through too many links")
		}
		if filepath.IsAbs(target) {
			real = filepath.VolumeName(target) + separator
			target = target[len(filepath.VolumeName(target)):]
		}
		rest = slices.Concat(strings.Split(target, separator), rest)
	}
	return real, "", nil
}

// plainRest joins names that do not exist. One that leads up again would be
// counted from a folder that is not there.
func plainRest(parts []string) (string, error) {
	if slices.Contains(parts, "..") {
		return "", errors.New(`it leads by ".." through a folder that does not exist`)
	}
	return filepath.Join(parts...), nil
}
