package approval

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"io"
	"maps"
	"slices"
	"time"
	"unicode/utf8"

	"github.com/confine-dev/confine/sandbox"
)

// askedRecord is written before a person sees a question.
type askedRecord struct {
	Event         string       `json:"event"` // asked
	ID            string       `json:"id"`
	Time          time.Time    `json:"time"`
	Expires       time.Time    `json:"expires"`
	RunID         exactText    `json:"runId"`
	Session       exactText    `json:"session"`
	Kind          Kind         `json:"kind"`
	Command       *exactText   `json:"command,omitempty"`
	Argv          []exactText  `json:"argv,omitempty"`
	Stdin         *digest      `json:"stdin,omitempty"`
	StdinOpen     bool         `json:"stdinOpen,omitempty"` // more followed, which is not recorded
	Terminal      bool         `json:"terminal,omitempty"`
	Dir           exactText    `json:"dir"`
	Env           []envRecord  `json:"env,omitempty"`
	Mode          sandbox.Mode `json:"mode"`
	Wanted        wantedRecord `json:"wanted"`
	PolicyHash    string       `json:"policyHash"` // of the wanted policy
	Reason        exactText    `json:"reason"`
	Justification exactText    `json:"justification"`
}

// decidedRecord is written before anything that a question allowed may run.
type decidedRecord struct {
	Event   string    `json:"event"` // decided
	ID      string    `json:"id"`    // of the asked record
	Time    time.Time `json:"time"`
	Outcome Outcome   `json:"outcome"`
	By      By        `json:"by"`
	Reason  string    `json:"reason"`
}

// unaskedRecord is a decision that took no question. It holds a digest of the
// command only: what ran by a grant stands in full in the record of the
// question, and what was refused must not be able to flood the file.
type unaskedRecord struct {
	Event      string       `json:"event"`        // unasked
	ID         string       `json:"id,omitempty"` // of the earlier question
	Time       time.Time    `json:"time"`
	RunID      exactText    `json:"runId"`
	Session    exactText    `json:"session"`
	Kind       Kind         `json:"kind"`
	Command    digest       `json:"command"`
	Mode       sandbox.Mode `json:"mode"`
	Wanted     wantedRecord `json:"wanted"`
	PolicyHash string       `json:"policyHash"`
	Outcome    Outcome      `json:"outcome"`
	By         By           `json:"by"`
	Reason     string       `json:"reason"`
}

// revokedRecord ends what an earlier answer means for later requests.
type revokedRecord struct {
	Event   string    `json:"event"` // revoked
	ID      string    `json:"id"`    // of the asked record
	Time    time.Time `json:"time"`
	Session exactText `json:"session"`
	Outcome Outcome   `json:"outcome"` // of the answer that counts no more
}

type wantedRecord struct {
	Mode    sandbox.Mode `json:"mode"`
	Network bool         `json:"network"`
	Write   []exactText  `json:"write,omitempty"` // files and folders that are writable
	Read    []exactText  `json:"read,omitempty"`  // files and folders that are readable although hidden
}

// envRecord names a variable. Its value may be a secret: only a digest is
// kept, salted with the question's ID, of "ID NUL name NUL value".
type envRecord struct {
	Name   exactText `json:"name"`
	SHA256 string    `json:"sha256"`
}

type digest struct {
	SHA256 string `json:"sha256"`
	Bytes  int    `json:"bytes"`
}

// exactText is a JSON string, or {"base64": …} if it is not UTF-8, so that
// every byte can be read back.
type exactText string

func (t exactText) MarshalJSON() ([]byte, error) {
	if utf8.ValidString(string(t)) {
		return json.Marshal(string(t))
	}
	return json.Marshal(map[string]string{"base64": base64.StdEncoding.EncodeToString([]byte(t))})
}

func exactTexts(in []string) []exactText {
	var out []exactText
	for _, s := range in {
		out = append(out, exactText(s))
	}
	return out
}

func (a *Audit) asked(at time.Time, r Request, q Question) error {
	rec := askedRecord{
		Event: "asked", ID: q.ID, Time: at.UTC(), Expires: q.ExpiresAt.UTC(),
		RunID: exactText(r.RunID), Session: exactText(r.Session), Kind: r.Kind,
		Argv: exactTexts(r.Argv), StdinOpen: r.StdinOpen, Terminal: r.Terminal, Dir: exactText(r.Dir),
		Mode: r.Have.Mode, Wanted: wantedOf(r.Want), PolicyHash: q.PolicyHash,
		Reason: exactText(r.Reason), Justification: exactText(r.Justification),
	}
	if len(r.Argv) == 0 {
		command := exactText(r.Command)
		rec.Command = &command
	}
	if r.Stdin != "" {
		rec.Stdin = &digest{sha256Hex(r.Stdin), len(r.Stdin)}
	}
	for _, name := range slices.Sorted(maps.Keys(r.Env)) {
		rec.Env = append(rec.Env, envRecord{exactText(name), sha256Hex(q.ID, "\x00", name, "\x00", r.Env[name])})
	}
	return a.append(rec)
}

func (a *Audit) decided(at time.Time, d Decision) error {
	return a.append(decidedRecord{"decided", d.QuestionID, at.UTC(), d.Outcome, d.By, d.Reason})
}

func (a *Audit) unasked(at time.Time, r Request, d Decision) error {
	text := commandText(r)
	return a.append(unaskedRecord{
		Event: "unasked", ID: d.QuestionID, Time: at.UTC(),
		RunID: exactText(r.RunID), Session: exactText(r.Session), Kind: r.Kind,
		Command: digest{sha256Hex(text), len(text)},
		Mode:    r.Have.Mode, Wanted: wantedOf(r.Want), PolicyHash: r.Want.Hash(),
		Outcome: d.Outcome, By: d.By, Reason: d.Reason,
	})
}

func (a *Audit) revoked(at time.Time, s Standing) error {
	return a.append(revokedRecord{"revoked", s.ID, at.UTC(), exactText(s.Session), s.Outcome})
}

func wantedOf(p sandbox.Policy) wantedRecord {
	w := wantedRecord{Mode: p.Mode, Network: p.Network || !p.Mode.Confined()}
	if p.Mode == sandbox.WorkspaceWrite {
		w.Write = exactTexts(p.RootPaths())
	}
	if p.Mode.Confined() {
		w.Write = append(w.Write, exactTexts(paths(p.Writable))...)
		w.Read = exactTexts(paths(p.Readable))
	}
	return w
}

func sha256Hex(parts ...string) string {
	h := sha256.New()
	for _, p := range parts {
		io.WriteString(h, p)
	}
	return hex.EncodeToString(h.Sum(nil))
}
