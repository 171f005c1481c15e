package sandboxtest

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/confine-dev/confine/sandbox"
	"golang.org/x/sys/unix"
)

// shapeStories are told of workspaces in which not everything can hold that holds in
// others. Every fifth is told where only some are (Config.Brief).
var shapeStories = []story{
	{"a workspace that holds mounts", holdingMounts},
	{"a workspace of the kernel is refused", kernelWorkspace},
	{"a mount that shows confine's own files", ownFilesMounted},
	{"a workspace on a read-only file system", closedFileSystem},
	{"a workspace of somebody else", foreignWorkspace},
	{"files of others in root's workspace", foreignFiles},
	{"a workspace that is not writable", unwritableWorkspace},
	{"a workspace that may not be entered", closedWorkspace},
	{"odd working directories", oddDirectories},
	{"a workspace that is removed", removedWorkspace},
	{"bytes that are no text", noText},
	{"roots in one another", nestedRoots},
	{"long commands", longCommands},
	{"what is too long for the system", tooLong},
}

// holdingMounts: what is mounted in a workspace belongs to it, except what speaks to
// the kernel.
func holdingMounts(t *testing.T, w *place) {
	if !w.hasMounts() {
		return // root sees to it
	}
	ws := filepath.Join(w.mounts(), "holding")
	root := w.declare(t, ws)
	if w.level(t) == withoutNamespaces {
		w.refusedStart(t, w.shellSpec(sandbox.WorkspaceWrite, "holding", "true", in(root)))
		return
	}
	// Root sees the hidden folder empty, others may not look into it.
	result, output := w.shell(t, sandbox.WorkspaceWrite, "holding", "echo a > memory/file && echo b > bound/file && cat memory/file bound/file && mkdir new && { ls -A kernel 2>/dev/null; true; }", in(root))
	must(t, "a\nb")(result, output)
	if result.Denied {
		t.Errorf("denials %+v", result.Denials)
	}
	// Appending nothing changes nothing, if it is possible.
	for _, mode := range bothModes {
		must(t, "refused")(w.shell(t, mode, "holding", "{ : >> kernel/sys/kernel/hostname; } 2>/dev/null || echo refused", in(root)))
		must(t, "refused")(w.shell(t, mode, "holding", "cat kernel/1/cmdline 2>/dev/null || echo refused", in(root)))
	}
	if data, err := os.ReadFile(filepath.Join(w.mounts(), "shown", "file")); string(data) != "b\n" {
		t.Errorf("behind the bind mount there is %q (%v)", data, err)
	}
}

func kernelWorkspace(t *testing.T, w *place) {
	if !w.hasMounts() {
		return
	}
	for _, path := range []string{"", "sys/kernel"} {
		root := w.declare(t, filepath.Join(w.mounts(), "holding", "kernel", path))
		w.refusedStart(t, w.shellSpec(sandbox.WorkspaceWrite, "kernel", "true", in(root)))
	}
}

// ownFilesMounted: what confine obeys cannot be changed under another name either.
func ownFilesMounted(t *testing.T, w *place) {
	if !w.hasMounts() || w.level(t) == withoutNamespaces { // there the workspace is refused for its other mounts
		return
	}
	root := w.declare(t, filepath.Join(w.mounts(), "holding"))
	result, _ := w.shell(t, sandbox.WorkspaceWrite, "own files", `cd elsewhere; echo gone > confine/settings; rm -f confine/settings; echo x > new && mv new confine/settings;
		mv confine moved && mkdir confine && echo gone > confine/settings; echo gone > confine/new; echo gone > confine/new/x; cd ..; mv elsewhere moved; true`, w.guarded(t, root))
	if what := holdsHost(w.own()[0]); what != "" || len(result.Facts.Planted) > 0 {
		t.Errorf("%s; planted %q", what, result.Facts.Planted)
	}
	if report := result.Facts.Facets[sandbox.FileWrite]; report.State != sandbox.Enforced { // nobody walks through the kernel's folders
		t.Errorf("fileWrite is %+v", report)
	}
	if info, err := os.Lstat(w.own()[1]); err == nil && !info.IsDir() {
		t.Errorf("a command made %s", w.own()[1])
	}
	if info, err := os.Lstat(filepath.Dir(w.own()[0])); err != nil || !info.IsDir() {
		t.Errorf("the folder of confine's own files was moved away: %v", err)
	}
}

// closedFileSystem: what the file system refuses is no refusal of the sandbox.
func closedFileSystem(t *testing.T, w *place) {
	if !w.hasMounts() {
		return
	}
	root := w.declare(t, filepath.Join(w.mounts(), "closed", "ws"))
	result, output := w.shell(t, sandbox.WorkspaceWrite, "closed", "cat file; { echo x > file; } 2>/dev/null || { mkdir .vscode; } 2>/dev/null || echo refused", w.guarded(t, root))
	must(t, "hostrefused")(result, output)
	if result.Denied || result.Facts.Facets[sandbox.FileWrite].State == sandbox.Open {
		t.Errorf("denials %+v, %+v", result.Denials, result.Facts.Facets[sandbox.FileWrite])
	}
}

func foreignWorkspace(t *testing.T, w *place) {
	if !w.hasMounts() {
		return
	}
	root := w.declare(t, filepath.Join(w.mounts(), "others"))
	result, output := w.shell(t, sandbox.WorkspaceWrite, "others", "cat file; { echo x > new; } 2>/dev/null || echo refused", w.guarded(t, root))
	if w.world.uid == 0 && w.level(t) == withNamespaces && !w.alone { // root's rights over others' files, in the workspace only
		must(t, "host")(result, output)
		return
	}
	must(t, "hostrefused")(result, output)
	if result.Denied {
		t.Errorf("what plain permissions refuse is a denial: %+v", result.Denials)
	}
}

func foreignFiles(t *testing.T, w *place) {
	if w.world.uid != 0 || w.level(t) == withoutNamespaces || w.alone {
		return // nobody has rights over files of others then
	}
	ws := w.newFolder(t)
	file := filepath.Join(ws, "file")
	if err := errors.Join(os.Chmod(file, 0o600), os.Chown(file, othersID, othersID)); err != nil {
		t.Fatal(err)
	}
	root := w.declare(t, ws)
	must(t, "host\n1234\n77")(w.shell(t, sandbox.WorkspaceWrite, "files of others", "cat file; echo; stat -c %u file; echo new >> file; chown 77 file; stat -c %u file", in(root)))
}

// unwritableWorkspace: a command can open a folder of its user's that is not writable,
// and what is kept absent must be absent all the same.
func unwritableWorkspace(t *testing.T, w *place) {
	ws := w.newFolder(t)
	if err := os.Chmod(ws, 0o555); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.Chmod(ws, 0o755) })
	root := w.declare(t, ws)
	result, output := w.shell(t, sandbox.WorkspaceWrite, "mode 555", "chmod 755 . && echo new > made && cat made; exec 2>/dev/null; echo x > .vscode/x; mkdir .vscode && echo x > .vscode/tasks.json; true", w.guarded(t, root))
	must(t, "new")(result, output)
	if w.level(t) == withoutNamespaces {
		if !admitted(result) {
			t.Errorf("a made .vscode is not told: %+v", result.Facts)
		}
		return
	}
	if _, err := os.Lstat(filepath.Join(ws, ".vscode", "tasks.json")); err == nil || admitted(result) {
		t.Errorf("a command made .vscode (%v): %+v", err, result.Facts)
	}
}

func closedWorkspace(t *testing.T, w *place) {
	if w.world.uid == 0 {
		return // whoever may do everything
	}
	ws := w.newFolder(t)
	root := w.declare(t, ws)
	if err := os.Chmod(ws, 0); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.Chmod(ws, 0o755) })
	w.badDirectory(t, w.shellSpec(sandbox.WorkspaceWrite, "mode 0", "true", in(root)))
}

// badDirectory fails unless a command cannot begin because of its working directory.
func (p *place) badDirectory(t *testing.T, spec sandbox.Spec) {
	t.Helper()
	process, err := p.confined.Start(t.Context(), spec)
	if start, ok := errors.AsType[*sandbox.StartError](err); !ok || start.Kind != sandbox.BadWorkingDirectory {
		t.Errorf("%q: got %v, want one about the working directory", spec.Dir, err)
	}
	if err == nil {
		process.Wait()
	}
}

// nestedRoots: in whatever order they are declared, each is writable, and what is
// protected in one is not opened by another.
func nestedRoots(t *testing.T, w *place) {
	outer := w.newFolder(t)
	inner := filepath.Join(outer, "inner")
	w.repository(t, outer)
	w.repository(t, inner)
	a, b, git := w.declare(t, outer), w.declare(t, inner), w.declare(t, filepath.Join(outer, ".git"))
	for _, roots := range [][]*sandbox.Root{{a, b}, {b, a}, {a, b, git}, {git, a}} {
		result, output := w.shell(t, sandbox.WorkspaceWrite, "nested roots",
			fmt.Sprintf("cd %s; echo a > made; echo b > inner/made; cat made inner/made; exec 2>/dev/null; echo gone > .git/hooks/file; echo gone > inner/.git/hooks/file; true", outer), w.guarded(t, roots...))
		must(t, "a\nb")(result, output)
		for _, ws := range []string{outer, inner} {
			what := holdsHost(filepath.Join(ws, ".git", "hooks", "file"))
			if w.level(t) == withNamespaces && what != "" {
				t.Error(what)
			}
			if what != "" && !admitted(result) {
				t.Errorf("%s, which nobody is told: %+v", what, result.Facts)
			}
		}
	}
}

// removedWorkspace: what takes its place is another folder.
func removedWorkspace(t *testing.T, w *place) {
	ws := w.newFolder(t)
	root := w.declare(t, ws)
	if err := os.RemoveAll(ws); err != nil {
		t.Fatal(err)
	}
	w.badDirectory(t, w.shellSpec(sandbox.WorkspaceWrite, "removed", "true", in(root)))
	w.folder(t, ws)
	w.refusedStart(t, w.shellSpec(sandbox.WorkspaceWrite, "removed", "true", in(root)))
}

// oddDirectories are where a command is told to begin. Where that is makes nothing
// writable.
func oddDirectories(t *testing.T, w *place) {
	ws, outside := w.newFolder(t), w.newFolder(t)
	root := w.declare(t, ws)
	at := func(name string) string { return filepath.Join(ws, name) }
	if err := errors.Join(os.Symlink(outside, at("out")), os.Symlink("nowhere", at("dangling")), os.Mkdir(at("unlisted"), 0o311)); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.Chmod(at("unlisted"), 0o755) })
	dir := func(path string) func(*sandbox.Spec) { return func(s *sandbox.Spec) { s.Dir = path } }
	for _, path := range []string{at("none"), at("dangling"), at("file"), at("file/x"), "relative", at(strings.Repeat("x", 256)), "/" + strings.Repeat("y/", 2100)} {
		w.badDirectory(t, w.shellSpec(sandbox.WorkspaceWrite, "directories", "true", in(root), dir(path)))
	}
	for _, path := range []string{at("out"), outside, at("../" + filepath.Base(outside))} {
		must(t, outside+" host refused")(w.shell(t, sandbox.WorkspaceWrite, "directories", `echo "$(pwd -P) $(cat file)" $({ echo gone > file; } 2>/dev/null || echo refused)`, in(root), dir(path)))
		if what := holdsHost(filepath.Join(outside, "file")); what != "" {
			t.Error(what)
		}
	}
	must(t, "made")(w.shell(t, sandbox.WorkspaceWrite, "directories", "echo made > file && cat file", in(root), dir(at("unlisted"))))
	must(t, "refused")(w.shell(t, sandbox.WorkspaceWrite, "directories", "mkdir gone && cd gone && rmdir ../gone && { touch x 2>/dev/null || echo refused; }", in(root)))
}

// longCommands are longer than an argument can be, and than a pipe holds.
func longCommands(t *testing.T, w *place) {
	for _, size := range []int{1 << 10, 128<<10 - 1, 128 << 10, 200 << 10, 2 << 20} {
		command := "text='" + strings.Repeat("x", size-30) + "'; echo ${#text}"
		must(t, fmt.Sprint(size-30))(w.shell(t, sandbox.WorkspaceWrite, "long", command))
	}
}

func tooLong(t *testing.T, w *place) {
	long := strings.Repeat("x", 200<<10)
	for name, change := range map[string]func(*sandbox.Spec){
		"an argument": func(s *sandbox.Spec) { s.Command, s.Argv = "", []string{"/bin/echo", long} },
		"many arguments": func(s *sandbox.Spec) {
			s.Command, s.Argv = "", append([]string{"/bin/echo"}, slices.Repeat([]string{long[:1000]}, 10000)...)
		},
		"a variable": func(s *sandbox.Spec) { s.Env = append(s.Env, "LONG="+long) },
	} {
		process, err := w.confined.Start(t.Context(), w.shellSpec(sandbox.WorkspaceWrite, "too long", "true", change))
		if start, ok := errors.AsType[*sandbox.StartError](err); !ok || start.Kind != sandbox.ArgumentListTooLong {
			t.Errorf("%s: got %v, want one about the length", name, err)
		}
		if err == nil {
			process.Wait()
		}
	}
	many := func(s *sandbox.Spec) {
		for i := range 5000 {
			s.Env = append(s.Env, fmt.Sprintf("V%d=%d", i, i))
		}
	}
	must(t, "0 4999")(w.shell(t, sandbox.WorkspaceWrite, "too long", "echo $V0 $V4999", many))
}

// noText: bytes pass through as they are.
func noText(t *testing.T, w *place) {
	const bytes = "\xff\xfe\xc3(\xed\xa0\x80"
	env := func(s *sandbox.Spec) { s.Env = append(s.Env, "BYTES="+bytes) }
	prints := func(want, command string, change func(*sandbox.Spec)) {
		t.Helper()
		var output strings.Builder
		w.shell(t, sandbox.WorkspaceWrite, "bytes", command, change, func(s *sandbox.Spec) { s.Output = func(c sandbox.Chunk) { output.Write(c.Data) } })
		if output.String() != want {
			t.Errorf("got %q, want %q", output.String(), want)
		}
	}
	prints(bytes, `printf %s "$BYTES"`, env)
	prints(bytes, "printf %s '"+bytes+"'", env)
	prints(bytes, "", func(s *sandbox.Spec) { s.Argv = []string{"/usr/bin/printf", "%s", bytes} })
	prints("a\x00b", `printf 'a\0b'`, env)
	for name, change := range map[string]func(*sandbox.Spec){
		"command":  func(s *sandbox.Spec) { s.Command = "true\x00" },
		"argument": func(s *sandbox.Spec) { s.Command, s.Argv = "", []string{"/bin/true", "a\x00b"} },
		"variable": func(s *sandbox.Spec) { s.Env = append(s.Env, "A=a\x00b") },
		"folder":   func(s *sandbox.Spec) { s.Dir += "\x00" },
	} {
		if process, err := w.confined.Start(t.Context(), w.shellSpec(sandbox.WorkspaceWrite, "bytes", "true", change)); err == nil {
			process.Wait()
			t.Errorf("a %s with a NUL byte was run", name)
		}
	}
	var st unix.Stat_t
	must(t, "")(w.shell(t, sandbox.WorkspaceWrite, "bytes", "touch 'bytes-"+bytes+"'"))
	if err := unix.Stat(filepath.Join(w.root.Path, "bytes-"+bytes), &st); err != nil {
		t.Error(err)
	}
}
