package osbtest

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

// box is one sandbox.
type box struct {
	id      string
	token   string
	root    string // its files
	logs    string // output of its commands
	created time.Time
	volumes []volume
	ended   chan struct{} // closed when nothing of it is left

	// Guarded by Server.mu.
	state    string // Running, or how it ended
	polls    int    // look-ups that still see it pending
	told     bool
	request  string
	expires  time.Time // zero means never
	metadata map[string]string
	entry    []string
}

type volume struct {
	Host struct {
		Path string `json:"path"`
	} `json:"host"`
	MountPath string `json:"mountPath"`
	ReadOnly  bool   `json:"readOnly"`
}

func (b *box) exists() bool { return b.state == "Running" }

func (s *Server) lifecycleRoutes() http.Handler {
	mux := http.NewServeMux()
	add := func(pattern string, route Route, handler http.HandlerFunc) {
		mux.HandleFunc(pattern, s.handle(route, handler))
	}
	add("GET /health", Health, func(w http.ResponseWriter, _ *http.Request) {
		writeJSON(w, http.StatusOK, map[string]string{"status": "healthy"})
	})
	add("POST /v1/sandboxes", Create, s.withKey(s.create))
	add("GET /v1/sandboxes", List, s.withKey(s.list))
	add("GET /v1/sandboxes/{box}", Get, s.withKey(s.withBox(s.get)))
	add("DELETE /v1/sandboxes/{box}", Delete, s.withKey(s.withBox(s.delete)))
	add("POST /v1/sandboxes/{box}/renew-expiration", Renew, s.withKey(s.withBox(s.renew)))
	add("GET /v1/sandboxes/{box}/endpoints/{port}", Endpoint, s.withKey(s.withBox(s.endpoint)))
	add("POST /v1/sandbox/run", OneCall, s.oneCall)
	// The proxy of the server itself does not check the key.
	mux.Handle("/v1/sandboxes/{box}/proxy/{port}/", http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		prefix := fmt.Sprintf("/v1/sandboxes/%s/proxy/%s", r.PathValue("box"), r.PathValue("port"))
		r2 := r.Clone(r.Context())
		r2.URL.Path = "/box/" + r.PathValue("box") + strings.TrimPrefix(r.URL.Path, prefix)
		s.execd.Config.Handler.ServeHTTP(w, r2)
	}))
	return mux
}

// withKey refuses a call without the API key.
func (s *Server) withKey(next http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("X-Request-ID", r.Header.Get("X-Request-ID"))
		switch key := r.Header.Get(APIKeyHeader); key {
		case s.options.Key:
			next(w, r)
		case "":
			jsonError(w, http.StatusUnauthorized, "MISSING_API_KEY", "authentication credentials are missing")
		default:
			jsonError(w, http.StatusUnauthorized, "INVALID_API_KEY", "authentication credentials are invalid: "+key)
		}
	}
}

// withBox refuses a call about a sandbox that does not exist (any more).
func (s *Server) withBox(next func(http.ResponseWriter, *http.Request, *box)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		b := s.box(boxID(r))
		if b == nil {
			jsonError(w, http.StatusNotFound, "DOCKER::SANDBOX_NOT_FOUND", fmt.Sprintf("sandbox %s not found", boxID(r)))
			return
		}
		next(w, r, b)
	}
}

// box is the sandbox of that id, if it exists and its time is not over.
func (s *Server) box(id string) *box {
	s.mu.Lock()
	i := slices.IndexFunc(s.boxes, func(b *box) bool { return b.id == id })
	if i < 0 {
		s.mu.Unlock()
		return nil
	}
	b := s.boxes[i]
	ending := !b.exists()
	late := !b.expires.IsZero() && !b.expires.After(s.now())
	s.mu.Unlock()
	if ending || late {
		s.destroy(b, "Terminated")
		return nil
	}
	return b
}

// creation is the body of a creation, as far as it is looked at.
type creation struct {
	Image *struct {
		URI string `json:"uri"`
	} `json:"image"`
	SnapshotID     string            `json:"snapshotId"`
	Entrypoint     []string          `json:"entrypoint"`
	Timeout        *int              `json:"timeout"` // seconds
	ResourceLimits map[string]string `json:"resourceLimits"`
	Env            map[string]string `json:"env"`
	Metadata       map[string]string `json:"metadata"`
	Volumes        []volume          `json:"volumes"`
}

var label = regexp.MustCompile(`^([A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?)?$`)

// fault says why a creation is refused; empty if it is not.
func (c creation) fault() string {
	switch {
	case (c.Image == nil) == (c.SnapshotID == ""):
		return "exactly one of image and snapshotId is needed"
	case c.Image != nil && (c.Image.URI == "" || len(c.Entrypoint) == 0):
		return "an image needs an uri and an entrypoint"
	case c.Timeout != nil && *c.Timeout < 60:
		return "timeout must be at least 60 seconds"
	case c.ResourceLimits == nil:
		return "resourceLimits is needed"
	}
	for name, value := range c.Metadata {
		if len(value) > 63 || !label.MatchString(value) || strings.HasPrefix(name, "opensandbox.io/") || name == "" {
			return fmt.Sprintf("metadata %q is no label", name)
		}
	}
	return ""
}

func (s *Server) create(w http.ResponseWriter, r *http.Request) {
	body, _ := readBody(r)
	var c creation
	if err := json.Unmarshal(body, &c); err != nil {
		jsonError(w, http.StatusBadRequest, "INVALID_REQUEST", err.Error())
		return
	}
	if fault := c.fault(); fault != "" {
		jsonError(w, http.StatusBadRequest, "INVALID_REQUEST", fault)
		return
	}
	b, err := s.newBox(c, string(body))
	if err != nil {
		jsonError(w, http.StatusInternalServerError, "DOCKER::SANDBOX_START_FAILED", err.Error())
		return
	}
	s.mu.Lock()
	b.told = callOf(r).fault.Kind == "" || callOf(r).fault.Kind == Slow
	view := s.view(b, false)
	s.mu.Unlock()
	w.Header().Set("Location", "/v1/sandboxes/"+b.id)
	writeJSON(w, http.StatusAccepted, view)
}

func (s *Server) newBox(c creation, request string) (*box, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	number := len(s.boxes) + 1
	b := &box{
		id: fmt.Sprintf("sbx-%08d", number), token: fmt.Sprintf("execd-token-%08d-do-not-show", number),
		created: s.now(), state: "Running", polls: s.options.PendingPolls, request: request,
		metadata: c.Metadata, entry: c.Entrypoint, volumes: c.Volumes, ended: make(chan struct{}),
	}
	b.root = filepath.Join(s.scratch, b.id, "root")
	b.logs = filepath.Join(s.scratch, b.id, "logs")
	for _, dir := range []string{b.root, filepath.Join(b.root, "tmp"), b.logs} {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return nil, err
		}
	}
	if c.Timeout != nil {
		b.expires = s.now().Add(time.Duration(*c.Timeout) * time.Second)
	}
	s.boxes = append(s.boxes, b)
	return b, nil
}

// view is what the API shows of a sandbox, s.mu held.
func (s *Server) view(b *box, looked bool) map[string]any {
	state := b.state
	if b.polls > 0 {
		state = s.options.PendingState
		if looked {
			b.polls--
		}
	}
	view := map[string]any{
		"id":         b.id,
		"status":     map[string]any{"state": state, "reason": "", "message": "", "lastTransitionAt": b.created.UTC().Format(time.RFC3339)},
		"createdAt":  b.created.UTC().Format(time.RFC3339),
		"entrypoint": b.entry,
		"metadata":   b.metadata,
	}
	if !b.expires.IsZero() {
		view["expiresAt"] = b.expires.UTC().Format(time.RFC3339)
	}
	return view
}

func (s *Server) get(w http.ResponseWriter, _ *http.Request, b *box) {
	s.mu.Lock()
	view := s.view(b, true)
	s.mu.Unlock()
	writeJSON(w, http.StatusOK, view)
}

func (s *Server) list(w http.ResponseWriter, r *http.Request) {
	query := r.URL.Query()
	wanted, err := url.ParseQuery(query.Get("metadata"))
	page, size := atLeastOne(query.Get("page"), 1), atLeastOne(query.Get("pageSize"), 20)
	if err != nil || page == 0 || size == 0 {
		jsonError(w, http.StatusBadRequest, "INVALID_REQUEST", "the query cannot be read")
		return
	}
	s.mu.Lock()
	items := []map[string]any{}
	for _, b := range s.boxes {
		if b.exists() && b.matches(query["state"], wanted) {
			items = append(items, s.view(b, false))
		}
	}
	s.mu.Unlock()
	total := len(items)
	first := min((page-1)*size, total)
	last := min(first+size, total)
	writeJSON(w, http.StatusOK, map[string]any{"items": items[first:last], "pagination": map[string]any{
		"page": page, "pageSize": size, "totalItems": total, "totalPages": (total + size - 1) / size, "hasNextPage": last < total}})
}

func (b *box) matches(states []string, metadata url.Values) bool {
	if len(states) > 0 && !slices.Contains(states, b.state) {
		return false
	}
	for name := range metadata {
		if b.metadata[name] != metadata.Get(name) {
			return false
		}
	}
	return true
}

// atLeastOne reads a number from 1 on; 0 means that it is none.
func atLeastOne(text string, otherwise int) int {
	if text == "" {
		return otherwise
	}
	n, _ := strconv.Atoi(text)
	return max(n, 0)
}

func (s *Server) delete(w http.ResponseWriter, _ *http.Request, b *box) {
	s.destroy(b, "Terminated")
	w.WriteHeader(http.StatusNoContent)
}

func (s *Server) renew(w http.ResponseWriter, r *http.Request, b *box) {
	var request struct {
		ExpiresAt time.Time `json:"expiresAt"`
	}
	body, _ := readBody(r)
	err := json.Unmarshal(body, &request)
	s.mu.Lock()
	late := !request.ExpiresAt.After(s.now())
	if err == nil && !late {
		b.expires = request.ExpiresAt
	}
	s.mu.Unlock()
	if err != nil || late {
		jsonError(w, http.StatusBadRequest, "INVALID_EXPIRATION", "expiresAt must be a time to come")
		return
	}
	writeJSON(w, http.StatusOK, map[string]string{"expiresAt": request.ExpiresAt.UTC().Format(time.RFC3339)})
}

func (s *Server) endpoint(w http.ResponseWriter, r *http.Request, b *box) {
	if r.PathValue("port") != ExecdPort {
		jsonError(w, http.StatusNotFound, "DOCKER::ENDPOINT_NOT_FOUND", "nothing listens there")
		return
	}
	if fault := callOf(r).fault; fault.Kind == HostileEndpoint {
		address := strings.ReplaceAll(fault.Text, "TRAP", strings.TrimPrefix(s.trap.URL, "http://"))
		writeJSON(w, http.StatusOK, map[string]any{"endpoint": address, "headers": map[string]string{ExecTokenName: b.token}})
		return
	}
	s.mu.Lock()
	pending := b.polls > 0
	s.mu.Unlock()
	if pending {
		jsonError(w, http.StatusConflict, "DOCKER::SANDBOX_NOT_RUNNING", "the sandbox does not run yet")
		return
	}
	address := strings.TrimPrefix(s.execd.URL, "http://") + "/box/" + b.id
	if r.URL.Query().Get("use_server_proxy") == "true" {
		address = strings.TrimPrefix(s.lifecycle.URL, "http://") + "/v1/sandboxes/" + b.id + "/proxy/" + ExecdPort
	}
	writeJSON(w, http.StatusOK, map[string]any{"endpoint": address, "headers": map[string]string{ExecTokenName: b.token}})
}

// destroy ends a sandbox and everything in it, and returns when that is done, whoever
// does it.
func (s *Server) destroy(b *box, state string) {
	s.mu.Lock()
	if !b.exists() {
		s.mu.Unlock()
		<-b.ended
		return
	}
	defer close(b.ended)
	b.state = state
	s.ending++
	s.change()
	var mine []*command
	for _, c := range s.commands {
		if c.box == b {
			mine = append(mine, c)
			if !c.forgotten {
				c.forgotten = true
				close(c.dropped)
			}
		}
	}
	s.mu.Unlock()
	for _, c := range mine {
		if s.interrupt(c) {
			c.group(kill)
		}
	}
	if len(mine) > 0 { // looking for processes takes milliseconds
		s.endMarked(filepath.Dir(b.root))
	}
	for _, c := range mine {
		<-c.ended
	}
	s.mu.Lock()
	s.ending--
	s.change()
	s.mu.Unlock()
	_ = os.RemoveAll(filepath.Dir(b.root))
}
