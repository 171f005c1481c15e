package sandboxtest

import (
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"github.com/confine-dev/confine/sandbox"
	"golang.org/x/sys/unix"
)

// opsJudge knows the policy of the runs in one mode and what a level can enforce
// of it. It looks at no file: what a name leads to is known from how it was made,
// and what plain permissions say from the same operation with nothing confined.
type opsJudge struct {
	base  string
	level levels

	// places are the paths that the policy names and whether what lies in them
	// may be changed. Each is a mount of its own where there are namespaces.
	places map[string]bool
}

// opsMode is the mode in which an operation is confined.
func opsMode(number int) sandbox.Mode {
	if number%4 == 3 {
		return sandbox.ReadOnly
	}
	return sandbox.WorkspaceWrite
}

// opsJudges has a judge for each mode.
type opsJudges map[sandbox.Mode]*opsJudge

func newOpsJudges(base string, level levels, operations []*operation) opsJudges {
	judges := opsJudges{}
	for _, mode := range bothModes {
		judges[mode] = newOpsJudge(base, level, mode, operations)
	}
	return judges
}

// of is the judge of an operation.
func (y opsJudges) of(number int) *opsJudge { return y[opsMode(number)] }

func newOpsJudge(base string, level levels, mode sandbox.Mode, operations []*operation) *opsJudge {
	j := &opsJudge{base: base, level: level, places: map[string]bool{
		filepath.Join(base, string(areaGranted)): true,
	}}
	if level == withNamespaces { // otherwise nothing can be taken out of a writable folder
		j.places[filepath.Join(base, string(areaKept))] = false
	}
	if mode == sandbox.WorkspaceWrite {
		j.places[filepath.Join(base, string(areaWork))] = true
		j.places[filepath.Join(base, string(areaSecond))] = true
		j.places[filepath.Join(base, string(areaGuarded))] = true
	}
	for _, op := range operations {
		for _, o := range op.objects {
			switch {
			case o.top == topRoot && mode == sandbox.WorkspaceWrite:
				j.places[o.path] = true
			case o.top == topProtected && level == withNamespaces:
				j.places[o.path] = false
			case o.top == topProtected:
			case o.top == topGranted && !j.writable(o.path): // otherwise there is nothing to grant
				j.places[o.path] = true
			}
		}
	}
	return j
}

// place is what the policy names that a path lies in; empty if nothing.
func (j *opsJudge) place(path string) string {
	for ; len(path) > len(j.base); path = filepath.Dir(path) {
		if _, ok := j.places[path]; ok {
			return path
		}
	}
	return ""
}

func (j *opsJudge) writable(path string) bool { return j.places[j.place(path)] }

// allows says whether the policy allows a change.
func (j *opsJudge) allows(c opsChange) bool {
	if c.object == opsOfProc { // the command's own
		return true
	}
	if c.entry && !j.writable(filepath.Dir(c.object.path)) {
		return false
	}
	return j.writable(c.object.path)
}

// governs reports whether the level can refuse a change at all. Landlock takes
// nothing out of what it allows, and it alone governs FIFOs, which are no files of
// the mount that they lie in.
func (j *opsJudge) governs(c opsChange) bool {
	switch {
	case j.level == withNamespaces && !opensPipe(c):
		return true
	case c.metadata:
		return false
	case c.entry:
		return !j.inWritable(filepath.Dir(c.object.path))
	}
	return !j.inWritable(c.object.path)
}

// inWritable reports whether a path lies in a place that may be changed, though
// perhaps in another in that.
func (j *opsJudge) inWritable(path string) bool {
	for ; len(path) > len(j.base); path = filepath.Dir(path) {
		if j.places[path] {
			return true
		}
	}
	return false
}

// opensPipe reports whether what a change is made by is opening a FIFO.
func opensPipe(c opsChange) bool { return c.op == "write" && c.object.kind == isPipe }

// opsVerdict is how an operation must end.
type opsVerdict struct {
	refused opsStep         // the step that is refused; without a name none is
	forced  bool            // it must be refused; else it fails by itself or by that, whichever is found first
	errnos  []syscall.Errno // of a refusal
	denied  []opsChange     // what the denials of a forced refusal may be; empty if it is not seen
}

// verdict combines the policy's verdict with what came of the operation when
// nothing was confined.
func (j *opsJudge) verdict(op *operation, plain opsOutcome) opsVerdict {
	if plain.step == opsPrepare {
		return opsVerdict{}
	}
	for _, step := range op.call.steps(op) {
		// Who may read a FIFO matters only to who may write to it.
		failed := plain.errno != 0 && plain.step == step.name && plain.errno != unix.ENXIO
		refused := slices.DeleteFunc(slices.Clone(step.changes), func(c opsChange) bool { return j.allows(c) || !j.governs(c) })
		if crosses := j.crosses(step); crosses || len(refused) > 0 {
			if crosses { // either end is to blame
				refused = step.changes
			}
			if op.first.form == formHeld { // no name, no denial
				refused = nil
			}
			return opsVerdict{step, !failed, j.errnos(step), refused}
		}
		if failed {
			break
		}
	}
	return opsVerdict{}
}

// crosses reports whether a step leads from one mount to another, which is refused
// even if the policy allows both to be changed. Programs copy then.
func (j *opsJudge) crosses(s opsStep) bool {
	return j.level == withNamespaces && len(s.changes) == 2 && j.mount(s.changes[0]) != j.mount(s.changes[1])
}

// mount is the mount in which a change is made.
func (j *opsJudge) mount(c opsChange) string {
	if c.object == opsOfProc {
		return c.object.path
	}
	if c.entry {
		return j.place(filepath.Dir(c.object.path))
	}
	return j.place(c.object.path)
}

// errnos are the errors by which a level refuses a step.
func (j *opsJudge) errnos(s opsStep) []syscall.Errno {
	if j.level != withNamespaces {
		if len(s.changes) == 2 {
			return []syscall.Errno{unix.EACCES, unix.EXDEV}
		}
		return []syscall.Errno{unix.EACCES}
	}
	errnos := []syscall.Errno{unix.EROFS}
	if len(s.changes) == 2 { // which of the two is found first, depends on what is mounted where
		errnos = append(errnos, unix.EXDEV)
	}
	if !slices.ContainsFunc(s.changes, func(c opsChange) bool { return !j.allows(c) }) {
		errnos = []syscall.Errno{unix.EXDEV}
	}
	for _, c := range s.changes {
		if c.entry && c.object.top != topNone { // something is mounted on the name
			errnos = append(errnos, unix.EBUSY)
		}
		if opensPipe(c) { // by Landlock
			errnos = []syscall.Errno{unix.EACCES}
		}
	}
	return errnos
}

// disagreement says in what an outcome and the denials that were observed do
// not fit; it is empty if they do. missed says that the observer told of calls that it
// did not see: denials may lack then, and nothing else may differ.
func (j *opsJudge) disagreement(op *operation, plain, got opsOutcome, denials []sandbox.Denial, missed bool) string {
	v := j.verdict(op, plain)
	refused := v.refused.name != "" && got.step == v.refused.name && slices.Contains(v.errnos, got.errno)
	switch {
	case v.forced && !refused:
		return fmt.Sprintf("with nothing confined it %v, and the policy refuses step %q with one of %v, but it %v", plain, v.refused.name, errnoNames(v.errnos), got)
	case !v.forced && got != plain && !refused:
		return fmt.Sprintf("with nothing confined it %v, and the policy does not refuse it, but it %v", plain, got)
	case !v.forced && len(denials) > 0:
		return fmt.Sprintf("it %v (with nothing confined it %v), which is no denial, but observed was %+v", got, plain, denials)
	case v.forced && (len(denials) > len(v.denied) || len(denials) == 0 && len(v.denied) > 0 && !missed):
		return fmt.Sprintf("it %v and should be %s, but observed was %+v", got, v.expected(), denials)
	}
	for i, d := range denials {
		fits := slices.ContainsFunc(v.denied, func(c opsChange) bool {
			return d.Path == c.object.path && slices.Contains(opsDenialNames[c.op], d.Op)
		})
		again := slices.ContainsFunc(denials[:i], func(other sandbox.Denial) bool { return other.Path == d.Path })
		if !fits || again || d.Errno != unix.ErrnoName(got.errno) || d.Count != 1 || d.Evidence != sandbox.Observed {
			return fmt.Sprintf("it %v and should be %s, but observed was %+v", got, v.expected(), denials)
		}
	}
	return ""
}

// expected describes the denials of a forced refusal.
func (v opsVerdict) expected() string {
	if len(v.denied) == 0 {
		return "no denial"
	}
	var list []string
	for _, c := range v.denied {
		list = append(list, fmt.Sprintf("a denial of %s on %q", strings.Join(opsDenialNames[c.op], " or "), c.object.path))
	}
	return strings.Join(list, " or ")
}

// opsDenialNames are the names in denials for what operations do.
var opsDenialNames = map[string][]string{
	"write": {"write"}, "create": {"create"}, "remove": {"remove"}, "rename": {"rename"}, "link": {"create", "link"},
	"chmod": {"chmod"}, "chown": {"chown"}, "utime": {"utime"}, "xattr": {"xattr"},
}

func errnoNames(errnos []syscall.Errno) (names []string) {
	for _, e := range errnos {
		names = append(names, unix.ErrnoName(e))
	}
	return names
}

// excused collects the paths, relative to the base, of outside files that
// operations change although nothing outside is changed: whole those that are
// a second name of a file inside, metadata those whose metadata a level leaves
// open.
func (y opsJudges) excused(operations []*operation, plain map[int]opsOutcome) (whole, metadata map[string]bool) {
	whole, metadata = map[string]bool{}, map[string]bool{}
	for _, op := range operations {
		j := y.of(op.number)
		if plain[op.number].step == opsPrepare || j.verdict(op, plain[op.number]).forced {
			continue
		}
		for _, step := range op.call.steps(op) {
			for _, c := range step.changes {
				for _, name := range []string{c.object.path, c.object.other} {
					name = strings.TrimPrefix(name, j.base)
					switch {
					case j.allows(c):
						whole[name] = true
					case !j.governs(c):
						metadata[name] = true
					}
				}
			}
		}
	}
	return whole, metadata
}

// numberOf finds the operation that a path below the base belongs to, or a
// negative number for what all share.
func numberOf(path string) int {
	for part := range strings.SplitSeq(path, "/") {
		digits := strings.IndexFunc(part, func(r rune) bool { return r < '0' || r > '9' })
		if n, err := strconv.Atoi(part[:max(digits, 0)]); err == nil {
			return n
		}
	}
	return -1
}
