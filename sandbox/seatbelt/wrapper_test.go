package seatbelt

import (
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/confine-dev/confine/sandbox"
)

// TestArguments reads the arguments as sandbox-exec does.
func TestArguments(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("the paths here are not those of Windows")
	}
	root := t.TempDir()
	if err := os.Mkdir(filepath.Join(root, ".idea"), 0o700); err != nil {
		t.Fatal(err)
	}
	p := sandbox.Policy{Mode: sandbox.WorkspaceWrite, Roots: roots(root), Protected: []string{root + "/.idea", root + "/.vscode"}}
	argv, err := Wrapper{}.Argv(p, []string{"/own=x"}, []string{"/state"})
	if err != nil {
		t.Fatal(err)
	}
	if argv[0] != "/usr/bin/sandbox-exec" || argv[1] != "-p" || len(argv)%2 != 1 {
		t.Fatalf("the arguments are %q", argv)
	}
	profile := Profile{Text: argv[2]}
	for i := 3; i < len(argv); i += 2 {
		name, value, ok := strings.Cut(argv[i+1], "=")
		if argv[i] != "-D" || !ok {
			t.Fatalf("the arguments are %q", argv)
		}
		profile.Params = append(profile.Params, Param{name, value})
	}
	e, err := load(profile)
	if err != nil {
		t.Fatal(err)
	}
	real := canonical(root)
	for path, want := range map[string]bool{real + "/f": true, "/own=x/f": true, "/state/f": false, real + "/.idea/f": false, real + "/.IDEA/f": true, real + "/.VSCode/f": false} {
		if got := e.allows(operation{name: "file-write-create", path: path}); got != want {
			t.Errorf("%s: allowed is %v, want %v", path, got, want) // what exists has one spelling
		}
	}
}

func TestExplanations(t *testing.T) {
	for said, want := range map[string]string{
		"sandbox-exec: sandbox_apply: Operation not permitted\n":      "in a sandbox of macOS already",
		"fork/exec /usr/bin/sandbox-exec: no such file or directory":  "cannot be started",
		"sandbox-exec: profile:3:7: unbound variable: no-such-filter": "unbound variable",
		"": "without a word",
	} {
		if detail, _ := (Wrapper{}).Explain(said); !strings.Contains(detail, want) {
			t.Errorf("%q: the explanation is %q", said, detail)
		}
	}
}

// TestClaims: what nobody tried, or what cannot hold, is not called enforced.
func TestClaims(t *testing.T) {
	state := func(p sandbox.Policy) (list []string) {
		facets := Wrapper{}.Facets(p)
		for _, f := range sandbox.Facets {
			list = append(list, string(facets[f].State))
			if (facets[f].State == sandbox.Enforced) != (facets[f].Reason == "") {
				t.Errorf("%s: %+v", f, facets[f])
			}
		}
		return list
	}
	for _, test := range []struct {
		policy sandbox.Policy
		want   string
	}{
		{sandbox.Policy{Mode: sandbox.ReadOnly}, "enforced enforced enforced partial partial enforced unverified"},
		{sandbox.Policy{Mode: sandbox.WorkspaceWrite, Network: true}, "enforced enforced open partial partial enforced unverified"},
		{sandbox.Policy{Mode: sandbox.WorkspaceWrite, Gaps: "too many"}, "partial enforced enforced partial partial enforced unverified"},
	} {
		if got := state(test.policy); !slices.Equal(got, strings.Fields(test.want)) {
			t.Errorf("%s: %v, want %s", test.policy.String(), got, test.want)
		}
	}
}
