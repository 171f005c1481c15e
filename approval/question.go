package approval

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/confine-dev/confine/sandbox"
)

// Question is what a person is asked. Every text in it is visible as it stands
// and holds no line break, save Text, where each line is ours:
//
//   - \n, \r and \t are a line break, a carriage return and a tab; \u{202E} is a
//     character that is invisible, ambiguous or moves its neighbours, \xff a byte
//     that is not UTF-8; a backslash that would read as one of these is doubled;
//   - ␣ is a space in a run or at an end; ⟨2000 spaces⟩ and ⟨400 × \n⟩ are long
//     runs; ⟨9000 bytes not shown⟩ is what it says.
//
// No two texts that are shown whole look the same.
type Question struct {
	ID    string // unique; its first four characters stand in Title
	RunID string
	Kind  Kind

	Title string // what would happen, and in which mode, in one line

	// Command is the whole command, or program and arguments quoted as a shell
	// would need them. Of more than 64 KiB the first and the last 32 KiB are
	// shown, the bytes between are counted, and a warning says so.
	Command string
	Bytes   int // length of the command before escaping
	Lines   int // lines of the command; 1 for program and arguments
	Stdin   string
	Env     []string // NAME=value, sorted by name
	Dir     string

	Mode   sandbox.Mode // configured
	Wanted Wanted

	Reason        string
	Justification string
	Evidence      []sandbox.Denial // at most MaxEvidence of them

	// Warnings are the facts that must not be overlooked, the most important
	// first: what a yes would open, and what is odd about the command.
	Warnings []string

	PolicyHash string // of the wanted policy
	ExpiresAt  time.Time

	// Options are the answers in the order to show them. The first refuses, and
	// is the default.
	Options         []Option
	DefaultOptionID string

	// Text is all of this for clients that can only show a message: at most
	// MaxText characters as VS Code counts them (UTF-16 units), with the start
	// and end of what is too long. It stays unambiguous where line breaks are
	// shown as spaces. Clients that draw $(name) as an icon must break that.
	Text string

	// Unshown is how many of the things that a yes depends on Text does not show
	// whole: the command, its folder, input and variables, what becomes writable,
	// readable or reachable, and the warnings. Who shows nothing but Text must
	// not ask then.
	Unshown int
}

// Wanted is what the policy asked for opens, beyond the configured one.
type Wanted struct {
	Mode    sandbox.Mode
	Network bool     // the network becomes reachable and was not
	Write   []string // files and folders that become writable, escaped
	Read    []string // files and folders that become readable, escaped
}

// Limits of a question.
const (
	MaxText     = 900
	MaxEvidence = 20
	maxWarnings = 20
	maxWarning  = 400 // units of one warning of the request
)

// The options of every question.
var (
	refuse       = Option{ID: "refuse", Name: "Refuse", Kind: RejectOnce, Scope: ScopeOnce}
	allowOnce    = Option{ID: "allow-once", Name: "Allow this once", Kind: AllowOnce, Scope: ScopeOnce}
	allowSession = Option{ID: "allow-session", Name: "Allow for this session", Kind: AllowAlways, Scope: ScopeSession}
)

func options(r Request) []Option {
	if r.Session == "" || r.everyTime || r.StdinOpen {
		return []Option{refuse, allowOnce}
	}
	return []Option{refuse, allowOnce, allowSession}
}

// Describe returns the question that would be asked about r, without ID and
// expiry.
func Describe(r Request) Question {
	return newQuestion(ruled(r, cmp.Or(r.Policy, PolicyAsk)), "", time.Time{})
}

func newQuestion(r Request, id string, expires time.Time) Question {
	exact, prose := style{}, style{prose: true}
	command := commandText(r)
	g := gained(r.Have, r.Want)
	t := layoutOf(r, g, id)
	q := Question{
		ID: id, RunID: show(r.RunID, exact), Kind: r.Kind,
		Title:   t.title,
		Command: show(command, exact), Bytes: commandBytes(r), Lines: lines(r.Command),
		Stdin: show(r.Stdin, exact), Dir: show(r.Dir, exact),
		Mode:   r.Have.Mode,
		Wanted: Wanted{Mode: r.Want.Mode, Network: g.network, Write: showAll(append(paths(g.write), g.writable...)), Read: showAll(paths(g.read))},
		Reason: show(r.Reason, prose), Justification: show(r.Justification, prose),
		Warnings:   textsOf(slices.Concat(t.opens, t.grants, t.odd)),
		PolicyHash: r.Want.Hash(),
		ExpiresAt:  expires,
		Options:    options(r), DefaultOptionID: refuse.ID,
	}
	q.Text, q.Unshown = t.text(r)
	for _, name := range slices.Sorted(maps.Keys(r.Env)) {
		q.Env = append(q.Env, show(name+"="+r.Env[name], exact))
	}
	for _, d := range r.Evidence[:min(len(r.Evidence), MaxEvidence)] {
		d.Op, d.Path, d.Address = show(d.Op, exact), show(d.Path, exact), show(d.Address, exact)
		d.Errno, d.Exe = show(d.Errno, exact), show(d.Exe, exact)
		q.Evidence = append(q.Evidence, d)
	}
	return q
}

func paths(roots []*sandbox.Root) []string {
	var out []string
	for _, r := range roots {
		out = append(out, r.Path)
	}
	return out
}

func showAll(texts []string) []string {
	var out []string
	for _, s := range texts {
		out = append(out, show(s, style{}))
	}
	return out
}

// commandText is the command, or its arguments quoted so that a shell would
// take them apart again in the same way.
func commandText(r Request) string {
	if len(r.Argv) == 0 {
		return r.Command
	}
	quoted := make([]string, len(r.Argv))
	for i, arg := range r.Argv {
		quoted[i] = quote(arg)
	}
	return strings.Join(quoted, " ")
}

func quote(arg string) string {
	const safe = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_@%+=:,./-"
	if arg != "" && strings.Trim(arg, safe) == "" {
		return arg
	}
	return "'" + strings.ReplaceAll(arg, "'", `'\''`) + "'"
}

func commandBytes(r Request) int {
	n := len(r.Command)
	for _, arg := range r.Argv {
		n += len(arg)
	}
	return n
}

// lines counts a last line without line break, too.
func lines(command string) int {
	return strings.Count(strings.TrimSuffix(command, "\n"), "\n") + 1
}

// title says in our words only what a yes would do.
func title(r Request, g gain, id string) string {
	what := "run a command"
	if r.Kind == KindEscalation {
		what = "run a command again"
	}
	name := "confine"
	if id != "" {
		name += " " + id[:min(len(id), 4)]
	}
	return fmt.Sprintf("%s: %s %s?", name, what, how(r.Want.Mode, g))
}

// how is the way in which a command runs.
func how(mode sandbox.Mode, g gain) string {
	switch mode {
	case sandbox.DangerFullAccess:
		return "with NO SANDBOX (danger-full-access)"
	case sandbox.ExternalSandbox:
		return "unconfined (external-sandbox)"
	}
	return "in " + string(mode) + extras(g)
}

// extras names what a yes opens beside the mode.
func extras(g gain) string {
	var more []string
	if g.network {
		more = append(more, "NETWORK")
	}
	for _, e := range []struct {
		n    int
		verb string
	}{{len(g.write), "WRITE"}, {len(g.read), "READ"}} {
		switch e.n {
		case 0:
		case 1:
			more = append(more, "1 path to "+e.verb)
		default:
			more = append(more, fmt.Sprintf("%d paths to %s", e.n, e.verb))
		}
	}
	if len(more) == 0 {
		return ""
	}
	return " with " + strings.Join(more, ", ")
}
