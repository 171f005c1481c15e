package sandbox

// MergeDenials puts what was observed before what messages say. Where everything
// was observed a message adds nothing: what it speaks of was either seen, or was
// not the sandbox's doing. Only of what no observer looks at, reading and
// executing, a message is the only evidence.
func MergeDenials(seen, said []Denial, o Observation) []Denial {
	merged := append([]Denial(nil), seen...)
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

// onlySaid reports whether no observer sees an operation.
func onlySaid(op string) bool { return op == opRead || op == opExec }

// covered reports whether a message speaks of something that was seen: programs
// word operations in their own way, so the place decides.
func covered(d Denial, seen []Denial) bool {
	for _, s := range seen {
		if d.Path == s.Path && d.Address == s.Address {
			return true
		}
	}
	return false
}
