package sandboxtest

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"unicode/utf8"

	"github.com/confine-dev/confine/sandbox"
	"github.com/confine-dev/confine/sandbox/protect"
)

// workspaces are those of all shapes of a world, to be looked at in the end.
var workspaces struct {
	mu   sync.Mutex
	list []string
}

// repository makes a workspace: a repository with a hook, and a file that is to be
// hidden.
func (p *place) repository(t *testing.T, ws string) {
	t.Helper()
	if err := os.MkdirAll(ws, 0o755); err != nil {
		t.Fatal(err)
	}
	git, err := exec.LookPath("git")
	if err != nil {
		skip(t, "git is not installed")
	}
	init := exec.Command(git, "init", "-q", "--template=", ".")
	init.Dir, init.Env = ws, []string{"HOME=" + p.home}
	if out, err := init.CombinedOutput(); err != nil {
		t.Fatalf("git init: %v: %s", err, out)
	}
	hooks := p.folder(t, filepath.Join(ws, ".git", "hooks"))
	if err := errors.Join(os.WriteFile(filepath.Join(hooks, "file"), []byte("host"), 0o755), os.WriteFile(filepath.Join(ws, "secret"), []byte("hidden"), 0o600)); err != nil {
		t.Fatal(err)
	}
}

// guarded puts a command into a workspace, with what has to be protected in it, as a
// server does.
func (p *place) guarded(t *testing.T, roots ...*sandbox.Root) func(*sandbox.Spec) {
	t.Helper()
	var finder protect.Finder
	found := finder.Find(roots, sandbox.Forbidden{Own: p.own()})
	for _, root := range found.Metadata {
		t.Cleanup(func() { root.Close() })
	}
	return func(s *sandbox.Spec) {
		in(roots...)(s)
		s.Policy.Roots = slices.Concat(roots, found.Metadata)
		s.Policy.Protected, s.Policy.Gaps = found.Protected, found.Missed
		s.Policy.Unreadable = []string{filepath.Join(roots[0].Path, "secret")}
		s.Env = append(s.Env, "GIT_AUTHOR_NAME=a", "GIT_AUTHOR_EMAIL=a@example.invalid", "GIT_COMMITTER_NAME=a", "GIT_COMMITTER_EMAIL=a@example.invalid")
	}
}

func (s shape) tell(t *testing.T, w *place) {
	ws := s.place(t, w)
	w.repository(t, ws)
	declared := ws
	if s.alias != nil {
		declared = s.alias(t, ws)
	}
	root := w.declare(t, declared)
	if root.Path != ws {
		t.Fatalf("declared as %q, the root is %q, not %q", declared, root.Path, ws)
	}
	f := facts{t: t, place: w, ws: ws, guarded: w.guarded(t, root), session: "shape " + s.name}
	f.refused()
	f.granted()
	f.commit()
	if w.level(t) == withNamespaces && !s.passing {
		workspaces.mu.Lock()
		workspaces.list = append(workspaces.list, ws)
		workspaces.mu.Unlock()
	}
}

// facts are what holds in every workspace.
type facts struct {
	t       *testing.T
	place   *place
	ws      string
	guarded func(*sandbox.Spec)
	session string
}

func (f facts) at(name string) string { return filepath.Join(f.ws, name) }

// refused: writing inside works; writing outside, to what is protected and where
// nothing may be made does not, and the result names exactly that.
func (f facts) refused() {
	f.t.Helper()
	mounts := f.place.level(f.t) == withNamespaces
	outside := filepath.Join(f.place.newFolder(f.t), "file")
	result, output := f.place.shell(f.t, sandbox.WorkspaceWrite, f.session,
		fmt.Sprintf("exec 2>/dev/null; echo new > made && cat made; echo \"$(pwd -P)|\"; echo gone > %s; echo gone > .git/hooks/file; echo gone > .envrc/x; cat secret; true", outside), f.guarded)
	want := "new\n" + string([]rune(f.ws)) + "|" // as output is shown that is not UTF-8
	if !mounts {
		want += "\nhidden"
	}
	must(f.t, want)(result, output)
	if what := holdsHost(outside); what != "" {
		f.t.Error(what)
	}
	hook := f.at(".git/hooks/file")
	if what := holdsHost(hook); mounts == (what != "") {
		f.t.Errorf("the protected file: %q", what)
	}
	var denied []string
	for _, d := range result.Denials {
		denied = append(denied, d.Path)
	}
	expected, planted, state := []string{outside}, []string{hook}, sandbox.Partial
	if mounts {
		expected, planted, state = append(expected, hook, f.at(".envrc/x")), nil, sandbox.Enforced
	}
	if !slices.Equal(denied, expected) {
		f.t.Errorf("denied is %q, want %q", denied, expected)
	}
	if got := result.Facts.Facets[sandbox.FileWrite]; got.State != state || !slices.Equal(result.Facts.Planted, planted) {
		f.t.Errorf("fileWrite is %+v, planted %q", got, result.Facts.Planted)
	}
}

// granted: what was granted one by one works, if a message can name it.
func (f facts) granted() {
	f.t.Helper()
	grant := func(name string, kind sandbox.GrantKind) *sandbox.Root {
		grant, err := sandbox.DeclareGrant(f.at(name), sandbox.Forbidden{}, kind)
		if utf8.ValidString(f.ws) == (err != nil) {
			f.t.Fatalf("granting %s of %q: %v", kind, f.at(name), err)
		}
		if err != nil {
			return nil
		}
		f.t.Cleanup(func() { grant.Close() })
		return grant.Root
	}
	hook, secret := grant(".git/hooks/file", sandbox.GrantWrite), grant("secret", sandbox.GrantRead)
	if hook == nil {
		return
	}
	must(f.t, "hidden")(f.place.shell(f.t, sandbox.WorkspaceWrite, f.session, "echo granted > .git/hooks/file && cat secret", f.guarded, func(s *sandbox.Spec) {
		s.Policy.Writable, s.Policy.Readable = []*sandbox.Root{hook}, []*sandbox.Root{secret}
	}))
	if data, err := os.ReadFile(f.at(".git/hooks/file")); string(data) != "granted\n" {
		f.t.Errorf("the granted file holds %q (%v)", data, err)
	}
}

// commit: git works, and sees nothing of what confine does.
func (f facts) commit() {
	f.t.Helper()
	result, output := f.place.shell(f.t, sandbox.WorkspaceWrite, f.session, "git status --porcelain && git add made && git commit -qm x && git log --format=%s", f.guarded)
	must(f.t, "?? made\n?? secret\nx")(result, output)
	if result.Denied {
		f.t.Errorf("denied: %+v", result.Denials)
	}
}

// checkShapes fails if a workspace holds something that commands did not make.
func (p *place) checkShapes(t *testing.T) {
	workspaces.mu.Lock()
	defer workspaces.mu.Unlock()
	for _, ws := range workspaces.list {
		list, err := os.ReadDir(ws)
		var names []string
		for _, e := range list {
			names = append(names, e.Name())
		}
		if err != nil || !slices.Equal(names, []string{".git", "made", "secret"}) {
			t.Errorf("%q holds %q (%v)", ws, names, err)
		}
		if _, err := os.Lstat(filepath.Join(ws, ".git", "commondir")); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%q: a cover is left in the git folder (%v)", ws, err)
		}
	}
}
