package local

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/confine-dev/confine/sandbox"
	"golang.org/x/sys/unix"
)

// runnerWrapper confines, for tests of the executor, by a runner only: a shell or
// a bubblewrap with next to no view.
type runnerWrapper struct {
	program string
	args    []string
	inside  func(*Script)
}

func (runnerWrapper) Name() string { return sandbox.ProviderBwrap }
func (runnerWrapper) Kind() string { return "linux-bwrap" }

func (w runnerWrapper) Wrap(r Request) (*Launch, error) {
	program, err := os.OpenFile(w.program, unix.O_PATH, 0)
	if err != nil {
		return nil, err
	}
	l := &Launch{Namespaces: r.Namespaces, Env: map[string]string{"TMPDIR": "/tmp"}, Runner: &Runner{Program: program, Name: "runner", Args: w.args}}
	if w.inside != nil {
		w.inside(&l.Runner.Inside)
	}
	return l, nil
}

func (runnerWrapper) Claims(sandbox.Policy, bool) Claims {
	facets := map[sandbox.Facet]sandbox.FacetReport{}
	for _, f := range sandbox.Facets {
		facets[f] = sandbox.FacetReport{State: sandbox.Open, Reason: "a test"}
	}
	return Claims{Facets: facets}
}

// bubblewrapArgs make new namespaces and nothing else that a test would need.
func bubblewrapArgs(more ...string) []string {
	args := []string{"--unshare-user", "--unshare-pid", "--unshare-ipc", "--unshare-uts", "--as-pid-1", "--die-with-parent", "--json-status-fd", fmt.Sprint(RunnerStatus),
		"--ro-bind", "/", "/", "--dev", "/dev", "--proc", "/proc", "--tmpfs", "/tmp"}
	return append(append(args, more...), "--")
}

func needBubblewrap(t *testing.T) string {
	t.Helper()
	const path = "/usr/bin/bwrap"
	if _, err := os.Stat(path); err != nil {
		if os.Getenv("CI") != "" {
			t.Fatal("bubblewrap is not installed")
		}
		t.Skip("bubblewrap is not installed")
	}
	return path
}

// runnerFixture is an engine and a workspace for runs by a runner.
type runnerFixture struct {
	engine *Engine
	root   *sandbox.Root
}

func newRunnerFixture(t *testing.T) *runnerFixture {
	t.Helper()
	e, err := New(runnerWrapper{}, Options{StateDir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	root, err := sandbox.DeclareRoot(t.TempDir(), sandbox.Forbidden{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		root.Close()
		if err := e.Close(); err != nil {
			t.Error(err)
		}
	})
	return &runnerFixture{e, root}
}

func (f *runnerFixture) spec(command string) sandbox.Spec {
	return sandbox.Spec{RunID: "run", Command: command, Dir: f.root.Path, Timeout: time.Minute, Env: []string{"PATH=/usr/bin:/bin", "A=secret"},
		Policy: sandbox.Policy{Mode: sandbox.WorkspaceWrite, Roots: []*sandbox.Root{f.root}}}
}

// launch starts a command without a probe, which a view of this kind could not
// pass.
func (f *runnerFixture) launch(t *testing.T, w Wrapper, namespaces bool, spec sandbox.Spec) (*run, error) {
	t.Helper()
	f.engine.wrapper = w
	program, err := resolve(spec)
	if err != nil {
		t.Fatal(err)
	}
	defer program.close()
	if err := f.engine.guard.start(); err != nil {
		t.Fatal(err)
	}
	return f.engine.confine(spec, program, verdict{namespaces: namespaces, claims: w.Claims(spec.Policy, namespaces)})
}

func TestRunner(t *testing.T) {
	bwrap := needBubblewrap(t)
	for _, namespaces := range []bool{true, false} {
		f := newRunnerFixture(t)
		w := runnerWrapper{program: bwrap, args: bubblewrapArgs("--bind", f.root.Path, f.root.Path)}
		spec := f.spec(`read -r x </proc/1/comm; echo "$x $$ $A $*"; cat; pwd; env | grep -c LD_; ls /proc/self/fd | tr '\n' ' '; echo err >&2; exit 9`)
		spec.Stdin = strings.NewReader("input\n")
		r, err := f.launch(t, w, namespaces, spec)
		if err != nil {
			t.Fatal(err)
		}
		result, err := r.Wait()
		if err != nil || result.ExitCode != 9 {
			t.Errorf("the command ended with %+v, %v", result, err)
		}
		out, _ := r.Output(sandbox.StdoutStream).Tail()
		lines := strings.Split(out, "\n")
		if len(lines) != 5 || !strings.HasPrefix(lines[0], "confine-init:") || !strings.HasSuffix(lines[0], " 2 secret ") ||
			lines[1] != "input" || lines[2] != spec.Dir || lines[3] != "0" || lines[4] != "0 1 2 3 " {
			t.Errorf("the output is %q", out)
		}
		if text, _ := r.Output(sandbox.StderrStream).Tail(); text != "err\n" {
			t.Errorf("the errors are %q", text)
		}
	}
}

// However a runner fails, the command never ran and the cause is told.
func TestRunnerFails(t *testing.T) {
	bwrap := needBubblewrap(t)
	f := newRunnerFixture(t)
	mark := f.root.Path + "/ran"
	inVain := func(s *Script) { s.Call("trying in vain", unix.SYS_CHDIR, Text("/no/such")) }
	for name, test := range map[string]struct {
		w    runnerWrapper
		want string
	}{
		"a source is missing":   {runnerWrapper{program: bwrap, args: bubblewrapArgs("--bind", "/no/such/folder", "/mnt")}, "runner did not start the command: bwrap: Can't find source path /no/such/folder"},
		"an option is unknown":  {runnerWrapper{program: bwrap, args: []string{"--no-such-option"}}, "runner did not start the command: bwrap: Unknown option --no-such-option"},
		"it executes nothing":   {runnerWrapper{program: "/bin/true"}, "runner did not start the command: "},
		"it is killed":          {runnerWrapper{program: "/bin/sh", args: []string{"-c", "kill -9 $$"}}, "runner did not start the command: killed by killed"},
		"a call inside fails":   {runnerWrapper{program: bwrap, args: bubblewrapArgs(), inside: inVain}, "trying in vain: no such file or directory"},
		"it is no program":      {runnerWrapper{program: "/etc/passwd"}, "executing runner: permission denied"},
		"it hides its own proc": {runnerWrapper{program: bwrap, args: []string{"--tmpfs", "/", "--"}}, "runner did not start the command: bwrap: execvp /proc/self/fd/10: No such file or directory"},
	} {
		r, err := f.launch(t, test.w, true, f.spec("> "+mark))
		if err == nil {
			r.Wait()
			t.Errorf("%s: the command began", name)
			continue
		}
		if !strings.HasPrefix(err.Error(), test.want) {
			t.Errorf("%s: told as %q, want %q", name, err, test.want)
		}
		var failed *RunnerError
		if strings.HasPrefix(test.want, "runner") != errors.As(err, &failed) {
			t.Errorf("%s: the error is %#v", name, err)
		}
	}
	if _, err := os.Lstat(mark); err == nil {
		t.Error("a command ran")
	}
}

// A folder that is not there is the command's fault, whoever finds that.
func TestRunnerWithoutTheWorkingDirectory(t *testing.T) {
	bwrap := needBubblewrap(t)
	f := newRunnerFixture(t)
	spec := f.spec("true")
	_, err := f.launch(t, runnerWrapper{program: bwrap, args: bubblewrapArgs("--tmpfs", f.root.Path+"/..")}, true, spec)
	start, ok := f.engine.explain(err, spec, resolved{argv: []string{"bash"}}).(*sandbox.StartError)
	if !ok || start.Kind != sandbox.BadWorkingDirectory {
		t.Errorf("told as %v", err)
	}
}

// Ending a run ends the runner too, and nothing of the run is left.
func TestRunnerIsEnded(t *testing.T) {
	bwrap := needBubblewrap(t)
	f := newRunnerFixture(t)
	heard := make(chan bool, 1)
	spec := f.spec(`trap 'echo told; exit 5' TERM; echo ready; sleep 1000 & wait`)
	spec.Output = func(c sandbox.Chunk) {
		if strings.HasPrefix(string(c.Data), "ready") {
			heard <- true
		}
	}
	r, err := f.launch(t, runnerWrapper{program: bwrap, args: bubblewrapArgs("--bind", f.root.Path, f.root.Path)}, true, spec)
	if err != nil {
		t.Fatal(err)
	}
	<-heard
	r.Cancel()
	result, err := r.Wait()
	if out, _ := r.Output(sandbox.StdoutStream).Tail(); err != nil || result.ExitCode != 5 || !strings.Contains(out, "told") {
		t.Errorf("the command ended with %+v, %v: %q", result, err, out)
	}
	if inits, _ := initsOf(processes(), f.engine.home.id); len(inits) > 0 {
		t.Errorf("inits are left: %v", inits)
	}
}
