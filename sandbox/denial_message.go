package sandbox

import (
	"path"
	"regexp"
	"strings"
	"sync"
)

// Operations, as Denial.Op names them.
const (
	opWrite   = "write"
	opCreate  = "create"
	opRemove  = "remove"
	opRename  = "rename"
	opChmod   = "chmod"
	opChown   = "chown"
	opUtime   = "utime"
	opRead    = "read"
	opExec    = "exec"
	opConnect = "connect"
	opResolve = "resolve"
)

// message is what one line claims: an operation on one of some files (which
// one is for the judge to find out), or on an address.
type message struct {
	errno   string
	op      string // empty if the line does not say
	exe     string // the program that printed it, if it says so
	names   []name // likeliest first
	address string // host or host:port
}

// name is what may be the name of a file.
type name struct {
	text string
	sure bool // the line has a known form in which a name stands here
}

// phrases are the texts of errors, in lower case.
var phrases = []struct{ text, errno string }{
	{"read-only file system", "EROFS"},
	{"permission denied", "EACCES"},
	{"operation not permitted", "EPERM"},
	{"writable by group", "EPERM"},                      // git, of the set-gid bit of its folders
	{"no permissions to create new namespace", "EPERM"}, // bubblewrap
	{noSandbox, "EPERM"},
	{"device or resource busy", "EBUSY"},
	{"resource busy or locked", "EBUSY"},
	{"network is unreachable", "ENETUNREACH"},
	{"enetunreach", "ENETUNREACH"},
	{"connection refused", "ECONNREFUSED"},
	{"econnrefused", "ECONNREFUSED"},
	{"connect to server", noRoute},
	{"name resolution", "EAI_AGAIN"},
	{"eai_again", "EAI_AGAIN"},
	{"failure resolving", "EAI_AGAIN"},
	{"resolve host", noName},
	{"is denied", "EACCES"},             // .NET
	{"accessdeniedexception", "EACCES"}, // Java
}

// What programs say instead of an error. Denials leave the errno empty then.
const (
	noRoute = "no route"
	noName  = "no name"
)

// findPhrase locates the text of an error; of several, the last.
func findPhrase(line string) (errno string, begin, end int) {
	lower := lowerASCII(line)
	begin = -1
	for _, p := range phrases {
		if i := strings.LastIndex(lower, p.text); i > begin {
			errno, begin, end = p.errno, i, i+len(p.text)
		}
	}
	return errno, begin, end
}

// parseMessage reads one line. context is what was printed just before it; ok
// is false if the line names neither file nor address.
func parseMessage(line, context string) (m message, ok bool) {
	line = cleanLine(line)
	errno, begin, end := findPhrase(line)
	if errno == "" {
		return message{}, false
	}
	m = message{errno: errno, exe: lineProgram(line[:begin])}
	if errno == "EPERM" && refusesNamespace(line) {
		m.exe, m.op, m.names = lineProgram(line), opUnshare, []name{{userNamespace, true}}
		return m, true
	}
	switch errno {
	case noRoute, noName:
		m.errno = ""
		fallthrough
	case "ENETUNREACH", "ECONNREFUSED", "EAI_AGAIN":
		m.op, m.address = parseAddress(line)
		return m, m.address != ""
	}
	before, after := line[:begin], line[end:]
	if m.op, m.names = namesAfter(after); len(m.names) == 0 {
		before = strings.TrimRight(before, " :;(-")
		m.op = lineOp(before)
		m.names = namesBefore(before, after, m.op != "" || openWord().MatchString(before))
	} else if m.op == "" {
		m.op = lineOp(before)
	}
	if m.op == "" && readers[m.exe] {
		m.op = opRead
	}
	if len(m.names) == 0 && strings.HasPrefix(after, " (os error ") {
		// Rust prints causes below what they are the causes of.
		m.op, m.names = namesInContext(before, context)
	}
	if len(m.names) == 0 {
		// A refused connection is told by the same words.
		if m.op, m.address = parseAddress(line); m.address == "" {
			return message{}, false
		}
	}
	return m, true
}

var (
	escapePattern  = lazyRegexp(`\x1b(?:\[[0-9;?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)|[@-Z\\-_])`)
	openWord       = lazyRegexp(`(?i)\bopen(?:ing)?\b|access to the path`)
	programPattern = lazyRegexp(`^([A-Za-z0-9_/][A-Za-z0-9_./+-]{1,200})(?:\[\d+\])?: .`)
)

// lazyRegexp compiles at first use, because confine starts itself often and
// needs none of them then.
func lazyRegexp(expr string) func() *regexp.Regexp {
	return sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(expr) })
}

// cleanLine removes colours and line ends.
func cleanLine(line string) string {
	if strings.Contains(line, "\x1b") {
		line = escapePattern().ReplaceAllString(line, "")
	}
	line = strings.TrimRight(line, "\r\n\t ")
	// A carriage return starts the line again; what counts is what stays.
	return line[strings.LastIndexByte(line, '\r')+1:]
}

// notPrograms begin messages like programs do.
var notPrograms = map[string]bool{"error": true, "fatal": true, "warning": true, "failed": true, "panic": true, "note": true, "hint": true,
	"err": true, "info": true, "exception": true}

// readers are programs that only read the files they complain about.
var readers = map[string]bool{"cat": true, "tac": true, "head": true, "tail": true, "less": true, "more": true, "grep": true, "egrep": true,
	"fgrep": true, "rg": true, "find": true, "ls": true, "du": true, "tree": true, "stat": true, "file": true, "wc": true, "diff": true,
	"cmp": true, "od": true, "xxd": true, "hexdump": true, "strings": true, "md5sum": true, "sha256sum": true, "rgrep": true}

func lineProgram(line string) string {
	match := programPattern().FindStringSubmatch(line)
	if match == nil {
		return ""
	}
	program := path.Base(match[1])
	if lower := strings.ToLower(program); notPrograms[lower] || strings.HasSuffix(lower, "error") || strings.HasSuffix(lower, "exception") {
		return ""
	}
	return program
}

// operations are words in messages that tell what was tried. The first that
// fits counts; names of files are no part of what is searched.
var operations = []struct {
	words []string
	op    string
}{
	{[]string{"cannot open directory", "reading", "cannot access", "cannot stat", "scandir", "opendir", "readdir", "readlink", "lstat", "for reading"}, opRead},
	{[]string{"changing permissions", "preserving permissions", "setting permissions", "change permissions", "could not make", "chmod", "change mode"}, opChmod},
	{[]string{"changing ownership", "preserving ownership", "changing group", "chown", "change ownership", "lchown"}, opChown},
	{[]string{"setting times", "preserving times", "utime", "chtimes", "utimes"}, opUtime},
	{[]string{"rename", "renaming", "cannot move", "cannot rename", "move failed"}, opRename},
	{[]string{"cannot remove", "failed to remove", "unable to remove", "unlink", "rmdir", "cannot delete", "failed to delete", "could not remove", "unlinkat"}, opRemove},
	{[]string{"fork/exec", "execve", "spawn", "cannot execute", "cannot run", "failed to exec"}, opExec},
	{[]string{"create", "creating", "mkdir", "cannot touch", "mkstemp", "mkdtemp", "symlink", "temporary file", "mkfifo", "mknod", "link"}, opCreate},
	{[]string{"for writing", "for output", "write", "writing", "lock config", "truncate", "output file", "saving", "overwrite"}, opWrite},
}

// lineOp is the operation that a text speaks of, or empty.
func lineOp(text string) string {
	var bare strings.Builder
	end := 0
	for _, q := range findQuoted(text) {
		bare.WriteString(text[end:q.begin])
		end = q.end
	}
	bare.WriteString(text[end:])
	words := " " + lowerASCII(pathPattern().ReplaceAllString(bare.String(), " ")) + " "
	for _, operation := range operations {
		for _, word := range operation.words {
			if i := strings.Index(words, word); i > 0 && !isWordByte(words[i-1]) {
				return operation.op
			}
		}
	}
	return ""
}

var pathPattern = lazyRegexp(`(^|[ =(:])/[^ :]*`)

func lowerASCII(s string) string {
	lower := []byte(s)
	for i, c := range lower {
		if c >= 'A' && c <= 'Z' {
			lower[i] = c + 'a' - 'A'
		}
	}
	return string(lower)
}
