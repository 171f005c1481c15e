package opensandbox

import (
	"cmp"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/url"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"time"
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

	UploadSize int64    // the most that is uploaded, in bytes before compression; 0 is DefaultUploadSize
	UploadSkip []string // names of files and folders, or paths below a root, that are not uploaded

	// Secrets lists paths of this machine that are never uploaded, besides those that
	// a policy hides. Nil means that there are none.
	Secrets func() []string

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
	Patience time.Duration // how long one answer, or the end of a command, is waited for
	Startup  time.Duration // how long a sandbox may take until it runs, its image being fetched; 20 times Patience
}

// Defaults of Config.
const (
	DefaultImage      = "ubuntu:24.04"
	DefaultCPU        = "2"
	DefaultMemory     = 4 << 30
	DefaultUploadSize = 256 << 20
	DefaultLifetime   = 10 * time.Minute
)

const (
	defaultPoll     = 200 * time.Millisecond
	defaultRetry    = 200 * time.Millisecond
	defaultPatience = 15 * time.Second
)

var cpuForm = regexp.MustCompile(`^[1-9][0-9]{0,5}m?$`)

// CPUFault says why a text cannot be a number of processors; empty if it can.
func CPUFault(text string) string {
	if cpuForm.MatchString(text) {
		return ""
	}
	return `must be a number of processors such as "2", or of thousandths such as "500m"`
}

// complete fills in the defaults and says what cannot be used, and what to set.
func (c Config) complete() (Config, *url.URL, error) {
	c.API = cmp.Or(c.API, APILifecycle)
	c.Image = cmp.Or(c.Image, DefaultImage)
	c.CPU = cmp.Or(c.CPU, DefaultCPU)
	c.Memory = cmp.Or(c.Memory, DefaultMemory)
	c.Workspace = cmp.Or(c.Workspace, WorkspaceNone)
	c.Output = cmp.Or(c.Output, OutputLines)
	c.UploadSize = cmp.Or(c.UploadSize, DefaultUploadSize)
	c.Lifetime = max(cmp.Or(c.Lifetime, DefaultLifetime), time.Minute)
	c.Renew = cmp.Or(c.Renew, c.Lifetime/3)
	c.Poll = cmp.Or(c.Poll, defaultPoll)
	c.Retry = cmp.Or(c.Retry, defaultRetry)
	c.Patience = cmp.Or(c.Patience, defaultPatience)
	c.Startup = cmp.Or(c.Startup, 20*c.Patience)
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	base, err := c.address()
	if err != nil {
		return c, nil, err
	}
	for _, choice := range []struct {
		key, value string
		of         []string
	}{
		{"sandbox_api", c.API, []string{APILifecycle, APIRun}},
		{"sandbox_workspace", c.Workspace, []string{WorkspaceNone, WorkspaceUpload, WorkspaceMount}},
		{"sandbox_output", c.Output, []string{OutputLines, OutputBytes}},
	} {
		if !slices.Contains(choice.of, choice.value) {
			return c, nil, fmt.Errorf("%s cannot be %q", choice.key, choice.value)
		}
	}
	if fault := CPUFault(c.CPU); fault != "" {
		return c, nil, fmt.Errorf("sandbox_cpu %s", fault)
	}
	if c.API == APIRun && (c.Workspace != WorkspaceNone || c.Output != OutputLines) {
		return c, nil, fmt.Errorf("sandbox_api = %q knows no files and one way of output: leave sandbox_workspace and sandbox_output out, or use %q", APIRun, APILifecycle)
	}
	if c.Workspace != WorkspaceNone && runtime.GOOS == "windows" {
		return c, nil, errors.New("sandbox_workspace cannot be used on Windows: its paths mean nothing in a remote sandbox")
	}
	return c, base, nil
}

// address reads the address. Where TLS is missing and must not be, it is refused.
func (c Config) address() (*url.URL, error) {
	if c.URL == "" {
		return nil, fmt.Errorf(`no service is named: set sandbox_url, such as "https://host:8080"`)
	}
	base, err := url.Parse(strings.TrimRight(c.URL, "/"))
	if err != nil || base.Hostname() == "" || base.Scheme != "http" && base.Scheme != "https" || base.User != nil || base.RawQuery != "" || base.Fragment != "" {
		return nil, fmt.Errorf(`sandbox_url must be an address such as "https://host:8080", with nothing but a path behind it`)
	}
	if base.Scheme == "http" && !loopback(base.Hostname()) && !slices.Contains(c.PlainHTTP, base.Hostname()) {
		return nil, fmt.Errorf("sandbox_url is %q without TLS, and whoever is on the way could read and change commands and keys: use https, or name %q in sandbox_plain_http",
			base.Scheme+"://"+base.Host, base.Hostname())
	}
	return base, nil
}

// loopback reports whether a host name is this machine, whatever a resolver says.
func loopback(host string) bool {
	if strings.EqualFold(host, "localhost") {
		return true
	}
	ip := net.ParseIP(host)
	return ip != nil && ip.IsLoopback()
}
