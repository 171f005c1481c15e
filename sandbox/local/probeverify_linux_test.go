package local_test

import (
	"context"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/confine-dev/confine/sandbox"
	"github.com/confine-dev/confine/sandbox/landlock"
	"github.com/confine-dev/confine/sandbox/local"
)

var _ sandbox.Verifier = (*local.Engine)(nil)

// liar is a wrapper whose launches, or whose words, are not what they should be.
type liar struct {
	*landlock.Wrapper
	request func(*local.Request)
	launch  func(testing.TB, *local.Launch)
	claims  func(map[sandbox.Facet]sandbox.FacetReport)
	t       testing.TB
}

func (l liar) Wrap(r local.Request) (*local.Launch, error) {
	if l.request != nil {
		l.request(&r)
	}
	launch, err := l.Wrapper.Wrap(r)
	if err == nil && l.launch != nil && r.Namespaces {
		l.launch(l.t, launch)
	}
	return launch, err
}

func (l liar) Claims(p sandbox.Policy, namespaces bool) local.Claims {
	c := l.Wrapper.Claims(p, namespaces)
	if l.claims != nil {
		c.Facets = maps.Clone(c.Facets)
		l.claims(c.Facets)
	}
	return c
}

// leaveOut is a launch without some of its calls.
func leaveOut(calls ...string) func(testing.TB, *local.Launch) {
	return func(t testing.TB, l *local.Launch) {
		for _, what := range calls {
			if l.Prepare.Forget(what)+l.Confine.Forget(what) == 0 {
				t.Errorf("there is no call %q to leave out", what)
			}
		}
	}
}

// ordinaryDir is a temporary folder where no view hides it.
func ordinaryDir(t testing.TB) string {
	t.Helper()
	dir, err := os.MkdirTemp("/var/tmp", "confine-test-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := os.RemoveAll(dir); err != nil {
			t.Error(err)
		}
	})
	return dir
}

// verifying is an engine in an ordinary place, where it leaves nothing.
func verifying(t *testing.T, w local.Wrapper, level level) *local.Engine {
	t.Helper()
	base := ordinaryDir(t)
	state := filepath.Join(base, "state")
	if err := os.Mkdir(state, 0o700); err != nil {
		t.Fatal(err)
	}
	e, err := local.New(w, local.Options{StateDir: state, NoNamespaces: level == noNamespaces})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := e.Close(); err != nil {
			t.Error(err)
		}
		if left := serverFolders(t, state); len(left) > 0 {
			t.Errorf("it left %q", left)
		}
		if left, err := os.ReadDir(base); err != nil || len(left) != 1 {
			t.Errorf("beside its folder are %v (%v)", left, err)
		}
	})
	return e
}

// tried skips a test whose level this host does not have.
func tried(t *testing.T, v sandbox.Verification) {
	t.Helper()
	if v.Reason != "" && v.Namespaces {
		t.Skipf("this host has no namespaces for us: %s", v.Reason)
	}
	if v.Reason != "" {
		t.Fatalf("%s: %s", v, v.Reason)
	}
}

// What is claimed holds on this host, and it is what runs report.
func TestVerifyConfirms(t *testing.T) {
	for _, level := range []level{namespaces, noNamespaces} {
		t.Run(string(level), func(t *testing.T) {
			t.Parallel()
			e := verifying(t, landlock.New(), level)
			all := e.Verify(t.Context())
			if len(all) != 8 {
				t.Errorf("%d combinations were verified", len(all))
			}
			for _, v := range all {
				for _, problem := range v.Problems() {
					t.Error(problem)
				}
				if v.Namespaces != (level == namespaces) {
					if v.InUse {
						t.Errorf("%s is in use", v)
					}
					continue
				}
				tried(t, v)
				confirmedByRun(t, e, v)
			}
		})
	}
}

// confirmedByRun compares what Verify confirmed with what a run reports.
func confirmedByRun(t *testing.T, e *local.Engine, v sandbox.Verification) {
	t.Helper()
	if !v.InUse {
		t.Fatalf("%s is not in use", v)
	}
	if len(v.Facets) != len(sandbox.Facets) || len(v.Controls) == 0 {
		t.Errorf("%s: %d facets and %d controls", v, len(v.Facets), len(v.Controls))
	}
	facts := factsOf(t, e, v)
	for _, f := range v.Facets {
		if !slices.ContainsFunc(f.Trials, func(x sandbox.Trial) bool { return x.Outcome != sandbox.Untried }) {
			t.Errorf("%s: nothing tried %s", v, f.Facet)
		}
		if got := facts.Facets[f.Facet]; got != f.Confirmed {
			t.Errorf("%s: %s is confirmed as %+v, but a run says %+v", v, f.Facet, f.Confirmed, got)
		}
	}
	if !slices.Equal(facts.Layers, v.Layers) {
		t.Errorf("%s: layers %q, but a run says %q", v, v.Layers, facts.Layers)
	}
}

// factsOf is what a run says of itself.
func factsOf(t *testing.T, e *local.Engine, v sandbox.Verification) sandbox.Facts {
	t.Helper()
	p, err := e.Start(t.Context(), sandbox.Spec{RunID: "run", Session: t.Name(), Argv: []string{"/bin/true"}, Dir: "/", Env: []string{"PATH=/usr/bin:/bin"},
		Policy: sandbox.Policy{Mode: v.Mode, Network: v.Network, Unreadable: []string{"/etc/passwd"}}, Timeout: patience})
	if err != nil {
		t.Fatalf("%s: %v", v, err)
	}
	return finish(t, p).Facts
}

// A lie is caught: Verify names the facet that is not as claimed, and no other,
// and runs do not repeat the lie.
func TestVerifyCatchesLies(t *testing.T) {
	enforced := sandbox.FacetReport{State: sandbox.Enforced}
	say := func(facet sandbox.Facet, report sandbox.FacetReport) func(map[sandbox.Facet]sandbox.FacetReport) {
		return func(facets map[sandbox.Facet]sandbox.FacetReport) { facets[facet] = report }
	}
	for _, row := range []struct {
		name   string
		level  level
		lie    liar
		facets []sandbox.Facet
		maybe  sandbox.Facet // as well, where the kernel has what it takes
		others bool          // controls fail too, or runs are refused
	}{
		{"a folder stays writable", noNamespaces, liar{request: withWritableFolder}, []sandbox.Facet{sandbox.FileWrite}, "", true},
		{"the view stays writable", namespaces, liar{launch: leaveOut("making everything read-only")}, []sandbox.Facet{sandbox.Metadata}, "", false},
		{"metadata are said to be safe", noNamespaces, liar{claims: say(sandbox.Metadata, enforced)}, []sandbox.Facet{sandbox.Metadata}, "", false},
		{"the network is shared", noNamespaces, liar{request: func(r *local.Request) { r.Policy.Network = true }}, []sandbox.Facet{sandbox.Network}, "", false},
		{"the network of the host is joined", namespaces, liar{launch: func(_ testing.TB, l *local.Launch) { l.SharedNetwork = true }},
			[]sandbox.Facet{sandbox.Network, sandbox.UnixSockets}, "", false}, // abstract sockets come with it
		{"temporary files of the host stay", namespaces, liar{launch: func(t testing.TB, l *local.Launch) {
			if l.Prepare.Forget("showing the session's temporary files")+l.Prepare.Forget("making temporary files") == 0 {
				t.Error("the temporary files are mounted in another way")
			}
			l.Env["TMPDIR"] = "/dev/shm"
		}}, []sandbox.Facet{sandbox.UnixSockets}, "", false},
		{"sockets are said to be out of reach", namespaces, liar{claims: say(sandbox.UnixSockets, enforced)}, []sandbox.Facet{sandbox.UnixSockets}, "", false},
		{"the processes of the host are shown", namespaces, liar{launch: leaveOut("mounting /proc")}, []sandbox.Facet{sandbox.Processes}, "", false},
		{"processes are said to be hidden", noNamespaces, liar{claims: say(sandbox.Processes, enforced)}, []sandbox.Facet{sandbox.Processes}, "", false},
		{"devices are said to be closed", noNamespaces, liar{claims: say(sandbox.Devices, enforced)}, []sandbox.Facet{sandbox.Devices}, "", false},
		{"files are said to be hidden", noNamespaces, liar{claims: say(sandbox.FileRead, sandbox.FacetReport{State: sandbox.Partial, Reason: "confine's own are"})},
			[]sandbox.Facet{sandbox.FileRead}, "", false},
		{"nothing is hidden", namespaces, liar{request: func(r *local.Request) { r.Policy.Unreadable = nil }}, []sandbox.Facet{sandbox.FileRead}, "", false},
		{"there is no filter", namespaces, liar{launch: leaveOut("installing the seccomp filter")}, []sandbox.Facet{sandbox.Devices}, sandbox.Network, true},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			row.lie.Wrapper, row.lie.t = landlock.New(), t
			e := verifying(t, row.lie, row.level)
			v, err := e.VerifyOne(t.Context(), sandbox.WorkspaceWrite, row.level == namespaces)
			if err != nil {
				t.Fatal(err)
			}
			tried(t, v)
			var wrong []sandbox.Facet
			for _, f := range v.Facets {
				if f.Finding == sandbox.ClaimFails && f.Facet != row.maybe {
					wrong = append(wrong, f.Facet)
				}
			}
			if !slices.Equal(wrong, row.facets) {
				t.Errorf("%q are not as claimed, want %q", wrong, row.facets)
			}
			if problems := v.Problems(); len(problems) < len(row.facets) || !row.others && len(problems) > len(row.facets) {
				t.Errorf("the problems are %q", problems)
			}
			if !row.others {
				repeatsNothing(t, e, v)
			}
		})
	}
}

// withWritableFolder opens the folder around confine's own for writing.
func withWritableFolder(r *local.Request) {
	root, err := sandbox.DeclareRoot(filepath.Dir(r.State), sandbox.Forbidden{})
	if err != nil {
		panic(err)
	}
	root.Close() // where and what it is stays known
	r.Policy.Mode = sandbox.WorkspaceWrite
	r.Policy.Roots = append(slices.Clone(r.Policy.Roots), root)
}

// repeatsNothing runs a command where a lie was found.
func repeatsNothing(t *testing.T, e *local.Engine, v sandbox.Verification) {
	t.Helper()
	if !v.InUse {
		t.Errorf("%s is not in use", v)
		return
	}
	facts := factsOf(t, e, v)
	for _, f := range v.Facets {
		if got := facts.Facets[f.Facet].State; got != f.Confirmed.State {
			t.Errorf("%s: %s is confirmed as %s, but a run says %s", v, f.Facet, f.Confirmed.State, got)
		}
	}
}

// What a quick probe does not see is not claimed again once Verify saw it.
func TestVerifyIsRemembered(t *testing.T) {
	lie := liar{Wrapper: landlock.New(), t: t, claims: func(facets map[sandbox.Facet]sandbox.FacetReport) {
		facets[sandbox.FileRead] = sandbox.FacetReport{State: sandbox.Partial, Reason: "confine's own are hidden"}
	}}
	e, err := local.New(lie, local.Options{StateDir: realDir(t), NoNamespaces: true})
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	v := sandbox.Verification{Mode: sandbox.ReadOnly}
	factsOf(t, e, v) // what is found now must be forgotten
	e.Verify(t.Context())
	if got := factsOf(t, e, v).Facets[sandbox.FileRead].State; got != sandbox.Open {
		t.Errorf("the facet is called %s", got)
	}
}

// Nothing is tried without a wrapper, after closing, or once it was called off.
func TestVerifyNothing(t *testing.T) {
	bare, err := local.New(nil, local.Options{StateDir: realDir(t)})
	if err != nil {
		t.Fatal(err)
	}
	defer bare.Close()
	if got := bare.Verify(t.Context()); len(got) != 0 {
		t.Errorf("without a wrapper: %+v", got)
	}
	e, err := local.New(landlock.New(), local.Options{StateDir: realDir(t)})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for _, v := range e.Verify(ctx) {
		if v.Reason == "" || len(v.Facets) > 0 || len(v.Problems()) > 0 {
			t.Errorf("called off: %+v", v)
		}
	}
	e.Close()
	if got := e.Verify(t.Context()); len(got) != 0 {
		t.Errorf("after closing: %+v", got)
	}
}

// The folders in which sockets were made are as they were.
func TestVerifyLeavesNoSockets(t *testing.T) {
	runtime := t.TempDir()
	t.Setenv("XDG_RUNTIME_DIR", runtime)
	before := socketFolders()
	e := verifying(t, landlock.New(), noNamespaces)
	v, err := e.VerifyOne(t.Context(), sandbox.ReadOnly, false)
	if err != nil {
		t.Fatal(err)
	}
	tried(t, v)
	if i := slices.IndexFunc(v.Facets, func(f sandbox.VerifiedFacet) bool { return f.Facet == sandbox.UnixSockets }); !slices.ContainsFunc(v.Facets[i].Trials,
		func(x sandbox.Trial) bool {
			return strings.Contains(x.Name, "runtime folder") && x.Outcome == sandbox.Possible
		}) {
		t.Errorf("the socket in the runtime folder was not tried: %+v", v.Facets[i])
	}
	left, err := os.ReadDir(runtime)
	if err != nil || len(left) > 0 {
		t.Errorf("%v is left (%v)", left, err)
	}
	eventually(t, "nothing to be left of this or of a test beside it", func() bool {
		return !slices.ContainsFunc(socketFolders(), func(folder string) bool { return !slices.Contains(before, folder) })
	})
}

// socketFolders are those that exist now, others' too.
func socketFolders() []string {
	inTmp, _ := filepath.Glob("/tmp/.confine-verify-*")
	inRun, _ := filepath.Glob("/run/.confine-verify-*")
	return append(inTmp, inRun...)
}
