package sandbox

import (
	"path/filepath"
	"slices"
)

// Advice is what would let a command do what the sandbox refused it: the next
// step to offer, from narrow to wide. The zero value means that nothing that
// can be asked for would help.
type Advice struct {
	// Additional is what to add in the same mode. It is nil where no such
	// grant would do, and where a wider mode is the more natural step.
	Additional *Additional

	// Modes are those of the wider modes that would do, narrowest first.
	Modes []Mode
}

// Additional is a grant in the same mode. Paths are absolute and canonical, exist
// or are kept absent by Policy.Protected, and are sorted; a folder stands for
// everything in it.
type Additional struct {
	Write   []string
	Read    []string
	Network bool
}

// AdviceContext is what the denials of a run are weighed against.
type AdviceContext struct {
	Policy Policy   // that the command ran under
	Wider  []Policy // that may be asked for beyond it, narrowest first
	Host   AdviceHost
}

// AdviceHost is what Advise needs to know about the host's files. Paths are
// absolute and clean.
type AdviceHost interface {
	// Kind says what is at a path, which is not followed if it is a link.
	Kind(path string) FileKind

	// Grantable reports whether DeclareGrant would accept an existing file or
	// folder.
	Grantable(path string) bool
}

// FileKind says what is at a path.
type FileKind string

// The closed set of kinds.
const (
	FileMissing FileKind = "missing"
	FilePlain   FileKind = "file"
	FileFolder  FileKind = "folder"
	FileLink    FileKind = "link"
	FileOther   FileKind = "other" // a socket, FIFO or device, or it cannot be known
)

// maxAdvised is how many paths an advice names at most: a person has to read
// them.
const maxAdvised = 8

// Advise finds the narrowest step under which everything that was refused, and
// mattered, would be allowed. It is wrong about no more than what denials leave
// open: why a command failed is not known, only what it was refused.
//
//   - Writing an existing file, or changing its mode, owner, times or attributes,
//     takes a grant of that file. Making, removing, renaming and linking
//     something takes the folder that it is in, or the nearest one above that
//     exists: a file that is granted alone can be written but not replaced.
//   - A protected file that is busy takes a grant of exactly that file; a rename
//     that crosses places takes those of its folders that are not writable.
//   - A file in a hidden place takes a grant for reading it; an address takes the
//     network.
//   - Nothing less than a mode without a sandbox reaches sockets and devices, and
//     what is refused with EPERM: that is a filter's word, which no grant changes
//     (set-id bits, device nodes). The same goes for what cannot be granted one
//     by one: the home folder, for example, to make a file right in it.
//   - Where workspace-write would do it is advised instead of paths: it is one
//     question, and the command's next file lies in the workspace, too.
//   - More than eight paths are brought together by folder, the fullest first, and
//     are not advised if that is not enough.
//
// A refused connection to a socket of a service, and a refused hard link from one
// place to another, count only if nothing else was refused: many programs try
// either in passing and go on without it. Incidental denials do not count at all.
// Without any denial it is not known what would help, and every wider mode may.
func Advise(ctx AdviceContext, denials []Denial) Advice {
	if !ctx.Policy.Mode.Confined() {
		return Advice{}
	}
	needs := ctx.needs(denials)
	var advice Advice
	for _, wider := range ctx.Wider {
		if wider.Mode.WiderThan(ctx.Policy.Mode) && wider.meets(needs) {
			advice.Modes = append(advice.Modes, wider.Mode)
		}
	}
	natural := slices.Contains(advice.Modes, WorkspaceWrite)
	if len(needs) > 0 && !natural {
		advice.Additional = ctx.additional(needs)
	}
	return advice
}

// meets reports whether a policy allows everything that is needed.
func (p Policy) meets(needs []need) bool {
	return !p.Mode.Confined() || !slices.ContainsFunc(needs, func(n need) bool { return !n.met(p) })
}

// additional is the grant that meets the needs, or nil.
func (ctx AdviceContext) additional(needs []need) *Additional {
	var a Additional
	for _, n := range needs {
		switch n.what {
		case needsNothingLess:
			return nil
		case needsNetwork:
			a.Network = true
		case needsWriting:
			a.Write = append(a.Write, n.path)
		case needsReading:
			a.Read = append(a.Read, n.path)
		}
	}
	a.Write, a.Read = outermost(a.Write), outermost(a.Read)
	for len(a.Write)+len(a.Read) > maxAdvised {
		if !ctx.gather(&a.Write, needs) && !ctx.gather(&a.Read, needs) {
			return nil
		}
	}
	for _, path := range slices.Concat(a.Write, a.Read) {
		if unsayable(path) || !ctx.Host.Grantable(path) && !ctx.keptAbsent(path) {
			return nil
		}
	}
	if !ctx.with(a).meets(needs) {
		return nil // a folder that was brought in does not open what is protected in it
	}
	return &a
}

// with is the policy that a grant would make.
func (ctx AdviceContext) with(a Additional) Policy {
	p := ctx.Policy
	p.Network = p.Network || a.Network
	p.Writable, p.Readable = slices.Clone(p.Writable), slices.Clone(p.Readable)
	for _, path := range a.Write {
		p.Writable = append(p.Writable, &Root{Path: path})
	}
	for _, path := range a.Read {
		p.Readable = append(p.Readable, &Root{Path: path})
	}
	return p
}

// keptAbsent reports whether a path does not exist because it is protected: then
// it can be granted by its name.
func (ctx AdviceContext) keptAbsent(path string) bool {
	return slices.Contains(ctx.Policy.Protected, path) && ctx.Host.Kind(path) == FileMissing
}

// gather puts one folder in the place of the paths directly in it: the one with
// most of them, and only if it can be granted. It goes no further up than that,
// so that what is opened stays near what was refused.
func (ctx AdviceContext) gather(paths *[]string, needs []need) bool {
	inside := map[string]int{}
	for _, path := range *paths {
		if needed(needs, path) {
			inside[filepath.Dir(path)]++
		}
	}
	best := ""
	for folder, n := range inside {
		fuller := n > inside[best] || n == inside[best] && folder < best
		if n > 1 && fuller && ctx.Host.Grantable(folder) {
			best = folder
		}
	}
	if best == "" {
		return false
	}
	*paths = outermost(append(*paths, best))
	return true
}

// needed reports whether a path was needed itself, not brought in by gather.
func needed(needs []need, path string) bool {
	return slices.ContainsFunc(needs, func(n need) bool { return n.path == path })
}

// outermost sorts paths and drops those that lie in others of them.
func outermost(paths []string) []string {
	slices.Sort(paths)
	var out []string
	for _, path := range paths {
		if !slices.ContainsFunc(out, func(o string) bool { return Within(path, o) }) {
			out = append(out, path)
		}
	}
	return out
}
