package local

import (
	"errors"
	"os"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/confine-dev/confine/sandbox"
)

// tryable is a front that claims everything.
type tryable struct {
	argv []string
	err  error
}

func (tryable) Name() string { return "tryable" }
func (tryable) Kind() string { return "test" }
func (f tryable) Argv(sandbox.Policy, []string, []string) ([]string, error) {
	return f.argv, f.err
}
func (tryable) Facets(p sandbox.Policy) map[sandbox.Facet]sandbox.FacetReport {
	facets := map[sandbox.Facet]sandbox.FacetReport{}
	for _, f := range sandbox.Facets {
		facets[f] = sandbox.FacetReport{State: sandbox.Enforced}
	}
	return facets
}
func (tryable) Explain(said string) (string, []string) {
	return "explained: " + strings.TrimSpace(said), []string{"a remedy"}
}

// TestFrontThatConfinesNothing is the reason for trying: a program that starts the
// command and does nothing else is found out.
func TestFrontThatConfinesNothing(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	for _, mode := range []sandbox.Mode{sandbox.ReadOnly, sandbox.WorkspaceWrite} {
		dir := t.TempDir()
		v := tryFront(t.Context(), tryable{argv: fakeFront(t, `exec "$@"`)}, self, dir, mode, false)
		if v.usable || !strings.Contains(v.reason, "confines nothing") {
			t.Errorf("%s: the verdict is %+v", mode, v)
		}
		for _, facet := range []sandbox.Facet{sandbox.FileWrite, sandbox.FileRead, sandbox.Network, sandbox.Metadata, sandbox.Processes} {
			if v.facets[facet].State != sandbox.Open {
				t.Errorf("%s: %s is called %+v", mode, facet, v.facets[facet])
			}
		}
		for _, c := range v.checks { // all could be done, so that refusing can be told from failing
			if c.OK != !strings.HasPrefix(c.Name, "refused: ") {
				t.Errorf("%s: %+v", mode, c)
			}
		}
		if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
			t.Errorf("%s: left behind: %v, %v", mode, left, err)
		}
	}
}

func TestFrontThatFails(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	v := tryFront(t.Context(), tryable{argv: fakeFront(t, "echo no >&2; exit 71")}, self, t.TempDir(), sandbox.ReadOnly, false)
	if v.usable || v.reason != "explained: no" || !slices.Equal(v.remedies, []string{"a remedy"}) {
		t.Errorf("the verdict is %+v", v)
	}
	v = tryFront(t.Context(), tryable{err: errors.New("no profile")}, self, t.TempDir(), sandbox.ReadOnly, false)
	if v.usable || v.reason != "no profile" {
		t.Errorf("the verdict is %+v", v)
	}
}

func TestJudgingAFront(t *testing.T) {
	const done, eperm, enoent = 0, int(syscall.EPERM), int(syscall.ENOENT)
	trials := []frontTrial{{name: "work"}, {facet: sandbox.FileWrite, name: "write"}, {facet: sandbox.FileRead, name: "read"}}
	claims := map[sandbox.Facet]sandbox.FacetReport{sandbox.FileWrite: {State: sandbox.Enforced}, sandbox.FileRead: {State: sandbox.Enforced},
		sandbox.Devices: {State: sandbox.Unverified, Reason: "never tried"}}
	for _, test := range []struct {
		name            string
		inside, outside []int
		usable          bool
		read            sandbox.FacetState
	}{
		{"all refused", []int{done, eperm, eperm}, []int{done, done, done}, true, sandbox.Enforced},
		{"reading was possible", []int{done, eperm, done}, []int{done, done, done}, true, sandbox.Open},
		{"reading is refused to everybody", []int{done, eperm, eperm}, []int{done, done, eperm}, true, sandbox.Open},
		{"reading failed in another way", []int{done, eperm, enoent}, []int{done, done, done}, true, sandbox.Open},
		{"writing was possible", []int{done, done, eperm}, []int{done, done, done}, false, sandbox.Enforced},
		{"nothing could tell about writing", []int{done, eperm, eperm}, []int{done, eperm, done}, false, sandbox.Enforced},
		{"nothing works", []int{eperm, eperm, eperm}, []int{done, done, done}, false, sandbox.Enforced},
	} {
		v := judgeFront(claims, trials, test.inside, test.outside)
		if v.usable != test.usable || v.facets[sandbox.FileRead].State != test.read || v.facets[sandbox.Devices].State != sandbox.Unverified {
			t.Errorf("%s: the verdict is %+v", test.name, v)
		}
	}
}
