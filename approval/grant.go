package approval

import (
	"crypto/sha256"
	"encoding/binary"
	"hash"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/confine-dev/confine/sandbox"
)

// key identifies exactly what would run and under which policy: bytes of the
// command or arguments, input, folder, environment changes, policy.
type key [sha256.Size]byte

func keyOf(r Request) key {
	h := sha256.New()
	command := commandKey(r)
	h.Write(command[:])
	io.WriteString(h, r.Want.Hash())
	return key(h.Sum(nil))
}

// commandKey identifies what would run, under whatever policy.
func commandKey(r Request) key {
	h := sha256.New()
	field := func(s string) { // with its length, so that no two requests write the same
		writeLen(h, len(s))
		io.WriteString(h, s)
	}
	field(r.Command)
	writeLen(h, len(r.Argv))
	for _, arg := range r.Argv {
		field(arg)
	}
	field(r.Stdin)
	binary.Write(h, binary.BigEndian, []bool{r.StdinOpen, r.Terminal})
	field(r.Dir)
	writeLen(h, len(r.Env))
	for _, name := range slices.Sorted(maps.Keys(r.Env)) {
		field(name)
		field(r.Env[name])
	}
	return key(h.Sum(nil))
}

func writeLen(h hash.Hash, n int) { binary.Write(h, binary.BigEndian, uint64(n)) }

// memory is what a session's answers still mean.
type memory struct {
	grants   map[key]grant
	refusals map[key]*refusal

	// refused counts, by commandKey, what was answered or closed without a yes
	// since the last yes.
	refused map[key]int
}

func newMemory() *memory {
	return &memory{grants: map[key]grant{}, refusals: map[key]*refusal{}, refused: map[key]int{}}
}

// grant is a yes for the whole session.
type grant struct {
	standing Standing
	folders  []string // whose removal ends it
}

// refusal is a no, or several to the same command.
type refusal struct {
	standing Standing // of the last
	command  key
	reasons  map[string]bool // that were given and not found good enough
	times    int             // answered or closed without a yes
}

// maxRefusals is how often the same command is refused or closed in a session
// before no new reason is good enough to ask again: a model that rephrases its
// reason must not wear the person down.
const maxRefusals = 3

// maxVariants is the same for a command under whatever policies: there is no end
// of paths that could be asked for one after the other.
const maxVariants = 6

// reasonOf is what a refusal is remembered for. Rewording by case or spaces
// makes no new reason.
func reasonOf(r Request) string {
	return strings.ToLower(strings.Join(strings.Fields(r.Reason), " ") + "\n" + strings.Join(strings.Fields(r.Justification), " "))
}

// recall looks for an earlier answer.
func (m *memory) recall(k key, r Request) (Decision, bool) {
	if m == nil {
		return Decision{}, false
	}
	if yes, ok := m.grants[k]; ok && !r.everyTime {
		return Decision{AllowedSession, ByGrant, yes.standing.ID, "the person allowed this exact command for this session"}, true
	}
	if no := m.refusals[k]; no != nil && (no.reasons[reasonOf(r)] || no.times >= maxRefusals) {
		return Decision{Rejected, ByMemory, no.standing.ID,
			"the person already refused this exact command in this session and is not asked again; do not retry it"}, true
	}
	if m.refused[commandKey(r)] >= maxVariants {
		return Decision{Rejected, ByMemory, "",
			"the person refused this command again and again in this session, whatever it asked for, and is not asked any more; do not retry it"}, true
	}
	return Decision{}, false
}

// lasting reports whether a decision means anything for later requests.
func lasting(d Decision) bool {
	return d.By == ByPerson && (d.Outcome.Allowed() || d.Outcome == Rejected || d.Outcome == Cancelled)
}

// note keeps what a lasting decision means for later requests. Of several
// answers to the same command the last one counts.
func (m *memory) note(k key, r Request, s Standing) {
	command := commandKey(r)
	switch s.Outcome {
	case AllowedOnce:
		delete(m.refused, command)
	case AllowedSession:
		delete(m.refused, command)
		m.grants[k] = grant{s, foldersOf(r)}
		delete(m.refusals, k)
	case Rejected:
		delete(m.grants, k)
		no := m.refusal(k, command, s)
		no.reasons[reasonOf(r)] = true
	case Cancelled: // says nothing about the reason
		m.refusal(k, command, s)
	}
}

// refusal counts one more no.
func (m *memory) refusal(k, command key, s Standing) *refusal {
	no := m.refusals[k]
	if no == nil {
		no = &refusal{command: command, reasons: map[string]bool{}}
		m.refusals[k] = no
	}
	no.standing = s
	no.times++
	m.refused[command]++
	return no
}

// foldersOf lists the folders that a request depends on.
func foldersOf(r Request) []string {
	folders := []string{r.Dir}
	for _, p := range []sandbox.Policy{r.Have, r.Want} {
		folders = slices.Concat(folders, p.RootPaths(), paths(p.Writable), paths(p.Readable))
	}
	return folders
}

// dependsOn reports whether one of the folders is root or lies below it.
func dependsOn(folders []string, root string) bool {
	return slices.ContainsFunc(folders, func(f string) bool { return sandbox.Within(f, root) })
}

// forgetRoot ends the grants that depend on a root.
func (m *memory) forgetRoot(root string) {
	maps.DeleteFunc(m.grants, func(_ key, g grant) bool { return dependsOn(g.folders, root) })
}
