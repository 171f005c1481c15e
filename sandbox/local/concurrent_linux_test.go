package local_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
)

// Many runs at once are not mixed up: each gets its own input, environment,
// output and exit code.
func TestConcurrentRuns(t *testing.T) {
	const count = 200
	eachLevel(t, func(t *testing.T, f *fixture) {
		var runs sync.WaitGroup
		for i := range count {
			runs.Go(func() {
				id := fmt.Sprintf("run %d", i)
				spec := f.spec(`read -r line; echo "$line $ID"; echo "$ID" >&2; exit ` + fmt.Sprint(i%256))
				spec.RunID, spec.Session = id, fmt.Sprint(i%3)
				spec.Env = append(spec.Env, "ID="+id)
				spec.Stdin = strings.NewReader(id + "\n")
				p, err := f.provider.Start(context.Background(), spec)
				if err != nil {
					t.Errorf("%s: %v", id, err)
					return
				}
				wait(t, id, p.Done())
				o := finish(t, p)
				if o.stdout != id+" "+id+"\n" || o.stderr != id+"\n" || o.ExitCode != i%256 || o.Signal != "" {
					t.Errorf("%s ended with exit code %d, signal %q, output %q and %q", id, o.ExitCode, o.Signal, o.stdout, o.stderr)
				}
			})
		}
		runs.Wait()
	})
}
