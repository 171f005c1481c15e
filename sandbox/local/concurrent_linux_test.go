package local_test

import (
	"context"
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"

	"github.com/confine-dev/confine/sandbox"
)

// Many runs at once are not mixed up: each gets its own input, environment,
// output and exit code.
func TestConcurrentRuns(t *testing.T) {
	eachLevel(t, func(t *testing.T, f *fixture) {
		count := 200
		if f.level != namespaces && os.Getenv("CONFINE_SLOW") == "" {
			count = 50
		}
		id := func(i int) string { return fmt.Sprintf("run %d", i) }
		processes := make([]sandbox.Process, count)
		var starting sync.WaitGroup
		for i := range count {
			starting.Go(func() {
				id := id(i)
				spec := f.spec(`read -r line; echo "$line $ID"; echo "$ID" >&2; exit ` + fmt.Sprint(i%256))
				spec.RunID, spec.Session = id, fmt.Sprint(i%3)
				spec.Env = append(spec.Env, "ID="+id)
				spec.Stdin = strings.NewReader(id + "\n")
				var err error
				if processes[i], err = f.provider.Start(context.Background(), spec); err != nil {
					t.Errorf("%s: %v", id, err)
				}
			})
		}
		starting.Wait()
		if t.Failed() {
			return
		}
		for i, p := range processes {
			o, id := finish(t, p), id(i)
			if o.stdout != id+" "+id+"\n" || o.stderr != id+"\n" || o.ExitCode != i%256 || o.Signal != "" {
				t.Errorf("%s ended with exit code %d, signal %q, output %q and %q", id, o.ExitCode, o.Signal, o.stdout, o.stderr)
			}
		}
	})
}
