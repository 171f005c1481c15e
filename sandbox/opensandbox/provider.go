package opensandbox

import (
	"context"
	"log/slog"
	"time"

	"github.com/confine-dev/confine/sandbox"
)

// The interfaces of a service, as the settings spell them.
const (
	APILifecycle = "lifecycle" // sandboxes and execd
	APIRun       = "run"       // one call per command
)

// What a remote sandbox has of the workspace, as the settings spell it.
const (
	WorkspaceNone   = "none"   // an empty folder in its place
	WorkspaceUpload = "upload" // a copy, made once per remote sandbox
	WorkspaceMount  = "mount"  // the folder itself, of a service on the same host
)

// How output comes, as the settings spell it.
const (
	OutputLines = "lines" // stdout and stderr apart, cut into lines
	OutputBytes = "bytes" // every byte, stdout and stderr as one stream
)

// Config says which service is used and how.
type Config struct {
	URL    string // of the service, without /v1; http or https
	APIKey string // empty: none is sent
	API    string // APILifecycle if empty

	Image     string // container image of a sandbox; DefaultImage if empty
	CPU       string // as the service spells it, such as 2 or 500m; DefaultCPU if empty
	Memory    int64  // bytes; 0 is DefaultMemory
	Workspace string // WorkspaceNone if empty
	Output    string // OutputLines if empty

	UploadSize int64    // the most that is uploaded, in bytes; 0 is DefaultUploadSize
	UploadSkip []string // names of files and folders, or paths below a root, that are not uploaded

	// PlainHTTP are host names that may be reached without TLS, besides loopback.
	PlainHTTP []string

	// Lifetime is how long a remote sandbox stays when nothing renews it; at least
	// a minute, 0 is DefaultLifetime.
	Lifetime time.Duration

	StateDir string       // where sandboxes are noted until they are deleted; empty: nowhere
	Log      *slog.Logger // nil discards

	// Timing, for tests; 0 is a default for each.
	Renew    time.Duration // how often a sandbox is renewed; a third of Lifetime
	Poll     time.Duration // between two looks at something that goes on
	Retry    time.Duration // before the first retry; doubled for each further one
	Patience time.Duration // how long an answer, the start of a sandbox or the end of a command is waited for
}

// Defaults of Config.
const (
	DefaultImage      = "ubuntu:24.04"
	DefaultCPU        = "2"
	DefaultMemory     = 4 << 30
	DefaultUploadSize = 256 << 20
	DefaultLifetime   = 10 * time.Minute
)

// Provider runs commands in one service.
type Provider struct{ config Config }

// New checks the configuration. It reaches nothing. Its errors say what to set.
func New(c Config) (*Provider, error) { return &Provider{config: c}, nil }

var _ sandbox.Provider = (*Provider)(nil)

// Name implements sandbox.Provider.
func (p *Provider) Name() string { return sandbox.ProviderOpenSandbox }

// Interaction implements sandbox.Provider: a command gets all of its input at the
// start, and no terminal.
func (p *Provider) Interaction() sandbox.Interaction { return sandbox.Interaction{} }

// Probe implements sandbox.Provider.
func (p *Provider) Probe(context.Context) sandbox.Report {
	return sandbox.Report{Provider: p.Name(), Reason: "this version of confine does not have it yet"}
}

// Start implements sandbox.Provider.
func (p *Provider) Start(_ context.Context, spec sandbox.Spec) (sandbox.Process, error) {
	return nil, &sandbox.UnavailableError{Mode: spec.Policy.Mode, Detail: "provider opensandbox: this version of confine does not have it yet"}
}

// CloseSession implements sandbox.Provider.
func (p *Provider) CloseSession(string) {}

// Close implements sandbox.Provider.
func (p *Provider) Close() error { return nil }
