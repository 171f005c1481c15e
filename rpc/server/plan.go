package server

import (
	"crypto/rand"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"time"

	"github.com/confine-dev/confine/approval"
	"github.com/confine-dev/confine/approval/rules"
	"github.com/confine-dev/confine/rpc/proto"
	"github.com/confine-dev/confine/sandbox"
)

// plan is a request to run a command, checked and with every default filled
// in. It is not changed after it was made.
type plan struct {
	id      string
	session string // the key for provider and gate
	label   string // the session as the editor names it; may be empty

	command string
	argv    []string
	dir     string
	env     map[string]string
	stdin   string

	open     bool                  // input stays open behind stdin
	terminal *sandbox.TerminalSize // to begin with; nil for pipes

	timeout    time.Duration // 0 means none
	background bool
	detached   bool // answered with a run id before anything is decided
	token      proto.Token

	settings      *Settings      // those in force when it was made
	have, want    sandbox.Policy // equal unless somebody must be asked
	kind          approval.Kind
	verdict       rules.Verdict
	asks          bool        // want goes beyond have, or the rules or the policy want a question
	folder        fs.FileInfo // what dir was when the question was made; nil if nothing is asked or it is not there
	reason        string
	justification string
	evidence      []sandbox.Denial
	warnings      []string

	grants []approval.Grant // what is said of files and folders that want opens one by one
	pins   []*sandbox.Root  // those, held until the run has ended
}

// size is how much memory the plan holds, about.
func (p plan) size() int {
	size := p.commandSize() + len(p.stdin) + len(p.dir) + len(p.token) + len(p.justification)
	for name, value := range p.env {
		size += len(name) + len(value)
	}
	for _, g := range p.grants {
		size += len(g.Path)
	}
	return size
}

func (p plan) commandSize() int {
	size := len(p.command)
	for _, arg := range p.argv {
		size += len(arg)
	}
	return size
}

// maxSession is how long the key of a session may be, in bytes.
const maxSession = 256

var runID = regexp.MustCompile(`^[A-Za-z0-9_-]{1,64}$`)

// plan checks the params of runCommand.
func (c *client) plan(p proto.RunCommandParams) (plan, error) {
	if err := checkCommand(p); err != nil {
		return plan{}, err
	}
	id, err := newRunID(p.RunID)
	if err != nil {
		return plan{}, err
	}
	timeout, err := effectiveTimeout(p.TimeoutMs, p.Background)
	if err != nil {
		return plan{}, err
	}
	dir, err := c.directory(p.Cwd)
	if err != nil {
		return plan{}, err
	}
	terminal, err := terminalOf(p)
	if err != nil {
		return plan{}, err
	}
	settings := c.settings()
	if err := settings.usable(); err != nil {
		return plan{}, err
	}
	roots := c.roots(settings)
	if settings.Elsewhere {
		dir = c.remoteDirectory(p.Cwd, dir, roots)
	}
	have, want, err := settings.scopes(p, roots)
	if err != nil {
		return plan{}, err
	}
	// Equal scopes are one policy: read twice, what git needs could differ.
	allowed := c.policy(settings, have, roots)
	wanted := allowed
	if want != have {
		wanted = c.policy(settings, want, roots)
		if want.mode.Confined() && have.mode.Confined() {
			wanted.Unreadable = allowed.Unreadable // the same, whatever was made in between
		}
	}
	made := plan{
		id:       id,
		settings: settings,
		session:  c.sessionKey(p.Session), label: p.Session,
		command: p.Command, argv: p.Argv, dir: dir, env: p.Env, stdin: p.Stdin,
		open: p.StdinOpen || terminal != nil, terminal: terminal,
		timeout: timeout, background: p.Background, token: p.WorkDoneToken,
		have: allowed, want: wanted,
		kind: approval.KindCommand, asks: want.beyond(have),
	}
	if err := settings.reachable(wanted); err != nil {
		return plan{}, err
	}
	if settings.Elsewhere {
		made.warnings = []string{remoteWarning}
	}
	if err := c.interactive(made); err != nil {
		return plan{}, err
	}
	made.verdict = c.judge(made)
	if made.asks = made.asks || settings.ApprovalPolicy.Asks(made.verdict); made.asks {
		made.settle()
	}
	if want.beyond(have) {
		made.reason = "The request asks for more than is configured before it has been tried."
		made.justification = p.Justification
	}
	return made, nil
}

// judge is what the rules say about the command of a plan. Where nothing could come
// of it the command is not even parsed.
func (c *client) judge(p plan) rules.Verdict {
	s := p.settings
	if s.ApprovalPolicy != approval.PolicyUntrusted && !s.Rules.Restrict() {
		return rules.Verdict{}
	}
	return s.Rules.Judge(c.ruled(p))
}

// ruled is what the rules look at.
func (c *client) ruled(p plan) rules.Command {
	return rules.Command{Script: p.command, Argv: p.argv, Env: len(p.env) > 0, Elsewhere: c.elsewhere(p.dir, p.settings)}
}

// settle makes dir the folder that it leads to now. A command of the same
// workspace may change links at any time; what is shown, granted and run must
// be one folder.
func (p *plan) settle() {
	if real, err := filepath.EvalSymlinks(p.dir); err == nil {
		p.dir = real
	}
	p.folder, _ = os.Stat(p.dir) // without it the command cannot begin
}

// moved reports whether dir has become another folder since the question.
func (p plan) moved() bool {
	if p.folder == nil {
		return false
	}
	now, err := os.Lstat(p.dir)
	return err != nil || !os.SameFile(now, p.folder)
}

// checkCommand refuses what no system can run.
func checkCommand(p proto.RunCommandParams) error {
	switch {
	case p.Command == "" && len(p.Argv) == 0:
		return invalid("command or argv is required")
	case p.Command != "" && len(p.Argv) > 0:
		return invalid("command and argv exclude each other")
	case strings.TrimSpace(p.Command) == "" && len(p.Argv) == 0:
		return invalid("command is blank")
	case hasNUL(p.Command):
		return invalid("command has a NUL byte")
	case len(p.Argv) > 0 && p.Argv[0] == "":
		return invalid("argv names no program")
	case len(p.Session) > maxSession:
		return invalid("session is longer than %d bytes", maxSession)
	}
	for i, arg := range p.Argv {
		if hasNUL(arg) {
			return invalid("argv[%d] has a NUL byte", i)
		}
	}
	for name, value := range p.Env {
		if name == "" || strings.Contains(name, "=") || hasNUL(name) || hasNUL(value) {
			return invalid("env: %q cannot be a variable", name)
		}
	}
	return checkToken(p.WorkDoneToken)
}

func hasNUL(s string) bool { return strings.IndexByte(s, 0) >= 0 }

// newRunID is the id that the client chose, or a new one.
func newRunID(chosen string) (string, error) {
	if chosen == "" {
		return "r-" + strings.ToLower(rand.Text()[:16]), nil
	}
	if !runID.MatchString(chosen) {
		return "", invalid("runId must match [A-Za-z0-9_-]{1,64}")
	}
	return chosen, nil
}

// effectiveTimeout clamps what was asked for. Only a background run may go
// without a limit.
func effectiveTimeout(ms *int64, background bool) (time.Duration, error) {
	switch {
	case ms == nil && background:
		return 0, nil
	case ms == nil:
		return sandbox.DefaultTimeout, nil
	case *ms <= 0:
		return 0, invalid("timeoutMs must be positive")
	case *ms > sandbox.MaxTimeout.Milliseconds():
		return sandbox.MaxTimeout, nil
	}
	return time.Duration(*ms) * time.Millisecond, nil
}

// directory is where the command runs. It is not cleaned: with symbolic links
// a/../b is not always b.
func (c *client) directory(cwd string) (string, error) {
	switch {
	case cwd == "":
		return c.folders.workingDirectory()
	case !filepath.IsAbs(cwd):
		return "", invalid("cwd must be an absolute path")
	case hasNUL(cwd):
		return "", invalid("cwd has a NUL byte")
	}
	return cwd, nil
}

// sessionKey is the session for provider and gate: never one of another
// connection.
func (c *client) sessionKey(label string) string {
	if label == "" {
		return c.id
	}
	return c.id + "/" + label
}
