package sandbox

import (
	"path/filepath"
	"slices"
	"strings"
)

// need is one thing that a policy would have to allow.
type need struct {
	what needKind
	path string // an existing file or folder; of needsWriting and needsReading only
}

type needKind int

const (
	needsNothingLess needKind = iota // than a mode without a sandbox
	needsNetwork
	needsWriting
	needsReading
	needsInPassing // needsNothingLess unless something else is needed
)

// met reports whether a confined policy allows it.
func (n need) met(p Policy) bool {
	switch n.what {
	case needsNetwork:
		return p.Network
	case needsWriting:
		return p.MayWrite(n.path)
	case needsReading:
		return p.MayRead(n.path)
	}
	return false
}

// needs lists what the denials that count show to be needed, each once.
func (ctx AdviceContext) needs(denials []Denial) []need {
	var needs []need
	for _, d := range denials {
		if d.Incidental {
			continue
		}
		for _, n := range ctx.needsOf(d) {
			if !slices.Contains(needs, n) {
				needs = append(needs, n)
			}
		}
	}
	inPassing := func(n need) bool { return n.what == needsInPassing }
	if others := slices.DeleteFunc(slices.Clone(needs), inPassing); len(others) > 0 {
		return others
	}
	if len(needs) > 0 {
		return []need{{what: needsNothingLess}}
	}
	return nil
}

// opLink is what observers name beside the operations of messages.
const opLink = "link"

// Kinds of operations. What is in none of these lists changes the file that it
// names.
var (
	readOps    = []string{opRead, opExec}
	entryOps   = []string{opRemove, opRename, opLink}
	networkOps = []string{opConnect, opResolve}
)

func (d Denial) reads() bool { return slices.Contains(readOps, d.Op) }

// needsOf is what one denial shows to be needed.
func (ctx AdviceContext) needsOf(d Denial) []need {
	nothingLess := []need{{what: needsNothingLess}}
	path := filepath.Clean(d.Path)
	switch {
	case strings.HasPrefix(d.Address, "@"), d.Path != "" && d.Op == opConnect, d.Op == opLink && d.Errno == "EXDEV":
		return []need{{what: needsInPassing}}
	case d.Address != "" || d.Path == "" && slices.Contains(networkOps, d.Op):
		if ctx.Policy.Network {
			return nothingLess // it has the network already
		}
		return []need{{what: needsNetwork}}
	case d.Path == "" || !filepath.IsAbs(path):
		return nothingLess
	case d.Errno == "EPERM":
		return nothingLess
	case d.reads():
		return ctx.reading(path)
	case d.Errno == "EBUSY":
		return ctx.moving(path)
	case d.Errno == "EXDEV" && ctx.Host.Kind(filepath.Dir(path)) == FileMissing:
		return ctx.entry(path)
	case d.Errno == "EXDEV":
		return ctx.writing(filepath.Dir(path))
	case slices.Contains(entryOps, d.Op):
		return ctx.entry(path)
	}
	return ctx.content(path)
}

// content is writing a file, or changing what the system notes about it.
func (ctx AdviceContext) content(path string) []need {
	switch ctx.Host.Kind(path) {
	case FilePlain, FileFolder:
		return ctx.writing(path)
	case FileMissing, FileLink:
		return ctx.entry(path)
	}
	return []need{{what: needsNothingLess}}
}

// entry is making, replacing or removing something.
func (ctx AdviceContext) entry(path string) []need {
	for folder := filepath.Dir(path); ; folder = filepath.Dir(folder) {
		switch kind := ctx.Host.Kind(folder); {
		case kind == FileFolder && ctx.Policy.MayWrite(folder):
			// The folder is writable, so it is the thing itself that is kept.
			return ctx.protected(path)
		case kind == FileFolder:
			return ctx.writing(folder)
		case kind != FileMissing || folder == filepath.Dir(folder):
			return []need{{what: needsNothingLess}}
		}
	}
}

// moving is replacing or removing what is busy: something is mounted on it or
// below it.
func (ctx AdviceContext) moving(path string) []need {
	if slices.ContainsFunc(ctx.Policy.Writable, func(r *Root) bool { return r.Path == path }) {
		return ctx.entry(path) // what was granted alone cannot be replaced
	}
	return ctx.protected(path)
}

// protected is the grant of the protected paths that keep one from being
// changed: the one that it lies in, or those in it.
func (ctx AdviceContext) protected(path string) []need {
	var needs []need
	for _, p := range ctx.Policy.Protected {
		p = filepath.Clean(p)
		if !Within(path, p) && !Within(p, path) || ctx.Policy.MayWrite(p) {
			continue
		}
		if ctx.Host.Kind(p) == FileMissing {
			needs = append(needs, need{needsWriting, p}) // it is kept absent
			continue
		}
		needs = append(needs, ctx.writing(p)...)
	}
	if len(needs) == 0 {
		return []need{{what: needsNothingLess}}
	}
	return needs
}

// writing is a grant of an existing file or folder.
func (ctx AdviceContext) writing(path string) []need {
	kind := ctx.Host.Kind(path)
	if kind != FilePlain && kind != FileFolder || ctx.Policy.MayWrite(path) {
		// It is not there, or writable, and still it was refused.
		return []need{{what: needsNothingLess}}
	}
	needs := []need{{needsWriting, path}}
	granted := ctx.Policy
	granted.Writable = append(slices.Clone(granted.Writable), &Root{Path: path})
	if !granted.MayRead(path) { // hidden by name
		needs = append(needs, need{needsReading, path})
	}
	return needs
}

// reading is a grant of an existing file or folder that is hidden.
func (ctx AdviceContext) reading(path string) []need {
	kind := ctx.Host.Kind(path)
	if kind != FilePlain && kind != FileFolder || ctx.Policy.MayRead(path) {
		return []need{{what: needsNothingLess}}
	}
	return []need{{needsReading, path}}
}
