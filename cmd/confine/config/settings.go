package config

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/confine-dev/confine/approval/rules"
	"github.com/confine-dev/confine/sandbox"
)

// Settings are the values in force. See docs/configuration.md.
type Settings struct {
	Mode           sandbox.Mode
	Network        bool
	WritableRoots  []string // absolute, or ~/ and a path below the home folder
	ApprovalPolicy string   // "ask", "untrusted" or "never"
	Rules          rules.Rules

	DenyRead         []string // files and folders that no confined command can read; like WritableRoots
	DenyReadDefaults bool     // hide.Stores as well

	Provider      string // sandbox.ProviderAuto or the name of a local provider
	RunUnconfined bool   // where nothing can confine a command, instead of refusing it
	PreferBwrap   bool   // with provider auto: bubblewrap before what is embedded, if it is usable
	BwrapPath     string // of bubblewrap, absolute; empty: where systems install it
	BwrapReadOnly []string
	BwrapDevices  []string

	Backend    string // "none": this machine
	Remote     Remote
	NoNewPrivs *bool // nil: as the mode at the start wants it
	Limits     sandbox.Limits
}

// Remote is which service Backend means and how it is used; see opensandbox.Config.
type Remote struct {
	URL, APIKey, API  string
	PlainHTTP         []string
	Image, CPU        string
	Memory            int64
	Workspace, Output string
	UploadSize        int64
	UploadSkip        []string
}

// ConfinedBy is the provider that the settings name, or sandbox.ProviderAuto.
func (s Settings) ConfinedBy() string {
	if s.Backend == sandbox.ProviderOpenSandbox {
		return s.Backend
	}
	return s.Provider
}

// conflict says why these settings cannot hold together; empty if they can. Whoever
// names what is on this machine must not find their command on another.
func (s Settings) conflict(origins map[string]string) string {
	if s.Backend != sandbox.ProviderOpenSandbox {
		return ""
	}
	var local, remedy string
	switch {
	case !s.Mode.Confined():
		local, remedy = fmt.Sprintf("%s = %q (%s) runs commands on this machine", KeyMode, s.Mode, origins[KeyMode]), "set a confined mode"
	case s.Provider != sandbox.ProviderAuto:
		local, remedy = fmt.Sprintf("%s = %q (%s) confines commands on this machine", KeyProvider, s.Provider, origins[KeyProvider]), "leave "+KeyProvider+" out"
	default:
		return ""
	}
	return fmt.Sprintf("%s, and %s = %q (%s) sends them elsewhere: %s, or set %s = \"none\"", local, KeyBackend, s.Backend, origins[KeyBackend], remedy, KeyBackend)
}

// Value is one effective setting, for people.
type Value struct {
	Key    string `json:"key"`
	Value  any    `json:"value"`  // null if it has none; of a secret only whether there is one
	Origin string `json:"origin"` // OriginDefault, or every place that had a part in it
}

// Snapshot is the settings at one moment, with what is to be said of them. It is
// not changed after it was made.
type Snapshot struct {
	Settings Settings `json:"-"`

	Values   []Value  `json:"settings"`
	Warnings []string `json:"warnings"` // lines that are ignored
	Errors   []string `json:"errors"`   // changes that are not in force because they cannot be understood
	Refusal  string   `json:"refusal"`  // why no command may run; empty if one may
}

// Origin says where the value of a key comes from.
func (s *Snapshot) Origin(key string) string {
	at := slices.IndexFunc(s.Values, func(v Value) bool { return v.Key == key })
	return s.Values[at].Origin
}

// Origins that are not a place in a file.
const (
	OriginDefault     = "default"
	OriginCommandLine = "command line"
	OriginEditor      = "the editor's initializationOptions"
)

// values are what each key has. A key without one is not in it.
type values map[string]any

func (v values) text(key string) string { s, _ := v[key].(string); return s }
func (v values) yes(key string) bool    { b, _ := v[key].(bool); return b }
func (v values) number(key string) uint64 {
	n, _ := v[key].(int64)
	return uint64(n) // none is negative
}

func (v values) list(key string) []string {
	list, _ := v[key].([]string)
	return list
}

func (v values) rules(key string) rules.Rules {
	list, _ := v[key].(rules.Rules)
	return list
}

func (v values) settings() Settings {
	s := Settings{
		Mode: sandbox.Mode(v.text(KeyMode)), Network: v.yes(KeyNetwork), WritableRoots: v.list(KeyWritableRoots),
		ApprovalPolicy: v.text(KeyApprovalPolicy), Rules: v.rules(KeyRules),
		DenyRead: v.list(KeyDenyRead), DenyReadDefaults: v.yes(KeyDenyReadStores),
		Provider: v.text(KeyProvider), RunUnconfined: v.text(KeyOnUnavailable) == "run-unconfined",
		PreferBwrap: v.yes(KeyPreferBwrap), BwrapPath: v.text(KeyBwrapPath),
		BwrapReadOnly: v.list(KeyBwrapReadOnly), BwrapDevices: v.list(KeyBwrapDevices),
		Backend: v.text(KeyBackend),
		Remote: Remote{
			URL: v.text(KeyURL), APIKey: v.text(KeyAPIKey), API: v.text(KeyAPI), PlainHTTP: v.list(KeyPlainHTTP),
			Image: v.text(KeyImage), CPU: v.text(KeyCPU), Memory: int64(v.number(KeySandboxMemory)),
			Workspace: v.text(KeyWorkspace), Output: v.text(KeyOutput),
			UploadSize: int64(v.number(KeyUploadSize)), UploadSkip: v.list(KeyUploadSkip),
		},
		Limits: sandbox.Limits{
			Processes: v.number(KeyProcesses), Memory: v.number(KeyMemory), OpenFiles: v.number(KeyOpenFiles),
			FileSize: v.number(KeyFileSize), TempSize: v.number(KeyTempSize),
		},
	}
	if wanted, ok := v[KeyNoNewPrivs].(bool); ok {
		s.NoNewPrivs = &wanted
	}
	return s
}

// shown lists the values in the order of Keys.
func (v values) shown(origins map[string]string) []Value {
	list := make([]Value, 0, len(Keys))
	for i := range Keys {
		k := &Keys[i]
		value := v[k.Name]
		if k.Secret && value != nil {
			value = "set"
		}
		list = append(list, Value{k.Name, value, origins[k.Name]})
	}
	return list
}

// Hidden are the paths of DenyRead, all absolute. Without a home folder those
// below it mean nothing.
func (s Settings) Hidden(home string) []string { return absolute(s.DenyRead, home) }

// Writable are the paths of WritableRoots, likewise.
func (s Settings) Writable(home string) []string { return absolute(s.WritableRoots, home) }

func absolute(paths []string, home string) []string {
	var list []string
	for _, path := range paths {
		if rest, ok := strings.CutPrefix(path, "~/"); ok {
			if home == "" {
				continue
			}
			path = filepath.Join(home, rest)
		}
		list = append(list, path)
	}
	return list
}

// layer is one place that values come from.
type layer struct {
	entries []entry
	err     error // why there is nothing; commands are refused then
}

// additions parts the lists that allow less the longer they are from the rest.
func (l layer) additions() (rest, adding layer) {
	for _, e := range l.entries {
		if _, adds := e.key.order.(more); adds {
			adding.entries = append(adding.entries, e)
		} else {
			rest.entries = append(rest.entries, e)
		}
	}
	return rest, adding
}

// compose puts layers over the defaults, later ones first, and then lets others
// tighten the result.
func compose(ordered, tightening []layer) *Snapshot {
	v, origins := values{}, map[string]string{}
	for i := range Keys {
		origins[Keys[i].Name] = OriginDefault
		if Keys[i].Default != nil {
			v[Keys[i].Name] = Keys[i].Default
		}
	}
	s := &Snapshot{Warnings: []string{}, Errors: []string{}}
	for _, l := range ordered {
		for _, e := range l.entries {
			s.put(v, origins, e)
		}
	}
	for _, l := range tightening {
		if l.err != nil && s.Refusal == "" {
			s.Refusal = l.err.Error()
		}
		for _, e := range l.entries {
			s.tighten(v, origins, e)
		}
	}
	s.Settings, s.Values = v.settings(), v.shown(origins)
	if s.Refusal == "" {
		s.Refusal = s.Settings.conflict(origins)
	}
	return s
}

// put gives a key the value of a layer, or adds to it what adds up.
func (s *Snapshot) put(v values, origins map[string]string, e entry) {
	name := e.key.Name
	if e.key.Kind == RuleList {
		v[name] = append(slices.Clone(v.rules(name)), e.value.(rules.Rules)...)
		origins[name] = joined(origins[name], e.origin)
		return
	}
	v[name], origins[name] = e.value, e.origin
	s.note(e)
}

// joined is the origin of what several places had a part in.
func joined(before, more string) string {
	if before == OriginDefault {
		return more
	}
	return before + ", " + more
}

// note says what a value does not do.
func (s *Snapshot) note(e entry) {
	if e.key.note != nil {
		s.warn("%s: %s: %s", e.origin, e.key.Name, e.key.note(e.value))
	}
}

// tighten applies what one entry of a layer that may only tighten allows less.
func (s *Snapshot) tighten(v values, origins map[string]string, e entry) {
	name := e.key.Name
	before := v[name]
	after, loosens := e.key.order.tighten(before, e.value)
	switch _, never := e.key.order.(fixed); {
	case loosens && never:
		s.warn("%s: %s is ignored: it cannot be set here", e.origin, name)
	case loosens && e.key.Kind == RuleList:
		for _, r := range e.value.(rules.Rules) {
			if r.Decision == rules.Allow {
				s.warn("%s: a rule that allows is ignored: only rules that ask or deny can stand here", r.Origin)
			}
		}
	case loosens:
		s.warn("%s: %s is ignored as far as it would allow more than %s does", e.origin, name, inWords(origins[name]))
	}
	if sameValue(before, after) {
		return
	}
	v[name] = after
	switch e.key.order.(type) {
	case more, stricter:
		origins[name] = joined(origins[name], e.origin)
	default:
		origins[name] = e.origin
	}
}

func (s *Snapshot) warn(format string, args ...any) {
	s.Warnings = append(s.Warnings, fmt.Sprintf(format, args...))
}

// inWords is an origin in a sentence.
func inWords(origin string) string {
	if origin == OriginDefault {
		return "the default"
	}
	return origin
}
