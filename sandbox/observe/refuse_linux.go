package observe

import (
	"bytes"
	"io"
	"os"

	"golang.org/x/sys/unix"
)

// Operations, as sandbox.Denial names them.
const (
	opWrite   = "write"
	opCreate  = "create"
	opRemove  = "remove"
	opRename  = "rename"
	opLink    = "link"
	opChmod   = "chmod"
	opChown   = "chown"
	opUtime   = "utime"
	opXattr   = "xattr"
	opConnect = "connect"
	opResolve = "resolve"
)

// refusal is what the sandbox refuses of a request.
type refusal struct {
	op    string
	at    *place // one of the request's two
	errno unix.Errno
}

// refuse finds what the sandbox refuses of a request for the places that its names
// lead to. What would fail by itself is not refused. to is nil for requests with
// one name.
func refuse(b boundary, r request, from, to *place) []refusal {
	if fails(r, from, to) {
		return nil
	}
	switch r.kind {
	case opening:
		if !from.exists() {
			return oneOf(refusal{opCreate, from, b.names(from)})
		}
		if from.isFolder() {
			return oneOf(refusal{opCreate, from, b.data(from)})
		}
		return oneOf(refusal{opWrite, from, b.data(from)})
	case truncating:
		if r, ok := b.(rules); ok && !r.truncates() {
			return nil
		}
		return oneOf(refusal{opWrite, from, b.data(from)})
	case making:
		if isDevice(r.mode) && b.names(from) == 0 {
			return oneOf(refusal{opCreate, from, unix.EPERM}) // no command keeps CAP_MKNOD
		}
		return oneOf(refusal{opCreate, from, b.names(from)})
	case removing:
		return oneOf(refusal{opRemove, from, b.names(from)}, refusal{opRemove, from, b.busy(from)})
	case linking:
		return b.link(from, to)
	case renaming:
		return b.rename(from, to)
	case chmoding:
		return oneOf(refusal{opChmod, from, b.metadata(from)})
	case chowning:
		return oneOf(refusal{opChown, from, b.metadata(from)})
	case timing:
		return oneOf(refusal{opUtime, from, b.metadata(from)})
	case attributing:
		return oneOf(refusal{opXattr, from, b.metadata(from)})
	}
	return nil
}

// oneOf is the first of some refusals that is one.
func oneOf(list ...refusal) []refusal {
	for _, r := range list {
		if r.errno != 0 {
			return []refusal{r}
		}
	}
	return nil
}

// fails reports whether a request cannot succeed whatever may be written.
func fails(r request, from, to *place) bool {
	switch r.kind {
	case opening:
		return openFails(r.flags, from)
	case making:
		return from.exists() || from.nameless() || from.slash && r.mode != unix.S_IFDIR
	case removing:
		return !from.exists() || from.nameless() || from.isFolder() != r.folder || from.slash && !r.folder
	case renaming:
		return renameFails(r.flags, from, to)
	case linking:
		return !from.exists() || from.isFolder() || to.exists() || to.nameless() || to.slash
	case truncating:
		return !from.exists() || from.kind() != unix.S_IFREG
	case chmoding, attributing:
		return !from.exists() || from.kind() == unix.S_IFLNK || from.slash && !from.isFolder()
	}
	return !from.exists() || from.slash && !from.isFolder()
}

func openFails(flags int, p *place) bool {
	unnamed := flags&unix.O_TMPFILE == unix.O_TMPFILE
	if !p.exists() {
		return flags&unix.O_CREAT == 0 || unnamed || p.slash
	}
	switch p.kind() {
	case unix.S_IFLNK, unix.S_IFSOCK:
		return true
	case unix.S_IFDIR:
		return !unnamed || flags&unix.O_ACCMODE == unix.O_RDONLY
	}
	const exclusive = unix.O_CREAT | unix.O_EXCL
	access := flags & unix.O_ACCMODE // with both bits nothing can be written, only asked by ioctl
	changes := access == unix.O_WRONLY || access == unix.O_RDWR || flags&unix.O_TRUNC != 0 && p.kind() == unix.S_IFREG
	return unnamed || !changes || p.slash || flags&exclusive == exclusive || flags&unix.O_DIRECTORY != 0
}

func renameFails(flags int, from, to *place) bool {
	exchange := flags&unix.RENAME_EXCHANGE != 0
	switch {
	case !from.exists(), from.nameless(), to.nameless(), exchange && !to.exists():
		return true
	case exchange:
		return from.slash && !from.isFolder() || to.slash && !to.isFolder()
	case (from.slash || to.slash) && !from.isFolder():
		return true
	case !to.exists():
		return false
	}
	// The same file under another name: nothing happens, and that succeeds.
	return flags&unix.RENAME_NOREPLACE != 0 || from.isFolder() != to.isFolder() || same(&from.stat, &to.stat)
}

// maxCompared is how long files may be that are compared: those of a repository's
// configuration are short.
const maxCompared = 64 << 10

// idle reports whether a request replaces a file by one with the same content.
func idle(r request, from, to *place) bool {
	if r.kind != renaming || r.flags&unix.RENAME_EXCHANGE != 0 || !to.exists() {
		return false
	}
	old, ok := content(to)
	if !ok {
		return false
	}
	put, ok := content(from)
	return ok && bytes.Equal(old, put)
}

// content reads a short regular file. It waits for nobody.
func content(p *place) ([]byte, bool) {
	if p.kind() != unix.S_IFREG {
		return nil, false
	}
	fd, err := unix.Open(ownDescriptor(p.object), unix.O_RDONLY|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, false
	}
	file := os.NewFile(uintptr(fd), "")
	defer file.Close()
	text, err := io.ReadAll(io.LimitReader(file, maxCompared+1))
	return text, err == nil && len(text) <= maxCompared
}

func isDevice(mode uint32) bool { return mode == unix.S_IFCHR || mode == unix.S_IFBLK }
