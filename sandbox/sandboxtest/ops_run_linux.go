package sandboxtest

import (
	"fmt"
	"maps"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/confine-dev/confine/sandbox"
)

// opsRun is one command that performed operations.
type opsRun struct {
	pid      int // as it knows itself
	outcomes map[int]opsOutcome
	result   sandbox.Result
}

// perform performs operations by one command.
func (o *opsTest) perform(t *testing.T, base string, numbers []int, p sandbox.Provider, spec sandbox.Spec) opsRun {
	t.Helper()
	spec.Argv = []string{o.program, entryOps, strconv.FormatUint(o.orders.Seed, 10), base}
	for _, n := range numbers {
		spec.Argv = append(spec.Argv, strconv.Itoa(n))
	}
	spec.Dir, spec.KeepOutput = filepath.Join(base, string(areaWork)), 64*len(numbers)+sandbox.DefaultKeep
	result, stdout, stderr := start(t, p, spec)
	pid, outcomes, err := parseOps(stdout)
	if err != nil || len(outcomes) != len(numbers) || stderr != "" {
		t.Fatalf("the child told of %d operations of %d (%v): exit code %d, signal %q, stderr %q", len(outcomes), len(numbers), err, result.ExitCode, result.Signal, stderr)
	}
	return opsRun{pid, outcomes, result}
}

// opsBatch is what one confined command does: so little that all its denials
// are listed one by one.
type opsBatch struct {
	mode       sandbox.Mode
	operations []*operation
	denials    int // at most
}

// Limits of a batch.
const (
	opsBatchDenials = 64 // that a result lists
	opsBatchSize    = 400
)

func (o *opsTest) batches() (batches []opsBatch) {
	for _, mode := range bothModes {
		batch := opsBatch{mode: mode}
		for _, op := range o.operations {
			if opsMode(op.number) != mode {
				continue
			}
			more := len(o.judges.of(op.number).verdict(op, o.plain[op.number]).denied)
			if batch.denials+more > opsBatchDenials || len(batch.operations) == opsBatchSize {
				batches, batch = append(batches, batch), opsBatch{mode: mode}
			}
			batch.operations, batch.denials = append(batch.operations, op), batch.denials+more
		}
		if len(batch.operations) > 0 {
			batches = append(batches, batch)
		}
	}
	return batches
}

// try performs a batch and judges what came of it.
func (o *opsTest) try(t *testing.T, batch opsBatch) {
	spec := o.spec(batch.mode)
	spec.RunID, spec.Session, spec.Policy = "ops", "ops", o.policy(t, batch)
	// Where there are no namespaces sockets are refused in a way that is not
	// observed; no operation needs one.
	spec.Policy.Network = o.world.bare
	var numbers []int
	for _, op := range batch.operations {
		numbers = append(numbers, op.number)
	}
	run := o.perform(t, o.base, numbers, o.confined, spec)
	denials := map[int][]sandbox.Denial{}
	for _, d := range run.result.Denials {
		number := numberOf(strings.TrimPrefix(d.Path, o.base))
		denials[number] = append(denials[number], d)
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	// On a machine that is busy with other things the guardian may stand in for this process.
	seen := run.result.Observation
	if seen.State != sandbox.ObservedFully && seen.Omitted == 0 {
		o.wrong = append(o.wrong, fmt.Sprintf("a run was not observed as a whole: %+v", seen))
	}
	o.missed += int(seen.Omitted)
	maps.Copy(o.got, run.outcomes)
	for _, op := range batch.operations {
		if what := o.judges.of(op.number).disagreement(op, o.plain[op.number], run.outcomes[op.number], denials[op.number], seen.Omitted > 0); what != "" {
			o.wrong = append(o.wrong, fmt.Sprintf("in %s mode, %v\n\t%s", batch.mode, op, what))
		}
		delete(denials, op.number)
	}
	for _, list := range denials {
		o.wrong = append(o.wrong, fmt.Sprintf("denials of nothing that was tried: %+v", list))
	}
	for _, d := range run.result.Denials {
		if d.PID != run.pid || d.Exe != filepath.Base(o.program) {
			o.wrong = append(o.wrong, fmt.Sprintf("a denial of process %d (%s) is %+v", run.pid, o.program, d))
		}
	}
}

// policy is the policy of a batch: what all share, and the paths that the
// policy names for one operation.
func (o *opsTest) policy(t *testing.T, batch opsBatch) sandbox.Policy {
	in := func(area opsArea) string { return filepath.Join(o.base, string(area)) }
	p := sandbox.Policy{Mode: batch.mode, Protected: []string{in(areaKept)}, Writable: []*sandbox.Root{identify(t, in(areaGranted))}}
	for _, area := range []opsArea{areaWork, areaSecond, areaGuarded} {
		p.Roots = append(p.Roots, o.declare(t, in(area)))
	}
	for _, op := range batch.operations {
		for _, object := range op.objects {
			switch object.top {
			case topRoot:
				p.Roots = append(p.Roots, o.declare(t, object.path))
			case topGranted:
				p.Writable = append(p.Writable, identify(t, object.path))
			case topProtected:
				p.Protected = append(p.Protected, object.path)
			}
		}
	}
	return p
}
