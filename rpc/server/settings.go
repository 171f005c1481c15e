package server

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/confine-dev/confine/approval"
	"github.com/confine-dev/confine/approval/rules"
	"github.com/confine-dev/confine/rpc/proto"
	"github.com/confine-dev/confine/sandbox"
)

// Settings are the settings in force at one moment. They are not changed after
// they were handed out. The zero value is read-only, without network, asking, and
// refuses every confined command for want of a provider.
type Settings struct {
	Mode           sandbox.Mode // empty means read-only
	Network        bool
	ApprovalPolicy approval.Policy // empty means ask
	Rules          rules.Rules     // about commands; they widen nothing
	WritableRoots  []string        // folders that workspace-write may write to besides the workspace's; absolute
	Limits         sandbox.Limits  // of confined commands

	// Provider is the configured one; empty means any that can be used.
	Provider string

	// Refusal says why no command may run at all; empty if one may.
	Refusal string

	// Shown lists every setting with its origin, for capabilities, and Problems
	// what is to be said of them.
	Shown    []proto.Setting
	Problems []proto.SettingsProblem

	// Confined runs commands in confined modes. With nil none is usable: such
	// a command is refused with a *sandbox.UnavailableError.
	Confined sandbox.Provider

	// Elsewhere says that Confined runs commands on another machine: nothing of this
	// one's environment goes there, and no mode is to be had that runs them here.
	Elsewhere bool

	// ConfinedReport says what every provider of this host can do. It may take
	// a second. Nil means that only Confined is asked.
	ConfinedReport func(context.Context) []sandbox.Report

	// Skipped lists paths that are set to be shown to commands but are not, as
	// of now, to be listed in results. Nil means that there are none.
	Skipped func() []string

	// Unreadable lists the paths that no confined command can read, as of now, in
	// a workspace with these roots. Nil means that there are none.
	Unreadable func(roots []*sandbox.Root) []string
}

// Configuration is where the settings of one connection come from. Its methods may
// be called from several goroutines at once.
type Configuration interface {
	// SetOptions takes the initializationOptions, once.
	SetOptions(json.RawMessage)

	// SetFolders takes the paths of the open workspace folders, whenever they
	// change.
	SetFolders([]string)

	// Current is called for every request and must be quick. It returns the same
	// pointer until something is different.
	Current() *Settings

	Close()
}

// fixed are settings that do not change.
type fixed struct{ settings *Settings }

func (fixed) SetOptions(json.RawMessage) {}
func (fixed) SetFolders([]string)        {}
func (f fixed) Current() *Settings       { return f.settings }
func (fixed) Close()                     {}

// configure makes the configuration of a connection.
func (o Options) configure(changed func()) Configuration {
	if o.Configure != nil {
		return o.Configure(changed)
	}
	s := o.Settings
	s.Mode = cmp.Or(s.Mode, sandbox.ReadOnly)
	s.ApprovalPolicy = cmp.Or(s.ApprovalPolicy, approval.PolicyAsk)
	return fixed{&s}
}

// settings are those in force now. What belongs together takes them once.
func (c *client) settings() *Settings { return c.config.Current() }

// settingsError says that the settings cannot be trusted to be what somebody meant.
type settingsError struct{ reason string }

func (e *settingsError) Error() string {
	return "no command runs until the settings are mended: " + e.reason
}

// settingsChangedError says that a question was asked under settings that hold no more.
type settingsChangedError struct{}

func (*settingsChangedError) Error() string {
	return "the command did not run because the settings changed while the question was open; run it again"
}

// usable is why no command may run under these settings.
func (s *Settings) usable() error {
	if s.Refusal != "" {
		return &settingsError{s.Refusal}
	}
	return nil
}

// settingsChanged is called by the configuration, on its time.
func (c *client) settingsChanged() {
	select {
	case c.news <- struct{}{}:
	default: // whoever takes the one that waits sees this change, too
	}
}

// followSettings tells the editor of changes, until the connection ends. What runs
// goes on as it began.
func (c *client) followSettings() {
	select { // nothing may be sent before the editor is ready for it
	case <-c.life.ready:
	case <-c.ctx.Done():
		return
	}
	before := c.settings()
	c.warnOfSettings(nil, before)
	for {
		select {
		case <-c.news:
		case <-c.ctx.Done():
			return
		}
		now := c.settings()
		if now == before {
			continue
		}
		c.warnOfSettings(before, now)
		for _, root := range c.folders.dropExtras(now.WritableRoots) {
			c.o.Gate.EndRoot(root.Path)
		}
		if now.Confined != before.Confined {
			c.probe()
		}
		if c.announced() {
			c.notify(proto.MethodCapabilitiesChanged, proto.CapabilitiesChanged{State: c.probing.state()})
		}
		before = now
	}
}

// warnOfSettings puts into the editor's log what was not to be said before.
func (c *client) warnOfSettings(before, now *Settings) {
	for _, problem := range now.Problems {
		if before != nil && slices.Contains(before.Problems, problem) {
			continue
		}
		kind := proto.MessageWarning
		if problem.Severity == proto.SeverityError {
			kind = proto.MessageError
		}
		c.notify(proto.MethodLogMessage, proto.LogMessageParams{Type: kind, Message: "confine: settings: " + visible(problem.Message)})
	}
}

// shown lists the effective settings under the names of the settings file.
func (s *Settings) shown() []proto.Setting {
	if s.Shown != nil {
		return s.Shown
	}
	return []proto.Setting{
		{Key: "sandbox_mode", Value: s.Mode, Origin: "default"},
		{Key: "network_access", Value: s.Network, Origin: "default"},
		{Key: "approval_policy", Value: s.ApprovalPolicy, Origin: "default"},
	}
}

// roots are the folders that workspace-write makes writable: those of the workspace
// and those of the settings.
func (c *client) roots(s *Settings) []*sandbox.Root {
	roots := c.folders.roots()
	for _, extra := range c.folders.extras(s.WritableRoots) {
		if extra.root != nil && !slices.ContainsFunc(roots, func(r *sandbox.Root) bool { return r.Path == extra.root.Path }) {
			roots = append(roots, extra.root)
		}
	}
	return roots
}

// problems are those of the settings and of the folders that they name.
func (c *client) problems(s *Settings) []proto.SettingsProblem {
	list := slices.Clone(s.Problems)
	for _, extra := range c.folders.extras(s.WritableRoots) {
		if extra.root == nil {
			list = append(list, proto.SettingsProblem{Severity: proto.SeverityWarning, Message: fmt.Sprintf("writable_roots: %q is skipped: %s", extra.path, extra.refusal)})
		}
	}
	return list
}
