package local

import (
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/confine-dev/confine/sandbox"
	"golang.org/x/sys/unix"
)

// newTestBehind is an engine whose front passes commands on, as if it had been tried.
func newTestBehind(t *testing.T, script string) *behind {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	state := t.TempDir()
	dir := filepath.Join(state, "server")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	keeper := newKeeper(self, dir)
	t.Cleanup(keeper.close)
	b := newBehind(tryable{argv: fakeFront(t, script)}, self, state, dir, keeper)
	facets := map[sandbox.Facet]sandbox.FacetReport{sandbox.FileRead: {State: sandbox.Open, Reason: "seen"}, sandbox.Network: {State: sandbox.Enforced}}
	for _, mode := range []sandbox.Mode{sandbox.ReadOnly, sandbox.WorkspaceWrite} {
		b.verdicts[frontKey{mode, false}] = frontVerdict{usable: true, facets: facets}
	}
	return b
}

func behindSpec(t *testing.T, script string) sandbox.Spec {
	return sandbox.Spec{RunID: "r", Session: "s", Argv: []string{"/bin/sh", "-c", script}, Dir: t.TempDir(),
		Env: []string{"PATH=/usr/bin:/bin", "TMPDIR=/elsewhere", "CONFINE_SANDBOX=lie"}, Policy: sandbox.Policy{Mode: sandbox.ReadOnly, Unreadable: []string{"/x"}}}
}

func runBehind(t *testing.T, b *behind, spec sandbox.Spec) *run {
	t.Helper()
	program, err := resolve(spec)
	if err != nil {
		t.Fatal(err)
	}
	r, err := b.begin(t.Context(), spec, program)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func TestRunBehindAFront(t *testing.T) {
	b := newTestBehind(t, `exec "$@"`)
	spec := behindSpec(t, `cat; echo "$TMPDIR $CONFINE_SANDBOX"; echo x > "$TMPDIR/f" && echo err >&2; exit 3`)
	spec.Stdin = strings.NewReader("in ")
	r := runBehind(t, b, spec)
	result, err := r.Wait()
	if err != nil {
		t.Fatal(err)
	}
	tmp := filepath.Join(b.dir, "t1")
	out, _ := r.Output(sandbox.StdoutStream).Tail()
	said, _ := r.Output(sandbox.StderrStream).Tail()
	if out != "in "+tmp+" tryable\n" || said != "err\n" {
		t.Errorf("it printed %q and %q", out, said)
	}
	f := result.Facts
	if result.ExitCode != 3 || f.Provider != "tryable" || f.Enforcement != sandbox.EnforcementPartial || f.Facets[sandbox.FileRead].Reason != "seen" ||
		f.Facets[sandbox.FileWrite].State != sandbox.Enforced || len(f.Limits) != len(sandbox.Resources) || result.Observation.State != sandbox.NotObserved {
		t.Errorf("the result is %+v", result)
	}
	if _, err := os.Stat(filepath.Join(tmp, "f")); err != nil {
		t.Errorf("the session's files are gone before it is closed: %v", err)
	}
	b.closeSession("s")
	if _, err := os.Stat(tmp); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the session's files are left: %v", err)
	}
}

func TestDeadlineBehindAFront(t *testing.T) {
	b := newTestBehind(t, `exec "$@"`)
	spec := behindSpec(t, `trap '' TERM; sleep 1000 & echo $!; while :; do wait; done`)
	spec.Timeout, spec.Grace = 100*time.Millisecond, time.Millisecond
	r := runBehind(t, b, spec)
	result, err := r.Wait()
	if err != nil || !result.TimedOut || result.Signal == "" {
		t.Errorf("the result is %+v, %v", result, err)
	}
	out, _ := r.Output(sandbox.StdoutStream).Tail()
	left, err := strconv.Atoi(strings.TrimSpace(out))
	if err != nil {
		t.Fatal(err)
	}
	fd, err := unix.PidfdOpen(left, 0)
	if err != nil {
		return // gone
	}
	defer unix.Close(fd)
	if n, err := unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}, 10000); n != 1 {
		t.Errorf("the process that it started is left: %v", err)
	}
}

func TestFrontThatFailsLater(t *testing.T) {
	b := newTestBehind(t, "echo refused >&2; exit 71")
	spec := behindSpec(t, "echo never")
	program, err := resolve(spec)
	if err != nil {
		t.Fatal(err)
	}
	_, err = b.begin(t.Context(), spec, program)
	unavailable, ok := errors.AsType[*sandbox.UnavailableError](err)
	if !ok || unavailable.Started || unavailable.Detail != "tryable: explained: refused" || len(unavailable.Remedies) != 1 {
		t.Errorf("the error is %#v", err)
	}
	if len(b.verdicts) != 1 {
		t.Errorf("it is still believed: %v", b.verdicts)
	}
}

func TestRootThatWasReplaced(t *testing.T) {
	b := newTestBehind(t, `exec "$@"`)
	spec := behindSpec(t, "echo never")
	dir := filepath.Join(t.TempDir(), "root")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	root, err := sandbox.DeclareRoot(dir, sandbox.Forbidden{})
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	if err := errors.Join(os.Remove(dir), os.Symlink("/", dir)); err != nil {
		t.Fatal(err)
	}
	spec.Policy.Mode, spec.Policy.Roots = sandbox.WorkspaceWrite, []*sandbox.Root{root}
	program, err := resolve(spec)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := b.begin(t.Context(), spec, program); err == nil || !strings.Contains(err.Error(), "became a link") {
		t.Errorf("the error is %v", err)
	}
}

func TestReportOfAFront(t *testing.T) {
	b := newTestBehind(t, `exec "$@"`)
	r := b.report(t.Context())
	if !r.Usable || r.Provider != "tryable" || r.Kind != "test" || r.Facets[sandbox.FileRead].Reason != "seen" || len(r.Limits) != len(sandbox.Resources) {
		t.Errorf("the report is %+v", r)
	}
	b.verdicts = map[frontKey]frontVerdict{} // now it is tried, and confines nothing
	if r := b.report(t.Context()); r.Usable || r.Facets != nil || !strings.Contains(r.Reason, "confines nothing") || len(r.Checks) == 0 {
		t.Errorf("the report is %+v", r)
	}
	if len(b.verdicts) != 0 {
		t.Error("that it is not usable is not found out anew")
	}
}
