package osbtest

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"
)

// Headers that carry keys.
const (
	APIKeyHeader   = "OPEN-SANDBOX-API-KEY"
	ExecTokenName  = "X-EXECD-ACCESS-TOKEN"
	CursorHeader   = "EXECD-COMMANDS-TAIL-CURSOR"
	ExecdPort      = "44772"
	maxRequestBody = 64 << 20
)

// Options configure a Server. The zero value is a service that answers as soon as
// it can.
type Options struct {
	// Dir is an existing folder for everything that the server writes; Close
	// removes what it made there. Empty means a temporary folder.
	Dir string

	// Key is the API key that every call of the lifecycle API and the one-call
	// contract needs; empty means DefaultKey.
	Key string

	// PendingPolls is how many look-ups see a new sandbox in PendingState. With 0
	// the answer to the creation says Running.
	PendingPolls int
	PendingState string // empty means Pending

	Grace time.Duration // how long a connection is held after the last event
	Poll  time.Duration // how often output is looked for; 0 means 2 ms
	Ping  time.Duration // between pings; 0 means 3 s
	Kill  time.Duration // between TERM and KILL of an interrupted command; 0 means 3 s

	// HostFiles lets a working directory that is not in the sandbox's own folder be
	// one of this machine, as if the sandbox had been given the host's files.
	HostFiles bool
}

// DefaultKey is the API key of a server that was given none.
const DefaultKey = "osb-key-5f1c0de-do-not-show"

// Server is a service that runs. All methods may be called at any time.
type Server struct {
	options   Options
	scratch   string
	lifecycle *httptest.Server
	execd     *httptest.Server
	trap      *httptest.Server
	closing   chan struct{} // closed by Close
	waiting   sync.WaitGroup

	mu       sync.Mutex // guards what follows
	closed   bool
	changed  chan struct{} // closed, and replaced, when the ledger changes
	serial   int           // of the last command
	ahead    time.Duration // of the server's clock before the machine's
	boxes    []*box
	ending   int        // sandboxes whose commands are being killed
	commands []*command // of every sandbox, in the order of their start
	requests []Request
	counts   map[Route]int
	plans    []*plan
	chaos    *chaos
	trapped  []Request
}

// New starts a server. The caller must Close it.
func New(options Options) (*Server, error) {
	if options.Key == "" {
		options.Key = DefaultKey
	}
	if options.PendingState == "" {
		options.PendingState = "Pending"
	}
	options.Poll = orDefault(options.Poll, 2*time.Millisecond)
	options.Ping = orDefault(options.Ping, 3*time.Second)
	options.Kill = orDefault(options.Kill, 3*time.Second)
	scratch, err := os.MkdirTemp(options.Dir, "osbtest-")
	if err != nil {
		return nil, fmt.Errorf("making a folder for sandboxes: %w", err)
	}
	s := &Server{options: options, scratch: scratch, closing: make(chan struct{}), changed: make(chan struct{}), counts: map[Route]int{}}
	s.lifecycle = httptest.NewServer(s.lifecycleRoutes())
	s.execd = httptest.NewServer(s.execdRoutes())
	s.trap = httptest.NewServer(http.HandlerFunc(s.spring))
	return s, nil
}

func orDefault(d, otherwise time.Duration) time.Duration {
	if d == 0 {
		return otherwise
	}
	return d
}

// URL is what a client is configured with: no path, no slash at the end.
func (s *Server) URL() string { return s.lifecycle.URL }

// Key is the API key.
func (s *Server) Key() string { return s.options.Key }

// Secrets lists everything that must not be seen in an error, a log or a result.
func (s *Server) Secrets() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	secrets := []string{s.options.Key}
	for _, b := range s.boxes {
		secrets = append(secrets, b.token)
	}
	return secrets
}

// Close ends every command, also those that left their process group, and removes
// every file. It may be called again.
func (s *Server) Close() error {
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		return nil
	}
	s.closed = true
	boxes := append([]*box(nil), s.boxes...)
	s.mu.Unlock()
	close(s.closing)
	for _, server := range []*httptest.Server{s.lifecycle, s.execd, s.trap} {
		server.CloseClientConnections()
		server.Close()
	}
	for _, b := range boxes {
		s.destroy(b, "Terminated")
	}
	s.endOutside()
	s.waiting.Wait()
	return os.RemoveAll(s.scratch)
}

// endOutside ends the commands that ran in no sandbox.
func (s *Server) endOutside() {
	s.mu.Lock()
	outside := slices.DeleteFunc(slices.Clone(s.commands), func(c *command) bool { return c.box.id != "" })
	s.mu.Unlock()
	for _, c := range outside {
		if s.interrupt(c) {
			c.group(kill)
		}
	}
	if len(outside) > 0 { // looking for processes takes milliseconds
		s.endMarked(s.scratch)
	}
}

// Request is one call as it came in.
type Request struct {
	Route  Route
	Nth    int // of its route, from 1
	Method string
	Path   string
	Query  string
	Header http.Header
	Body   string
	Fault  Kind // what was done to it; empty for nothing
}

// Requests lists every call so far.
func (s *Server) Requests() []Request {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]Request(nil), s.requests...)
}

// Trapped lists what reached the host that no client was told to trust: the one
// that redirections and hostile endpoints lead to.
func (s *Server) Trapped() []Request {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]Request(nil), s.trapped...)
}

// spring is the hostile host. It claims that everything went well.
func (s *Server) spring(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(io.LimitReader(r.Body, maxRequestBody))
	s.mu.Lock()
	s.trapped = append(s.trapped, Request{Method: r.Method, Path: r.URL.Path, Query: r.URL.RawQuery, Header: r.Header.Clone(), Body: string(body)})
	s.mu.Unlock()
	w.Header().Set("Content-Type", "text/event-stream")
	fmt.Fprint(w, `{"type":"init","text":"00000000000000000000000000000bad","timestamp":1}`+"\n\n"+
		`{"type":"execution_complete","execution_time":1,"timestamp":1}`+"\n\n")
}

// Strays says which calls carried a key that belongs to somebody else.
func (s *Server) Strays() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	var strays []string
	for _, r := range s.requests {
		ofExecd := r.Route.ofExecd()
		if ofExecd && (r.Header.Get(APIKeyHeader) != "" || r.Header.Get("Authorization") != "") {
			strays = append(strays, fmt.Sprintf("the execd got the API key (%s %s)", r.Method, r.Path))
		}
		if !ofExecd && r.Header.Get(ExecTokenName) != "" {
			strays = append(strays, fmt.Sprintf("the lifecycle API got the token of an execd (%s %s)", r.Method, r.Path))
		}
		if strings.Contains(r.Path+"?"+r.Query, s.options.Key) {
			strays = append(strays, fmt.Sprintf("the key is in an address (%s)", r.Method))
		}
	}
	for _, r := range s.trapped {
		for name := range r.Header {
			if r.Header.Get(name) == s.options.Key || strings.Contains(r.Header.Get(name), s.options.Key) {
				strays = append(strays, fmt.Sprintf("another host got the API key (%s %s)", r.Method, r.Path))
			}
		}
	}
	return strays
}

// now is the time by the server's clock, s.mu held.
func (s *Server) now() time.Time { return time.Now().Add(s.ahead) }

// Advance sets the server's clock forward and ends the sandboxes that are then due.
func (s *Server) Advance(by time.Duration) {
	s.mu.Lock()
	s.ahead += by
	var due []*box
	for _, b := range s.boxes {
		if b.exists() && !b.expires.IsZero() && !b.expires.After(s.now()) {
			due = append(due, b)
		}
	}
	s.mu.Unlock()
	for _, b := range due {
		s.destroy(b, "Terminated")
	}
}

// Expire ends a sandbox as if its time had run out.
func (s *Server) Expire(id string) {
	if b := s.box(id); b != nil {
		s.destroy(b, "Terminated")
	}
}

// RestartExecd makes the execd of a sandbox forget every command. The commands go
// on, as children of nobody; only the end of the sandbox ends them.
func (s *Server) RestartExecd(id string) {
	s.mu.Lock()
	for _, c := range s.commands {
		if c.box.id == id && !c.forgotten {
			c.forgotten = true
			close(c.dropped)
		}
	}
	s.mu.Unlock()
}

// RestartLifecycle cuts every connection of the lifecycle server.
func (s *Server) RestartLifecycle() { s.lifecycle.CloseClientConnections() }

// jsonError answers with the error shape of both APIs.
func jsonError(w http.ResponseWriter, status int, code, message string) {
	writeJSON(w, status, map[string]string{"code": code, "message": message})
}

// readBody takes the whole body, so that the end of the connection is noticed.
func readBody(r *http.Request) ([]byte, error) {
	data, err := io.ReadAll(io.LimitReader(r.Body, maxRequestBody+1))
	if err == nil && len(data) > maxRequestBody {
		err = errors.New("the body is too large")
	}
	r.Body = io.NopCloser(bytes.NewReader(data))
	return data, err
}

// inside maps a path of a sandbox to its folder; it cannot lead out by dots.
func (b *box) inside(name string) string {
	return filepath.Join(b.root, filepath.Clean("/"+filepath.ToSlash(name)))
}
