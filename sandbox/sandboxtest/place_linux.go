package sandboxtest

import (
	"context"
	"errors"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/confine-dev/confine/sandbox"
	"golang.org/x/sys/unix"
)

// place is what all rows of one world share.
type place struct {
	world      world
	alone      bool   // Config.Alone
	program    string // this binary, readable inside
	confined   sandbox.Provider
	unconfined sandbox.Provider
	base       string        // the world's folder
	state      string        // the provider's
	root       *sandbox.Root // the writable root
	outside    string        // beside the root
	runtime    string        // the user's runtime folder, which a sandbox hides
	temp       string        // folder below the host's /tmp
	home       string
	services   services

	count atomic.Int64
}

// session is the session of all rows that do not need one of their own.
const session = "rows"

func newPlace(t *testing.T, c Config, w world) *place {
	w.check(t)
	p := &place{world: w, alone: c.Alone, base: os.Getenv(baseVar), home: os.Getenv("HOME"), runtime: os.Getenv("XDG_RUNTIME_DIR")}
	p.program = filepath.Join(filepath.Dir(p.base), "suite")
	p.state = filepath.Join(p.base, "state")
	// The names begin alike: a sandbox must not compare paths as text.
	root := filepath.Join(p.base, "workspace")
	p.outside = root + "-outside"
	temp, err := os.MkdirTemp("/tmp", "confine-suite-")
	if err != nil {
		t.Fatal(err)
	}
	p.temp = temp
	t.Cleanup(func() { os.RemoveAll(temp) })
	if err := errors.Join(os.Mkdir(root, 0o755), os.Mkdir(p.outside, 0o755), os.WriteFile(filepath.Join(root, "workspace-file"), []byte("host"), 0o644)); err != nil {
		t.Fatal(err)
	}
	p.root = p.declare(t, root)
	p.leakFolder(t)
	p.confined, p.unconfined, err = c.New(p.state)
	if err != nil {
		t.Fatalf("making the provider: %v", err)
	}
	t.Cleanup(func() {
		if err := p.confined.Close(); err != nil {
			t.Errorf("closing the provider: %v", err)
		}
		p.checkLeftovers(t)
	})
	p.checkLevel(t, c)
	p.services.open(t, p)
	return p
}

func (p *place) declare(t *testing.T, path string) *sandbox.Root {
	t.Helper()
	root, err := sandbox.DeclareRoot(path, sandbox.Forbidden{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { root.Close() })
	return root
}

// leakFolder opens a folder outside as a careless program would that starts the
// server: it stays open across execve. No command may find it.
func (p *place) leakFolder(t *testing.T) {
	dir := filepath.Join(p.outside, "leaked")
	if err := errors.Join(os.Mkdir(dir, 0o755), os.WriteFile(filepath.Join(dir, "file"), []byte("host"), 0o644)); err != nil {
		t.Fatal(err)
	}
	fd, err := unix.Open(dir, unix.O_RDONLY|unix.O_DIRECTORY, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { unix.Close(fd) })
}

// checkLevel makes sure that rows are not judged by a weaker level than the
// world has.
func (p *place) checkLevel(t *testing.T, c Config) {
	report := p.confined.Probe(context.Background())
	switch {
	case p.world.bare && c.NeedsNamespaces:
		if report.Usable {
			t.Errorf("the provider calls itself usable where the host refuses namespaces: %+v", report)
		}
	case !report.Usable:
		t.Fatalf("the provider is not usable: %s %+v", report.Reason, report.Checks)
	case levelOf(sandbox.Facts{Layers: report.Layers}) == withNamespaces == p.world.bare:
		t.Fatalf("layers %v, in the world %s: %s", report.Layers, p.world.name(), report.Reason)
	}
}

// checkLeftovers looks at what must be gone once the provider is closed.
func (p *place) checkLeftovers(t *testing.T) {
	err := filepath.WalkDir(filepath.Join(p.state, "servers"), func(path string, d os.DirEntry, err error) error {
		if err == nil && filepath.Base(filepath.Dir(path)) == "servers" {
			t.Errorf("the closed provider left %s", path)
			return filepath.SkipDir
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
}

// mustRefuse checks that nothing runs.
func (p *place) mustRefuse(t *testing.T) {
	for _, mode := range []sandbox.Mode{sandbox.ReadOnly, sandbox.WorkspaceWrite} {
		spec := p.spec(mode)
		spec.Argv = []string{"/bin/true"}
		_, err := p.confined.Start(context.Background(), spec)
		var unavailable *sandbox.UnavailableError
		if !errors.As(err, &unavailable) {
			t.Errorf("%s: got %v, want a sandbox.UnavailableError", mode, err)
		}
	}
}

// spec is a command in the workspace without its argv.
func (p *place) spec(mode sandbox.Mode) sandbox.Spec {
	return sandbox.Spec{RunID: "row", Session: session, Dir: p.root.Path, Timeout: opTime,
		Env:    []string{"PATH=/usr/local/bin:/usr/bin:/bin", "HOME=" + p.home, "TMPDIR=" + os.Getenv("TMPDIR"), noSleep},
		Policy: sandbox.Policy{Mode: mode, Roots: []*sandbox.Root{p.root}}}
}

// selected reports whether only some rows are to run.
func selected() bool { return strings.Contains(flag.Lookup("test.run").Value.String(), "/") }
