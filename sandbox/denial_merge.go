package sandbox

import "slices"

// MergeDenials puts what was observed before what messages say. Where everything
// was observed a message adds nothing: what it speaks of was either seen, or was
// not the sandbox's doing. Only of what no observer looks at, reading, executing and
// what the filter refuses before anybody is asked, a message is the only evidence.
//
// A denial in a place of housekeeping, of a hard link from one place to another, and
// of a look at routes is marked Incidental unless a message names the path: the program
// did without. So is one of an operation without effect, if the command succeeded: git
// writes its configuration anew even where nothing of it changes.
func MergeDenials(seen, said []Denial, o Observation, c Circumstances) []Denial {
	merged := slices.Clone(seen)
	for i, d := range merged {
		copies := d.Op == opLink && d.Errno == "EXDEV" // as everybody does who links to save space
		without := (copies || looksForRoute(d) || c.Holds(d.Path)) && !c.Mentioned(d.Path)
		merged[i].Incidental = without || d.Idle && c.Succeeded
	}
	for _, d := range said {
		if o.State == ObservedFully && !onlySaid(d) || covered(d, seen) {
			continue
		}
		if len(merged) == maxDenials {
			break
		}
		merged = append(merged, d)
	}
	return merged
}

// Circumstances tell which denials did not matter to a command.
type Circumstances struct {
	Housekeeping
	Mentioned func(path string) bool // whether a message names a path
	Succeeded bool                   // the command ended with status 0
}

// looksForRoute reports whether a program only asked if there is a way to the
// internet, by connecting a datagram socket, which sends nothing. Chromium does, to
// this address, whatever it is to show.
func looksForRoute(d Denial) bool {
	return d.Op == opConnect && (d.Address == "[2001:4860:4860::8888]:443" || d.Address == "[2001:4860:4860::8888]:53")
}

// Matter reports whether one of the denials is more than incidental.
func Matter(denials []Denial) bool {
	return slices.ContainsFunc(denials, func(d Denial) bool { return !d.Incidental })
}

// onlySaid reports whether no observer sees an operation. A mode is refused with this
// error by the filter alone, for its set-id bits, and so is every new namespace.
func onlySaid(d Denial) bool {
	return d.Op == opUnshare || d.Op == opRead || d.Op == opExec || d.Op == opChmod && d.Errno == "EPERM"
}

// covered reports whether one of others is of the same place: programs word
// operations in their own way.
func covered(d Denial, others []Denial) bool {
	return slices.ContainsFunc(others, func(o Denial) bool { return o.Path == d.Path && o.Address == d.Address })
}
