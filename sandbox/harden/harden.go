// Package harden makes this process harder to look into, to gain privileges by
// and to dump: no tracing or memory access by other processes of the same user, no
// privileges from set-id programs, no core files.
//
// It is no sandbox: it governs no file and no network of a command, and no provider
// counts it. What was wanted and what the kernel says are told apart (State).
package harden

import (
	"log/slog"
	"strings"
)

// Options say what is wanted. The zero value wants everything.
type Options struct {
	// MayGain leaves no_new_privs alone, so that sudo and its like work in
	// whatever this process starts. Nothing can take the flag away later.
	MayGain bool

	// Source is who decided MayGain; empty means SourceDefault (Privileges).
	Source string

	// Log is told each failure; nil discards.
	Log *slog.Logger
}

// State is how this process is protected, as the kernel says now.
type State struct {
	// Dumpable is 0 if only privileged processes can trace this one, read its
	// memory or make a core file of it, 1 if every process of the same user can, 2
	// if core files are made that only root can read (prctl(2), PR_SET_DUMPABLE).
	Dumpable Control[int] `json:"dumpable"`

	// NoNewPrivs is true if no thread of this process, and nothing that one starts,
	// can gain privileges by executing a set-id program.
	NoNewPrivs Control[bool] `json:"noNewPrivs"`

	// CoreLimit is the hard limit of a core file in bytes, for this process and what
	// it starts; -1 is no limit.
	CoreLimit Control[int64] `json:"coreLimit"`
}

// Control is one protection.
type Control[T comparable] struct {
	Value  *T     `json:"value"`           // what the kernel says; null if it does not tell
	Wanted *T     `json:"wanted"`          // null: it is left as it was
	Source string `json:"source"`          // who decided what is wanted
	Error  string `json:"error,omitempty"` // why it is not as wanted, or what is not available here
}

// Held reports whether the kernel says what is wanted.
func (c Control[T]) Held() bool { return c.Wanted == nil || c.Value != nil && *c.Value == *c.Wanted }

// Who decides what is wanted, if the settings do not.
const (
	SourceDefault    = "default"
	SourceFullAccess = `sandbox_mode = "danger-full-access"`
)

// ParseNoNewPrivs reads a value of the variable CONFINE_NO_NEW_PRIVS: 0, false, no, off
// and disabled, in any case, mean no. Empty or blank it counts as not given, because a
// variable that was exported by mistake must not take a protection away. Everything
// else means yes, mistakes in typing too.
func ParseNoNewPrivs(value string) (wanted, given bool) {
	switch strings.ToLower(strings.TrimSpace(value)) {
	case "":
		return false, false
	case "0", "false", "no", "off", "disabled":
		return false, true
	}
	return true, true
}

// Privileges decides about no_new_privs: what the settings say (nil: nothing), set at
// origin, else the mode that confine was started with. Only full access leaves the
// flag out. The flag cannot be taken back, so a mode that is granted later changes
// nothing.
func Privileges(fullAccess bool, noNewPrivs *bool, origin string) (mayGain bool, source string) {
	switch {
	case noNewPrivs != nil:
		return !*noNewPrivs, origin
	case fullAccess:
		return true, SourceFullAccess
	}
	return false, SourceDefault
}

// Hardening is what was done to this process.
type Hardening struct {
	options                         Options
	dumpable, noNewPrivs, coreLimit error // why it failed
}

// Apply protects this process, every thread of it. Each failure is logged and
// survived: an editor without confine would run commands with less.
func Apply(o Options) *Hardening {
	h := &Hardening{options: o}
	try := func(what string, apply func() error) error {
		err := apply()
		if err != nil && o.Log != nil {
			o.Log.Warn("confine's own process is protected less", "what", what, "error", err)
		}
		return err
	}
	h.dumpable = try("it can be traced", forbidTracing)
	if !o.MayGain {
		h.noNewPrivs = try("it can gain privileges", forbidPrivileges)
	}
	h.coreLimit = try("it can leave core files", forbidCores)
	return h
}

// State asks the kernel.
func (h *Hardening) State() State {
	s := State{
		Dumpable:   control(SourceDefault, 0, dumpable),
		NoNewPrivs: control(h.options.Source, true, noNewPrivs),
		CoreLimit:  control(SourceDefault, 0, coreLimit),
	}
	if h.options.MayGain {
		s.NoNewPrivs.Wanted = nil
	}
	s.Dumpable.explain(h.dumpable)
	s.NoNewPrivs.explain(h.noNewPrivs)
	s.CoreLimit.explain(h.coreLimit)
	return s
}

// control reads the state of one protection.
func control[T comparable](source string, wanted T, read func() (T, error)) Control[T] {
	c := Control[T]{Wanted: &wanted, Source: source}
	if source == "" {
		c.Source = SourceDefault
	}
	value, err := read()
	if err != nil {
		c.Error = err.Error()
		return c
	}
	c.Value = &value
	return c
}

// explain says why it is not as wanted.
func (c *Control[T]) explain(failure error) {
	switch {
	case c.Held(): // a failure does not matter if somebody else saw to it
	case failure != nil:
		c.Error = failure.Error()
	case c.Error == "":
		c.Error = "it was set, and has been changed since"
	}
}
