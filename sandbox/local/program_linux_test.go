package local_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/confine-dev/confine/sandbox"
)

// startError starts a command that must not begin through its own fault.
func (f *fixture) startError(t testing.TB, spec sandbox.Spec) *sandbox.StartError {
	t.Helper()
	p, err := f.provider.Start(context.Background(), spec)
	if err == nil {
		p.Cancel()
		t.Fatalf("%q %q began", short(spec.Command), spec.Argv)
	}
	var start *sandbox.StartError
	if !errors.As(err, &start) {
		t.Fatalf("the error is %T: %v, want a StartError", err, err)
	}
	return start
}

// argv is a program with arguments in the workspace; extra PATH entries come
// first.
func (f *fixture) argv(path string, words ...string) sandbox.Spec {
	spec := f.spec("")
	spec.Argv = words
	spec.Env = []string{"PATH=" + path + ":/usr/bin:/bin"}
	return spec
}

const script = "#!/bin/sh\necho \"$0 $*\"\n"

func TestFindingPrograms(t *testing.T) {
	eachLevel(t, func(t *testing.T, f *fixture) {
		first := filepath.Dir(f.write(t, "first/tool", []byte("#!/bin/sh\necho first\n"), 0o755))
		second := filepath.Dir(f.write(t, "second/tool", []byte("#!/bin/sh\necho second\n"), 0o755))
		f.write(t, "plain/tool", []byte("#!/bin/sh\necho plain\n"), 0o644)
		f.write(t, "folder/tool/x", nil, 0o644)
		f.write(t, "here", []byte(script), 0o755)
		cases := []struct {
			name, path string
			argv       []string
			stdout     string
		}{
			{"the first folder wins", first + ":" + second, []string{"tool"}, "first"},
			{"what cannot be executed is passed over", f.dir + "/plain:" + second, []string{"tool"}, "second"},
			{"folders are passed over", f.dir + "/folder:" + second, []string{"tool"}, "second"},
			{"missing folders are passed over", f.dir + "/nowhere:" + second, []string{"tool"}, "second"},
			{"a relative folder is the working directory's", "second", []string{"tool"}, "second"},
			{"an empty entry is the working directory", "", []string{"here", "x"}, filepath.Join(f.dir, "here") + " x"},
			{"a relative path is the working directory's", second, []string{"./first/tool"}, "first"},
			{"a path with folders is not looked up", second, []string{"first/tool"}, "first"},
			{"an absolute path", "", []string{second + "/tool"}, "second"},
			{"arguments arrive as they are", "", []string{"printf", "%s|", "", "a b", "$x", "\xff\n"}, "|a b|$x|\xff\n|"},
		}
		for _, c := range cases {
			o := finish(t, f.start(t, f.argv(c.path, c.argv...)))
			if got := strings.TrimSuffix(o.stdout, "\n"); got != strings.ToValidUTF8(c.stdout, "\uFFFD") {
				t.Errorf("%s: the output is %q, want %q (%s)", c.name, got, c.stdout, o.stderr)
			}
		}
	})
}

func TestProgramsThatCannotStart(t *testing.T) {
	eachLevel(t, func(t *testing.T, f *fixture) {
		f.write(t, "plain/tool", []byte(script), 0o644)
		f.write(t, "folder/tool/x", nil, 0o644)
		f.write(t, "interpreter", []byte("#!/no/such/interpreter\n"), 0o755)
		f.write(t, "text", []byte("just words\n"), 0o755)
		f.write(t, "empty", nil, 0o755)
		f.write(t, "elf", []byte("\x7fELF\x02\x01\x01 not quite"), 0o755)
		cases := []struct {
			name, path string
			program    string
			kind       sandbox.StartErrorKind
		}{
			{"unknown", "", "no-such-program", sandbox.ProgramNotFound},
			{"missing path", "", "/no/such/program", sandbox.ProgramNotFound},
			{"missing relative path", "", "./nothing", sandbox.ProgramNotFound},
			{"below a file", "", f.dir + "/text/program", sandbox.ProgramNotFound},
			{"not executable on PATH", f.dir + "/plain", "tool", sandbox.ProgramNotExecutable},
			{"not executable", "", "plain/tool", sandbox.ProgramNotExecutable},
			{"folder", "", "folder/tool", sandbox.ProgramNotExecutable},
			{"folder on PATH only", f.dir + "/folder", "tool", sandbox.ProgramNotExecutable}, // as execvp(3) has it
			{"missing interpreter", "", "./interpreter", sandbox.ProgramNotExecutable},
			{"neither program nor script", "", "./text", sandbox.ProgramNotExecutable},
			{"empty", "", "./empty", sandbox.ProgramNotExecutable},
			{"broken program", "", "./elf", sandbox.ProgramNotExecutable},
			{"name too long", "", "./" + strings.Repeat("x", 300), sandbox.ProgramNotExecutable},
		}
		for _, c := range cases {
			if err := f.startError(t, f.argv(c.path, c.program)); err.Kind != c.kind {
				t.Errorf("%s: the error is %s (%v), want %s", c.name, err.Kind, err, c.kind)
			}
		}
		f.succeed(t, "true") // the provider was not blamed and goes on
	})
}

// TestFoldersThatMayNotBeSearched on PATH hide programs, and turn none into one
// that cannot be executed. Nothing is closed to root.
func TestFoldersThatMayNotBeSearched(t *testing.T) {
	if isRoot() {
		return
	}
	eachLevel(t, func(t *testing.T, f *fixture) {
		f.write(t, "plain/other", []byte(script), 0o644)
		open := filepath.Dir(f.write(t, "open/tool", []byte("#!/bin/sh\necho open\n"), 0o755))
		closed := filepath.Dir(f.write(t, "closed/tool", []byte("#!/bin/sh\necho closed\n"), 0o755))
		if err := os.Chmod(closed, 0o600); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { os.Chmod(closed, 0o700) }) // so that it can be removed
		if o := finish(t, f.start(t, f.argv(closed+":"+open, "tool"))); o.stdout != "open\n" {
			t.Errorf("the output is %q (%s)", o.stdout, o.stderr)
		}
		for name, program := range map[string]string{"there, and not seen": "tool", "nowhere": "no-such-program"} {
			// As PATH alone, since tools of this name can stand elsewhere.
			spec := f.argv(closed, program)
			spec.Env = []string{"PATH=" + closed + ":" + f.dir + "/plain"}
			err := f.startError(t, spec)
			if err.Kind != sandbox.ProgramNotFound || err.Path != program || !strings.Contains(err.Error(), fmt.Sprintf("%q", closed)) {
				t.Errorf("%s: the error is %s (%v), want %s that names the folder", name, err.Kind, err, sandbox.ProgramNotFound)
			}
		}
		if err := f.startError(t, f.argv(closed+":"+f.dir+"/plain", "other")); err.Kind != sandbox.ProgramNotExecutable {
			t.Errorf("what is there and cannot be executed is %s (%v)", err.Kind, err)
		}
	})
}

func TestWorkingDirectory(t *testing.T) {
	eachLevel(t, func(t *testing.T, f *fixture) {
		file := f.write(t, "file", nil, 0o644)
		inner := filepath.Join(f.dir, "inner")
		closed := filepath.Join(f.dir, "closed")
		for _, dir := range []string{inner, closed} {
			if err := os.Mkdir(dir, 0o755); err != nil {
				t.Fatal(err)
			}
		}
		if err := os.Symlink(inner, filepath.Join(f.dir, "link")); err != nil {
			t.Fatal(err)
		}
		for dir, want := range map[string]string{inner: inner, f.dir + "/link": inner, f.dir + "/inner/..": f.dir, "/": "/"} {
			spec := f.spec("pwd -P")
			spec.Dir = dir
			if o := finish(t, f.start(t, spec)); strings.TrimSpace(o.stdout) != want {
				t.Errorf("in %q the working directory is %q, want %q", dir, o.stdout, want)
			}
		}
		bad := []string{"/no/such/folder", file, file + "/below", "relative", ".", "/\x00"}
		if !isRoot() || f.level == noNamespaces {
			// Root keeps the right to enter every folder, save where the
			// sandbox has to take all its privileges.
			if err := os.Chmod(closed, 0o600); err != nil {
				t.Fatal(err)
			}
			bad = append(bad, closed)
		}
		for _, dir := range bad {
			spec := f.spec("true")
			spec.Dir = dir
			if err := f.startError(t, spec); err.Kind != sandbox.BadWorkingDirectory || err.Path != dir {
				t.Errorf("in %q the error is %s for %q (%v), want %s", dir, err.Kind, err.Path, err, sandbox.BadWorkingDirectory)
			}
		}
		f.succeed(t, "true")
	})
}

func TestLongCommands(t *testing.T) {
	eachLevel(t, func(t *testing.T, f *fixture) {
		for _, size := range []int{128<<10 - 2, 128<<10 - 1, 128 << 10, 128<<10 + 1, 200 << 10, 2 << 20} {
			command := "echo $# end; exit 3 #"
			command += strings.Repeat("x", size-len(command))
			o := f.run(t, command)
			o.ended(t, 3, "")
			if o.stdout != "0 end\n" {
				t.Errorf("a command of %d bytes printed %q", size, o.stdout)
			}
		}
		// Input is the command's own, however it gets to its shell.
		spec := f.spec("read -r line; echo \"got $line\" #" + strings.Repeat("x", 200<<10))
		spec.Stdin = strings.NewReader("one\ntwo\n")
		if o := finish(t, f.start(t, spec)); o.stdout != "got one\n" {
			t.Errorf("a long command that reads printed %q (%s)", o.stdout, o.stderr)
		}
	})
}

func TestTooLongArguments(t *testing.T) {
	eachLevel(t, func(t *testing.T, f *fixture) {
		long := strings.Repeat("x", 200<<10)
		one := f.argv("", "true", long)
		many := f.argv("", slices.Concat([]string{"true"}, slices.Repeat([]string{strings.Repeat("x", 100<<10)}, 100))...)
		environment := f.spec("true")
		environment.Env = append(environment.Env, "LONG="+long)
		for name, spec := range map[string]sandbox.Spec{"one": one, "many": many, "environment": environment} {
			if err := f.startError(t, spec); err.Kind != sandbox.ArgumentListTooLong {
				t.Errorf("%s: the error is %s (%v), want %s", name, err.Kind, err, sandbox.ArgumentListTooLong)
			}
		}
		f.succeed(t, "true")
	})
}

// Mistakes of the caller are neither the command's nor the sandbox's.
func TestInvalidSpecs(t *testing.T) {
	eachLevel(t, func(t *testing.T, f *fixture) {
		both := f.spec("true")
		both.Argv = []string{"true"}
		nul := f.spec("echo \x00")
		cases := map[string]sandbox.Spec{"both": both, "neither": f.spec(""), "NUL": nul, "NUL argument": f.argv("", "echo", "\x00")}
		for name, spec := range cases {
			_, err := f.provider.Start(context.Background(), spec)
			var start *sandbox.StartError
			var unavailable *sandbox.UnavailableError
			if err == nil || errors.As(err, &start) || errors.As(err, &unavailable) {
				t.Errorf("%s: the error is %T: %v", name, err, err)
			}
		}
		cancelled, cancel := context.WithCancel(context.Background())
		cancel()
		if _, err := f.provider.Start(cancelled, f.spec("true")); !errors.Is(err, context.Canceled) {
			t.Errorf("with a cancelled context the error is %v", err)
		}
	})
}

// A provider runs only what it is for.
func TestModes(t *testing.T) {
	t.Parallel()
	f := newFixture(t, noNamespaces)
	spec := f.spec("true")
	spec.Policy.Mode = sandbox.DangerFullAccess
	if _, err := f.engine.Start(context.Background(), spec); err == nil {
		t.Error("the confining provider ran a command unconfined")
	}
	spec.Policy.Mode = sandbox.WorkspaceWrite
	_, err := f.engine.Unconfined().Start(context.Background(), spec)
	var unavailable *sandbox.UnavailableError
	if !errors.As(err, &unavailable) || unavailable.Started {
		t.Errorf("asked to confine, the provider that does not answers %v", err)
	}
}

// The environment is what was given, but for folders and markers that are the
// sandbox's.
func TestEnvironment(t *testing.T) {
	t.Setenv("HOME", realDir(t)) // without caches, of which tools are told
	eachLevel(t, func(t *testing.T, f *fixture) {
		spec := f.argv("", "env", "-0")
		spec.Env = []string{"PATH=/usr/bin:/bin", "A=1", "EMPTY=", "TMPDIR=/given", "odd name=x=y", "NEWLINE=a\nb", "TMPDIRX=keep"}
		o := finish(t, f.start(t, spec))
		got := strings.Split(strings.TrimSuffix(o.stdout, "\x00"), "\x00")
		want := slices.Clone(spec.Env)
		if f.level != unconfined {
			want = slices.DeleteFunc(want, func(e string) bool { return e == "TMPDIR=/given" })
			want = append(want, "CONFINE_SANDBOX=landlock", "CONFINE_SANDBOX_NETWORK_DISABLED=1")
			i := slices.IndexFunc(got, func(e string) bool { return strings.HasPrefix(e, "TMPDIR=") })
			if i < 0 || got[i] == "TMPDIR=/given" {
				t.Fatalf("there is no TMPDIR of the sandbox: %q", got)
			}
			folder, _ := strings.CutPrefix(got[i], "TMPDIR=")
			// Tools may be told to keep their caches there too.
			got = slices.DeleteFunc(got, func(e string) bool {
				_, value, _ := strings.Cut(e, "=")
				return value == folder || strings.Contains(value, folder+"/") // MAVEN_OPTS holds an option
			})
		}
		slices.Sort(got)
		slices.Sort(want)
		if !slices.Equal(got, want) {
			t.Errorf("the environment is %q, want %q", got, want)
		}
	})
}

func TestTemporaryFolder(t *testing.T) {
	eachLevel(t, func(t *testing.T, f *fixture) {
		if f.level == unconfined {
			return // it is the host's
		}
		f.succeed(t, `mktemp >/dev/null && cat <<<here && test -w "$TMPDIR" && test "$(stat -c %F "$TMPDIR")" = directory`)
	})
}

func TestStartErrorKeepsTheCause(t *testing.T) {
	t.Parallel()
	f := newFixture(t, unconfined)
	f.write(t, "text", []byte("just words\n"), 0o755)
	err := f.startError(t, f.argv("", "./text"))
	if !errors.Is(err, syscall.ENOEXEC) {
		t.Errorf("the cause is %v, want %v", errors.Unwrap(err), syscall.ENOEXEC)
	}
	if want := fmt.Sprintf("%q", filepath.Join(f.dir, "text")); !strings.Contains(err.Error(), want) {
		t.Errorf("%q does not name %s", err, want)
	}
}
