package sandboxtest

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/confine-dev/confine/sandbox"
	"golang.org/x/sys/unix"
)

var grantStories = []story{
	{"a grant ends with its run", grantEnds},
	{"a granted file or folder that was replaced is refused", replacedGrants},
	{"sockets, FIFOs and devices are not granted", ungrantableKinds},
	{"a hidden folder is not granted as a whole", hiddenFolderGrant},
	{"what is protected in a granted folder stays as it is", protectedInGrant},
	{"a grant in a cache reaches the host's", grantInCache},
	{"what is to be unreadable cannot be read", unreadablePaths},
	{"a second name of what is to be unreadable is reported", unreadableByAnotherName},
}

// granting adds files and folders, as they are now, that may be written.
func granting(t *testing.T, paths ...string) func(*sandbox.Spec) {
	return func(s *sandbox.Spec) {
		for _, path := range paths {
			s.Policy.Writable = append(s.Policy.Writable, identify(t, path))
		}
	}
}

func grantEnds(t *testing.T, w *place) {
	file := filepath.Join(w.newFolder(t), "file")
	try := fmt.Sprintf("{ echo done > %s; } 2>/dev/null && echo written || echo refused", file)
	for _, mode := range bothModes {
		must(t, "refused")(w.shell(t, mode, "grant", try))
		must(t, "written")(w.shell(t, mode, "grant", try, granting(t, file)))
		must(t, "refused")(w.shell(t, mode, "grant", try))
	}
}

// replacedGrants: what was declared is moved aside, where it keeps its inode,
// and something else is put there.
func replacedGrants(t *testing.T, w *place) {
	file := func(dir string) string { return filepath.Join(dir, "file") }
	folder := func(dir string) string { return dir }
	link := func(path, other string) error { return os.Symlink(other, path) }
	for _, test := range []struct {
		name    string
		of      func(dir string) string
		replace func(path, other string) error
	}{
		{"a file by another", file, func(path, other string) error { return os.Rename(other, path) }},
		{"a file by a link", file, link},
		{"a file by a hard link", file, func(path, other string) error { return os.Link(other, path) }},
		{"a file by a folder", file, func(path, _ string) error { return os.Mkdir(path, 0o755) }},
		{"a file by a FIFO", file, func(path, _ string) error { return unix.Mkfifo(path, 0o600) }},
		{"a file by nothing", file, func(string, string) error { return nil }},
		{"a folder by another", folder, func(path, other string) error { return os.Rename(other, path) }},
		{"a folder by a link", folder, link},
	} {
		// In the runtime folder, so that reading is something to grant.
		hidden := func() string { return w.folder(t, filepath.Join(w.runtime, fmt.Sprintf("g%d", w.count.Add(1)))) }
		path, other := test.of(hidden()), test.of(hidden())
		root := identify(t, path)
		if err := errors.Join(os.Rename(path, path+".moved"), test.replace(path, other)); err != nil {
			t.Fatal(err)
		}
		for _, mode := range bothModes {
			spec := w.shellSpec(mode, "replaced grant", fmt.Sprintf("echo gone > %s; echo gone > %s/file; true", path, path))
			spec.Policy.Writable = []*sandbox.Root{root}
			w.refusedStart(t, spec)
			if w.level(t) == withNamespaces { // otherwise all can be read anyway
				spec.Policy.Writable, spec.Policy.Readable = nil, []*sandbox.Root{root}
				w.refusedStart(t, spec)
			}
		}
		for _, left := range []string{other, filepath.Join(other, "file"), path + ".moved"} {
			if info, err := os.Stat(left); err == nil && info.Mode().IsRegular() {
				if what := holdsHost(left); what != "" {
					t.Errorf("%s: %s", test.name, what)
				}
			}
		}
	}
}

func ungrantableKinds(t *testing.T, w *place) {
	address := w.services.address
	for _, path := range []string{address.RuntimeSocket, address.HomeSocket, address.TempSocket, address.RuntimePipe, address.HomePipe, "/dev/null", "/dev/shm", "/proc/sys/kernel/hostname"} {
		for _, mode := range bothModes {
			w.refusedStart(t, w.shellSpec(mode, "kinds", "true", granting(t, path)))
			w.refusedStart(t, w.shellSpec(mode, "kinds", "true", func(s *sandbox.Spec) { s.Policy.Readable = []*sandbox.Root{identify(t, path)} }))
		}
	}
}

func hiddenFolderGrant(t *testing.T, w *place) {
	refused := func(path string) {
		w.refusedStart(t, w.shellSpec(sandbox.ReadOnly, "hidden", "true", granting(t, path)))
		w.refusedStart(t, w.shellSpec(sandbox.ReadOnly, "hidden", "true", func(s *sandbox.Spec) { s.Policy.Readable = []*sandbox.Root{identify(t, path)} }))
	}
	for _, own := range []string{w.state, filepath.Join(w.state, "servers"), w.base} {
		refused(own)
	}
	if w.level(t) == withoutNamespaces {
		return // nothing is hidden, which the facets say
	}
	refused(w.runtime)
	refused(real(t, "/tmp"))
	services := w.folder(t, filepath.Join(w.runtime, "services"))
	w.shell(t, sandbox.ReadOnly, "hidden", "true", granting(t, services))
	w.services.listen(t, "unix", filepath.Join(services, "socket"))
	refused(services)
}

// real follows links.
func real(t *testing.T, path string) string {
	t.Helper()
	path, err := filepath.EvalSymlinks(path)
	if err != nil {
		t.Fatal(err)
	}
	return path
}

func protectedInGrant(t *testing.T, w *place) {
	for _, mode := range bothModes {
		dir := w.newFolder(t)
		config := filepath.Join(dir, "config")
		if err := os.WriteFile(config, []byte("host"), 0o644); err != nil {
			t.Fatal(err)
		}
		spec := w.shellSpec(mode, "protected grant", fmt.Sprintf("cd %s; echo gone > config; rm -f config; mv config other; ln -f file config; echo done > new", dir), granting(t, dir),
			func(s *sandbox.Spec) { s.Policy.Protected = []string{config} })
		process, err := w.confined.Start(t.Context(), spec)
		if unavailable := (*sandbox.UnavailableError)(nil); errors.As(err, &unavailable) {
			continue // what cannot be enforced is refused
		}
		if err != nil {
			t.Fatal(err)
		}
		result, _ := process.Wait()
		if what := holdsHost(config); what != "" && !admitted(result) {
			t.Errorf("%s: %s", mode, what)
		}
		if err := holds(filepath.Join(dir, "new"), "done\n"); err != nil {
			t.Errorf("%s: %v", mode, err)
		}
	}
}

func grantInCache(t *testing.T, w *place) {
	cache := w.folder(t, filepath.Join(w.home, ".cache", "pip"))
	file, other := filepath.Join(cache, "file"), filepath.Join(cache, "other")
	defer w.confined.CloseSession("granted cache")
	command := fmt.Sprintf("echo done > %s; echo done > %s; true", file, other)
	w.shell(t, sandbox.WorkspaceWrite, "granted cache", command)
	if what := holdsHost(file); what != "" {
		t.Fatal(what)
	}
	w.shell(t, sandbox.WorkspaceWrite, "granted cache", command, granting(t, file))
	if err := holds(file, "done\n"); err != nil {
		t.Error(err)
	}
	if _, err := os.Lstat(other); err == nil {
		t.Error("the grant of one file opened the whole cache")
	}
}

func unreadableByAnotherName(t *testing.T, w *place) {
	file := filepath.Join(w.newFolder(t), "file")
	if err := os.Link(file, file+".link"); err != nil {
		t.Fatal(err)
	}
	process, err := w.confined.Start(t.Context(), w.shellSpec(sandbox.WorkspaceWrite, "second name", "cat "+file+".link", func(s *sandbox.Spec) { s.Policy.Unreadable = []string{file} }))
	if err != nil {
		t.Fatal(err)
	}
	result, err := process.Wait()
	if err != nil {
		t.Fatal(err)
	}
	output, _ := process.Output(sandbox.StdoutStream).Tail()
	if read := result.Facts.Facets[sandbox.FileRead]; output != "host" || read.State == sandbox.Enforced || result.Facts.Enforcement == sandbox.EnforcementFull {
		t.Errorf("the command reads %q, and fileRead is called %+v", output, read)
	}
}

func unreadablePaths(t *testing.T, w *place) {
	file := filepath.Join(w.newFolder(t), "file")
	for _, mode := range bothModes {
		process, err := w.confined.Start(t.Context(), w.shellSpec(mode, "unreadable", "cat "+file, func(s *sandbox.Spec) { s.Policy.Unreadable = []string{file} }))
		if unavailable := (*sandbox.UnavailableError)(nil); errors.As(err, &unavailable) {
			continue // what cannot be enforced is refused
		}
		if err != nil {
			t.Fatal(err)
		}
		result, err := process.Wait()
		if err != nil {
			t.Fatal(err)
		}
		output, _ := process.Output(sandbox.StdoutStream).Tail()
		read := result.Facts.Facets[sandbox.FileRead]
		if (output == "") != (read.State == sandbox.Enforced) || result.Facts.Enforcement == sandbox.EnforcementFull && output != "" {
			t.Errorf("%s: the command reads %q, and fileRead is called %+v", mode, output, read)
		}
	}
}
