package local_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/confine-dev/confine/sandbox"
)

// What a run put where the next one needs a place for a mount must not hold
// that one up, and the server with it.
func TestAPlaceForAMountIsNotOpened(t *testing.T) {
	f := newFixture(t, namespaces)
	dir, err := os.MkdirTemp("/tmp", "confine-place-") // hidden from commands
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	program := filepath.Join(dir, "program")
	if err := os.WriteFile(program, []byte("#!/bin/sh\necho ran\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	f.succeed(t, "mkdir -p "+dir+" && mkfifo "+program)
	spec := f.spec("")
	spec.Argv = []string{program}
	started := make(chan struct{})
	var p sandbox.Process
	go func() {
		defer close(started)
		p, err = f.provider.Start(t.Context(), spec)
	}()
	wait(t, "the program to start", started)
	if err != nil {
		t.Fatal(err)
	}
	if o := finish(t, p); o.stdout != "ran\n" {
		t.Errorf("the program printed %q, and %q", o.stdout, o.stderr)
	}
}

// A folder that becomes a root after the session's first run gets what is
// written to it, though a tool keeps its cache there.
func TestACacheThatBecomesARoot(t *testing.T) {
	cache := hostCache(t)
	f := newFixture(t, namespaces)
	f.succeed(t, "true")
	root, err := sandbox.DeclareRoot(cache, sandbox.Forbidden{})
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	f.policy.Roots = append(f.policy.Roots, root)
	f.succeed(t, "echo kept >"+cache+"/added")
	if data, err := os.ReadFile(filepath.Join(cache, "added")); err != nil || string(data) != "kept\n" {
		t.Errorf("what the command wrote to its workspace is %q, %v", data, err)
	}
}
