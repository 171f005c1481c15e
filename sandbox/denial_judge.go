package sandbox

import (
	"cmp"
	"io/fs"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
)

// judge compares what messages say with the policy and with this host.
type judge struct {
	ctx    DenialContext
	dir    string // ctx.Dir without links; empty if it cannot be found any more
	places []place
	steps  int // files still looked at before judging stops

	// What only the host's network knows, so that tests need none.
	reaches func(netip.Addr) bool
	listens func(port string) bool
}

// maxSteps keeps hostile chains of links from costing more than some
// milliseconds. What is not looked at is no denial.
const maxSteps = 20000

// place is a folder or file and what the policy says about everything in it,
// unless a longer place says otherwise.
type place struct {
	path     string
	writable bool
}

// alwaysWritable is what every run may write: devices, and a /tmp of its own.
var alwaysWritable = []string{
	"/tmp", "/private/tmp", "/dev/shm", "/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom",
	"/dev/tty", "/dev/ptmx", "/dev/pts", "/dev/fd", "/dev/stdin", "/dev/stdout", "/dev/stderr",
}

// commonTemp is how many of these, the first, are places for temporary files.
const commonTemp = 2

func newJudge(ctx DenialContext) *judge {
	ports := sync.OnceValue(listeningPorts)
	j := &judge{ctx: ctx, steps: maxSteps, reaches: reachable, listens: func(port string) bool { return ports()[port] }}
	if filepath.IsAbs(ctx.Dir) {
		if dir, ok := j.resolve(ctx.Dir, true); ok {
			j.dir = dir.path
		}
	}
	for _, root := range ctx.Policy.Roots {
		j.places = append(j.places, place{root.Path, ctx.Policy.Mode == WorkspaceWrite})
	}
	always := alwaysWritable
	if ctx.Refusal != "" {
		always = alwaysWritable[commonTemp:]
	}
	for _, path := range slices.Concat(always, ctx.Writable) {
		j.places = append(j.places, place{filepath.Clean(path), true})
	}
	for _, path := range ctx.Policy.Protected {
		j.places = append(j.places, place{filepath.Clean(path), false})
	}
	for _, root := range ctx.Policy.Writable {
		j.places = append(j.places, place{root.Path, true})
	}
	return j
}

// writable is what the longest place around a clean path says; of equal ones
// the later: a grant counts more than protection, and that more than a root.
// Outside of all, nothing is writable.
func (j *judge) writable(path string) bool {
	length, writable := -1, false
	for _, p := range j.places {
		if len(p.path) >= length && Within(path, p.path) {
			length, writable = len(p.path), p.writable
		}
	}
	return writable
}

// judge finds the first name of a message of which the policy refuses what this
// process could do.
func (j *judge) judge(m message) (Denial, bool) {
	if m.address != "" {
		return j.judgeAddress(m)
	}
	if m.op == opUnshare {
		return Denial{Op: m.op, Path: userNamespace, Errno: m.errno, Exe: m.exe}, j.ctx.Namespaces
	}
	for _, n := range m.names {
		target, ok := j.locate(n, m.op != opRemove && m.op != opRename)
		if !ok {
			continue
		}
		if op, ok := j.refused(m, n, target); ok {
			return Denial{Op: op, Path: target.path, Errno: m.errno, Exe: m.exe}, true
		}
	}
	return Denial{}, false
}

// locate finds what a name stands for on this host. Unless follow is set, that
// may be a link.
func (j *judge) locate(n name, follow bool) (hostFile, bool) {
	text := strings.TrimPrefix(strings.TrimPrefix(n.text, "unix://"), "file://")
	if text == "" || len(text) > maxPath || strings.ContainsRune(text, 0) || text[0] == '~' {
		return hostFile{}, false
	}
	if !filepath.IsAbs(text) {
		if j.dir == "" {
			return hostFile{}, false
		}
		text = j.dir + "/" + text
	}
	clean := filepath.Clean(text)
	// A writable place may be another one inside (/tmp is), so what the host
	// has there means nothing.
	if j.writable(clean) && !j.inRoot(clean) {
		return hostFile{}, false
	}
	if f, ok := j.resolve(text, follow); ok {
		return f, true
	}
	// What is protected but does not exist is covered during the run; the host
	// has only the folder in which it would be made.
	for _, p := range j.ctx.Policy.Protected {
		if p = filepath.Clean(p); Within(clean, p) {
			if cover, ok := j.resolve(p, true); ok && !cover.exists() {
				return hostFile{path: clean, parent: cover.parent}, true
			}
		}
	}
	return hostFile{}, false
}

func (j *judge) inRoot(path string) bool {
	roots := slices.Concat(j.ctx.Policy.Roots, j.ctx.Policy.Writable)
	return slices.ContainsFunc(roots, func(r *Root) bool { return Within(path, r.Path) })
}

// refused decides whether the sandbox, and not the host, refuses the operation
// of a message on a file. op is the message's or what it must have been.
func (j *judge) refused(m message, n name, f hostFile) (op string, ok bool) {
	if !n.sure && !f.exists() {
		// A word that may be no name at all must at least be one of a file, or
		// look like one beside an error that only files can have.
		if m.errno == "EACCES" || m.errno == "EPERM" || !strings.Contains(n.text, "/") {
			return "", false
		}
	}
	hidden := slices.ContainsFunc(j.ctx.Policy.Unreadable, func(u string) bool { return Within(f.path, u) }) && !j.ctx.Policy.MayRead(f.path)
	switch {
	case m.op == opRead || m.op == opExec:
		return m.op, hidden && f.exists() && access(f.path, mayRead)
	case hidden && m.op == "" && m.errno == cmp.Or(j.ctx.Refusal, "EACCES"):
		// Most who do not say what they wanted of a hidden file wanted to read
		// it; whoever wanted to write was seen by the observer.
		return opRead, f.exists() && access(f.path, mayRead)
	}
	if j.ctx.Refusal != "" {
		if m.errno != j.ctx.Refusal || j.writable(f.path) && !j.pinned(f.path) {
			return "", false
		}
		return permitted(m, f, j.ctx.ExitCode)
	}
	switch m.errno {
	case "EROFS", "EACCES":
		if j.writable(f.path) {
			return "", false
		}
	case "EPERM":
		// Files have attributes of their own that give this error, which only
		// opening would show; for these three the sandbox's filter is known.
		// Modes with a set-id bit it refuses everywhere.
		setID := m.op == opChmod && f.exists() && access(f.path, mayWrite)
		if j.writable(f.path) && !setID || m.op != opChmod && m.op != opChown && m.op != opUtime {
			return "", false
		}
	case "EBUSY":
		// A folder with something protected inside cannot be moved either.
		if !j.pinned(f.path) {
			return "", false
		}
	default:
		return "", false
	}
	return permitted(m, f, j.ctx.ExitCode)
}

// pinned reports whether the sandbox has mounted something on a path or below
// it, which is what makes a file busy.
func (j *judge) pinned(path string) bool {
	protected := slices.ContainsFunc(j.ctx.Policy.Protected, func(p string) bool {
		p = filepath.Clean(p)
		return Within(path, p) || Within(p, path)
	})
	return protected || slices.ContainsFunc(j.ctx.Policy.Writable, func(r *Root) bool { return Within(r.Path, path) })
}

// permitted asks whether this process could do what the message is about, as
// far as permissions and the state of the file system go.
func permitted(m message, f hostFile, exitCode int) (op string, ok bool) {
	inParent := func() bool { return access(f.parent, mayWrite|mayEnter) }
	switch m.op {
	case opCreate:
		if f.exists() {
			return opWrite, access(f.path, mayWrite)
		}
		return opCreate, inParent()
	case opRemove, opRename:
		if m.op == opRemove && !f.exists() {
			return m.op, false
		}
		return m.op, inParent() && !sticky(f.parent, f.info)
	case opChmod:
		return m.op, f.exists() && owned(f.info) && !readOnlyMount(f.path)
	case opChown:
		return m.op, f.exists() && os.Geteuid() == 0 && !readOnlyMount(f.path)
	case opUtime:
		return m.op, f.exists() && (access(f.path, mayWrite) || owned(f.info) && !readOnlyMount(f.path))
	case opConnect:
		return m.op, f.exists() && access(f.path, mayWrite)
	}
	if !f.exists() {
		return opCreate, inParent()
	}
	if m.op == "" && m.errno == "EACCES" {
		// It may have been reading or running. A file that can be read and
		// written refuses neither; 126 is the shell's word for the latter.
		if exitCode == 126 || !access(f.path, mayRead) {
			return "", false
		}
	}
	if f.info.IsDir() {
		return opWrite, access(f.path, mayWrite|mayEnter)
	}
	return opWrite, access(f.path, mayWrite)
}

// hostFile is a file of this host, or the place for one in a folder that
// exists.
type hostFile struct {
	path   string      // absolute, links resolved
	parent string      // the folder that it is or would be in
	info   fs.FileInfo // nil if there is no such file
}

func (f hostFile) exists() bool { return f.info != nil }

// Limits of the system on names.
const (
	maxPath  = 4096
	maxLinks = 40
)

// resolve follows an absolute path as the system does, by lstat and readlink
// only. ok is false if a folder on the way is missing or the path leads through
// /proc, where names mean something else for every process. Unless follow is
// set, a link in the last place is the file.
func (j *judge) resolve(path string, follow bool) (f hostFile, ok bool) {
	real, rest := "/", path
	for links := 0; rest != ""; {
		var part string
		part, rest, _ = strings.Cut(strings.TrimLeft(rest, "/"), "/")
		if part == "" || part == "." {
			continue
		}
		if part == ".." {
			real = filepath.Dir(real)
			continue
		}
		if j.steps--; j.steps < 0 {
			return hostFile{}, false
		}
		next := filepath.Join(real, part)
		info, err := os.Lstat(next)
		last := strings.Trim(rest, "/") == ""
		switch {
		case err != nil && last && os.IsNotExist(err):
			return hostFile{path: next, parent: real}, !inProc(next)
		case err != nil:
			return hostFile{}, false
		case info.Mode()&fs.ModeSymlink != 0 && (follow || !last):
			target, err := os.Readlink(next)
			if links++; err != nil || links > maxLinks || inProc(next) {
				return hostFile{}, false
			}
			if filepath.IsAbs(target) {
				real = "/"
			}
			rest = target + "/" + rest
		case !last && !info.IsDir():
			return hostFile{}, false
		default:
			real = next
		}
	}
	info, err := os.Lstat(real)
	if err != nil || inProc(real) {
		return hostFile{}, false
	}
	return hostFile{path: real, parent: filepath.Dir(real), info: info}, true
}

func inProc(path string) bool {
	return Within(path, "/proc") && !Within(path, "/proc/sys")
}
