package sandbox

import (
	"bytes"
	"path/filepath"
	"slices"
	"strings"
	"sync"
)

// DenialScanner reads what a command prints to stderr, as it flows, and finds
// the messages in which programs say that the system refused them something.
// A message proves nothing by itself: Denials believes only what the policy
// and this host confirm. Memory is bounded whatever is printed. All methods may
// be called from several goroutines.
//
// What it cannot find: refusals that a program swallows or words in its own
// way, and messages that are not in English (see Environment). A relative name
// counts from the run's own folder, although the command may have been in
// another by then.
type DenialScanner struct {
	mu      sync.Mutex // guards everything below
	buffer  []byte     // the end of the stream so far
	line    int        // where the unfinished line begins in buffer
	cut     bool       // the unfinished line began before buffer
	claims  []*claim   // in the order of their first message, oldest first
	byKey   map[string]*claim
	size    int            // bytes that the claims hold
	parsed  map[string]int // bytes in the lines of each anchor
	omitted int
}

// Limits of a DenialScanner. Oldest claims go first, since it is the last
// refusals that make a command fail.
const (
	maxMessage    = 8 << 10   // bytes of a line; no message is longer than two paths
	maxContext    = 2 << 10   // bytes before a message that may say what it is about
	maxClaims     = 1024      // different messages
	maxClaimBytes = 256 << 10 // bytes in them
	maxParsed     = 512 << 10 // bytes in lines per anchor; more are a flood and would cost time
	maxDenials    = 64        // in the answer
)

// claim is what one message says, and how often it was said.
type claim struct {
	message
	count int
}

// NewDenialScanner returns a scanner for one stream.
func NewDenialScanner() *DenialScanner {
	return &DenialScanner{byKey: map[string]*claim{}, parsed: map[string]int{}}
}

// Write takes the next piece of the stream. It never fails.
func (s *DenialScanner) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for rest := p; len(rest) > 0; {
		// In pieces, so that one huge write does not make a huge buffer.
		n := min(len(rest), 64<<10)
		s.buffer = append(s.buffer, rest[:n]...)
		s.scan()
		rest = rest[n:]
	}
	return len(p), nil
}

// scan looks at the lines that are complete and keeps the rest.
func (s *DenialScanner) scan() {
	if last := bytes.LastIndexByte(s.buffer[s.line:], '\n'); last >= 0 {
		end := s.line + last + 1
		s.scanLines(end)
		s.line, s.cut = end, false
	}
	if len(s.buffer)-s.line > maxMessage {
		s.line, s.cut = len(s.buffer), true
	}
	if drop := s.line - maxContext; drop > 0 && len(s.buffer) > 4*maxMessage {
		s.buffer = append(s.buffer[:0], s.buffer[drop:]...)
		s.line -= drop
	}
}

// scanLines looks at the lines before end, of which the first may be cut.
func (s *DenialScanner) scanLines(end int) {
	from := s.line
	if s.cut {
		from += bytes.IndexByte(s.buffer[from:end], '\n') + 1
	}
	for {
		hit, anchor := nextAnchor(s.buffer[from:end])
		if hit < 0 {
			return
		}
		begin := from + bytes.LastIndexByte(s.buffer[from:from+hit], '\n') + 1
		stop := from + hit + bytes.IndexByte(s.buffer[from+hit:end], '\n')
		if s.parsed[anchor] += stop - begin; stop-begin > maxMessage || s.parsed[anchor] > maxParsed {
			s.omitted++
		} else {
			s.note(s.buffer[begin:stop], s.buffer[max(0, begin-maxContext):begin])
		}
		from = stop + 1
	}
}

// note parses one message and counts it.
func (s *DenialScanner) note(line, context []byte) {
	m, ok := parseMessage(string(line), string(context))
	if !ok {
		return
	}
	key := m.key()
	if known := s.byKey[key]; known != nil {
		known.count++
		return
	}
	c := &claim{message: m, count: 1}
	s.claims, s.byKey[key] = append(s.claims, c), c
	for s.size += len(key); len(s.claims) > maxClaims || s.size > maxClaimBytes; s.omitted++ {
		oldest := s.claims[0].key()
		delete(s.byKey, oldest)
		s.claims, s.size = s.claims[1:], s.size-len(oldest)
	}
}

// DenialContext is what the messages of a run are checked against.
type DenialContext struct {
	Policy   Policy
	Dir      string   // the run's absolute working directory; relative names are resolved against it
	ExitCode int      // a command that ended with 0 was denied nothing that mattered to it
	Signal   string   // a command that was killed says nothing about denials
	Writable []string // absolute places that the command could write besides the roots and /tmp

	// Namespaces says that this host lets this process make namespaces, because it did.
	Namespaces bool

	// Refusal is the one error with which the sandbox refuses everything, where it is
	// one that decides by names and gives commands no /tmp of their own; else empty.
	Refusal string
}

// Denials lists what the sandbox refused according to the messages so far: at
// most 64, each once with its count. A message counts only if
//
//   - the mode is a confined one and the command exited with a status other
//     than 0,
//   - the policy does not allow what it speaks of (a path below a protected one
//     or outside all writable places, or the network), and
//   - this process itself could do it: the parent folder exists, permissions
//     and the file system's own state allow it; it makes namespaces itself.
//
// The host's files are looked at by lstat, readlink, statfs and access only,
// never opened.
func (s *DenialScanner) Denials(ctx DenialContext) []Denial {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !ctx.Policy.Mode.Confined() || ctx.ExitCode == 0 || ctx.Signal != "" {
		return nil
	}
	s.finishLine()
	type fold struct{ op, path, address, errno string }
	var denials []Denial
	index := map[fold]int{}
	j := newJudge(ctx)
	for _, c := range s.claims {
		d, ok := j.judge(c.message)
		if !ok {
			continue
		}
		key := fold{d.Op, d.Path, d.Address, d.Errno}
		if i, known := index[key]; known {
			denials[i].Count += c.count
			continue
		}
		if len(denials) == maxDenials {
			s.omitted++
			continue
		}
		d.Evidence, d.Count = Stderr, c.count
		index[key] = len(denials)
		denials = append(denials, d)
	}
	if j.steps < 0 {
		s.omitted++
	}
	return denials
}

// Mentions reports whether a message so far names a path, whatever it says of it
// and however the command ended. dir is where relative names start.
func (s *DenialScanner) Mentions(path, dir string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.finishLine()
	return slices.ContainsFunc(s.claims, func(c *claim) bool {
		return slices.ContainsFunc(c.names, func(n name) bool {
			return n.text == path || filepath.Join(dir, n.text) == path || strings.HasSuffix(path, "/"+filepath.Clean(n.text))
		})
	})
}

// finishLine takes what follows the last newline for a line, once.
func (s *DenialScanner) finishLine() {
	if s.line < len(s.buffer) && !s.cut {
		s.buffer = append(s.buffer, '\n')
		s.scan()
	}
}

// Omitted is how many messages were left out of Denials because of its limits.
// It says that the list may be incomplete, not that it is.
func (s *DenialScanner) Omitted() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.omitted
}

func (m message) key() string {
	parts := []string{m.errno, m.op, m.address}
	for _, name := range m.names {
		parts = append(parts, name.text)
	}
	return strings.Join(parts, "\x00")
}
