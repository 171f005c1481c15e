package local_test

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"testing"

	"github.com/confine-dev/confine/sandbox"
	"github.com/confine-dev/confine/sandbox/landlock"
	"github.com/confine-dev/confine/sandbox/local"
)

// Where descriptors run out a run is refused, never confined less, and when
// there are some again everything works as before.
func TestScarceDescriptors(t *testing.T) {
	for _, level := range levels {
		t.Run(string(level), func(t *testing.T) {
			t.Parallel()
			if level == namespaces {
				newFixture(t, level) // skips where there are none
			}
			self, err := os.Executable()
			if err != nil {
				t.Fatal(err)
			}
			cmd := exec.Command("bash", "-c", `ulimit -n 100; exec "$0" "$@"`, self, "__scarce", string(level), realDir(t))
			if out, err := cmd.CombinedOutput(); err != nil {
				t.Fatalf("%v: %s", err, out)
			}
		})
	}
}

func init() { testEntries["__scarce"] = scarceMain }

// scarceMain is a server: args are the level and its state folder.
func scarceMain(args []string) int {
	level := level(args[0])
	e, err := local.New(landlock.New(), local.Options{StateDir: args[1], NoNamespaces: level == noNamespaces, OwnsChildren: true})
	if err != nil {
		return fail(err)
	}
	spec := sandbox.Spec{RunID: "run", Command: "exec sleep 60", Dir: "/", Env: []string{"PATH=/usr/bin:/bin"}, Policy: sandbox.Policy{Mode: sandbox.ReadOnly}}
	provider := sandbox.Provider(e)
	if level == unconfined {
		spec.Policy.Mode, provider = sandbox.DangerFullAccess, e.Unconfined()
	}
	var running []sandbox.Process
	refused := 0
	for refused < 5 { // after the first refusal what is known of the host is found out again
		p, err := provider.Start(context.Background(), spec)
		if err == nil {
			running = append(running, p)
			if refused > 0 && len(running) > 200 {
				return fail(fmt.Errorf("%d runs fit into 100 descriptors", len(running)))
			}
			continue
		}
		if _, ok := err.(*sandbox.UnavailableError); !ok && level != unconfined {
			return fail(fmt.Errorf("the error is %T: %w", err, err))
		}
		refused++
	}
	for _, p := range running {
		p.Cancel()
	}
	for _, p := range running {
		if result, err := p.Wait(); err != nil || result.Signal != "SIGTERM" {
			return fail(fmt.Errorf("a run ended with %+v, %v", result, err))
		}
	}
	spec.Command = "exit 7"
	p, err := provider.Start(context.Background(), spec)
	if err != nil {
		return fail(err)
	}
	result, err := p.Wait()
	if err != nil || result.ExitCode != 7 {
		return fail(fmt.Errorf("the last run ended with %+v, %v", result, err))
	}
	if got := slices.Contains(result.Facts.Layers, "namespaces"); got != (level == namespaces) {
		return fail(fmt.Errorf("the last run had the layers %v", result.Facts.Layers))
	}
	if err := e.Close(); err != nil {
		return fail(err)
	}
	return 0
}
