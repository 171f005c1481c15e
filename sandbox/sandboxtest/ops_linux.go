package sandboxtest

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"sync"
	"testing"

	"github.com/confine-dev/confine/sandbox"
)

// Environment variables that RunOps reads.
const (
	opsSeedVar = "CONFINE_OPS_SEED" // number that all operations are drawn from
	opsOnlyVar = "CONFINE_OPS_ONLY" // number of the one operation to be tried
)

// How many operations are tried, and what they are drawn from.
const (
	opsFew  = 1000
	opsMany = 10000
	opsSeed = 3
)

// opsOrders say what is to be tried. They lie in the suite's folder, where every
// world finds them.
type opsOrders struct {
	Seed  uint64
	Count int
	Only  int // negative: all
}

const opsOrdersFile = "ops"

// RunOps tries operations that are drawn at random from a seed, in the same
// worlds as Run. Each works on files of its own, which lie inside, outside and
// on the borders of what the policy lets be changed and are named in every way
// that the system has. All are performed twice: in a scene with nothing
// confined, which says what plain permissions make of them, and in a twin of it
// by confined commands. Three parties must agree on every single one: the
// kernel, the policy and the observer, which the provider must have. Afterwards
// nothing outside may have changed.
//
// It must be called as Run is. With CONFINE_SLOW set in the environment there
// are more operations; CONFINE_OPS_SEED draws others and CONFINE_OPS_ONLY tries
// a single one.
func RunOps(t *testing.T, c Config) {
	if name := os.Getenv(worldVar); name != "" {
		i := slices.IndexFunc(allWorlds, func(w world) bool { return w.name() == name })
		if i < 0 {
			t.Fatalf("there is no world %q", name)
		}
		runOpsHere(t, c, allWorlds[i])
		return
	}
	stage := newTheatre(t)
	orders, err := json.Marshal(ordersOf(t))
	if err == nil {
		err = os.WriteFile(filepath.Join(stage.dir, opsOrdersFile), orders, 0o644)
	}
	if err != nil {
		t.Fatal(err)
	}
	for _, w := range worldsOf(os.Geteuid(), slow()) {
		t.Run(w.name(), func(t *testing.T) {
			t.Parallel()
			stage.play(t, w)
		})
	}
}

func ordersOf(t *testing.T) opsOrders {
	o := opsOrders{Seed: opsSeed, Count: opsFew, Only: -1}
	if slow() {
		o.Count = opsMany
	}
	var err error
	if text := os.Getenv(opsSeedVar); text != "" {
		if o.Seed, err = strconv.ParseUint(text, 10, 64); err != nil {
			t.Fatal(err)
		}
	}
	if text := os.Getenv(opsOnlyVar); text != "" {
		if o.Only, err = strconv.Atoi(text); err != nil {
			t.Fatal(err)
		}
	}
	return o
}

// numbers lists the numbers of the operations.
func (o opsOrders) numbers() []int {
	if o.Only >= 0 {
		return []int{o.Only}
	}
	numbers := make([]int, o.Count)
	for i := range numbers {
		numbers[i] = i
	}
	return numbers
}

// opsTest is a test in one world.
type opsTest struct {
	*place
	orders     opsOrders
	plain      map[int]opsOutcome // by number, with nothing confined
	base       string             // of the scene in which commands are confined
	operations []*operation
	judges     opsJudges

	mu     sync.Mutex // guards what follows
	got    map[int]opsOutcome
	missed int // calls that the observer told it did not see
	wrong  []string
}

func runOpsHere(t *testing.T, c Config, w world) {
	o := &opsTest{place: newPlace(t, c, w), got: map[int]opsOutcome{}}
	if w.bare && c.NeedsNamespaces {
		o.mustRefuse(t)
		return
	}
	data, err := os.ReadFile(filepath.Join(filepath.Dir(o.place.base), opsOrdersFile))
	if err == nil {
		err = json.Unmarshal(data, &o.orders)
	}
	if err != nil {
		t.Fatal(err)
	}
	level := withNamespaces
	if w.bare {
		level = withoutNamespaces
	}
	// The names are of one length, so that both scenes have paths of one length.
	o.control(t, "plain", level)
	o.confine(t, "caged", level)
	o.tell(t)
	if o.orders.Only < 0 {
		o.checkOdds(t)
	}
}

// control performs all operations with nothing confined.
func (o *opsTest) control(t *testing.T, name string, level levels) {
	base, operations := o.scene(t, name)
	before := opsRecords(t, base)
	o.plain = o.perform(t, base, o.orders.numbers(), o.unconfined, o.spec(sandbox.DangerFullAccess)).outcomes
	changed := o.changed(newOpsJudges(base, level, operations), operations, before, opsRecords(t, base))
	if enough := len(operations) / 10; len(changed) < enough {
		t.Errorf("with nothing confined %d files outside changed, not %d: this test cannot fail", len(changed), enough)
	}
}

// confine performs them in confined commands and judges what came of it.
func (o *opsTest) confine(t *testing.T, name string, level levels) {
	o.base, o.operations = o.scene(t, name)
	o.judges = newOpsJudges(o.base, level, o.operations)
	before := opsRecords(t, o.base)
	t.Run("confined", func(t *testing.T) {
		for i, batch := range o.batches() {
			t.Run(strconv.Itoa(i), func(t *testing.T) {
				t.Parallel()
				o.try(t, batch)
			})
		}
	})
	o.wrong = append(o.wrong, o.changed(o.judges, o.operations, before, opsRecords(t, o.base))...)
	if enough := len(o.operations) / 20; o.missed > enough {
		o.wrong = append(o.wrong, fmt.Sprintf("the observer missed %d calls of %d operations: this shows too little", o.missed, len(o.operations)))
	}
}

// scene makes a scene and the operations for it.
func (o *opsTest) scene(t *testing.T, name string) (base string, operations []*operation) {
	real, err := filepath.EvalSymlinks(o.place.base)
	if err != nil {
		t.Fatal(err)
	}
	base = filepath.Join(real, name)
	for _, number := range o.orders.numbers() {
		operations = append(operations, drawOperation(o.orders.Seed, number, base))
	}
	buildOps(t, base, operations)
	return base, operations
}

// changed lists what is outside and not as it was.
func (o *opsTest) changed(y opsJudges, operations []*operation, before, after map[string]opsRecord) (changes []string) {
	whole, metadata := y.excused(operations, o.plain)
	paths := maps.Clone(before)
	maps.Copy(paths, after)
	for _, path := range slices.Sorted(maps.Keys(paths)) {
		j := y[sandbox.WorkspaceWrite] // which changes the folders that all share
		if number := numberOf(path); number >= 0 {
			j = y.of(number)
		}
		if j.writable(j.base+path) || whole[path] {
			continue
		}
		was, is := before[path], after[path]
		if metadata[path] {
			was.metadata, is.metadata = "", ""
		}
		if was != is {
			changes = append(changes, fmt.Sprintf("outside, %q was %+v and is now %+v", path, was, is))
		}
	}
	return changes
}

// opsTold is how much is told of what went wrong.
const opsTold = 20

func (o *opsTest) tell(t *testing.T) {
	for i, what := range o.wrong {
		if i == opsTold {
			t.Errorf("and %d more", len(o.wrong)-i)
			break
		}
		t.Error(what)
	}
	if len(o.wrong) > 0 {
		t.Errorf("the seed was %d: set %s and %s to try one operation again", o.orders.Seed, opsSeedVar, opsOnlyVar)
	}
}

// checkOdds makes sure that the operations of each call were of all sorts: some
// were allowed, some refused, and some failed by themselves.
func (o *opsTest) checkOdds(t *testing.T) {
	type odds struct{ allowed, refused, open, failed, crossed int }
	count := map[string]*odds{}
	for _, c := range opsCalls {
		count[c.name] = &odds{}
	}
	for _, op := range o.operations {
		n, plain, j := count[op.call.name], o.plain[op.number], o.judges.of(op.number)
		switch {
		case j.verdict(op, plain).forced:
			n.refused++
		case plain.errno != 0:
			n.failed++
		case o.got[op.number].errno != 0:
			n.crossed++
		case slices.ContainsFunc(op.call.steps(op)[0].changes, func(c opsChange) bool { return !j.governs(c) && !j.allows(c) }):
			n.open++
		default:
			n.allowed++
		}
	}
	for _, c := range opsCalls {
		n := count[c.name]
		t.Logf("%s: %+v", c.name, *n)
		if n.allowed == 0 || n.failed == 0 || n.refused+n.open == 0 {
			t.Errorf("%s: %+v: the operations do not show enough", c.name, *n)
		}
	}
}
