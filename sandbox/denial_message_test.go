package sandbox

import (
	"strings"
	"testing"
	"time"
)

// messages are what real programs printed, with the names that they are about.
// A name with a leading ? is one that the line may be about.
var messages = []struct {
	line    string
	op      string
	errno   string
	exe     string
	names   string // likeliest first, separated by |
	address string
}{
	// shells
	{"bash: line 1: /o/new: Read-only file system", "", "EROFS", "bash", "/o/new", ""},
	{"bash: line 12: f: Permission denied", "", "EACCES", "bash", "f", ""},
	{"/bin/bash: line 1: /o/a b: c: Read-only file system", "", "EROFS", "bash", "/o/a b: c", ""},
	{"dash: 1: cannot create /o/new: Read-only file system", "create", "EROFS", "dash", "/o/new", ""},
	{"sh: 1: cannot create new: Permission denied", "create", "EACCES", "sh", "new", ""},
	{"zsh:1: read-only file system: /o/new", "", "EROFS", "", "/o/new", ""},
	{"bash: line 1: cd: /o/x: Permission denied", "", "", "", "", ""},
	// coreutils and their like
	{"touch: cannot touch '/o/new': Permission denied", "create", "EACCES", "touch", "/o/new", ""},
	{`touch: cannot touch "/o/it's new": Read-only file system`, "create", "EROFS", "touch", "/o/it's new", ""},
	{`touch: cannot touch '/o/nl'$'\n''x': Read-only file system`, "create", "EROFS", "touch", "/o/nl\nx", ""},
	{`touch: cannot touch 'a'\''b"c': Permission denied`, "create", "EACCES", "touch", `a'b"c`, ""},
	{`touch: cannot touch ''$'\303\244': Read-only file system`, "create", "EROFS", "touch", "ä", ""},
	{"mkdir: cannot create directory ‘/o/d’: Read-only file system", "create", "EROFS", "mkdir", "/o/d", ""},
	{"rm: cannot remove '/o/file': Read-only file system", "remove", "EROFS", "rm", "/o/file", ""},
	{"rmdir: failed to remove '/o/dir': Read-only file system", "remove", "EROFS", "rmdir", "/o/dir", ""},
	{"mv: cannot move '/o/file' to '/o/g': Read-only file system", "rename", "EROFS", "mv", "/o/g|/o/file", ""},
	{"mv: inter-device move failed: 'y' to '/o/y'; unable to remove target: Read-only file system", "rename", "EROFS", "mv", "/o/y|y", ""},
	{"ln: failed to create hard link '/o/h': Read-only file system", "create", "EROFS", "ln", "/o/h", ""},
	{"chmod: changing permissions of '/o/file': Operation not permitted", "chmod", "EPERM", "chmod", "/o/file", ""},
	{"chown: changing ownership of '/o/file': Operation not permitted", "chown", "EPERM", "chown", "/o/file", ""},
	{"touch: setting times of '/o/file': Permission denied", "utime", "EACCES", "touch", "/o/file", ""},
	{"truncate: cannot open '/o/file' for writing: Read-only file system", "write", "EROFS", "truncate", "/o/file", ""},
	{"dd: failed to open '/o/file': Permission denied", "", "EACCES", "dd", "/o/file", ""},
	{"tee: x/new: Read-only file system", "", "EROFS", "tee", "x/new", ""},
	{"sed: couldn't open temporary file /o/seduwhTs2: Read-only file system", "create", "EROFS", "sed", "/o/seduwhTs2", ""},
	{"mktemp: failed to create file via template ‘/o/tmp.XXXXXXXXXX’: Read-only file system", "create", "EROFS", "mktemp", "/o/tmp.XXXXXXXXXX", ""},
	{"tar: /o/z.tar: Cannot open: Read-only file system", "", "EROFS", "tar", "/o/z.tar", ""},
	{`awk: cannot open "/o/awk" for output (Read-only file system)`, "write", "EROFS", "awk", "/o/awk", ""},
	{"sort: open failed: /o/s: Read-only file system", "", "EROFS", "sort", "/o/s", ""},
	{"find: cannot delete ‘/o/file’: Read-only file system", "remove", "EROFS", "find", "/o/file", ""},
	{"cat: /etc/shadow: Permission denied", "read", "EACCES", "cat", "/etc/shadow", ""},
	{"ls: cannot open directory '/root': Permission denied", "read", "EACCES", "ls", "/root", ""},
	{"/usr/bin/ld: cannot open output file /o/x: Read-only file system", "write", "EROFS", "ld", "/o/x", ""},
	{"Fatal error: can't create /o/x.o: Read-only file system", "create", "EROFS", "", "/o/x.o", ""},
	{`Saving key "/o/key" failed: Read-only file system`, "write", "EROFS", "", "/o/key", ""},
	{`rsync: [receiver] mkstemp "/o/.y.AbC" failed: Read-only file system (30)`, "create", "EROFS", "rsync", "/o/.y.AbC", ""},
	{"W: chown to _apt:root of directory /o/partial failed - SetupAPTPartialDirectory (30: Read-only file system)", "chown", "EROFS", "", "/o/partial", ""},
	{"myprog: /o/x: Read-only file system", "", "EROFS", "myprog", "?/o/x", ""},
	{"myprog: some text: Read-only file system", "", "", "", "", ""},
	// namespaces
	{"unshare: unshare failed: Operation not permitted", "unshare", "EPERM", "unshare", "/proc/self/ns/user", ""},
	{"bwrap: No permissions to create new namespace, likely because the kernel does not allow non-privileged user namespaces. See <https://deb.li/bubblewrap>.", "unshare", "EPERM", "bwrap", "/proc/self/ns/user", ""},
	{"Error during unshare(CLONE_NEWUSER): Operation not permitted", "unshare", "EPERM", "", "/proc/self/ns/user", ""},
	{"[rootlesskit:parent] error: failed to start the child: fork/exec /proc/self/exe: operation not permitted", "unshare", "EPERM", "", "/proc/self/ns/user", ""},
	{"[3:3:1201/124843.218370:ERROR:content/browser/zygote_host/zygote_host_impl_linux.cc:130] No usable sandbox! If you are running on Ubuntu 23.10+, see https://example.org/x.md.", "unshare", "EPERM", "", "/proc/self/ns/user", ""},
	{"error: cloning builder process: Operation not permitted", "unshare", "EPERM", "", "/proc/self/ns/user", ""},
	{"rm: cannot remove 'namespace': Operation not permitted", "remove", "EPERM", "rm", "namespace", ""},
	{"chmod: changing permissions of 'src/namespace.c': Operation not permitted", "chmod", "EPERM", "chmod", "src/namespace.c", ""},
	// git
	{"error: could not lock config file /o/.gitconfig: Read-only file system", "write", "EROFS", "", "/o/.gitconfig", ""},
	{"error: could not lock config file .git/config: Read-only file system", "write", "EROFS", "", "?.git/config", ""},
	{"error: could not write config file .git/config: Device or resource busy", "write", "EBUSY", "", "?.git/config", ""},
	{"fatal: Unable to create '/o/.git/index.lock': Read-only file system", "create", "EROFS", "", "/o/.git/index.lock", ""},
	{"fatal: cannot lock ref 'refs/heads/foo': Unable to create '/o/.git/refs/heads/foo.lock': Read-only file system", "create", "EROFS", "", "/o/.git/refs/heads/foo.lock", ""},
	{"fatal: cannot mkdir /o/repo: Read-only file system", "create", "EROFS", "", "/o/repo", ""},
	{"error: cannot open '.git/FETCH_HEAD': Read-only file system", "", "EROFS", "", ".git/FETCH_HEAD", ""},
	// languages
	{"OSError: [Errno 30] Read-only file system: '/o/new'", "", "EROFS", "", "/o/new", ""},
	{"PermissionError: [Errno 13] Permission denied: 'new'", "", "EACCES", "", "new", ""},
	{"OSError: [Errno 30] Read-only file system: '/o/file' -> '/o/q'", "", "EROFS", "", "/o/q|/o/file", ""},
	{`OSError: [Errno 30] Read-only file system: "/o/it's"`, "", "EROFS", "", "/o/it's", ""},
	{`OSError: [Errno 30] Read-only file system: '/o/a\nb\x07'`, "", "EROFS", "", "/o/a\nb\a", ""},
	{"PermissionError: [Errno 13] Permission denied: b'/o/raw'", "", "EACCES", "", "/o/raw", ""},
	{"ERROR: Could not install packages due to an OSError: [Errno 30] Read-only file system: '/o/p'", "", "EROFS", "", "/o/p", ""},
	{"Error: EROFS: read-only file system, open '/o/new'", "", "EROFS", "", "/o/new", ""},
	{"Error: EACCES: permission denied, rename '/o/file' -> '/o/q'", "rename", "EACCES", "", "/o/q|/o/file", ""},
	{"npm error rofs EROFS: read-only file system, mkdir '/o/.npm/_cacache'", "create", "EROFS", "", "/o/.npm/_cacache", ""},
	{"npm ERR! Error: EACCES: permission denied, scandir '/o/x'", "read", "EACCES", "", "/o/x", ""},
	{"open /o/new: read-only file system", "", "EROFS", "", "/o/new", ""},
	{"2026/11/30 20:12:34 open /o/new: permission denied", "", "EACCES", "", "/o/new", ""},
	{"panic: open new: permission denied", "", "EACCES", "", "new", ""},
	{"mkdir /o/d x: read-only file system", "create", "EROFS", "", "/o/d x", ""},
	{"rename /o/file /o/g: read-only file system", "rename", "EROFS", "", "/o/file /o/g|/o/g|/o/file", ""},
	{"go build x: copying /tmp/go-build1/b001/exe/a.out: open /o/app: read-only file system", "", "EROFS", "", "/o/app", ""},
	{"failed to initialize build cache at /o/c: mkdir /o/c: read-only file system", "create", "EROFS", "", "/o/c", ""},
	{"Can't open /o/new: Read-only file system at -e line 1.", "", "EROFS", "", "/o/new", ""},
	{"x.rb:1:in `initialize': Read-only file system @ rb_sysopen - /o/new (Errno::EROFS)", "", "EROFS", "", "/o/new", ""},
	{"java.io.FileNotFoundException: /o/new (Permission denied)", "", "EACCES", "", "/o/new", ""},
	{"Exception in thread \"main\" java.nio.file.AccessDeniedException: /o/new", "", "EACCES", "", "/o/new", ""},
	{"filesystem error: cannot create directory: Read-only file system [/o/d]", "create", "EROFS", "", "/o/d", ""},
	{"System.UnauthorizedAccessException: Access to the path '/o/new' is denied.", "", "EACCES", "", "/o/new", ""},
	{"PHP Warning:  file_put_contents(/o/new): Failed to open stream: Read-only file system in /app/a.php on line 3", "", "", "", "", ""},
	{"\x1b[1m\x1b[31merror\x1b[0m: open '/o/new': Read-only file system\r", "", "EROFS", "", "/o/new", ""},
	// the network
	{"bash: line 1: /dev/tcp/1.2.3.4/80: Network is unreachable", "connect", "ENETUNREACH", "bash", "", "1.2.3.4:80"},
	{"curl: (7) Failed to connect to 1.2.3.4 port 80 after 0 ms: Couldn't connect to server", "connect", "", "curl", "", "1.2.3.4:80"},
	{"curl: (6) Could not resolve host: example.com", "resolve", "", "curl", "", "example.com"},
	{"fatal: unable to access 'https://github.com/a/b/': Could not resolve host: github.com", "resolve", "", "", "", "github.com"},
	{"ssh: Could not resolve hostname example.com: Temporary failure in name resolution", "resolve", "EAI_AGAIN", "ssh", "", "example.com"},
	{"ssh: connect to host 1.2.3.4 port 22: Network is unreachable", "connect", "ENETUNREACH", "ssh", "", "1.2.3.4:22"},
	{"Error: connect ENETUNREACH 1.2.3.4:80 - Local (0.0.0.0:0)", "connect", "ENETUNREACH", "", "", "1.2.3.4:80"},
	{"Error: getaddrinfo EAI_AGAIN registry.npmjs.org", "resolve", "EAI_AGAIN", "", "", "registry.npmjs.org"},
	{"Error: connect ECONNREFUSED ::1:5432", "connect", "ECONNREFUSED", "", "", "[::1]:5432"},
	{"dial tcp [2001:db8::2]:443: connect: network is unreachable", "connect", "ENETUNREACH", "", "", "[2001:db8::2]:443"},
	{"dial tcp: lookup proxy.golang.org on 10.0.0.1:53: dial udp 10.0.0.1:53: connect: network is unreachable", "resolve", "ENETUNREACH", "", "", "proxy.golang.org"},
	{"warning: spurious error: [6] Could not resolve hostname (Could not resolve host: index.crates.io)", "resolve", "", "", "", "index.crates.io"},
	{"W: Failed to fetch http://deb.debian.org/x  Temporary failure resolving 'deb.debian.org'", "resolve", "EAI_AGAIN", "", "", "deb.debian.org"},
	{"wget: unable to resolve host address ‘example.com’", "resolve", "", "wget", "", "example.com"},
	{"ping: example.com: Temporary failure in name resolution", "resolve", "EAI_AGAIN", "ping", "", "example.com"},
	{"Connecting to 1.2.3.4:80... failed: Network is unreachable.", "connect", "ENETUNREACH", "", "", "1.2.3.4:80"},
	{`psql: error: connection to server at "localhost" (127.0.0.1), port 5432 failed: Connection refused`, "connect", "ECONNREFUSED", "psql", "", "127.0.0.1:5432"},
	{`connection to server at "127.0.0.1", port 5432 failed: Connection refused`, "connect", "ECONNREFUSED", "", "", "127.0.0.1:5432"},
	{"connect to 1.2.3.4 port 80: Permission denied", "connect", "EACCES", "", "", "1.2.3.4:80"},
	// no claims about anything
	{"Read-only file system", "", "", "", "", ""},
	{"error: Permission denied", "", "", "", "", ""},
	{"git@example.com: Permission denied (publickey).", "", "", "", "", ""},
	{"EPERM expected but got 0", "", "", "", "", ""},
	{"socket.gaierror: [Errno -3] Temporary failure in name resolution", "", "", "", "", ""},
	{"ConnectionRefusedError: [Errno 111] Connection refused", "", "", "", "", ""},
	{"could not resolve host: box.invalid", "", "", "", "", ""},
	{"could not resolve host: intranet", "", "", "", "", ""},
}

func TestParseMessage(t *testing.T) {
	for _, test := range messages {
		if at, _ := nextAnchor([]byte(test.line)); at < 0 && test.errno != "" {
			t.Errorf("no anchor in %q", test.line)
		}
		m, ok := parseMessage(test.line, "")
		var names []string
		for _, n := range m.names {
			if n.sure {
				names = append(names, n.text)
			} else {
				names = append(names, "?"+n.text)
			}
		}
		if want := test.names != "" || test.address != ""; !want {
			if ok {
				t.Errorf("%q\n is about %q %q", test.line, names, m.address)
			}
			continue
		}
		got := strings.Join(names, "|")
		// What follows the wanted names are guesses that the judge sorts out.
		if !ok || m.op != test.op || m.errno != test.errno || m.exe != test.exe || m.address != test.address || !strings.HasPrefix(strings.ReplaceAll(got, "|?", "|")+"|", test.names+"|") {
			t.Errorf("%q\n got  op %q errno %q exe %q names %q address %q\n want op %q errno %q exe %q names %q address %q",
				test.line, m.op, m.errno, m.exe, got, m.address, test.op, test.errno, test.exe, test.names, test.address)
		}
	}
}

func TestParseMessageContext(t *testing.T) {
	context := "    Creating binary package\nerror: failed to create package `c` at `/o/c`\n\nCaused by:\n  failed to create directory `/o/c`\n\nCaused by:\n"
	m, ok := parseMessage("  Read-only file system (os error 30)", context)
	if !ok || m.op != "create" || len(m.names) != 1 || m.names[0].text != "/o/c" {
		t.Errorf("cargo's cause: %+v, %v", m, ok)
	}
	if m, ok := parseMessage("Read-only file system", context); ok {
		t.Errorf("a bare text took names from other lines: %+v", m)
	}
	if m, ok := parseMessage("  Read-only file system (os error 30)", "all is well in /o/c\n"); ok {
		t.Errorf("a line that tells of no failure gave a name: %+v", m)
	}
}

// TestParseMessageIsFast feeds the worst lines known to the patterns. A line
// takes a few milliseconds; exponential work would take hours.
func TestParseMessageIsFast(t *testing.T) {
	tail := ": Read-only file system"
	begin := time.Now()
	for _, part := range []string{"'", `"`, "‘", "'a' to ", " failed", ": cannot x", "/a ", " /", "open a ", "\x1b[", "a: ", "failed to a ", `\'`, "`"} {
		line := strings.Repeat(part, maxMessage/len(part)) + tail
		parseMessage(line, strings.Repeat(part, maxContext/len(part)))
	}
	if took := time.Since(begin); took > 30*time.Second {
		t.Errorf("14 lines took %v", took)
	}
}

func FuzzParseMessage(f *testing.F) {
	for _, m := range messages {
		f.Add(m.line, "error: failed to create `/o/c`\n")
	}
	f.Fuzz(func(t *testing.T, line, context string) {
		m, ok := parseMessage(line, context)
		if ok && len(m.names) == 0 && m.address == "" {
			t.Errorf("%q is about nothing", line)
		}
		if len(m.names) > maxNames {
			t.Errorf("%d names", len(m.names))
		}
	})
}
