//go:build unix

package opensandbox_test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/confine-dev/confine/sandbox"
	"github.com/confine-dev/confine/sandbox/opensandbox"
	"github.com/confine-dev/confine/sandbox/opensandbox/osbtest"
)

// TestChaos runs commands at a service that fails as a seed says, 20 of them, or 500
// with CONFINE_SLOW set in the environment. What it says of each must be true, none may
// run twice, and nothing may be left. CONFINE_FAULT_SEED plays one seed alone.
func TestChaos(t *testing.T) {
	seeds, first := uint64(20), uint64(1)
	if os.Getenv("CONFINE_SLOW") != "" {
		seeds = 500
	}
	if text := os.Getenv("CONFINE_FAULT_SEED"); text != "" {
		seed, err := strconv.ParseUint(text, 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		seeds, first = 1, seed
	}
	tally := &tally{ways: map[string]int{}}
	t.Run("seeds", func(t *testing.T) {
		for seed := first; seed < first+seeds; seed++ {
			t.Run(fmt.Sprint(seed), func(t *testing.T) {
				t.Parallel()
				chaos(t, seed, tally)
			})
		}
	})
	t.Logf("%d runs, %d of %d calls spoiled, ends: %v", tally.runs, tally.spoiled, tally.calls, tally.ways)
	// A suite in which nothing goes wrong, or nothing goes right, shows nothing.
	if seeds > 1 && (tally.spoiled*20 < tally.calls || tally.ways[ended] == 0 || tally.ways[broken] == 0) {
		t.Errorf("too little happened")
	}
}

// tally is what happened in all seeds.
type tally struct {
	mu                   sync.Mutex
	runs, calls, spoiled int
	ways                 map[string]int
}

func (n *tally) add(b *bench, accounts []account) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, a := range accounts {
		n.runs++
		n.ways[a.how()]++
	}
	for _, r := range b.fake.Requests() {
		n.calls++
		if r.Fault != "" {
			n.spoiled++
		}
	}
}

// deed is one command and what is done to it.
type deed struct {
	command string
	timeout time.Duration
	cancel  bool
	printed string // if it ends by itself
}

var deeds = []deed{
	{command: "echo one; echo two; exit 0", printed: "one\ntwo\n"},
	{command: "echo one; exit 3", printed: "one\n"},
	{command: "exit 255"},
	{command: "kill -9 $$"},
	{command: "echo one; sleep 1000", cancel: true},
	{command: "sleep 1000", timeout: 30 * time.Millisecond},
	{command: "trap '' TERM; while :; do sleep 0.01; done", timeout: 20 * time.Millisecond},
	{command: "sleep 0.01; echo late", cancel: true},
}

// chaos plays one seed.
func chaos(t *testing.T, seed uint64, tally *tally) {
	random := rand.New(rand.NewPCG(seed, 0))
	output := []string{opensandbox.OutputLines, opensandbox.OutputLines, opensandbox.OutputBytes}[random.IntN(3)]
	b := newBench(t, osbtest.Options{PendingPolls: random.IntN(3), Kill: 20 * time.Millisecond}, func(c *opensandbox.Config) {
		c.Output = output
		c.Patience = 5 * time.Second
		c.Renew = time.Duration(1+random.IntN(20)) * time.Millisecond
	})
	b.fake.Chaos(seed, 5+random.IntN(30))
	var accounts []account
	for i := range 3 {
		accounts = append(accounts, b.do(t, fmt.Sprintf("seed-%d-run-%d", seed, i), deeds[random.IntN(len(deeds))]))
	}
	for _, fault := range b.close() {
		t.Error(fault)
	}
	var texts []string
	for _, a := range accounts {
		texts = append(texts, a.text())
		for _, lie := range b.lies(a) {
			t.Errorf("%s\n%s", lie, a.text())
		}
	}
	for _, leak := range b.leaks(texts...) {
		t.Error(leak)
	}
	if t.Failed() {
		for _, r := range b.fake.Requests() {
			t.Logf("%s %s %s %s", r.Route, r.Method, r.Path, r.Fault)
		}
	}
	tally.add(b, accounts)
}

// do runs one command and judges its output.
func (b *bench) do(t *testing.T, mark string, d deed) account {
	s := spec(mark, d.command)
	s.Timeout, s.Grace = d.timeout, 20*time.Millisecond
	process, err := b.provider.Start(t.Context(), s)
	if err != nil {
		return account{mark: mark, startErr: err}
	}
	if d.cancel {
		process.Cancel()
	}
	a := account{mark: mark}.wait(process)
	if a.how() == ended && a.result.Signal == "" && a.result.Missing == "" && !d.cancel && !b.spoiled(osbtest.Duplicate) && a.stdout != d.printed {
		t.Errorf("it printed %q, want %q, and nothing is said to be missing", a.stdout, d.printed)
	}
	return a
}

// spoiled reports whether a fault of that kind happened.
func (b *bench) spoiled(kind osbtest.Kind) bool {
	for _, r := range b.fake.Requests() {
		if r.Fault == kind {
			return true
		}
	}
	return false
}

// collect gathers output as it comes.
func collect(into *strings.Builder) func(sandbox.Chunk) {
	return func(c sandbox.Chunk) { into.Write(c.Data) }
}

// TestLies shows that the judge of this suite finds what is untrue.
func TestLies(t *testing.T) {
	b := newBench(t, osbtest.Options{}, nil)
	honest := b.run(t.Context(), spec("honest", "exit 3"))
	if lies := b.lies(honest); len(lies) != 0 {
		t.Fatalf("an honest account: %v", lies)
	}
	twice := b.run(t.Context(), spec("twice", "exit 0"))
	b.run(t.Context(), spec("twice", "exit 0"))
	for name, a := range map[string]account{
		"false success":        {mark: "honest", result: sandbox.Result{ExitCode: 0}},
		"another code":         {mark: "honest", result: sandbox.Result{ExitCode: 4}},
		"a signal":             {mark: "honest", result: sandbox.Result{Signal: "SIGKILL"}},
		"never ran":            {mark: "unknown", result: sandbox.Result{ExitCode: 0}},
		"said not to have run": {mark: "honest", startErr: &sandbox.UnavailableError{}},
		"its own fault":        {mark: "honest", startErr: &sandbox.StartError{}},
		"another error":        {mark: "unknown", startErr: fmt.Errorf("no")},
		"twice":                twice,
	} {
		if lies := b.lies(a); len(lies) == 0 {
			t.Errorf("%s was believed", name)
		}
	}
	if leaks := b.leaks("the key is " + b.fake.Key()); len(leaks) != 1 {
		t.Errorf("leaks: %v", leaks)
	}
	if left := b.fake.Ledger().Existing(); len(left) != 1 {
		t.Errorf("left before the end: %v", left)
	}
	b.expectClean(t, honest)
}
