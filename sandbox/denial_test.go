//go:build unix

package sandbox

import (
	"fmt"
	"math/rand/v2"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// denialWorld is a root and a folder outside of it. Neither lies below /tmp,
// where every run has a folder of its own.
type denialWorld struct {
	ws, out string
	policy  Policy
}

func newDenialWorld(t *testing.T, mode Mode) *denialWorld {
	t.Helper()
	base, err := os.MkdirTemp("/var/tmp", "confine-test-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(base) })
	if base, err = filepath.EvalSymlinks(base); err != nil {
		t.Fatal(err)
	}
	w := &denialWorld{ws: filepath.Join(base, "ws"), out: filepath.Join(base, "out")}
	for _, dir := range []string{w.ws, w.out, filepath.Join(w.ws, ".git", "hooks"), filepath.Join(w.out, "dir")} {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for _, file := range []string{filepath.Join(w.out, "file"), filepath.Join(w.out, "it's"), filepath.Join(w.ws, "mine"), filepath.Join(w.ws, ".git", "config")} {
		if err := os.WriteFile(file, nil, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	root, err := DeclareRoot(w.ws, Forbidden{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = root.Close() })
	w.policy = Policy{Mode: mode, Roots: []*Root{root}, Protected: []string{
		filepath.Join(w.ws, ".git", "config"), filepath.Join(w.ws, ".git", "hooks"), filepath.Join(w.ws, ".confine")}}
	return w
}

func (w *denialWorld) context() DenialContext {
	return DenialContext{Policy: w.policy, Dir: w.ws, ExitCode: 1}
}

// expand puts the world's paths into a text.
func (w *denialWorld) expand(s string) string {
	return strings.NewReplacer("@WS@", w.ws, "@OUT@", w.out).Replace(s)
}

// summary is a denial in one word per fact.
func summary(denials []Denial) []string {
	var out []string
	for _, d := range denials {
		if d.Evidence != Stderr || d.PID != 0 {
			out = append(out, fmt.Sprintf("evidence %q pid %d", d.Evidence, d.PID))
		}
		out = append(out, fmt.Sprintf("%s %s%s %s x%d", d.Op, d.Path, d.Address, d.Errno, d.Count))
	}
	return out
}

func scanned(text string) *DenialScanner {
	s := NewDenialScanner()
	_, _ = s.Write([]byte(text))
	return s
}

// makesNamespaces is a host that lets confine make namespaces.
func makesNamespaces(c *DenialContext) { c.Namespaces = true }

// seatbelt makes the context of a run that Seatbelt confined.
func seatbelt(c *DenialContext) { c.Refusal = "EPERM" }

// TestDenials has a row for every rule. want is empty for no denial.
func TestDenials(t *testing.T) {
	tests := []struct {
		name   string
		mode   Mode
		stderr string
		change func(*DenialContext)
		want   string
	}{
		{"redirect outside", WorkspaceWrite, "bash: line 1: @OUT@/pwned: Read-only file system", nil, "create @OUT@/pwned EROFS x1"},
		{"append outside", WorkspaceWrite, "bash: line 1: @OUT@/file: Read-only file system", nil, "write @OUT@/file EROFS x1"},
		{"the same from Landlock alone", WorkspaceWrite, "bash: line 1: @OUT@/file: Permission denied", nil, "write @OUT@/file EACCES x1"},
		{"and for an absent file", WorkspaceWrite, "bash: line 1: @OUT@/pwned: Permission denied", nil, "create @OUT@/pwned EACCES x1"},
		{"chmod outside", WorkspaceWrite, "chmod: changing permissions of '@OUT@/file': Read-only file system", nil, "chmod @OUT@/file EROFS x1"},
		{"chmod refused by the filter", WorkspaceWrite, "chmod: changing permissions of '@OUT@/file': Operation not permitted", nil, "chmod @OUT@/file EPERM x1"},
		{"so is a set-id bit in a root", WorkspaceWrite, "chmod: changing permissions of 'mine': Operation not permitted", nil, "chmod @WS@/mine EPERM x1"},
		{"of a folder", WorkspaceWrite, "mkdir: cannot change permissions of ‘.git’: Operation not permitted", nil, "chmod @WS@/.git EPERM x1"},
		{"of a shared repository", WorkspaceWrite, "fatal: Could not make @WS@/.git/hooks/ writable by group", nil, "chmod @WS@/.git/hooks EPERM x1"},
		{"in an archive", WorkspaceWrite, "tar: mine: Cannot change mode to rwxr-sr-x: Operation not permitted", nil, "chmod @WS@/mine EPERM x1"},
		{"by cp", WorkspaceWrite, "cp: preserving permissions for ‘mine’: Operation not permitted", nil, "chmod @WS@/mine EPERM x1"},
		{"of what is not there", WorkspaceWrite, "chmod: changing permissions of 'none': Operation not permitted", nil, ""},
		{"another owner in a root", WorkspaceWrite, "chown: changing ownership of 'mine': Operation not permitted", nil, ""},
		{"remove outside", WorkspaceWrite, "rm: cannot remove '@OUT@/file': Read-only file system", nil, "remove @OUT@/file EROFS x1"},
		{"move to outside", WorkspaceWrite, "mv: cannot move 'mine' to '@OUT@/mine': Read-only file system", nil, "rename @OUT@/mine EROFS x1"},
		{"link that leads out", WorkspaceWrite, "bash: line 1: lead/pwned: Read-only file system", nil, "create @OUT@/pwned EROFS x1"},
		{"dangling link that leads out", WorkspaceWrite, "bash: line 1: dangling: Read-only file system", nil, "create @OUT@/absent EROFS x1"},
		{"removing a link removes no more", ReadOnly, "rm: cannot remove 'dangling': Read-only file system", nil, "remove @WS@/dangling EROFS x1"},
		{"dots through a link", WorkspaceWrite, "bash: line 1: lead/../out/x: Read-only file system", nil, "create @OUT@/x EROFS x1"},
		{"python", WorkspaceWrite, "PermissionError: [Errno 13] Permission denied: '@OUT@/new'", nil, "create @OUT@/new EACCES x1"},
		{"name with a quote", WorkspaceWrite, `rm: cannot remove "@OUT@/it's": Read-only file system`, nil, "remove @OUT@/it's EROFS x1"},
		{"no newline at the end", WorkspaceWrite, "touch: cannot touch '@OUT@/n': Read-only file system", nil, "create @OUT@/n EROFS x1"},
		{"counted", WorkspaceWrite, "tee: @OUT@/n: Read-only file system\nx\ntee: @OUT@/n: Read-only file system\n", nil, "create @OUT@/n EROFS x2"},
		{"folded over programs", WorkspaceWrite, "tee: @OUT@/n: Read-only file system\nbash: line 1: @OUT@/n: Read-only file system\n", nil, "create @OUT@/n EROFS x2"},
		{"the root in read-only mode", ReadOnly, "bash: line 1: f: Read-only file system", nil, "create @WS@/f EROFS x1"},
		{"prose needs a file", ReadOnly, "error: something is wrong: Read-only file system", nil, ""},
		{"prose in quotes, too", ReadOnly, "error: user 'bob': Permission denied", nil, ""},
		{"a protected file", WorkspaceWrite, "error: could not write config file .git/config: Device or resource busy", nil, "write @WS@/.git/config EBUSY x1"},
		{"a protected folder", WorkspaceWrite, "bash: line 1: .git/hooks/pre-commit: Read-only file system", nil, "create @WS@/.git/hooks/pre-commit EROFS x1"},
		{"moving what holds something protected", WorkspaceWrite, "mv: cannot move '.git' to 'g': Device or resource busy", nil, "rename @WS@/.git EBUSY x1"},
		{"below a cover that is gone", WorkspaceWrite, "bash: line 1: .confine/settings.json: Read-only file system", nil, "create @WS@/.confine/settings.json EROFS x1"},
		{"busy for another reason", WorkspaceWrite, "rm: cannot remove 'mine': Device or resource busy", nil, ""},
		{"busy outside", WorkspaceWrite, "rm: cannot remove '@OUT@/dir': Device or resource busy", nil, ""},

		{"a new namespace", WorkspaceWrite, "unshare: unshare failed: Operation not permitted", makesNamespaces, "unshare /proc/self/ns/user EPERM x1"},
		{"where the host allows none", WorkspaceWrite, "unshare: unshare failed: Operation not permitted", nil, ""},
		{"to enter one is nobody's right", WorkspaceWrite, "nsenter: reassociate to namespace 'ns/user' failed: Operation not permitted", makesNamespaces, ""},
		{"a browser's sandbox", ReadOnly, "[3:3:1/1.2:ERROR:a.cc(1)] No usable sandbox! Use --no-sandbox.", makesNamespaces, "unshare /proc/self/ns/user EPERM x1"},
		{"told twice", ReadOnly, "unshare: unshare failed: Operation not permitted\nbwrap: No permissions to create new namespace, see x.\n", makesNamespaces, "unshare /proc/self/ns/user EPERM x2"},

		{"text alone", WorkspaceWrite, "Read-only file system", nil, ""},
		{"text alone, with a program", WorkspaceWrite, "make: Permission denied", nil, ""},
		{"an allowed place", WorkspaceWrite, "tee: mine: Permission denied", nil, ""},
		{"the run's /tmp", WorkspaceWrite, "tee: /tmp/x: Read-only file system", nil, ""},
		{"a device", WorkspaceWrite, "bash: line 1: /dev/null: Permission denied", nil, ""},
		{"a named writable place", WorkspaceWrite, "tee: @OUT@/dir/x: Read-only file system",
			func(c *DenialContext) { c.Writable = []string{filepath.Dir(c.Dir) + "/out/dir/"} }, ""},
		{"no parent folder", WorkspaceWrite, "touch: cannot touch '@OUT@/none/x': Read-only file system", nil, ""},
		{"parent is a file", WorkspaceWrite, "touch: cannot touch '@OUT@/file/x': Read-only file system", nil, ""},
		{"a loop of links", WorkspaceWrite, "bash: line 1: loop/x: Read-only file system", nil, ""},
		{"removing what is not there", WorkspaceWrite, "rm: cannot remove '@OUT@/none': Read-only file system", nil, ""},
		{"reading", WorkspaceWrite, "cat: @OUT@/file: Permission denied", nil, ""},
		{"running", WorkspaceWrite, "bash: line 1: @OUT@/file: Permission denied", func(c *DenialContext) { c.ExitCode = 126 }, ""},
		{"an ordinary EPERM", WorkspaceWrite, "tee: @OUT@/file: Operation not permitted", nil, ""},
		{"another process's names", WorkspaceWrite, "bash: line 1: /proc/self/cwd/x: Read-only file system", nil, ""},
		{"and by a link", WorkspaceWrite, "bash: line 1: proc/x: Read-only file system", nil, ""},
		{"the person's home, unexpanded", ReadOnly, "tee: ~/x: Read-only file system", nil, ""},
		{"another device", WorkspaceWrite, "OSError: [Errno 18] Invalid cross-device link: 'f' -> '@OUT@/f'", nil, ""},
		{"a path in a sentence that is not there", WorkspaceWrite, "GET /healthz: Permission denied", nil, ""},
		{"success", WorkspaceWrite, "tee: @OUT@/n: Read-only file system", func(c *DenialContext) { c.ExitCode = 0 }, ""},
		{"killed", WorkspaceWrite, "tee: @OUT@/n: Read-only file system", func(c *DenialContext) { c.Signal = "SIGKILL" }, ""},
		{"unconfined", DangerFullAccess, "tee: @OUT@/n: Read-only file system", nil, ""},
		{"confined by others", ExternalSandbox, "tee: @OUT@/n: Read-only file system", nil, ""},
		{"folder of the run unknown", WorkspaceWrite, "tee: lead/n: Read-only file system", func(c *DenialContext) { c.Dir = "" }, ""},

		{"unreadable", ReadOnly, "cat: @OUT@/file: Permission denied",
			func(c *DenialContext) { c.Policy.Unreadable = []string{filepath.Dir(c.Dir) + "/out"} }, "read @OUT@/file EACCES x1"},
		{"unreadable, by a program that does not say what it wanted", WorkspaceWrite, "PermissionError: [Errno 13] Permission denied: '@OUT@/file'",
			func(c *DenialContext) { c.Policy.Unreadable = []string{filepath.Dir(c.Dir) + "/out/file"} }, "read @OUT@/file EACCES x1"},
		{"unreadable and not there", WorkspaceWrite, "PermissionError: [Errno 13] Permission denied: '@OUT@/absent'",
			func(c *DenialContext) { c.Policy.Unreadable = []string{filepath.Dir(c.Dir) + "/out"} }, ""},
		{"beside what is unreadable", WorkspaceWrite, "cat: @OUT@/file: Permission denied",
			func(c *DenialContext) { c.Policy.Unreadable = []string{filepath.Dir(c.Dir) + "/out/fil"} }, ""},

		{"Seatbelt: write outside", WorkspaceWrite, "tee: @OUT@/file: Operation not permitted", seatbelt, "write @OUT@/file EPERM x1"},
		{"Seatbelt: create outside", WorkspaceWrite, "touch: @OUT@/new: Operation not permitted", seatbelt, "create @OUT@/new EPERM x1"},
		{"Seatbelt: in a root", WorkspaceWrite, "tee: mine: Operation not permitted", seatbelt, ""},
		{"Seatbelt: what is protected", WorkspaceWrite, "tee: .git/config: Operation not permitted", seatbelt, "write @WS@/.git/config EPERM x1"},
		{"Seatbelt: what is around it", WorkspaceWrite, "mv: cannot move '.git' to 'g': Operation not permitted", seatbelt, "rename @WS@/.git EPERM x1"},
		{"Seatbelt: another error", WorkspaceWrite, "tee: @OUT@/file: Permission denied", seatbelt, ""},
		{"Seatbelt: reading what is open", WorkspaceWrite, "cat: @OUT@/file: Operation not permitted", seatbelt, ""},
		{"Seatbelt: reading what is hidden", WorkspaceWrite, "cat: @OUT@/file: Operation not permitted",
			func(c *DenialContext) { seatbelt(c); c.Policy.Unreadable = []string{filepath.Dir(c.Dir) + "/out"} }, "read @OUT@/file EPERM x1"},
		{"Seatbelt: the host's /tmp", WorkspaceWrite, "tee: /tmp/confine-denial-test-new: Operation not permitted", seatbelt, "create /tmp/confine-denial-test-new EPERM x1"},
		{"Seatbelt: what nobody may", WorkspaceWrite, "tee: @OUT@/none/x: Operation not permitted", seatbelt, ""},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			w := newDenialWorld(t, test.mode)
			for link, target := range map[string]string{"lead": w.out, "dangling": "../out/absent", "loop": "loop", "proc": "/proc/self/cwd"} {
				if err := os.Symlink(target, filepath.Join(w.ws, link)); err != nil {
					t.Fatal(err)
				}
			}
			ctx := w.context()
			if test.change != nil {
				test.change(&ctx)
			}
			got := strings.Join(summary(scanned(w.expand(test.stderr)).Denials(ctx)), "; ")
			if want := w.expand(test.want); got != want {
				t.Errorf("%s\n got  %q\n want %q", test.stderr, got, want)
			}
		})
	}
}

// TestDenialsWorkspaceIsALink has the working directory given through a link,
// as editors do, while policies hold resolved paths.
func TestDenialsWorkspaceIsALink(t *testing.T) {
	w := newDenialWorld(t, WorkspaceWrite)
	link := filepath.Join(w.out, "link")
	if err := os.Symlink(w.ws, link); err != nil {
		t.Fatal(err)
	}
	ctx := w.context()
	ctx.Dir = link
	got := summary(scanned("tee: mine: Permission denied\ntee: .confine/x: Read-only file system\n").Denials(ctx))
	if want := []string{w.expand("create @WS@/.confine/x EROFS x1")}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

// TestDenialsRootBelowTmp: a root is itself wherever it lies.
func TestDenialsRootBelowTmp(t *testing.T) {
	ws := t.TempDir()
	root, err := DeclareRoot(ws, Forbidden{})
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	s := scanned("tee: f: Read-only file system\ntee: " + root.Path + "/g: Read-only file system\n")
	got := summary(s.Denials(DenialContext{Policy: Policy{Mode: ReadOnly, Roots: []*Root{root}}, Dir: ws, ExitCode: 1}))
	want := []string{"create " + root.Path + "/f EROFS x1", "create " + root.Path + "/g EROFS x1"}
	if !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	if got := s.Denials(DenialContext{Policy: Policy{Mode: WorkspaceWrite, Roots: []*Root{root}}, Dir: ws, ExitCode: 1}); len(got) != 0 {
		t.Errorf("a writable root: %q", summary(got))
	}
}

func TestDenialsOfTheNetwork(t *testing.T) {
	const all = "192.0.2.1 1.2.3.4"
	tests := []struct {
		name, stderr, routes, listen string
		network                      bool
		want                         string
	}{
		{"routed", "bash: line 1: /dev/tcp/1.2.3.4/80: Network is unreachable", all, "", false, "connect 1.2.3.4:80 ENETUNREACH x1"},
		{"not routed here either", "bash: line 1: /dev/tcp/1.2.3.4/80: Network is unreachable", "", "", false, ""},
		{"granted", "bash: line 1: /dev/tcp/1.2.3.4/80: Network is unreachable", all, "", true, ""},
		{"name", "curl: (6) Could not resolve host: example.com", all, "", false, "resolve example.com  x1"},
		{"name while offline", "curl: (6) Could not resolve host: example.com", "", "", false, ""},
		{"name while granted", "curl: (6) Could not resolve host: example.com", all, "", true, ""},
		{"host's service", "curl: (7) Failed to connect to 127.0.0.1 port 5432 after 0 ms: Couldn't connect to server", all, "5432", false, "connect 127.0.0.1:5432  x1"},
		{"host's service on IPv6", "Error: connect ECONNREFUSED ::1:5432", all, "5432", false, "connect [::1]:5432 ECONNREFUSED x1"},
		{"no service", "Error: connect ECONNREFUSED 127.0.0.1:5432", all, "", false, ""},
		{"multicast", "dial udp 224.0.0.1:9: connect: network is unreachable", "224.0.0.1", "", false, ""},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			m, ok := parseMessage(test.stderr, "")
			if !ok {
				t.Fatal("not understood")
			}
			j := newJudge(DenialContext{Policy: Policy{Mode: WorkspaceWrite, Network: test.network}})
			j.reaches = func(addr netip.Addr) bool { return slices.Contains(strings.Fields(test.routes), addr.String()) }
			j.listens = func(port string) bool { return port != "" && port == test.listen }
			got := ""
			if d, ok := j.judge(m); ok {
				got = fmt.Sprintf("%s %s%s %s x1", d.Op, d.Path, d.Address, d.Errno)
			}
			if got != test.want {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
}

// TestDenialsBoundHostileLinks: links that lead in long ways to each other must
// not keep the server busy.
func TestDenialsBoundHostileLinks(t *testing.T) {
	w := newDenialWorld(t, WorkspaceWrite)
	long := strings.Repeat("./../ws/", 400)
	for i := range 30 {
		if err := os.Symlink(fmt.Sprintf("%sl%d", long, i+1), filepath.Join(w.ws, fmt.Sprintf("l%d", i))); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink(w.out, filepath.Join(w.ws, "l30")); err != nil {
		t.Fatal(err)
	}
	s := scanned(w.expand("tee: l29/x: Read-only file system"))
	if got := summary(s.Denials(w.context())); !slices.Equal(got, []string{w.expand("create @OUT@/x EROFS x1")}) {
		t.Errorf("a short chain: %q", got)
	}
	for i := range 1000 {
		fmt.Fprintf(s, "tee: l0/%d: Read-only file system\n", i)
	}
	if s.Denials(w.context()); s.Omitted() == 0 {
		t.Error("a thousand long ways were gone to the end")
	}
}

// TestDenialScannerSplits writes the same stream in all kinds of pieces.
func TestDenialScannerSplits(t *testing.T) {
	w := newDenialWorld(t, WorkspaceWrite)
	text := w.expand("noise\nbash: line 1: @OUT@/a: Read-only file system\n" + strings.Repeat("x", 3*maxMessage) + ": Read-only file system\n" +
		"error: failed to create directory `@OUT@/c`\n\nCaused by:\n  Read-only file system (os error 30)\n" +
		strings.Repeat("warning: nothing here\n", 2000) + "tee: @OUT@/b: Read-only file system")
	want := []string{w.expand("create @OUT@/a EROFS x1"), w.expand("create @OUT@/c EROFS x1"), w.expand("create @OUT@/b EROFS x1")}
	random := rand.New(rand.NewPCG(3, 4))
	for _, size := range []int{1, 2, 7, 100, 4096, 65536, len(text), 0} {
		s := NewDenialScanner()
		for rest := []byte(text); len(rest) > 0; {
			n := size
			if n == 0 {
				n = 1 + random.IntN(5000)
			}
			n = min(n, len(rest))
			_, _ = s.Write(rest[:n])
			rest = rest[n:]
		}
		for range 2 { // asking changes nothing
			if got := summary(s.Denials(w.context())); !slices.Equal(got, want) {
				t.Errorf("pieces of %d: got %q", size, got)
			}
		}
	}
}

func TestDenialScannerIsBounded(t *testing.T) {
	w := newDenialWorld(t, WorkspaceWrite)
	t.Run("answer", func(t *testing.T) {
		s := NewDenialScanner()
		for i := range 100 {
			fmt.Fprintf(s, "tee: %s/f%d: Read-only file system\n", w.out, i)
		}
		if got := s.Denials(w.context()); len(got) != 64 || s.Omitted() != 36 {
			t.Errorf("%d denials, %d omitted", len(got), s.Omitted())
		}
	})
	t.Run("the last ones stay", func(t *testing.T) {
		s := NewDenialScanner()
		for i := range maxClaims + 50 {
			fmt.Fprintf(s, "cat: /proc/%d/maps: Permission denied\n", i)
		}
		fmt.Fprintf(s, "tee: %s/f: Read-only file system\n", w.out)
		if got := summary(s.Denials(w.context())); !slices.Equal(got, []string{w.expand("create @OUT@/f EROFS x1")}) {
			t.Errorf("got %q", got)
		}
		if s.Omitted() == 0 || len(s.claims) > maxClaims || len(s.byKey) != len(s.claims) {
			t.Errorf("omitted %d, %d claims", s.Omitted(), len(s.claims))
		}
	})
	t.Run("a flood of one error hides no other", func(t *testing.T) {
		s := NewDenialScanner()
		long := strings.Repeat("a", 4000)
		for i := range maxParsed/4000 + 10 {
			fmt.Fprintf(s, "tee: /%s%d: Permission denied\n", long, i)
		}
		fmt.Fprintf(s, "tee: %s/f: Read-only file system\n", w.out)
		if got := summary(s.Denials(w.context())); !slices.Equal(got, []string{w.expand("create @OUT@/f EROFS x1")}) {
			t.Errorf("got %q", got)
		}
		size := 0
		for _, c := range s.claims {
			size += len(c.key())
		}
		if size != s.size || size > maxClaimBytes || cap(s.buffer) > 1<<20 {
			t.Errorf("claims of %d bytes, counted %d; buffer %d", size, s.size, cap(s.buffer))
		}
	})
	t.Run("no newline at all", func(t *testing.T) {
		s := NewDenialScanner()
		for range 100 {
			fmt.Fprint(s, strings.Repeat("z", 1<<16))
		}
		if fmt.Fprint(s, ": Read-only file system"); cap(s.buffer) > 1<<20 || len(s.Denials(w.context())) != 0 {
			t.Errorf("buffer %d", cap(s.buffer))
		}
	})
}

func TestAnchorsAreLongEnough(t *testing.T) {
	for _, anchor := range anchors {
		if len(anchor) < anchorLength {
			t.Errorf("%q is shorter than %d", anchor, anchorLength)
		}
		for pad := range 3 * anchorLength {
			data := strings.Repeat(".", pad) + anchor
			if at, found := nextAnchor([]byte(data)); at != pad || found != anchor {
				t.Errorf("nextAnchor(%q) = %d, %q", data, at, found)
			}
		}
	}
}

// TestDenialsWithGrants: what was granted one by one is not refused, and what is
// refused there all the same is not the sandbox's doing.
func TestDenialsWithGrants(t *testing.T) {
	w := newDenialWorld(t, WorkspaceWrite)
	config := filepath.Join(w.ws, ".git", "config")
	w.policy.Writable = []*Root{{Path: filepath.Join(w.out, "dir")}, {Path: filepath.Join(w.out, "file"), File: true}, {Path: config, File: true}}
	w.policy.Unreadable = []string{filepath.Join(w.out, "file"), filepath.Join(w.out, "it's")}
	w.policy.Readable = []*Root{{Path: filepath.Join(w.out, "file"), File: true}}
	for line, want := range map[string][]string{
		"tee: @OUT@/dir/new: Permission denied":                       nil,
		"tee: @OUT@/file: Permission denied":                          nil,
		"tee: @WS@/.git/config: Read-only file system":                nil,
		"rm: cannot remove '@OUT@/file': Device or resource busy":     {"remove @OUT@/file EBUSY x1"},
		"rm: cannot remove '@OUT@/dir/new': Device or resource busy":  nil,
		"tee: @OUT@/new: Permission denied":                           {"create @OUT@/new EACCES x1"},
		"cat: can't open '@OUT@/file' for reading: Permission denied": nil,
		`cat: can't open "@OUT@/it's" for reading: Permission denied`: {"read @OUT@/it's EACCES x1"},
		"tee: @WS@/.git/hooks/pre-commit: Read-only file system":      {"create @WS@/.git/hooks/pre-commit EROFS x1"},
	} {
		for i := range want {
			want[i] = w.expand(want[i])
		}
		if got := summary(scanned(w.expand(line)).Denials(w.context())); !slices.Equal(got, want) {
			t.Errorf("%s\n%q, want %q", line, got, want)
		}
	}
}
