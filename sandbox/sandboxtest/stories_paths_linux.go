package sandboxtest

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/confine-dev/confine/sandbox"
)

// refusedStart fails unless a command cannot begin because of its sandbox.
func (p *place) refusedStart(t *testing.T, spec sandbox.Spec) {
	t.Helper()
	process, err := p.confined.Start(context.Background(), spec)
	var unavailable *sandbox.UnavailableError
	if !errors.As(err, &unavailable) || unavailable.Started {
		t.Errorf("got %v, want a sandbox.UnavailableError of a command that did not start", err)
	}
	if err == nil {
		process.Wait()
	}
}

func replacedRoot(t *testing.T, w *place) {
	for name, replace := range map[string]func(path, other string) error{
		"a folder": func(path, other string) error { return os.Rename(other, path) },
		"a link":   func(path, other string) error { return os.Symlink(other, path) },
	} {
		path, other := w.newFolder(t), w.newFolder(t)
		root := w.declare(t, path)
		must(t, "")(w.shell(t, sandbox.WorkspaceWrite, "replaced", "touch first", in(root)))
		if err := errors.Join(os.Rename(path, path+".moved"), replace(path, other)); err != nil {
			t.Fatal(err)
		}
		w.refusedStart(t, w.shellSpec(sandbox.WorkspaceWrite, "replaced", "echo gone > file; touch second", in(root)))
		if what := holdsHost(filepath.Join(path, "file")); what != "" {
			t.Errorf("replaced by %s: %s", name, what)
		}
	}
}

func replacedNestedRoot(t *testing.T, w *place) {
	outer, target := w.newFolder(t), w.newFolder(t)
	inner := w.folder(t, filepath.Join(outer, "inner"))
	roots := in(w.declare(t, outer), w.declare(t, inner))
	w.shell(t, sandbox.WorkspaceWrite, "nested", fmt.Sprintf("mv inner moved && ln -s %s inner", target), roots)
	process, err := w.confined.Start(t.Context(), w.shellSpec(sandbox.WorkspaceWrite, "nested", "echo gone > inner/file", roots))
	if err == nil {
		process.Wait()
	}
	if what := holdsHost(filepath.Join(target, "file")); what != "" {
		t.Errorf("a command made a folder outside writable for the next: %s", what)
	}
}

func movedWorkspace(t *testing.T, w *place) {
	parent := w.newFolder(t)
	path := w.folder(t, filepath.Join(parent, "ws"))
	root := w.declare(t, path)
	w.shell(t, sandbox.WorkspaceWrite, "moved", "cd /; mv "+path+" "+parent+"/moved; mv "+parent+" "+parent+".moved; rmdir "+path+"; rm -r "+path, in(root))
	var names []string
	entries, err := os.ReadDir(parent)
	for _, e := range entries {
		names = append(names, e.Name())
	}
	if err != nil || !slices.Equal(names, []string{"file", "ws"}) {
		t.Errorf("beside the workspace there is now %v (%v)", names, err)
	}
	must(t, "ok")(w.shell(t, sandbox.WorkspaceWrite, "moved", "echo ok > new; cat new", in(root)))
}

func workingDirectory(t *testing.T, w *place) {
	if w.level(t) == withoutNamespaces {
		return // nothing is hidden, which the facets say
	}
	for _, mode := range bothModes {
		for _, row := range []string{"connect to a socket in the runtime folder", "connect to a socket below the host's /tmp"} {
			for _, dir := range []string{w.runtime, w.temp} {
				s := newScene(t, w, mode)
				spec := w.spec(mode)
				spec.Dir, spec.Argv = dir, []string{w.program, entryOp, row, s.orders(t)}
				if p, err := w.confined.Start(t.Context(), spec); err == nil {
					p.Wait()
				}
				if what := heardBy(s); what != "" {
					t.Errorf("%s: with the working directory %s, %q: %s", mode, dir, row, what)
				}
			}
		}
	}
}

func hiddenWorkspace(t *testing.T, w *place) {
	shared, err := os.MkdirTemp("/dev/shm", "confine-suite-")
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(shared)
	for _, hidden := range []string{w.temp, w.runtime, shared} {
		path := w.folder(t, filepath.Join(hidden, "below", "ws"))
		beside := w.folder(t, filepath.Join(hidden, "below", "beside"))
		root := w.declare(t, path)
		session := "hidden " + hidden
		must(t, path+" host")(w.shell(t, sandbox.ReadOnly, session, `echo "$PWD $(cat file)"`, in(root)))
		must(t, path+" new")(w.shell(t, sandbox.WorkspaceWrite, session, `echo new > made && mkdir -p sub && echo "$PWD $(cat made)"`, in(root)))
		must(t, path+"/sub host")(w.shell(t, sandbox.ReadOnly, session, `echo "$PWD $(cat ../file)"`, in(root), func(s *sandbox.Spec) { s.Dir = filepath.Join(path, "sub") }))
		if data, err := os.ReadFile(filepath.Join(path, "made")); string(data) != "new\n" {
			t.Errorf("%s: the file made in the workspace holds %q (%v)", path, data, err)
		}
		w.shell(t, sandbox.WorkspaceWrite, session, "echo gone > "+beside+"/file; echo gone > "+beside+"/new", in(root))
		if what := holdsHost(filepath.Join(beside, "file")); what != "" {
			t.Error(what)
		}
		if w.level(t) == withNamespaces {
			must(t, "none")(w.shell(t, sandbox.ReadOnly, session, "cat "+beside+"/file 2>/dev/null || echo none", in(root)))
		}
	}
}

// temporaryLinks: the session's temporary folder is where the place of a
// workspace below /tmp is made, and a command can change what it finds there.
func temporaryLinks(t *testing.T, w *place) {
	path := w.folder(t, filepath.Join(w.temp, "way", "ws"))
	outside := w.newFolder(t)
	w.folder(t, filepath.Join(outside, "ws"))
	root := w.declare(t, path)
	way := filepath.Dir(path)
	w.shell(t, sandbox.WorkspaceWrite, "links", fmt.Sprintf("cd /; mv %s %s.moved; ln -s %s %s", way, way, outside, way), in(root))
	var output strings.Builder
	spec := w.shellSpec(sandbox.WorkspaceWrite, "links", "pwd -P; cat "+outside+"/ws/file; echo new > file", in(root))
	spec.Output = func(c sandbox.Chunk) { output.Write(c.Data) }
	process, err := w.confined.Start(t.Context(), spec)
	if err == nil {
		process.Wait()
		must(t, path+"\nhost")(sandbox.Result{}, output.String())
	} else if unavailable := (*sandbox.UnavailableError)(nil); !errors.As(err, &unavailable) {
		t.Error(err)
	}
	if what := holdsHost(filepath.Join(outside, "ws", "file")); what != "" {
		t.Error(what)
	}
}

// protectedPaths are at the top of a root, or below a folder that a command can
// move away.
func protectedPaths(t *testing.T, w *place) {
	for _, below := range []string{".", "git"} {
		path := w.newFolder(t)
		hooks, config := w.folder(t, filepath.Join(path, below, "hooks")), filepath.Join(path, below, "config")
		if err := os.WriteFile(config, []byte("host"), 0o644); err != nil {
			t.Fatal(err)
		}
		root := w.declare(t, path)
		protect := func(s *sandbox.Spec) { s.Policy.Protected = []string{hooks, config} }
		for _, command := range []string{
			"echo gone > config", "rm -f config", "mv config other", "ln -f file config", "mv file config",
			"echo gone > hooks/file", "touch hooks/new", "rm -rf hooks", "mv hooks other",
			"cd ..; mv git moved && mkdir -p git/hooks && echo gone > git/hooks/file && echo gone > git/config",
		} {
			spec := w.shellSpec(sandbox.WorkspaceWrite, "protected", "cd "+below+"; "+command, in(root), protect)
			process, err := w.confined.Start(t.Context(), spec)
			if unavailable := (*sandbox.UnavailableError)(nil); errors.As(err, &unavailable) {
				continue // what cannot be enforced is refused
			}
			if err != nil {
				t.Fatal(err)
			}
			result, _ := process.Wait()
			_, added := os.Lstat(filepath.Join(hooks, "new"))
			what := holdsHost(filepath.Join(hooks, "file")) + holdsHost(config)
			changed := what != "" || added == nil
			mounted := slices.Contains(result.Facts.Layers, "namespaces")
			if changed && mounted || admitted(result) && mounted || changed && !admitted(result) {
				t.Fatalf("%s: %q changed what is protected: %v %s; the result says planted %q, fileWrite %+v",
					below, command, changed, what, result.Facts.Planted, result.Facts.Facets[sandbox.FileWrite])
			}
			if changed {
				again(t, path, below)
			}
		}
	}
}

// admitted reports whether a result says that something protected was changed,
// and claims no more than it can.
func admitted(r sandbox.Result) bool {
	return len(r.Facts.Planted) > 0 && r.Facts.Facets[sandbox.FileWrite].State == sandbox.Partial
}

// again makes the protected paths anew.
func again(t *testing.T, path, below string) {
	t.Helper()
	hooks := filepath.Join(path, below, "hooks")
	if err := errors.Join(os.RemoveAll(path+"/git"), os.RemoveAll(path+"/moved"), os.RemoveAll(hooks), os.MkdirAll(hooks, 0o755),
		os.WriteFile(filepath.Join(hooks, "file"), []byte("host"), 0o644),
		os.WriteFile(filepath.Join(path, below, "config"), []byte("host"), 0o644)); err != nil {
		t.Fatal(err)
	}
}

// hostCaches: a sandbox may let commands write to a layer over a cache of the
// host. It must not fall off when the host empties the cache between two runs.
func hostCaches(t *testing.T, w *place) {
	cache := w.folder(t, filepath.Join(w.home, ".cache", "go-build"))
	write := fmt.Sprintf("echo gone > %s/file; echo gone > %s/new; true", cache, cache)
	check := func(when string) {
		t.Helper()
		if _, err := os.Lstat(filepath.Join(cache, "new")); err == nil || holdsHost(filepath.Join(cache, "file")) != "" {
			t.Errorf("%s a command wrote to a cache of the host", when)
		}
	}
	w.shell(t, sandbox.WorkspaceWrite, "caches", write)
	check("at first")
	for when, replace := range map[string]func() error{
		"after the host removed the cache and made it anew": func() error { return os.RemoveAll(cache) },
		"after the host moved the cache away":               func() error { return os.Rename(cache, cache+".old") },
		"after the host moved its folder away":              func() error { return os.Rename(filepath.Dir(cache), filepath.Dir(cache)+".old") },
	} {
		if err := replace(); err != nil {
			t.Fatal(err)
		}
		w.folder(t, cache)
		if p, err := w.confined.Start(t.Context(), w.shellSpec(sandbox.WorkspaceWrite, "caches", write)); err == nil {
			p.Wait()
		}
		check(when)
	}
}
