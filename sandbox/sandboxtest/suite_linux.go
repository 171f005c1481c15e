package sandboxtest

import (
	"os"
	"slices"
	"testing"

	"github.com/confine-dev/confine/sandbox"
)

// Config says which provider is to be tested.
type Config struct {
	// New returns the provider and one that confines nothing, for the controls.
	// It is called once in each world. state is an existing private folder, and
	// closing the first provider must close both.
	New func(state string) (confined, unconfined sandbox.Provider, err error)

	// NeedsNamespaces says that the provider has nothing to offer where the host
	// refuses user namespaces: there it must refuse every confined run.
	NeedsNamespaces bool

	// Alone says that the namespaces of a run are not its session's: runs of a
	// session share no network, and root's commands know no user but root.
	Alone bool

	// Brief says that only some rows and stories are run unless tests may be slow
	// (CONFINE_SLOW): starting a command costs such a provider much. In a world
	// without namespaces that holds for every provider.
	Brief bool
}

// LayerNamespaces is the name by which Facts.Layers must list namespaces.
const LayerNamespaces = "namespaces"

// Run runs the whole suite. It must be called by a top-level test of a binary
// whose TestMain calls Child. On CI (the environment variable CI is not empty)
// nothing is skipped: what cannot be run is a failure.
func Run(t *testing.T, c Config) {
	if name := os.Getenv(worldVar); name != "" {
		runWorld(t, c, name)
		return
	}
	stage := newTheatre(t)
	for _, w := range worldsOf(os.Geteuid(), slow()) {
		t.Run(w.name(), func(t *testing.T) {
			t.Parallel()
			stage.play(t, w)
		})
	}
}

// runWorld runs every row in the world that this process was put into.
func runWorld(t *testing.T, c Config, name string) {
	i := slices.IndexFunc(allWorlds, func(w world) bool { return w.name() == name })
	if i < 0 {
		t.Fatalf("there is no world %q", name)
	}
	w := newPlace(t, c, allWorlds[i])
	if w.world.bare && c.NeedsNamespaces {
		w.mustRefuse(t)
		return
	}
	brief := (c.Brief || w.world.bare) && !slow()
	tally := &tally{through: map[sandbox.Facet][]string{}, facts: map[sandbox.Facet]sandbox.FacetReport{}}
	t.Run("refused", func(t *testing.T) {
		for _, r := range refused(brief) {
			t.Run(r.name, func(t *testing.T) {
				t.Parallel()
				r.run(t, w, tally)
			})
		}
	})
	t.Run("allowed", func(t *testing.T) {
		for _, r := range some(allowances, brief) {
			t.Run(r.name, func(t *testing.T) {
				t.Parallel()
				r.run(t, w)
			})
		}
	})
	t.Run("sessions", func(t *testing.T) {
		for _, r := range some(slices.Concat(stories, grantStories, limitStories), brief) {
			t.Run(r.name, func(t *testing.T) {
				t.Parallel()
				r.tell(t, w)
			})
		}
	})
	if !selected() && !brief {
		for _, fault := range tally.faults() {
			t.Error(fault)
		}
	}
}

// some are all rows, or every fifth.
func some[Row any](rows []Row, brief bool) []Row {
	if !brief {
		return rows
	}
	const step = 5
	var few []Row
	for i := 0; i < len(rows); i += step {
		few = append(few, rows[i])
	}
	return few
}

// refusals are all rows that a sandbox must not let through, refusalKinds the same
// by kind.
var (
	refusalKinds = [][]refusal{fileWrites, fileReads, metadataChanges, networkReaches, serviceReaches, processReaches, deviceUses, privilegeGains, grantLimits, hiddenReads, protectedChanges}
	refusals     = slices.Concat(refusalKinds...)
)

// refused are all refusals, or some of each kind.
func refused(brief bool) []refusal {
	var rows []refusal
	for _, kind := range refusalKinds {
		rows = append(rows, some(kind, brief)...)
	}
	return rows
}
