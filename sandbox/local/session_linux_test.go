package local_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/confine-dev/confine/sandbox"
)

// in gives a spec to a session.
func in(session string, spec sandbox.Spec) sandbox.Spec {
	spec.Session = session
	return spec
}

func TestTemporaryFilesOfASession(t *testing.T) {
	for _, level := range []level{namespaces, noNamespaces} {
		t.Run(string(level), func(t *testing.T) {
			t.Parallel()
			f := newFixture(t, level)
			run := func(session, command string) string {
				t.Helper()
				o := finish(t, f.start(t, in(session, f.spec(command))))
				o.ended(t, 0, "")
				return strings.TrimSpace(o.stdout)
			}
			run("a", `echo of a >"$TMPDIR/file"`)
			if got := run("a", `cat "$TMPDIR/file"`); got != "of a" {
				t.Errorf("the session's next run reads %q", got)
			}
			if got := run("b", `cat "$TMPDIR/file" 2>/dev/null; echo end`); got != "end" {
				t.Errorf("another session reads %q", got)
			}
			f.engine.CloseSession("a")
			f.engine.CloseSession("never heard of")
			if got := run("a", `ls -A "$TMPDIR" | grep file; echo end`); got != "end" {
				t.Errorf("after the session was closed its successor finds %q", got)
			}
		})
	}
}

// What a read-only run writes is gone with it.
func TestTemporaryFilesOfAReadOnlyRun(t *testing.T) {
	for _, level := range []level{namespaces, noNamespaces} {
		t.Run(string(level), func(t *testing.T) {
			t.Parallel()
			f := newFixture(t, level)
			f.policy.Mode = sandbox.ReadOnly
			where := f.succeed(t, `echo x >"$TMPDIR/file" && echo "$TMPDIR"`)
			if level == noNamespaces { // soon after the run was over
				eventually(t, "the run's temporary folder to go", func() bool {
					_, err := os.Lstat(where)
					return errors.Is(err, os.ErrNotExist)
				})
			}
			if got := f.succeed(t, fmt.Sprintf(`cat %s/file "$TMPDIR/file" 2>/dev/null; echo end`, where)); got != "end" {
				t.Errorf("the next run reads %q", got)
			}
		})
	}
}

func init() { testEntries["__listen"] = listenMain }

// listenMain is a server on the loopback network: it prints its port and
// greets everybody.
func listenMain([]string) int {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return fail(err)
	}
	fmt.Println("port", l.Addr().(*net.TCPAddr).Port)
	for {
		c, err := l.Accept()
		if err != nil {
			return fail(err)
		}
		fmt.Fprintln(c, "hello")
		c.Close()
	}
}

// listen starts a server in a session and returns its port.
func (f *fixture) listen(t testing.TB, session string) (sandbox.Process, string) {
	t.Helper()
	program, err := os.ReadFile("/proc/self/exe")
	if err != nil {
		t.Fatal(err)
	}
	path := f.write(t, "listener", program, 0o755) // where commands can see it
	spec := in(session, f.argv("", path, "__listen"))
	p := f.start(t, spec)
	printed(t, p, "\n")
	stdout, _ := p.Output(sandbox.StdoutStream).Tail()
	port, ok := strings.CutPrefix(strings.TrimSpace(stdout), "port ")
	if !ok {
		t.Fatalf("the server says %q", stdout)
	}
	return p, port
}

const greet = "exec 3<>/dev/tcp/127.0.0.1/%s && cat <&3"

// A server in the background serves its own session and no other.
func TestNetworkOfASession(t *testing.T) {
	t.Parallel()
	f := newFixture(t, namespaces)
	server, port := f.listen(t, "a")
	o := finish(t, f.start(t, in("a", f.spec(fmt.Sprintf(greet, port)))))
	if o.ended(t, 0, ""); o.stdout != "hello\n" {
		t.Errorf("the session's next run gets %q", o.stdout)
	}
	if o := finish(t, f.start(t, in("b", f.spec(fmt.Sprintf(greet, port))))); o.ExitCode == 0 || o.stdout != "" {
		t.Errorf("another session gets %q", o.stdout)
	}
	if c, err := net.Dial("tcp", "127.0.0.1:"+port); err == nil {
		c.Close()
		t.Error("the host reaches the session's server")
	}
	// The same port is free elsewhere, and each session sees its own.
	f.engine.CloseSession("a")
	wait(t, "the server to end", server.Done())
	if o := finish(t, f.start(t, in("a", f.spec(fmt.Sprintf(greet, port))))); o.ExitCode == 0 || o.stdout != "" {
		t.Errorf("after the session was closed its successor gets %q", o.stdout)
	}
}

// A granted network is the host's.
func TestGrantedNetwork(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return // closed by the test
			}
			fmt.Fprintln(c, "hello from the host")
			c.Close()
		}
	}()
	port := fmt.Sprint(l.Addr().(*net.TCPAddr).Port)
	for _, level := range []level{namespaces, noNamespaces} {
		f := newFixture(t, level)
		if o := f.run(t, fmt.Sprintf(greet, port)); o.ExitCode == 0 || o.stdout != "" {
			t.Errorf("%s: without the grant a command gets %q", level, o.stdout)
		}
		f.policy.Network = true
		if got := f.succeed(t, fmt.Sprintf(greet, port)); got != "hello from the host" {
			t.Errorf("%s: with the grant a command gets %q", level, got)
		}
	}
}

// Closing a session ends what runs in it and nothing else.
func TestCloseSession(t *testing.T) {
	eachLevel(t, func(t *testing.T, f *fixture) {
		stubborn := "trap '' TERM HUP INT; " + sleeper
		var doomed []sandbox.Process
		for range 3 {
			spec := in("a", f.spec(stubborn))
			spec.Env = append(spec.Env, mark(t))
			doomed = append(doomed, f.start(t, spec))
		}
		other := f.start(t, in("b", f.spec("echo ready; read -r x; exit 8")))
		for _, p := range append(doomed, other) {
			printed(t, p, "ready")
		}
		f.engine.CloseSession("a")
		if left := marked(mark(t)); len(left) > 0 {
			t.Errorf("still there: %v", left)
		}
		for _, p := range doomed {
			o := finish(t, p)
			if o.ended(t, 0, "SIGKILL"); !o.Cancelled {
				t.Error("the run does not say that it was cancelled")
			}
		}
		if o := finish(t, other); o.ExitCode != 1 && o.ExitCode != 8 {
			t.Errorf("the other session's run ended with exit code %d, signal %q", o.ExitCode, o.Signal)
		}
		finish(t, f.start(t, in("a", f.spec("true")))).ended(t, 0, "")
	})
}

// Runs that start at once in a new session find one session.
func TestConcurrentFirstRuns(t *testing.T) {
	for _, level := range []level{namespaces, noNamespaces} {
		t.Run(string(level), func(t *testing.T) {
			t.Parallel()
			f := newFixture(t, level)
			const count = 12
			command := `echo $$ >"$TMPDIR/$RUN"; while test $(ls "$TMPDIR" | grep -c '^run') -lt ` + fmt.Sprint(count) + `; do sleep 0.02; done; readlink /proc/self/ns/net`
			var processes []sandbox.Process
			var mu sync.Mutex
			var starting sync.WaitGroup
			for i := range count {
				starting.Go(func() {
					spec := f.spec(command)
					spec.Env = append(spec.Env, fmt.Sprintf("RUN=run%d", i))
					p, err := f.provider.Start(context.Background(), spec)
					if err != nil {
						t.Error(err)
						return
					}
					mu.Lock()
					processes = append(processes, p)
					mu.Unlock()
				})
			}
			starting.Wait()
			networks := map[string]bool{}
			for _, p := range processes {
				o := finish(t, p)
				o.ended(t, 0, "")
				networks[o.stdout] = true
			}
			if len(networks) != 1 {
				t.Errorf("the runs found %d networks", len(networks))
			}
		})
	}
}

// Closing the engine while commands start and run ends them all.
func TestCloseEngine(t *testing.T) {
	for _, level := range levels {
		t.Run(string(level), func(t *testing.T) {
			t.Parallel()
			f := newFixture(t, level)
			finish(t, f.start(t, f.spec("true"))) // what a level needs was found out
			var workers sync.WaitGroup
			running := make(chan struct{}, 1000)
			for w := range 4 {
				workers.Go(func() {
					for i := 0; ; i++ {
						spec := in(fmt.Sprintf("%d-%d", w, i%3), f.spec("setsid sleep 60 & trap '' TERM; sleep 60"))
						spec.Env = append(spec.Env, mark(t))
						p, err := f.provider.Start(context.Background(), spec)
						if err != nil {
							if i == 0 {
								t.Error(err)
							}
							return // the engine was closed
						}
						running <- struct{}{}
						t.Cleanup(func() { finish(t, p) })
					}
				})
			}
			for range 12 {
				<-running
			}
			if err := f.engine.Close(); err != nil {
				t.Error(err)
			}
			if left := marked(mark(t)); len(left) > 0 {
				t.Errorf("left behind: %v", left)
			}
			if left := serverFolders(t, f.state); len(left) > 0 {
				t.Errorf("left behind: %v", left)
			}
			workers.Wait()
			if _, err := f.provider.Start(context.Background(), f.spec("true")); err == nil {
				t.Error("a closed engine started a command")
			}
		})
	}
}

// What a command does to the modes of its files does not keep them.
func TestStubbornTemporaryFiles(t *testing.T) {
	t.Parallel()
	f := newFixture(t, noNamespaces)
	for session, command := range map[string]string{
		"closed folder":    `mkdir -p "$TMPDIR/a/b/c" && touch "$TMPDIR/a/b/c/file" && chmod 0 "$TMPDIR/a/b/c" "$TMPDIR/a/b" "$TMPDIR/a"`,
		"read-only folder": `mkdir -p "$TMPDIR/a/b" && touch "$TMPDIR/a/b/file" && chmod 555 "$TMPDIR/a/b" "$TMPDIR/a"`,
		"itself":           `touch "$TMPDIR/file" && chmod 0 "$TMPDIR"`,
		"links":            `mkdir "$TMPDIR/a" && ln -s /etc "$TMPDIR/a/etc" && ln -s ../.. "$TMPDIR/a/up" && chmod 555 "$TMPDIR/a"`,
	} {
		finish(t, f.start(t, in(session, f.spec(command)))).ended(t, 0, "")
		f.engine.CloseSession(session)
		folders, err := filepath.Glob(filepath.Join(f.state, "servers", "*", "s", "*"))
		if err != nil || len(folders) > 0 {
			t.Errorf("%s: left are %v (%v)", session, folders, err)
		}
	}
	if _, err := os.Stat("/etc/passwd"); err != nil {
		t.Error(err)
	}
}

// Programs put unix sockets below TMPDIR, whose names are 108 bytes at most
// (unix(7)); Python alone needs some forty of them.
func TestTemporaryFolderHasAShortName(t *testing.T) {
	t.Parallel()
	f := newFixture(t, noNamespaces)
	tmp := f.succeed(t, `echo "$TMPDIR"`)
	if longest := len(f.state) + 40; len(tmp) > longest {
		t.Errorf("TMPDIR %q has %d bytes more than the state folder", tmp, len(tmp)-len(f.state))
	}
}
