package main

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"sync/atomic"

	"github.com/confine-dev/confine/approval"
	"github.com/confine-dev/confine/cmd/confine/config"
	"github.com/confine-dev/confine/rpc/server"
	"github.com/confine-dev/confine/sandbox"
	"github.com/confine-dev/confine/sandbox/harden"
	"github.com/confine-dev/confine/sandbox/hide"
	"github.com/confine-dev/confine/sandbox/local"
)

// wiring is a server with everything it needs, the same for every subcommand.
type wiring struct {
	server    *server.Server
	settings  config.Settings // without those of an editor and of workspaces
	paths     config.Paths
	providers *providers
	unasked   bool
	current   atomic.Pointer[config.Connection] // of the last connection
	found     atomic.Pointer[hide.Finder]       // the last

	hardening *harden.Hardening // of this process

	closers []func() error // last opened, first closed
}

// wiringOptions are what the subcommands do differently.
type wiringOptions struct {
	named       map[string]any            // settings of the command line, by key; nil for none
	unasked     bool                      // nobody can be asked, so that neither a result nor its text for a model promises a question
	trustEditor bool                      // the editor's options may widen
	watch       bool                      // changes of settings count at once
	input       func(*sandbox.Spec) error // see attached
	output      *liveOutput               // see attached
	keep        int                       // bytes of each stream that a result holds; 0 is the server's default
	brief       bool                      // of the providers only the one in use is asked what it can do, and no remote one
	spill       bool                      // what a result leaves out goes to a file that lives as long as the server
	log         *slog.Logger              // nil discards
	trace       io.Writer                 // gets every message; nil for none
}

// newWiring loads the settings and makes a server. Close it.
func newWiring(o wiringOptions) (_ *wiring, err error) {
	w := &wiring{paths: config.FindPaths(), unasked: o.unasked}
	defer func() {
		if err != nil {
			w.close()
		}
	}()
	source, err := openSettings(config.Options{Paths: w.paths, Named: o.named, TrustEditor: o.trustEditor, Watch: o.watch})
	if err != nil {
		return nil, err
	}
	w.closers = append(w.closers, source.Close)
	base := source.Base()
	w.settings = base.Settings
	w.hardening = w.harden(base.Origin(config.KeyNoNewPrivs), o.log)
	if err := config.EnsurePrivate(w.paths.StateDir); err != nil {
		return nil, withHint(err, "mend it, move it away, or set XDG_STATE_HOME to a folder that you can write to")
	}
	gate, err := w.openGate()
	if err != nil {
		return nil, err
	}
	if w.providers, err = openProviders(w.settings, w.paths.StateDir, w.secrets, o); err != nil {
		return nil, err
	}
	w.closers = append(w.closers, w.providers.close)
	var spill string
	if o.spill {
		spill = w.providers.engine.SpillDir()
	}
	w.server = server.New(server.Options{
		Version:    readBuildFacts().Version,
		Unconfined: w.providers.bare(),
		Gate:       gate,
		Configure: func(changed func()) server.Configuration {
			c := source.Connect(changed)
			w.current.Store(c)
			return &configuration{Connection: c, make: w.serverSettings}
		},
		Forbidden: w.forbidden(),
		HostEnv:   os.Environ(),
		SpillDir:  spill,

		Hardening: w.hardening.State,
		Hints:     hostHints(os.Getenv, w.paths),

		KeepOutput: o.keep,
		Log:        o.log,
		Trace:      o.trace,
	})
	return w, nil
}

// close ends everything that the server started and removes what it made.
func (w *wiring) close() error {
	var errs []error
	for i := len(w.closers) - 1; i >= 0; i-- {
		errs = append(errs, w.closers[i]())
	}
	w.closers = nil
	return errors.Join(errs...)
}

// harden protects this process before it starts any other. What the settings say of
// privileges beats their mode.
func (w *wiring) harden(origin string, log *slog.Logger) *harden.Hardening {
	local.BeforeHardening()
	mayGain, source := harden.Privileges(w.settings.Mode == sandbox.DangerFullAccess, w.settings.NoNewPrivs, origin)
	return harden.Apply(harden.Options{MayGain: mayGain, Source: source, Log: log})
}

// auditName is the audit file, in the state folder.
const auditName = "audit.jsonl"

// openGate opens the audit file, without which nothing can be allowed.
func (w *wiring) openGate() (*approval.Gate, error) {
	audit, err := approval.OpenAudit(filepath.Join(w.paths.StateDir, auditName), approval.AuditOptions{})
	if err != nil {
		return nil, err
	}
	w.closers = append(w.closers, audit.Close)
	gate, err := approval.New(approval.Options{Audit: audit}) // each request has its policy
	if err != nil {
		return nil, err
	}
	w.closers = append(w.closers, func() error { return gate.Close(context.Background()) })
	return gate, nil
}

// hidden says what no confined command can read.
func (w *wiring) hidden(s config.Settings) hide.Rules {
	more := s.Hidden(w.paths.Home)
	if s.Remote.APIKey != "" { // one of them has it, most likely
		for _, file := range []string{w.paths.SettingsFile(), w.paths.ManagedFile} {
			if file != "" {
				more = append(more, file)
			}
		}
	}
	return hide.Rules{Home: w.paths.Home, Getenv: os.Getenv, Defaults: s.DenyReadDefaults, Root: os.Geteuid() == 0, More: more}
}

// secrets are what no confined command can read, and what it could only because the
// workspace lies in it.
func (w *wiring) secrets(s config.Settings) []string { return hide.New(w.hidden(s), nil).Find(nil) }

// forbidden lists the folders that no command may be given for writing.
func (w *wiring) forbidden() sandbox.Forbidden {
	own := []string{w.paths.ConfigDir, w.paths.SettingsFile(), w.paths.ManagedFile, w.paths.StateDir, w.settings.BwrapPath}
	if program, err := os.Executable(); err == nil {
		own = append(own, program)
	}
	return sandbox.Forbidden{Home: w.paths.Home, Own: own}
}
