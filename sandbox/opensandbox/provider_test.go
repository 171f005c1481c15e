//go:build unix

package opensandbox_test

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"mime/multipart"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/confine-dev/confine/sandbox"
	"github.com/confine-dev/confine/sandbox/opensandbox"
	"github.com/confine-dev/confine/sandbox/opensandbox/osbtest"
)

// service is a fake service and a provider for it.
type service struct {
	t        *testing.T
	fake     *osbtest.Server
	provider *opensandbox.Provider
	state    string
}

func newService(t *testing.T, change func(*opensandbox.Config)) *service {
	t.Helper()
	fake, err := osbtest.New(osbtest.Options{Kill: 100 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := fake.Close(); err != nil {
			t.Error(err)
		}
	})
	s := &service{t: t, fake: fake, state: t.TempDir()}
	s.provider = s.another(change)
	return s
}

// another is one more provider for the service, as in another confine.
func (s *service) another(change func(*opensandbox.Config)) *opensandbox.Provider {
	s.t.Helper()
	c := opensandbox.Config{URL: s.fake.URL(), APIKey: s.fake.Key(), StateDir: s.state,
		Poll: 2 * time.Millisecond, Retry: time.Millisecond, Patience: 20 * time.Second, Renew: time.Hour}
	if change != nil {
		change(&c)
	}
	p, err := opensandbox.New(c)
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() {
		if err := p.Close(); err != nil {
			s.t.Error(err)
		}
	})
	return p
}

// outcome is what came of a command.
type outcome struct {
	sandbox.Result
	out, errs string
}

func (s *service) run(spec sandbox.Spec) outcome {
	s.t.Helper()
	o, err := s.try(spec)
	if err != nil {
		s.t.Fatal(err)
	}
	return o
}

func (s *service) try(spec sandbox.Spec) (o outcome, err error) {
	if spec.Policy.Mode == "" {
		spec.Policy.Mode = sandbox.ReadOnly
	}
	if spec.Dir == "" {
		spec.Dir = "/"
	}
	spec.RunID = "run"
	process, err := s.provider.Start(s.t.Context(), spec)
	if err != nil {
		return o, err
	}
	o.Result, err = process.Wait()
	o.out, _ = process.Output(sandbox.StdoutStream).Tail()
	o.errs, _ = process.Output(sandbox.StderrStream).Tail()
	return o, err
}

// left counts the sandboxes that the service has.
func (s *service) left() (n int) {
	for _, box := range s.fake.Ledger().Sandboxes {
		if box.Exists {
			n++
		}
	}
	return n
}

// TestOutput: lines keep the streams apart, bytes keep the bytes.
func TestOutput(t *testing.T) {
	const command = `printf 'a\rb\n\377'; printf 'no end' >&2; exit 3`
	for output, want := range map[string][2]string{
		opensandbox.OutputLines: {"a\nb\n\uFFFD\n", "no end\n"},
		opensandbox.OutputBytes: {"a\rb\n\uFFFDno end", ""}, // the text of a result is UTF-8, too
	} {
		s := newService(t, func(c *opensandbox.Config) { c.Output = output })
		o := s.run(sandbox.Spec{Command: command})
		if o.ExitCode != 3 || o.Signal != "" || o.Missing != "" || o.out != want[0] || o.errs != want[1] {
			t.Errorf("%s: %+v", output, o)
		}
		if n := int64(len("a\rb\n\377no end")); output == opensandbox.OutputBytes && s.bytes(command) != n {
			t.Errorf("%d bytes came, want %d", s.bytes(command), n)
		}
	}
}

// bytes counts what came of a command's output.
func (s *service) bytes(command string) int64 {
	process, err := s.provider.Start(s.t.Context(), sandbox.Spec{RunID: "count", Command: command, Dir: "/", Policy: sandbox.Policy{Mode: sandbox.ReadOnly}})
	if err != nil {
		s.t.Fatal(err)
	}
	process.Wait()
	return process.Output(sandbox.StdoutStream).Total() + process.Output(sandbox.StderrStream).Total()
}

// TestCommandsArriveWhole: arguments, variables, folder and input are what they were.
func TestCommandsArriveWhole(t *testing.T) {
	var odd strings.Builder
	for b := 1; b < 128; b++ {
		odd.WriteByte(byte(b))
	}
	for _, output := range []string{opensandbox.OutputLines, opensandbox.OutputBytes} {
		s := newService(t, func(c *opensandbox.Config) { c.Output = output })
		for name, spec := range map[string]sandbox.Spec{
			"argument":              {Argv: []string{"bash", "-c", `[ "$0" = "$WANTED" ]`, odd.String()}, Env: []string{"WANTED=" + odd.String()}},
			"command":               {Command: `[ "$WANTED" = 'it'"'"'s $HOME "quoted"' ]`, Env: []string{`WANTED=it's $HOME "quoted"`}},
			"input":                 {Command: `[ "$(cat)" = "$WANTED" ]`, Env: []string{"WANTED=" + odd.String()[10:]}, Stdin: strings.NewReader(odd.String()[10:])},
			"no input":              {Command: `[ -z "$(cat)" ]`},
			"marker":                {Command: `[ "$CONFINE_SANDBOX/${CONFINE_SANDBOX_NETWORK_DISABLED-unknown}" = opensandbox/unknown ]`},
			"input's command fails": {Command: `cat >/dev/null; exit 0`, Stdin: strings.NewReader("x")},
		} {
			if o := s.run(spec); o.ExitCode != 0 || o.Signal != "" {
				t.Errorf("%s, %s: %+v", output, name, o)
			}
		}
		if o := s.run(sandbox.Spec{Command: "exit 5", Stdin: strings.NewReader("x")}); o.ExitCode != 5 {
			t.Errorf("with input: %+v", o)
		}
	}
}

// TestRefusedBeforeAnythingIsSent: what a remote sandbox cannot be given never reaches it.
func TestRefusedBeforeAnythingIsSent(t *testing.T) {
	s := newService(t, nil)
	endless, writer := io.Pipe()
	defer writer.Close()
	impatient := s.another(func(c *opensandbox.Config) { c.Patience = time.Millisecond })
	s.provider = impatient
	for name, spec := range map[string]sandbox.Spec{
		"open input":     {Command: "cat", StdinOpen: true},
		"a terminal":     {Command: "cat", Terminal: &sandbox.TerminalSize{Columns: 80, Rows: 24}},
		"no end":         {Command: "cat", Stdin: endless},
		"much input":     {Command: "cat", Stdin: strings.NewReader(strings.Repeat("x", 65<<10))},
		"a long command": {Command: ": " + strings.Repeat("x", 121<<10)},
		"full access":    {Command: "true", Policy: sandbox.Policy{Mode: sandbox.DangerFullAccess}},
		"a grant":        {Command: "true", Policy: sandbox.Policy{Mode: sandbox.ReadOnly, Writable: []*sandbox.Root{{Path: "/srv"}}}},
		"no command":     {},
		"a NUL byte":     {Command: "true\x00"},
		"another system": {Command: "true", Dir: `C:\work`},
	} {
		if _, err := s.try(spec); err == nil {
			t.Errorf("%s was not refused", name)
		}
	}
	if sent := s.fake.Requests(); len(sent) > 0 {
		t.Errorf("%d requests were made, the first: %s %s", len(sent), sent[0].Method, sent[0].Path)
	}
}

// TestSessionsHaveASandbox of their own, with and without the network, which ends with them.
func TestSessionsHaveASandbox(t *testing.T) {
	s := newService(t, nil)
	s.run(sandbox.Spec{Session: "a", Command: "echo of a > kept", Dir: "/tmp"})
	for _, test := range []struct {
		session string
		network bool
		want    string
	}{{"a", false, "of a\n"}, {"b", false, ""}, {"a", true, ""}} {
		o := s.run(sandbox.Spec{Session: test.session, Command: "cat kept 2>/dev/null", Dir: "/tmp", Policy: sandbox.Policy{Mode: sandbox.ReadOnly, Network: test.network}})
		if o.out != test.want {
			t.Errorf("%+v: got %q", test, o.out)
		}
	}
	var actions []string
	for _, box := range s.fake.Ledger().Sandboxes {
		for _, action := range []string{"deny", "allow"} {
			if strings.Contains(box.Request, `"defaultAction":"`+action+`"`) {
				actions = append(actions, action)
			}
		}
	}
	if !slices.Equal(actions, []string{"deny", "deny", "allow"}) {
		t.Errorf("the network was asked to %q", actions)
	}
	s.provider.CloseSession("a")
	if n := s.left(); n != 1 {
		t.Errorf("%d sandboxes are left, want that of b", n)
	}
	s.provider.CloseSession("never heard of")
	if err := s.provider.Close(); err != nil || s.left() != 0 {
		t.Errorf("closing: %v, %d sandboxes are left", err, s.left())
	}
	if entries, _ := os.ReadDir(filepath.Join(s.state, "opensandbox")); len(entries) > 0 {
		t.Errorf("notes are left: %v", entries)
	}
}

// TestClosingASessionEndsItsCommands, which are told that they were cancelled.
func TestClosingASessionEndsItsCommands(t *testing.T) {
	for _, output := range []string{opensandbox.OutputLines, opensandbox.OutputBytes} {
		s := newService(t, func(c *opensandbox.Config) { c.Output = output })
		process, err := s.provider.Start(t.Context(), sandbox.Spec{RunID: "r", Session: "s", Command: "sleep 1000", Dir: "/", Policy: sandbox.Policy{Mode: sandbox.ReadOnly}})
		if err != nil {
			t.Fatal(err)
		}
		s.provider.CloseSession("s")
		r, err := process.Wait()
		if err != nil || !r.Cancelled || r.Signal != "SIGKILL" || s.left() != 0 {
			t.Errorf("%s: %+v, %v, %d left", output, r, err, s.left())
		}
	}
}

// TestEndOfABackgroundRequestIsNoSuccess: execd says at once that it is done with
// starting, which says nothing about the command.
func TestEndOfABackgroundRequestIsNoSuccess(t *testing.T) {
	s := newService(t, func(c *opensandbox.Config) { c.Output = opensandbox.OutputBytes })
	s.fake.InjectAll(osbtest.Status, osbtest.Fault{Kind: osbtest.NoExitCode})
	process, err := s.provider.Start(t.Context(), sandbox.Spec{RunID: "r", Command: "exit 3", Dir: "/", Policy: sandbox.Policy{Mode: sandbox.ReadOnly}})
	if err != nil {
		t.Fatal(err)
	}
	process.Cancel()
	if r, err := process.Wait(); err == nil && r.Signal == "" {
		t.Errorf("it is said to have exited with %d", r.ExitCode)
	}
}

// TestRenewal: a sandbox that is in use is kept, by the clock of the service.
func TestRenewal(t *testing.T) {
	s := newService(t, func(c *opensandbox.Config) { c.Renew = 5 * time.Millisecond })
	s.fake.Advance(100 * time.Hour) // its clock is wrong
	hold := s.fake.HoldCall(osbtest.Renew, 1)
	s.run(sandbox.Spec{Command: "true"})
	<-hold.Reached()
	s.fake.Advance(9 * time.Minute)
	hold.Release()
	second := s.fake.HoldCall(osbtest.Renew, 1)
	<-second.Reached()
	second.Release()
	box := s.fake.Ledger().Sandboxes[0]
	for _, r := range s.fake.Requests() { // the sandbox ends at a like time if none of them counted
		var asked struct{ ExpiresAt time.Time }
		if r.Route == osbtest.Renew && (json.Unmarshal([]byte(r.Body), &asked) != nil || asked.ExpiresAt.Before(time.Now().Add(100*time.Hour))) {
			t.Errorf("it is to be renewed by our clock: %s", r.Body)
		}
	}
	// It was renewed at a time that our clock has, so that the service's nine minutes are not in it.
	if from := time.Now().Add(100*time.Hour + 9*time.Minute + 30*time.Second); !box.Exists || box.Expires.Before(from) || box.Expires.After(from.Add(2*time.Minute)) {
		t.Errorf("it ends at %v, now is %v there", box.Expires, time.Now().Add(100*time.Hour+9*time.Minute))
	}
}

// TestLostSandboxIsTold once; what commands left in it is not silently gone.
func TestLostSandboxIsTold(t *testing.T) {
	s := newService(t, nil)
	s.run(sandbox.Spec{Command: "true"})
	s.fake.Expire(s.fake.Ledger().Sandboxes[0].ID)
	if _, err := s.try(sandbox.Spec{Command: "true"}); !unavailable(err) {
		t.Errorf("the next command: %v", err)
	}
	if o := s.run(sandbox.Spec{Command: "true"}); o.ExitCode != 0 {
		t.Errorf("the one after it: %+v", o)
	}
}

// TestSandboxLostMeanwhile: one that is found to be gone while nothing runs is told, too.
func TestSandboxLostMeanwhile(t *testing.T) {
	s := newService(t, func(c *opensandbox.Config) { c.Renew = 2 * time.Millisecond })
	s.run(sandbox.Spec{Command: "true"})
	noticed := s.fake.HoldCall(osbtest.Delete, 1)
	s.fake.Expire(s.fake.Ledger().Sandboxes[0].ID)
	<-noticed.Reached()
	noticed.Release()
	if _, err := s.try(sandbox.Spec{Command: "true"}); !unavailable(err) || !strings.Contains(err.Error(), "no such sandbox any more") {
		t.Errorf("the next command: %v", err)
	}
	if o := s.run(sandbox.Spec{Command: "true"}); o.ExitCode != 0 {
		t.Errorf("the one after it: %+v", o)
	}
}

func unavailable(err error) bool {
	_, ok := errors.AsType[*sandbox.UnavailableError](err)
	return ok
}

// TestNextServerDeletes what a killed one left, and nothing of one that lives.
func TestNextServerDeletes(t *testing.T) {
	for name, told := range map[string]bool{"by its id": true, "by its label": false} {
		s := newService(t, nil)
		s.run(sandbox.Spec{Command: "true"})
		dir := filepath.Join(s.state, "opensandbox")
		sweep := func(done func() bool) {
			next := s.another(nil)
			next.Probe(t.Context())
			// It goes on in the background, and the end of the server would cut it off.
			for late := time.Now().Add(time.Minute); !done() && time.Now().Before(late); {
				runtime.Gosched()
			}
			if err := next.Close(); err != nil {
				t.Errorf("%s: %v", name, err)
			}
		}
		if sweep(func() bool { return true }); s.left() != 1 {
			t.Fatalf("%s: %d are left of the living server", name, s.left())
		}
		entries, err := os.ReadDir(dir)
		if err != nil || len(entries) != 1 {
			t.Fatalf("%s: notes: %v, %v", name, entries, err)
		}
		note, err := os.ReadFile(filepath.Join(dir, entries[0].Name()))
		if err != nil {
			t.Fatal(err)
		}
		lines := strings.Split(string(note), "\n")
		if !told { // it was killed before the service had answered
			lines = slices.DeleteFunc(lines, func(l string) bool { return strings.HasPrefix(l, "=") })
		}
		dead := filepath.Join(dir, "dead") // nobody holds it
		if err := os.WriteFile(dead, []byte(strings.Join(lines, "\n")), 0o600); err != nil {
			t.Fatal(err)
		}
		gone := func() bool {
			_, err := os.Stat(dead)
			return errors.Is(err, os.ErrNotExist)
		}
		if sweep(gone); s.left() != 0 || !gone() {
			t.Errorf("%s: %d are left, the note is gone: %t", name, s.left(), gone())
		}
	}
}

// TestUpload: a command finds the workspace, without what is hidden or skipped.
func TestUpload(t *testing.T) {
	work := realTempDir(t)
	write := func(name, content string, mode os.FileMode) {
		path := filepath.Join(work, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(content), mode); err != nil {
			t.Fatal(err)
		}
	}
	write("sub/f", "content\n", 0o644)
	write("run.sh", "#!/bin/sh\necho ran\n", 0o755)
	write("secret/key", "do-not-upload", 0o600)
	write("own/key", "do-not-upload", 0o600)
	write("node_modules/x", "skipped by name", 0o644)
	write("deep/node_modules/x", "skipped by name", 0o644)
	write(".git/objects/o", "skipped by path", 0o644)
	write("deep/.git/objects/o", "kept", 0o644)
	outside := filepath.Join(realTempDir(t), "outside")
	if err := os.WriteFile(outside, []byte("do-not-upload"), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, target := range map[string]string{"link": "sub/f", "out": outside, "tosecret": "secret/key"} {
		if err := os.Symlink(target, filepath.Join(work, name)); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Link(filepath.Join(work, "secret/key"), filepath.Join(work, "other-name")); err != nil {
		t.Fatal(err)
	}
	root, err := sandbox.DeclareRoot(work, sandbox.Forbidden{})
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	policy := sandbox.Policy{Mode: sandbox.WorkspaceWrite, Roots: []*sandbox.Root{root}, Unreadable: []string{filepath.Join(work, "secret/key")}}
	upload := func(c *opensandbox.Config) {
		c.Workspace, c.UploadSkip = opensandbox.WorkspaceUpload, []string{"node_modules", ".git/objects"}
		c.Secrets = func() []string { return []string{filepath.Join(work, "own")} }
	}
	s := newService(t, upload)
	o := s.run(sandbox.Spec{Dir: work, Policy: policy, Command: "./run.sh && cat link && find . ! -type d | sort && echo changed > sub/f"})
	if want := "ran\ncontent\n./deep/.git/objects/o\n./link\n./out\n./run.sh\n./sub/f\n./tosecret\n"; o.ExitCode != 0 || o.out != want {
		t.Errorf("status %d, %q, want %q; %s", o.ExitCode, o.out, want, o.errs)
	}
	if data, err := os.ReadFile(filepath.Join(work, "sub/f")); err != nil || string(data) != "content\n" {
		t.Errorf("here the file has %q (%v)", data, err)
	}
	if sent := uploaded(t, s.fake.Requests()); !bytes.Contains(sent, []byte("content")) || bytes.Contains(sent, []byte("do-not-upload")) {
		t.Errorf("what was sent is wrong: %d bytes", len(sent))
	}
	small := newService(t, func(c *opensandbox.Config) { upload(c); c.UploadSize = 10 })
	if _, err := small.try(sandbox.Spec{Dir: work, Policy: policy, Command: "true"}); !unavailable(err) || !strings.Contains(err.Error(), "more than 10 bytes") {
		t.Errorf("too much: %v", err)
	}
	if len(small.fake.Requests()) > 0 {
		t.Error("a sandbox was asked for although the workspace is too large")
	}
}

// uploaded is all that was sent to be unpacked, one file behind the other.
func uploaded(t *testing.T, requests []osbtest.Request) (all []byte) {
	t.Helper()
	for _, r := range requests {
		if r.Route != osbtest.Upload {
			continue
		}
		_, params, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
		if err != nil {
			t.Fatal(err)
		}
		parts := multipart.NewReader(strings.NewReader(r.Body), params["boundary"])
		for {
			part, err := parts.NextPart()
			if err == io.EOF {
				break
			}
			if err != nil {
				t.Fatal(err)
			}
			if part.FormName() != "file" {
				continue
			}
			zipped, err := gzip.NewReader(part)
			if err != nil {
				t.Fatal(err)
			}
			archive := tar.NewReader(zipped)
			for {
				header, err := archive.Next()
				if err == io.EOF {
					break
				}
				if err != nil {
					t.Fatal(err)
				}
				all = fmt.Appendf(all, "%s %s ", header.Name, header.Linkname)
				data, err := io.ReadAll(archive)
				if err != nil {
					t.Fatal(err)
				}
				all = append(all, data...)
			}
		}
	}
	return all
}

func realTempDir(t *testing.T) string {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

// TestOneCall: the other interface, with its folder and its limits.
func TestOneCall(t *testing.T) {
	s := newService(t, func(c *opensandbox.Config) { c.API = opensandbox.APIRun })
	if r := s.provider.Probe(t.Context()); !r.Usable {
		t.Fatalf("%+v", r)
	}
	dir := filepath.Join(realTempDir(t), "it's here")
	roots := []*sandbox.Root{{Path: dir}}
	o := s.run(sandbox.Spec{Command: `pwd; printf '%s' "$A" >&2; exit 4`, Dir: dir, Env: []string{"A=b c"}, Policy: sandbox.Policy{Mode: sandbox.WorkspaceWrite, Roots: roots}})
	if o.ExitCode != 4 || o.out != dir+"\n" || o.errs != "b c" {
		t.Errorf("%+v", o)
	}
	if o := s.run(sandbox.Spec{Command: "echo ran", Dir: filepath.Join(dir, "no such folder")}); o.ExitCode == 0 || o.out != "" {
		t.Errorf("in a folder that is not there: %+v", o)
	}
	_, err := s.try(sandbox.Spec{Command: "sleep 1000", Timeout: 20 * time.Millisecond})
	if !unavailable(err) || !strings.Contains(err.Error(), "may go on at the service") {
		t.Errorf("a command that takes too long: %v", err)
	}
}
