package main

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"os"
	"path/filepath"

	"github.com/confine-dev/confine/approval"
	"github.com/confine-dev/confine/cmd/confine/config"
	"github.com/confine-dev/confine/rpc/proto"
	"github.com/confine-dev/confine/rpc/server"
	"github.com/confine-dev/confine/sandbox"
	"github.com/confine-dev/confine/sandbox/harden"
	"github.com/confine-dev/confine/sandbox/hide"
)

// wiring is a server with everything it needs, the same for every subcommand.
type wiring struct {
	server   *server.Server
	settings config.Settings
	paths    config.Paths
	known    []sandbox.Provider // every one, usable or not

	hardening *harden.Hardening // of this process

	closers []func() error // last opened, first closed
}

// wiringOptions are what the subcommands do differently.
type wiringOptions struct {
	named  func(*config.Settings) // changes the settings that were loaded; nil for none
	stdin  io.Reader              // see attached
	output *liveOutput            // see attached
	keep   int                    // bytes of each stream that a result holds; 0 is the server's default
	brief  bool                   // of the providers only the one in use is asked what it can do
	spill  bool                   // what a result leaves out goes to a file that lives as long as the server
	log    *slog.Logger           // nil discards
	trace  io.Writer              // gets every message; nil for none
}

// newWiring loads the settings and makes a server. Close it.
func newWiring(o wiringOptions) (_ *wiring, err error) {
	w := &wiring{paths: config.FindPaths()}
	defer func() {
		if err != nil {
			w.close()
		}
	}()
	if w.settings, err = loadSettings(w.paths, o.named); err != nil {
		return nil, err
	}
	w.hardening = w.harden(o.log)
	if err := config.EnsurePrivate(w.paths.StateDir); err != nil {
		return nil, withHint(err, "mend it, move it away, or set XDG_STATE_HOME to a folder that you can write to")
	}
	gate, err := w.openGate()
	if err != nil {
		return nil, err
	}
	p, err := w.openProviders(o)
	if err != nil {
		return nil, err
	}
	w.server = server.New(server.Options{
		Version:        readBuildFacts().Version,
		Confined:       p.confined,
		ConfinedReport: p.report,
		Unconfined:     p.unconfined,
		Gate:           gate,
		Settings: server.Settings{
			Mode:           w.settings.Mode,
			Network:        w.settings.Network,
			Provider:       w.settings.Provider,
			ApprovalPolicy: w.settings.ApprovalPolicy,
			More: []proto.Setting{
				{Key: config.KeyPreferBwrap, Value: w.settings.PreferBwrap},
				{Key: config.KeyBwrapPath, Value: w.settings.BwrapPath},
				{Key: config.KeyBwrapReadOnly, Value: append([]string{}, w.settings.BwrapReadOnly...)},
				{Key: config.KeyBwrapDevices, Value: append([]string{}, w.settings.BwrapDevices...)},
				{Key: config.KeyDenyRead, Value: append([]string{}, w.settings.DenyRead...)},
				{Key: config.KeyDenyReadStores, Value: w.settings.DenyReadDefaults},
			},
			Origins: w.settings.Origins,
		},
		Skipped:    p.skipped,
		Unreadable: hide.New(w.hidden()).Find,
		Forbidden:  w.forbidden(),
		HostEnv:    os.Environ(),
		SpillDir:   p.spill,

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

func loadSettings(paths config.Paths, named func(*config.Settings)) (config.Settings, error) {
	settings, err := config.Load(paths.SettingsFile())
	if err != nil {
		return settings, withHint(err, "correct the file; docs/configuration.md lists what may stand in it")
	}
	if named != nil {
		named(&settings)
	}
	return settings, nil
}

// harden protects this process before it starts any other.
func (w *wiring) harden(log *slog.Logger) *harden.Hardening {
	mayGain, source := harden.Privileges(w.settings.Mode == sandbox.DangerFullAccess, os.Getenv(harden.EnvNoNewPrivs))
	return harden.Apply(harden.Options{MayGain: mayGain, Source: source, Log: log})
}

// openGate opens the audit file, without which nothing can be allowed.
func (w *wiring) openGate() (*approval.Gate, error) {
	audit, err := approval.OpenAudit(filepath.Join(w.paths.StateDir, "audit.jsonl"), approval.AuditOptions{})
	if err != nil {
		return nil, err
	}
	w.closers = append(w.closers, audit.Close)
	gate, err := approval.New(approval.Options{Policy: approval.Policy(w.settings.ApprovalPolicy), Audit: audit})
	if err != nil {
		return nil, err
	}
	w.closers = append(w.closers, func() error { return gate.Close(context.Background()) })
	return gate, nil
}

// hidden says what no confined command can read.
func (w *wiring) hidden() hide.Rules {
	return hide.Rules{Home: w.paths.Home, Getenv: os.Getenv, Defaults: w.settings.DenyReadDefaults, Root: os.Geteuid() == 0,
		More: w.settings.Hidden(w.paths.Home)}
}

// forbidden lists the folders that no command may be given for writing.
func (w *wiring) forbidden() sandbox.Forbidden {
	own := []string{w.paths.ConfigDir, w.paths.SettingsFile(), w.paths.StateDir}
	if program, err := os.Executable(); err == nil {
		own = append(own, program)
	}
	return sandbox.Forbidden{Home: w.paths.Home, Own: own}
}
