package sandbox

import (
	"context"
	"fmt"
	"slices"
	"strings"
)

// Verification compares what a provider claims for one kind of policy with
// what a command under that policy could really do on this host.
type Verification struct {
	Provider   string   `json:"provider"`
	Mode       Mode     `json:"mode"`
	Network    bool     `json:"network"`    // whether the policy grants it
	Namespaces bool     `json:"namespaces"` // whether with those that confine makes for a session
	InUse      bool     `json:"inUse"`      // commands of this kind are confined like this here
	Layers     []string `json:"layers,omitempty"`

	// Reason says why nothing was tried; empty if something was.
	Reason string `json:"reason,omitempty"`

	Facets []VerifiedFacet `json:"facets"` // in reporting order; empty if nothing was tried

	// Limits are the same about limits: Facet is "limits." and the resource.
	Limits []VerifiedFacet `json:"limits"`

	// Controls are what must work inside, and what no facet speaks of but must
	// not: that one fails means that the sandbox is not what it should be.
	Controls []Check `json:"controls"`
}

// VerifiedFacet is what became of the claim about one facet.
type VerifiedFacet struct {
	Facet     Facet       `json:"facet"`
	Claimed   FacetReport `json:"claimed"`   // by the provider
	Confirmed FacetReport `json:"confirmed"` // what is left of the claim, and what a run may say
	Finding   Finding     `json:"finding"`
	Trials    []Trial     `json:"trials"`
}

// Trial is one operation that was tried inside.
type Trial struct {
	Name    string  `json:"name"`
	Outcome Outcome `json:"outcome"`
	Detail  string  `json:"detail,omitempty"`

	// Exception says that a facet may be called partial although this is
	// possible.
	Exception bool `json:"exception,omitempty"`
}

// Outcome is what came of a trial.
type Outcome string

// The closed set of outcomes.
const (
	Refused  Outcome = "refused"
	Possible Outcome = "possible"
	Untried  Outcome = "untried" // this host does not have what it takes, or refuses it to everybody
)

// Finding is how a claim fares against the trials.
type Finding string

// The closed set of findings.
const (
	ClaimHolds  Finding = "confirmed"    // what happened is what was claimed
	ClaimFails  Finding = "contradicted" // something was possible that the claim rules out
	ClaimModest Finding = "better"       // less was possible than the claim concedes
	ClaimUntold Finding = "untried"      // nothing that could tell was tried
)

// Judge compares the claim about a facet with what was tried for it.
func Judge(claimed FacetReport, trials []Trial) Finding {
	var refused, through, conceded, untried int
	for _, t := range trials {
		switch {
		case t.Outcome == Refused:
			refused++
		case t.Outcome == Untried:
			untried++
		case t.Exception:
			conceded++
		default:
			through++
		}
	}
	switch {
	case claimed.State == Enforced && through+conceded > 0, claimed.State == Partial && through > 0:
		return ClaimFails
	case refused+through+conceded == 0:
		return ClaimUntold
	case claimed.State == Enforced || through+conceded > 0:
		return ClaimHolds
	case untried == 0:
		return ClaimModest
	case claimed.State == Partial:
		return ClaimHolds // what it concedes may be what was not tried
	}
	return ClaimUntold
}

// Confirm is what may be said of a facet after the trials: the claim, unless
// they contradict it or none could tell.
func Confirm(claimed FacetReport, trials []Trial) FacetReport {
	if claimed.State != Enforced && claimed.State != Partial {
		return claimed
	}
	switch Judge(claimed, trials) {
	case ClaimFails:
		return FacetReport{State: Open, Reason: "it was tried, and it was possible to " + through(claimed, trials)}
	case ClaimUntold:
		return FacetReport{State: Open, Reason: "nothing that could tell could be tried on this host"}
	}
	return claimed
}

// through lists what contradicts a claim.
func through(claimed FacetReport, trials []Trial) string {
	var names []string
	for _, t := range trials {
		if t.Outcome == Possible && (claimed.State == Enforced || !t.Exception) {
			names = append(names, t.Name)
		}
	}
	return strings.Join(names, ", to ")
}

// Problems are the sentences about what is not as claimed; there are none if
// the claims hold, or are too modest.
func (v Verification) Problems() []string {
	var problems []string
	if v.InUse && v.Reason != "" {
		problems = append(problems, fmt.Sprintf("%s: nothing could be tried, though commands are confined like this: %s", v, v.Reason))
	}
	for _, f := range slices.Concat(v.Facets, v.Limits) {
		if f.Finding == ClaimFails {
			problems = append(problems, fmt.Sprintf("%s: %s is called %s, but it was possible to %s", v, f.Facet, f.Claimed.State, through(f.Claimed, f.Trials)))
		}
	}
	for _, c := range v.Controls {
		if !c.OK {
			problems = append(problems, fmt.Sprintf("%s: %s: %s", v, c.Name, c.Detail))
		}
	}
	return problems
}

// String names what was verified in a few words.
func (v Verification) String() string {
	network, namespaces := "no network", "namespaces"
	if v.Network {
		network = "network"
	}
	switch {
	case v.Namespaces:
	case slices.Contains(v.Layers, "namespaces"):
		namespaces = "namespaces made by " + v.Provider
	default:
		namespaces = "no namespaces"
	}
	return fmt.Sprintf("%s, %s, %s, %s", v.Provider, v.Mode, network, namespaces)
}

// Verifier is a Provider that can compare its claims with what happens.
type Verifier interface {
	// Verify tries every facet with confined children, for every mode, with
	// and without the network, on every level that it knows. It takes seconds.
	Verify(context.Context) []Verification
}
