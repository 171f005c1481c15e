// Package server is one editor's connection: it answers the protocol of
// docs/protocol.md, one file per method, by asking an approval gate whether a
// command may run and a sandbox provider to run it.
//
// It decides nothing by itself (package approval does), confines nothing
// (package sandbox and its providers do) and frames no bytes (package rpc
// does). Of a run's story run.go is the table of contents.
package server

import (
	"context"
	"io"
	"log/slog"

	"github.com/confine-dev/confine/approval"
	"github.com/confine-dev/confine/rpc"
	"github.com/confine-dev/confine/rpc/proto"
	"github.com/confine-dev/confine/sandbox"
	"github.com/confine-dev/confine/sandbox/harden"
)

// Server serves editors. The zero value is not usable; see New.
type Server struct {
	o Options
}

// Options configures a server. Gate and Unconfined are required.
type Options struct {
	Version string // of confine, for people

	// Unconfined runs commands that nothing shall confine.
	Unconfined sandbox.Provider

	Gate *approval.Gate

	// Configure gives each connection its settings; changed is to be called after
	// Current has become different by itself. With nil Settings hold for all.
	Configure func(changed func()) Configuration
	Settings  Settings

	Forbidden sandbox.Forbidden // what can never be a workspace root
	HostEnv   []string          // the environment that commands inherit, before it is scrubbed
	SpillDir  string            // existing private folder for long output; empty means none

	// For capabilities: how this process is protected now (nil: nobody looked), and
	// what is amiss around it, in sentences that say what to do.
	Hardening func() harden.State
	Hints     []string

	// KeepOutput is how many bytes of each stream a result holds at most; 0
	// means sandbox.DefaultKeep.
	KeepOutput int

	Log   *slog.Logger // nil means nothing is logged
	Trace io.Writer    // messages as text; nil means none
}

// New returns a server. It starts nothing.
func New(o Options) *Server {
	if o.Gate == nil || o.Unconfined == nil {
		panic("server: Options.Gate and Options.Unconfined are required")
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	return &Server{o: o}
}

// Serve talks to one editor until it leaves, ctx ends or the stream breaks.
// When it returns nothing that the connection started is left. clean says that
// the editor asked for the end in the orderly way, so that the exit status of
// the process should be 0. err says that ctx ended or the stream broke, as it
// does when an editor dies while something is written to it.
func (s *Server) Serve(ctx context.Context, stream io.ReadWriteCloser) (clean bool, err error) {
	// The connection gets the caller's ctx: it ends by Close, which is no error.
	running, cancel := context.WithCancel(ctx)
	c := newClient(running, s.o, cancel)
	c.conn = rpc.NewConn(stream, rpc.Options{
		Requests:      c.requests(),
		Notifications: c.notifications(),
		InOrder:       []string{proto.MethodRunsWrite, proto.MethodRunsResize},
		Admit:         c.admit,
		Trace:         s.o.Trace,
		Log:           s.o.Log,
	})
	err = c.conn.Serve(ctx)
	c.end()
	return c.life.wasShutDown(), err
}

// requests is the table of everything that an editor can ask.
func (c *client) requests() map[string]rpc.Handler {
	handlers := map[string]rpc.Handler{
		proto.MethodInitialize:        c.initialize,
		proto.MethodShutdown:          c.shutdown,
		proto.MethodRunCommand:        c.runCommand,
		proto.MethodRequestEscalation: c.requestEscalation,
		proto.MethodCapabilities:      c.capabilities,
		proto.MethodRunsList:          c.runsList,
		proto.MethodRunsRead:          c.runsRead,
		proto.MethodRunsWait:          c.runsWait,
		proto.MethodRunsKill:          c.runsKill,
		proto.MethodRunsWrite:         c.runsWrite,
		proto.MethodRunsResize:        c.runsResize,
		proto.MethodApprovalsList:     c.approvalsList,
		proto.MethodApprovalsRevoke:   c.approvalsRevoke,
		proto.MethodExplain:           c.explain,
		proto.MethodExecuteCommand:    c.executeCommand,
	}
	for method, handle := range handlers {
		handlers[method] = func(ctx context.Context, req *rpc.Request) (any, error) {
			result, err := handle(ctx, req)
			if err != nil {
				return nil, wireError(err)
			}
			return result, nil
		}
	}
	return handlers
}

// notifications is the table of everything that an editor can tell.
func (c *client) notifications() map[string]rpc.Notification {
	return map[string]rpc.Notification{
		proto.MethodInitialized:               c.initialized,
		proto.MethodExit:                      c.exit,
		proto.MethodDidChangeWorkspaceFolders: c.didChangeWorkspaceFolders,
		proto.MethodProgressCancel:            c.cancelProgress,
	}
}
