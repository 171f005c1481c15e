package bwrap

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// places are where systems install bubblewrap. PATH is not asked: a workspace
// can be on it.
var places = []string{"/usr/bin/bwrap", "/bin/bwrap", "/usr/local/bin/bwrap", "/run/current-system/sw/bin/bwrap", "/run/wrappers/bin/bwrap"}

// program is a bubblewrap that may be executed.
type program struct {
	path    string
	file    *os.File // opened with O_PATH
	setuid  bool
	id      identity
	version version
}

// identity tells whether a file is still the same.
type identity struct {
	dev, ino  uint64
	size      int64
	modified  int64
	mode, uid uint32
}

func identityOf(st *unix.Stat_t) identity {
	return identity{uint64(st.Dev), st.Ino, st.Size, st.Mtim.Nano(), st.Mode, st.Uid}
}

// fault says why there is no usable bubblewrap, and what to do.
type fault struct {
	reason   string
	remedies []string // none if it is looking for one that failed
}

func (f *fault) Error() string { return f.reason }

// find opens the bubblewrap at a configured path or, for none, the first that is
// usable among the known places. Every error is a *fault.
func find(configured string, places []string) (*program, error) {
	if configured != "" {
		p, err := open(configured)
		if errors.Is(err, fs.ErrNotExist) {
			return nil, &fault{fmt.Sprintf("bwrap_path names %q, which does not exist", configured),
				[]string{"correct bwrap_path in the settings, or remove it to use the system's bubblewrap"}}
		}
		return p, asFault(configured, err)
	}
	var first error
	for _, path := range places {
		p, err := open(path)
		if err == nil {
			return p, nil
		}
		if first == nil && !errors.Is(err, fs.ErrNotExist) {
			first = asFault(path, err)
		}
	}
	if first != nil {
		return nil, first
	}
	return nil, &fault{"bubblewrap is not installed: there is none of " + strings.Join(places, ", "),
		[]string{"install it: apt install bubblewrap, dnf install bubblewrap or pacman -S bubblewrap",
			"if it is elsewhere, set bwrap_path to its absolute path"}}
}

// asFault keeps a fault as it is.
func asFault(path string, err error) error {
	var f *fault
	if err == nil || errors.As(err, &f) {
		return err
	}
	return &fault{reason: fmt.Sprintf("looking for bubblewrap at %q: %v", path, err)}
}

// open opens a program that nobody but root and us can have put there.
func open(path string) (*program, error) {
	real, err := follow(path)
	if err != nil {
		return nil, err
	}
	fd, err := unix.Open(real, unix.O_PATH|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, &fault{reason: fmt.Sprintf("opening %q: %v", path, err)}
	}
	p := &program{path: real, file: os.NewFile(uintptr(fd), real)}
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		p.file.Close()
		return nil, &fault{reason: fmt.Sprintf("looking at %q: %v", path, err)}
	}
	p.id, p.setuid = identityOf(&st), st.Mode&unix.S_ISUID != 0
	f := unfit(path, &st)
	if f == nil && script(real) {
		// It is executed by its descriptor, which the interpreter would not get.
		f = &fault{fmt.Sprintf("%q cannot be used as bubblewrap: it is a script", path), []string{"set bwrap_path to the program that it starts"}}
	}
	if f != nil {
		p.file.Close()
		return nil, f
	}
	return p, nil
}

// script reports whether a file is run by an interpreter. One that may not be read
// is taken for a program.
func script(path string) bool {
	file, err := os.Open(path)
	if err != nil {
		return false
	}
	defer file.Close()
	magic := make([]byte, 2)
	n, _ := io.ReadFull(file, magic)
	return string(magic[:n]) == "#!"
}

// unfit says what is wrong with a file as a program that makes sandboxes.
func unfit(path string, st *unix.Stat_t) *fault {
	refuse := func(what, remedy string) *fault {
		return &fault{fmt.Sprintf("%q cannot be used as bubblewrap: %s", path, what),
			[]string{remedy, "or set bwrap_path to another bubblewrap"}}
	}
	switch mode := st.Mode; {
	case mode&unix.S_IFMT != unix.S_IFREG:
		return refuse("it is not a regular file", "install bubblewrap there")
	case st.Uid != 0 && int(st.Uid) != os.Geteuid():
		return refuse(fmt.Sprintf("it belongs to another user (%d), who could change it", st.Uid), "give it to root")
	case writable(mode, st.Gid):
		return refuse(fmt.Sprintf("its mode %#o lets other users change it", mode&0o7777), "take that away: chmod go-w")
	case mode&0o111 == 0 || unix.Access(path, unix.X_OK) != nil:
		return refuse("it is not executable", "run chmod +x on it")
	case mode&unix.S_ISUID != 0 && os.Geteuid() != 0:
		// It would make the sandbox with root's rights, refuse options that
		// confine needs, and under no_new_privs the bit means nothing.
		return refuse("it is installed setuid root, which confine does not use", "allow unprivileged user namespaces and run chmod u-s on it")
	}
	return nil
}

// writable reports whether somebody besides its owner and root's group can write.
func writable(mode, gid uint32) bool { return mode&0o002 != 0 || mode&0o020 != 0 && gid != 0 }

// maxLinks is how many symbolic links a path may lead through, as for the kernel.
const maxLinks = 40

// follow returns what a path leads to, if nobody but root and us could make it
// lead elsewhere: every folder and link on the way is looked at.
func follow(path string) (string, error) {
	if !filepath.IsAbs(path) {
		return "", &fault{fmt.Sprintf("%q is not an absolute path", path), []string{"set bwrap_path to an absolute path"}}
	}
	at, rest := "/", strings.Split(filepath.Clean(path), "/")
	for links := 0; len(rest) > 0; {
		name := rest[0]
		rest = rest[1:]
		switch name {
		case "", ".":
			continue
		case "..":
			at = filepath.Dir(at)
			continue
		}
		next := filepath.Join(at, name)
		info, err := os.Lstat(next)
		if err != nil {
			return "", err
		}
		if err := trusted(path, at, info); err != nil {
			return "", err
		}
		if info.Mode()&fs.ModeSymlink == 0 {
			at = next
			continue
		}
		target, err := os.Readlink(next)
		if links++; err != nil || links > maxLinks {
			return "", &fault{reason: fmt.Sprintf("following %q: too many links, or one that cannot be read", path)}
		}
		if filepath.IsAbs(target) {
			at = "/"
		}
		rest = slices.Concat(strings.Split(target, "/"), rest)
	}
	return at, nil
}

// trusted fails if somebody else could replace an entry of a folder.
func trusted(path, folder string, entry fs.FileInfo) error {
	info, err := os.Lstat(folder)
	if err != nil {
		return err
	}
	st := info.Sys().(*syscall.Stat_t)
	owner := entry.Sys().(*syscall.Stat_t).Uid
	// In a sticky folder only owners replace what is theirs.
	sticky := st.Mode&syscall.S_ISVTX != 0 && (owner == 0 || int(owner) == os.Geteuid())
	if st.Uid != 0 && int(st.Uid) != os.Geteuid() || writable(st.Mode, st.Gid) && !sticky {
		return &fault{fmt.Sprintf("%q cannot be used as bubblewrap: other users can change the folder %q on its way", path, folder),
			[]string{"give the folder to root and take write access from others (chmod go-w)", "or set bwrap_path to another bubblewrap"}}
	}
	return nil
}
