package sandbox

import "slices"

// MergeDenials puts what was observed before what messages say. Where everything
// was observed a message adds nothing: what it speaks of was either seen, or was
// not the sandbox's doing. Only of what no observer looks at, reading and
// executing, a message is the only evidence.
//
// A denial in a place of housekeeping, and of a hard link from one place to
// another, is marked Incidental unless a message names the path, which mentioned
// tells: the program did without.
func MergeDenials(seen, said []Denial, o Observation, h Housekeeping, mentioned func(path string) bool) []Denial {
	merged := slices.Clone(seen)
	for i := range merged {
		copies := merged[i].Op == opLink && merged[i].Errno == "EXDEV" // as everybody does who links to save space
		merged[i].Incidental = (copies || h.Holds(merged[i].Path)) && !mentioned(merged[i].Path)
	}
	for _, d := range said {
		if o.State == ObservedFully && !onlySaid(d.Op) || covered(d, seen) {
			continue
		}
		if len(merged) == maxDenials {
			break
		}
		merged = append(merged, d)
	}
	return merged
}

// Matter reports whether one of the denials is more than incidental.
func Matter(denials []Denial) bool {
	return slices.ContainsFunc(denials, func(d Denial) bool { return !d.Incidental })
}

// onlySaid reports whether no observer sees an operation.
func onlySaid(op string) bool { return op == opRead || op == opExec }

// covered reports whether one of others is of the same place: programs word
// operations in their own way.
func covered(d Denial, others []Denial) bool {
	return slices.ContainsFunc(others, func(o Denial) bool { return o.Path == d.Path && o.Address == d.Address })
}
