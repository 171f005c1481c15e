package seatbelt_test

import (
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/confine-dev/confine/sandbox"
	"github.com/confine-dev/confine/sandbox/local"
	"github.com/confine-dev/confine/sandbox/seatbelt"
)

func TestMain(m *testing.M) {
	local.Child(os.Args) // the engine starts this program again
	os.Exit(m.Run())
}

// mac is a workspace on this Mac, with an engine that confines.
type mac struct {
	engine         *local.Engine
	ws, out, state string
	policy         sandbox.Policy
}

func newMac(t *testing.T, mode sandbox.Mode) *mac {
	t.Helper()
	home, err := os.UserHomeDir()
	if err != nil {
		t.Fatal(err)
	}
	top, err := os.MkdirTemp(home, ".confine-test-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(top) })
	m := &mac{ws: filepath.Join(top, "ws"), out: filepath.Join(top, "out"), state: filepath.Join(top, "state")}
	for _, dir := range []string{m.state, filepath.Join(m.ws, ".git", "hooks"), filepath.Join(m.out, "hidden")} {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	for _, file := range []string{filepath.Join(m.out, "file"), filepath.Join(m.out, "hidden", "key")} {
		if err := os.WriteFile(file, []byte("text\n"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	root, err := sandbox.DeclareRoot(m.ws, sandbox.Forbidden{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { root.Close() })
	m.policy = sandbox.Policy{Mode: mode, Roots: []*sandbox.Root{root}, Unreadable: []string{filepath.Join(m.out, "hidden")},
		Protected: []string{filepath.Join(m.ws, ".git", "hooks"), filepath.Join(m.ws, ".vscode")}}
	if m.engine, err = local.New(seatbelt.Wrapper{}, local.Options{StateDir: m.state}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { m.engine.Close() })
	return m
}

// run returns what a command printed, and its result.
func (m *mac) run(t *testing.T, command string, change func(*sandbox.Spec)) (string, sandbox.Result) {
	t.Helper()
	env, _ := sandbox.Environment(os.Environ(), map[string]string{"OUT": m.out, "WS": m.ws, "STATE": m.state})
	spec := sandbox.Spec{RunID: "r", Session: "s", Command: command, Dir: m.ws, Env: env, Policy: m.policy, Timeout: time.Minute}
	if change != nil {
		change(&spec)
	}
	process, err := m.engine.Start(t.Context(), spec)
	if err != nil {
		t.Fatal(err)
	}
	result, err := process.Wait()
	if err != nil {
		t.Fatal(err)
	}
	out, _ := process.Output(sandbox.StdoutStream).Tail()
	said, _ := process.Output(sandbox.StderrStream).Tail()
	return out + said, result
}

// TestOnAMac runs real commands behind the real sandbox-exec.
func TestOnAMac(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	_, port, _ := net.SplitHostPort(listener.Addr().String())
	const both, neither, inWorkspace = "both", "neither", "workspace-write"
	for _, row := range []struct {
		name, command string
		works         string
	}{
		{"a pipe", "echo a | grep a", both},
		{"devices", "echo x > /dev/null && head -c 4 /dev/urandom > /dev/null && echo y > /dev/stderr", both},
		{"temporary files", `f=$(mktemp) && echo x > "$f" && rm "$f"`, both},
		{"names of users", "id -un", both},
		{"reading", `cat "$OUT/file"`, both},
		{"writing in the workspace", `echo x > new && mkdir d && mv new d/ && rm -r d`, inWorkspace},
		{"git", `git init -q sub && cd sub && git -c user.name=a -c user.email=a@b commit -q --allow-empty -m x`, inWorkspace},
		{"writing outside", `echo x > "$OUT/new"`, neither},
		{"appending outside", `echo x >> "$OUT/file"`, neither},
		{"a second name", `ln "$OUT/file" l && echo x >> l`, neither},
		{"by a link", `ln -s "$OUT" l; echo x > l/new`, neither},
		{"by the name of the volume", `echo x > "/System/Volumes/Data$OUT/new"`, neither},
		{"the host's temporary files", `echo x > /tmp/confine-test-new`, neither},
		{"mode", `chmod 777 "$OUT/file"`, neither},
		{"times", `touch -t 200001010000 "$OUT/file"`, neither},
		{"attributes", `xattr -w a b "$OUT/file"`, neither},
		{"hidden", `cat "$OUT/hidden/key"`, neither},
		{"hidden by the name of the volume", `cat "/System/Volumes/Data$OUT/hidden/key"`, neither},
		{"confine's own files", `ls "$STATE"`, neither},
		{"protected", `echo x > .git/hooks/pre-commit`, neither},
		{"around what is protected", `mv .git g`, neither},
		{"the workspace itself", `mv "$WS" "$WS/../ws2"`, neither},
		{"kept absent", `mkdir .vscode`, neither},
		{"kept absent in another spelling", `mkdir .VSCode`, neither},
		{"loopback", `exec 3<>/dev/tcp/127.0.0.1/` + port, neither},
		{"signals", `kill -0 ` + "$PPID", neither},
		{"signals to its own", `sleep 5 & kill $!`, both},
		{"opening applications", `open -g -a TextEdit`, neither},
		{"Apple events", `osascript -e 'tell application "Finder" to get name of home'`, neither},
		{"the keychain", `security list-keychains && security dump-keychain | grep -q keychain`, neither},
		{"preferences", `defaults write com.example.confine-test a b && defaults read com.example.confine-test a`, neither},
		{"services", `launchctl submit -l confine-test -- /usr/bin/true`, neither},
		{"a second sandbox", `sandbox-exec -p '(version 1)(allow default)' /usr/bin/true`, neither},
	} {
		for _, mode := range []sandbox.Mode{sandbox.ReadOnly, sandbox.WorkspaceWrite} {
			t.Run(row.name+"/"+string(mode), func(t *testing.T) {
				m := newMac(t, mode)
				said, result := m.run(t, row.command, nil)
				if want := row.works == both || row.works == string(mode); (result.ExitCode == 0) != want {
					t.Errorf("its status is %d and it said %q", result.ExitCode, said)
				}
			})
		}
	}
}

func TestNetworkIfGranted(t *testing.T) {
	m := newMac(t, sandbox.WorkspaceWrite)
	m.policy.Network = true
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	_, port, _ := net.SplitHostPort(listener.Addr().String())
	if said, result := m.run(t, "exec 3<>/dev/tcp/127.0.0.1/"+port, nil); result.ExitCode != 0 {
		t.Errorf("its status is %d and it said %q", result.ExitCode, said)
	}
}

func TestDenialIsNamed(t *testing.T) {
	m := newMac(t, sandbox.WorkspaceWrite)
	said, result := m.run(t, `touch "$OUT/new"`, nil)
	if !result.Denied || len(result.Denials) != 1 || result.Denials[0].Path != filepath.Join(m.out, "new") || result.Denials[0].Evidence != sandbox.Stderr {
		t.Errorf("the denials are %+v, and it said %q", result.Denials, said)
	}
}

func TestDeadlineEndsEverything(t *testing.T) {
	m := newMac(t, sandbox.ReadOnly)
	begun := time.Now()
	_, result := m.run(t, `trap '' TERM; sleep 600 & while :; do sleep 1; done`, func(s *sandbox.Spec) { s.Timeout, s.Grace = time.Second, time.Second })
	if !result.TimedOut || time.Since(begun) > 30*time.Second {
		t.Errorf("the result is %+v", result)
	}
}

func TestReportOfThisMac(t *testing.T) {
	m := newMac(t, sandbox.WorkspaceWrite)
	r := m.engine.Probe(t.Context())
	for _, f := range []sandbox.Facet{sandbox.FileWrite, sandbox.FileRead, sandbox.Network, sandbox.Metadata} {
		if r.Facets[f].State != sandbox.Enforced {
			t.Errorf("%s: %+v", f, r.Facets[f])
		}
	}
	for _, c := range r.Checks {
		t.Logf("%+v", c)
	}
	if !r.Usable || !strings.HasPrefix(r.Kind, "macos-") {
		t.Errorf("the report is %+v", r)
	}
}
