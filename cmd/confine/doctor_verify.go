package main

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/confine-dev/confine/sandbox"
)

// verification is what `confine doctor --verify` adds to a diagnosis.
type verification struct {
	OK           bool                   `json:"ok"`       // something was tried, and all is as claimed
	Problems     []string               `json:"problems"` // what is not, or why nothing was tried
	Combinations []sandbox.Verification `json:"combinations"`
}

// verify lets every provider that can compare its claims with what happens.
func verify(ctx context.Context, providers []sandbox.Provider) *verification {
	v := &verification{Problems: []string{}, Combinations: []sandbox.Verification{}}
	for _, p := range providers {
		verifier, ok := p.(sandbox.Verifier)
		if !ok {
			continue // absent, or made by somebody else who vouches for it
		}
		combinations := verifier.Verify(ctx)
		v.Combinations = append(v.Combinations, combinations...)
		v.Problems = append(v.Problems, problemsOf(combinations)...)
	}
	v.OK = v.tried() && len(v.Problems) == 0
	if !v.tried() {
		v.Problems = append(v.Problems, "nothing could be verified: no provider could be tried")
	}
	return v
}

// tried reports whether anything was.
func (v verification) tried() bool {
	return slices.ContainsFunc(v.Combinations, wasTried)
}

func wasTried(c sandbox.Verification) bool { return len(c.Facets) > 0 || len(c.Controls) > 0 }

// problemsOf are the problems of one provider's combinations. That one kind of
// command is refused though others are not is one of them.
func problemsOf(combinations []sandbox.Verification) []string {
	var problems []string
	used := map[string]bool{}
	anyUsed := false
	for _, c := range combinations {
		problems = append(problems, c.Problems()...)
		used[kindOf(c)] = used[kindOf(c)] || c.InUse
		anyUsed = anyUsed || c.InUse
	}
	for _, c := range combinations {
		if kind := kindOf(c); anyUsed && !used[kind] {
			problems = append(problems, kind+": commands are refused")
			used[kind] = true // said
		}
	}
	return problems
}

// kindOf names a kind of command, whatever level it is confined on.
func kindOf(c sandbox.Verification) string {
	return fmt.Sprintf("%s, %s, %s", c.Provider, c.Mode, granted(c))
}

func granted(c sandbox.Verification) string {
	if c.Network {
		return "network granted"
	}
	return "no network"
}

// print writes the verification in plain words.
func (v verification) print(w io.Writer) {
	fmt.Fprintf(w, "\nVerification\n")
	if v.OK {
		fmt.Fprintf(w, "  What was tried is as it is claimed.\n")
	}
	for _, problem := range v.Problems {
		fmt.Fprintf(w, "  problem: %s\n", printable(problem))
	}
	v.printTrials(w)
	for _, c := range v.Combinations {
		printCombination(w, c)
	}
}

// printTrials lists once what the tables count.
func (v verification) printTrials(w io.Writer) {
	if !v.tried() {
		return
	}
	fmt.Fprintf(w, "\n  What commands tried\n")
	facets := slices.Clone(sandbox.Facets)
	for _, c := range v.Combinations {
		for _, l := range c.Limits {
			if len(l.Trials) > 0 && !slices.Contains(facets, l.Facet) {
				facets = append(facets, l.Facet)
			}
		}
	}
	for _, facet := range facets {
		var names []string
		for _, c := range v.Combinations {
			for _, f := range slices.Concat(c.Facets, c.Limits) {
				for _, t := range f.Trials {
					if f.Facet == facet && t.Outcome != sandbox.Untried && !slices.Contains(names, t.Name) {
						names = append(names, t.Name)
					}
				}
			}
		}
		printRow(w, "    %-11s  %s", facet, printable(strings.Join(names, "; ")))
	}
}

func printCombination(w io.Writer, c sandbox.Verification) {
	use := "in use here"
	if !c.InUse {
		use = "not in use here"
	}
	fmt.Fprintf(w, "\n  %s (%s)\n", printable(c.String()), use)
	if c.Reason != "" {
		fmt.Fprintf(w, "    not tried: %s\n", printable(c.Reason))
	}
	for _, f := range slices.Concat(c.Facets, c.Limits) {
		printRow(w, "    %-11s  %-8s  %-12s  %s", f.Facet, f.Claimed.State, said(f), printable(strings.Join(outcomes(f.Trials), "; ")))
	}
	good := 0
	for _, control := range c.Controls {
		if control.OK {
			good++
			continue
		}
		printRow(w, "    %s: failed: %s", printable(control.Name), printable(control.Detail))
	}
	if wasTried(c) {
		fmt.Fprintf(w, "    controls     %d of %d as they must be\n", good, len(c.Controls))
	}
}

// said is what the table says of a finding.
func said(f sandbox.VerifiedFacet) string {
	switch f.Finding {
	case sandbox.ClaimFails:
		return "NOT TRUE"
	case sandbox.ClaimModest:
		return "holds better"
	case sandbox.ClaimUntold:
		return "not told"
	}
	return "confirmed"
}

// outcomes sums up what came of trials: how many were refused, and by name what
// was possible and what could not be tried.
func outcomes(trials []sandbox.Trial) []string {
	refused := 0
	var possible, untried []string
	for _, t := range trials {
		switch t.Outcome {
		case sandbox.Refused:
			refused++
		case sandbox.Possible:
			possible = append(possible, t.Name)
		default:
			untried = append(untried, fmt.Sprintf("%s (%s)", t.Name, t.Detail))
		}
	}
	var sums []string
	if refused > 0 {
		sums = append(sums, fmt.Sprintf("%d refused", refused))
	}
	if len(possible) > 0 {
		sums = append(sums, "possible: "+strings.Join(possible, ", "))
	}
	if len(untried) > 0 {
		sums = append(sums, "not tried: "+strings.Join(untried, ", "))
	}
	return sums
}
