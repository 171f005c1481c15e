package sandboxtest

import (
	"bufio"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/confine-dev/confine/sandbox"
)

// story is what takes more than one run, or another workspace.
type story struct {
	name string
	tell func(t *testing.T, w *place)
}

var stories = []story{
	{"facts fit the run", factsFit},
	{"a command is told that it is confined", markersFit},
	{"a mode is not run by the wrong provider", modesFit},
	{"temporary files live as long as their session", temporaryFilesLast},
	{"temporary files of a read-only run do not last", temporaryFilesEnd},
	{"a server answers the runs of its session", serverOfSession},
	{"the granted network reaches the host", grantedNetwork},
	{"a replaced root is refused", replacedRoot},
	{"a root replaced through another root is refused", replacedNestedRoot},
	{"the workspace cannot be moved", movedWorkspace},
	{"a working directory shows no services", workingDirectory},
	{"a workspace may lie in a hidden folder", hiddenWorkspace},
	{"links in the temporary folder lead nowhere", temporaryLinks},
	{"protected paths stay as they are", protectedPaths},
	{"caches of the host stay as they are", hostCaches},
	{"a terminal is the command's own", ownTerminals},
	{"a namespace that is refused is told of", newNamespaces},
}

// shell runs a command of bash and returns how it ended.
func (p *place) shell(t *testing.T, mode sandbox.Mode, session, command string, change ...func(*sandbox.Spec)) (sandbox.Result, string) {
	t.Helper()
	result, stdout, stderr := start(t, p.confined, p.shellSpec(mode, session, command, change...))
	return result, strings.TrimSpace(stdout + stderr)
}

func (p *place) shellSpec(mode sandbox.Mode, session, command string, change ...func(*sandbox.Spec)) sandbox.Spec {
	spec := p.spec(mode)
	spec.Session, spec.Command = session, command
	for _, c := range change {
		c(&spec)
	}
	return spec
}

// in puts a command into other roots and works in the first.
func in(roots ...*sandbox.Root) func(*sandbox.Spec) {
	return func(s *sandbox.Spec) { s.Policy.Roots, s.Dir = roots, roots[0].Path }
}

// must fails unless a command ended well and printed what was wanted.
func must(t *testing.T, want string) func(sandbox.Result, string) {
	t.Helper()
	return func(r sandbox.Result, output string) {
		t.Helper()
		if r.ExitCode != 0 || r.Signal != "" || output != want {
			t.Errorf("got exit code %d, signal %q, output %q; want output %q", r.ExitCode, r.Signal, output, want)
		}
	}
}

// folder makes a folder with a file below the world's folder.
func (p *place) folder(t *testing.T, path string) string {
	t.Helper()
	if err := errors.Join(os.MkdirAll(path, 0o755), os.WriteFile(filepath.Join(path, "file"), []byte("host"), 0o644)); err != nil {
		t.Fatal(err)
	}
	return path
}

func (p *place) newFolder(t *testing.T) string {
	return p.folder(t, filepath.Join(p.base, fmt.Sprintf("f%d", p.count.Add(1))))
}

func (p *place) level(t *testing.T) levels {
	return levelOf(sandbox.Facts{Layers: p.confined.Probe(t.Context()).Layers})
}

func factsFit(t *testing.T, w *place) {
	for _, mode := range bothModes {
		result, _ := w.shell(t, mode, "facts", "true")
		f := result.Facts
		if f.Mode != mode || f.Provider != w.confined.Name() || f.Kind == "" {
			t.Errorf("mode %q, provider %q, kind %q", f.Mode, f.Provider, f.Kind)
		}
		if want := sandbox.Sum(sandbox.Policy{Mode: mode}, f.Facets); f.Enforcement != want {
			t.Errorf("%s: enforcement %q, want %q of facets %v", mode, f.Enforcement, want, f.Facets)
		}
		if (levelOf(f) == withoutNamespaces) != w.world.bare {
			t.Errorf("%s: layers %v", mode, f.Layers)
		}
	}
}

// newNamespaces: where confine itself makes namespaces, it is the sandbox that refuses
// them to a command; elsewhere it is the host, too.
func newNamespaces(t *testing.T, w *place) {
	var want []sandbox.Denial
	if w.level(t) == withNamespaces && !w.alone {
		want = []sandbox.Denial{{Op: "unshare", Path: "/proc/self/ns/user", Errno: "EPERM", Exe: "unshare", Evidence: sandbox.Stderr, Count: 1}}
	}
	for _, mode := range bothModes {
		result, output := w.shell(t, mode, "namespaces", "unshare --user true")
		if result.ExitCode == 0 || !slices.Equal(result.Denials, want) || result.Denied != (want != nil) {
			t.Errorf("%s: exit code %d, output %q, denials %+v, want %+v", mode, result.ExitCode, output, result.Denials, want)
		}
	}
}

func markersFit(t *testing.T, w *place) {
	const markers = `env | grep ^CONFINE_ | sort | tr '\n' ' '`
	name := w.confined.Name()
	forged := func(s *sandbox.Spec) { s.Env = append(s.Env, "CONFINE_SANDBOX=forged") }
	for _, mode := range bothModes {
		must(t, "CONFINE_SANDBOX="+name+" CONFINE_SANDBOX_NETWORK_DISABLED=1")(w.shell(t, mode, "markers", markers, forged))
		must(t, "CONFINE_SANDBOX="+name)(w.shell(t, mode, "markers", markers, func(s *sandbox.Spec) { s.Policy.Network = true }))
	}
}

func modesFit(t *testing.T, w *place) {
	for _, mode := range []sandbox.Mode{sandbox.DangerFullAccess, sandbox.ExternalSandbox, "", "workspace_write"} {
		if p, err := w.confined.Start(t.Context(), w.shellSpec(mode, "modes", "true")); err == nil {
			result, _ := p.Wait()
			if result.Facts.Enforcement == "" {
				t.Errorf("the confining provider ran a command of mode %q", mode)
			}
		}
	}
	for _, mode := range append(slices.Clone(bothModes), "", "workspace_write") {
		_, err := w.unconfined.Start(t.Context(), w.shellSpec(mode, "modes", "true"))
		var unavailable *sandbox.UnavailableError
		if !errors.As(err, &unavailable) {
			t.Errorf("the provider that confines nothing, mode %q: got %v, want a sandbox.UnavailableError", mode, err)
		}
	}
}

func temporaryFilesLast(t *testing.T, w *place) {
	defer w.confined.CloseSession("last-a")
	must(t, "")(w.shell(t, sandbox.WorkspaceWrite, "last-a", `echo mine > "$TMPDIR/f" && test -w "$TMPDIR"`))
	must(t, "mine")(w.shell(t, sandbox.WorkspaceWrite, "last-a", `cat "$TMPDIR/f"`))
	must(t, "none")(w.shell(t, sandbox.WorkspaceWrite, "last-b", `cat "$TMPDIR/f" 2>/dev/null || echo none`))
	w.confined.CloseSession("last-a")
	must(t, "none")(w.shell(t, sandbox.WorkspaceWrite, "last-a", `cat "$TMPDIR/f" 2>/dev/null || echo none`))
}

func temporaryFilesEnd(t *testing.T, w *place) {
	_, dir := w.shell(t, sandbox.ReadOnly, "end", `echo mine > "$TMPDIR/f" && mkdir "$TMPDIR/d" && cat "$TMPDIR/f" > /dev/null && echo "$TMPDIR"`)
	if !filepath.IsAbs(dir) {
		t.Fatalf("a read-only run cannot write temporary files: %s", dir)
	}
	for _, mode := range bothModes {
		must(t, "none")(w.shell(t, mode, "end", fmt.Sprintf(`cat %s/f "$TMPDIR/f" 2>/dev/null || echo none`, dir)))
	}
	if w.world.bare {
		if _, err := os.Lstat(dir); err == nil {
			t.Errorf("%s is left", dir)
		}
	}
}

// serveMain prints its address and greets whoever comes.
func serveMain([]string) int {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		fmt.Println(err)
		return 1
	}
	fmt.Println(l.Addr())
	for {
		c, err := l.Accept()
		if err != nil {
			return 1
		}
		c.Write([]byte("heard\n"))
		c.Close()
	}
}

// reachMain says whether a server could be reached.
func reachMain(args []string) int {
	c, err := net.Dial("tcp", args[0])
	if err != nil {
		fmt.Println("unreachable")
		return 0
	}
	fmt.Fprintln(c, args[1])
	line, _ := bufio.NewReader(c).ReadString('\n')
	fmt.Print(line)
	return 0
}

func (p *place) reach(t *testing.T, session, address, token string, change ...func(*sandbox.Spec)) (sandbox.Result, string) {
	t.Helper()
	return p.shell(t, sandbox.WorkspaceWrite, session, fmt.Sprintf("%q %s %q %q", p.program, entryReach, address, token), change...)
}

func serverOfSession(t *testing.T, w *place) {
	if w.level(t) == withoutNamespaces {
		return // there is no loopback network, which the network facet implies
	}
	addresses := make(chan string, 10)
	spec := w.shellSpec(sandbox.WorkspaceWrite, "server-a", fmt.Sprintf("exec %q %s", w.program, entryServe))
	spec.Output = func(c sandbox.Chunk) { addresses <- strings.TrimSpace(string(c.Data)) }
	server, err := w.confined.Start(t.Context(), spec)
	if err != nil {
		t.Fatal(err)
	}
	address := <-addresses
	answer := "heard"
	if w.alone {
		answer = "unreachable"
	}
	must(t, answer)(w.reach(t, "server-a", address, "x"))
	must(t, answer)(w.reach(t, "server-a", address, "x", func(s *sandbox.Spec) { s.Policy.Mode = sandbox.ReadOnly }))
	must(t, "unreachable")(w.reach(t, "server-b", address, "x"))
	if c, err := net.Dial("tcp", address); err == nil {
		c.Close()
		t.Error("the session's server is reached from the host")
	}
	server.Cancel()
	server.Wait()
	must(t, "unreachable")(w.reach(t, "server-a", address, "x"))
}

func grantedNetwork(t *testing.T, w *place) {
	granted := func(s *sandbox.Spec) { s.Policy.Network = true }
	result, output := w.reach(t, "granted", w.services.address.TCP, "granted", granted)
	must(t, "heard")(result, output)
	if state := result.Facts.Facets[sandbox.Network].State; state == sandbox.Enforced || state == sandbox.Partial {
		t.Errorf("the network was granted, but is called %s", state)
	}
	must(t, "unreachable")(w.reach(t, "granted", w.services.address.TCP, "refused"))
	// The network is not the services of the machine that use none.
	for _, r := range serviceReaches {
		s := newScene(t, w, sandbox.WorkspaceWrite)
		s.network = true
		if r.arrange != nil {
			r.arrange(s)
		}
		out, facts := s.run(t, r.name)
		if levelOf(facts)&r.gap == 0 {
			r.judge(t, s, out, facts, &tally{through: map[sandbox.Facet][]string{}})
		}
	}
}
