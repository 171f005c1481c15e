package approval

import (
	"fmt"
	"slices"
	"strings"

	"github.com/confine-dev/confine/sandbox"
)

// grantFacts say of each file and folder that is opened one by one what it is,
// whole: what a yes opens must not be cut.
func grantFacts(r Request, g gain) []fact {
	var facts []fact
	for _, root := range g.write {
		facts = append(facts, saying(grantFact("Becomes writable", root, grantOf(r, root, sandbox.GrantWrite))))
	}
	for _, root := range g.read {
		facts = append(facts, saying(grantFact("Becomes readable", root, grantOf(r, root, sandbox.GrantRead))))
	}
	return facts
}

// grantOf finds what the request says about a path; it may be nothing.
func grantOf(r Request, root *sandbox.Root, kind sandbox.GrantKind) Grant {
	i := slices.IndexFunc(r.Grants, func(g Grant) bool { return g.Path == root.Path && g.Kind == kind })
	if i < 0 {
		return Grant{}
	}
	return r.Grants[i]
}

// perilText is what a person is told of a peril.
var perilText = map[sandbox.Peril]string{
	sandbox.PerilSystem:   "It belongs to the SYSTEM.",
	sandbox.PerilRuns:     "Programs RUN or obey what stands there, as you.",
	sandbox.PerilSecrets:  "PASSWORDS OR KEYS are often kept there.",
	sandbox.PerilServices: "Running programs LISTEN there and can be reached.",
}

func grantFact(what string, root *sandbox.Root, g Grant) string {
	var b strings.Builder
	if root.File {
		fmt.Fprintf(&b, "%s: the file %s.", what, whole(root.Path))
	} else {
		fmt.Fprintf(&b, "%s: the FOLDER %s and everything in it", what, whole(root.Path))
		if n := len(g.Missing); n > 0 {
			first, _ := escape(g.Missing[0], style{markup: true, closed: true}).fit(listedLen)
			fmt.Fprintf(&b, ", because %s%s%s does not exist there yet", openQuote, first, closeQuote)
			if n > 1 {
				fmt.Fprintf(&b, ", nor %d more", n-1)
			}
		}
		b.WriteString(".")
	}
	for _, p := range g.Perils {
		b.WriteString(" " + perilText[p])
	}
	if g.NotRefused {
		b.WriteString(" NOTHING was refused there.")
	}
	return b.String()
}

// whole is a path in quotes, escaped but never cut.
func whole(path string) string {
	return openQuote + show(path, style{markup: true, closed: true}) + closeQuote
}
