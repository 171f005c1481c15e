package osbtest

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"time"
)

func (s *Server) execdRoutes() http.Handler {
	mux := http.NewServeMux()
	add := func(method, path string, route Route, handler func(http.ResponseWriter, *http.Request, *box)) {
		mux.HandleFunc(method+" /box/{box}"+path, s.handle(route, s.withToken(handler)))
	}
	add("GET", "/ping", Ping, func(w http.ResponseWriter, _ *http.Request, _ *box) { w.WriteHeader(http.StatusOK) })
	add("POST", "/command", Command, s.runCommand)
	add("DELETE", "/command", Interrupt, s.interruptCommand)
	mux.HandleFunc("GET /box/{box}/command/{first}/{second}", s.aboutCommand())
	add("POST", "/files/upload", Upload, s.upload)
	add("GET", "/files/download", Download, s.download)
	add("POST", "/directories", MakeDirs, s.makeDirs)
	return mux
}

// aboutCommand serves command/status/ID and command/ID/logs, which a mux cannot tell
// apart.
func (s *Server) aboutCommand() http.HandlerFunc {
	status, logs := s.handle(Status, s.withToken(s.status)), s.handle(Logs, s.withToken(s.logs))
	return func(w http.ResponseWriter, r *http.Request) {
		first, second := r.PathValue("first"), r.PathValue("second")
		switch {
		case first == "status":
			r.SetPathValue("id", second)
			status(w, r)
		case second == "logs":
			r.SetPathValue("id", first)
			logs(w, r)
		default:
			http.NotFound(w, r)
		}
	}
}

// withToken refuses a call without the token of the sandbox's execd. Of a sandbox
// that is gone only the way there is left, which answers for itself.
func (s *Server) withToken(next func(http.ResponseWriter, *http.Request, *box)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		b := s.box(boxID(r))
		switch {
		case b == nil:
			w.Header().Set("Content-Type", "text/html")
			w.WriteHeader(http.StatusBadGateway)
			fmt.Fprint(w, "<html><body>no such upstream</body></html>")
		case r.Header.Get(ExecTokenName) != b.token:
			writeJSON(w, http.StatusUnauthorized, map[string]string{"error": "Unauthorized: invalid or missing header " + ExecTokenName})
		default:
			next(w, r, b)
		}
	}
}

// order is the body of a command's start.
type order struct {
	Command    string            `json:"command"`
	Argv       []string          `json:"argv"`
	Cwd        string            `json:"cwd"`
	Background bool              `json:"background"`
	Timeout    int64             `json:"timeout"` // milliseconds
	Envs       map[string]string `json:"envs"`
}

func (s *Server) runCommand(w http.ResponseWriter, r *http.Request, b *box) {
	var o order
	body, _ := readBody(r)
	if err := json.Unmarshal(body, &o); err != nil || (o.Command == "") == (o.Argv == nil) || o.Timeout < 0 {
		jsonError(w, http.StatusBadRequest, "INVALID_REQUEST_BODY", "exactly one of non-empty command or argv is required")
		return
	}
	dir, err := s.workingDir(b, o.Cwd)
	if err != nil {
		jsonError(w, http.StatusBadRequest, "INVALID_REQUEST_BODY", "invalid request, validation error "+err.Error())
		return
	}
	fault := callOf(r).fault
	events := s.newStream(w, r, fault)
	c := s.newCommand(b, o)
	if fault.Kind == CannotStart {
		events.cannotStart(c.id, o.Background)
		return
	}
	if err := s.start(c, dir, o); err != nil {
		jsonError(w, http.StatusInternalServerError, "RUNTIME_ERROR", err.Error())
		return
	}
	switch fault.Kind {
	case CutInit:
		panic(http.ErrAbortHandler)
	case Expired:
		defer s.Expire(b.id)
	case ExecdRestart:
		events.send(event{Type: "init", Text: c.id})
		s.RestartExecd(b.id)
		panic(http.ErrAbortHandler)
	}
	if fault.After && events.discards() {
		return // the answer is lost while the command runs
	}
	events.send(event{Type: "init", Text: c.id})
	events.send(event{Type: "ping", Text: "pong"})
	if fault.Kind == Expired {
		return
	}
	if o.Background {
		events.complete(time.Since(c.started))
	} else {
		s.follow(r, c, events)
	}
	switch fault.Kind {
	case Silent:
		s.instead(w, r, Hang)
	case Pinging:
		for r.Context().Err() == nil {
			events.send(event{Type: "ping", Text: "pong"})
			s.linger(r, s.options.Ping)
		}
	}
	s.linger(r, s.options.Grace)
}

// follow sends what a command prints and how it ends.
func (s *Server) follow(r *http.Request, c *command, events *stream) {
	var out, errs tail
	poll := time.NewTicker(s.options.Poll)
	defer poll.Stop()
	ping := time.NewTicker(s.options.Ping)
	defer ping.Stop()
	look := func(last bool) {
		// The two streams are read one after the other: what order they were written
		// in is lost.
		errs.read(c.stderr, last, func(text string) { events.send(event{Type: "stderr", Text: text}) })
		out.read(c.stdout, last, func(text string) { events.send(event{Type: "stdout", Text: text}) })
	}
	for {
		select {
		case <-c.ended:
			select {
			case <-c.dropped: // whoever would have said so is gone, too
				panic(http.ErrAbortHandler)
			default:
			}
			look(true)
			events.end(s.outcome(c))
			return
		case <-c.dropped:
			panic(http.ErrAbortHandler)
		case <-r.Context().Done(): // the command goes on
			panic(http.ErrAbortHandler)
		case <-s.closing:
			panic(http.ErrAbortHandler)
		case <-poll.C:
			look(false)
		case <-ping.C:
			events.send(event{Type: "ping", Text: "pong"})
		}
	}
}

// linger keeps a connection open.
func (s *Server) linger(r *http.Request, long time.Duration) {
	if long <= 0 {
		return
	}
	timer := time.NewTimer(long)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-r.Context().Done():
	case <-s.closing:
		panic(http.ErrAbortHandler) // no orderly end, as with everything that closes
	}
}

// workingDir finds the folder that a command begins in.
func (s *Server) workingDir(b *box, cwd string) (string, error) {
	if cwd == "" {
		return b.root, nil
	}
	candidates := []string{b.inside(cwd)}
	for _, v := range b.volumes {
		if rel, err := filepath.Rel(v.MountPath, cwd); err == nil && filepath.IsLocal(rel) && v.Host.Path != "" {
			candidates = append(candidates, filepath.Join(v.Host.Path, rel))
		}
	}
	if s.options.HostFiles {
		candidates = append(candidates, cwd)
	}
	for _, dir := range candidates {
		if info, err := os.Stat(dir); err == nil && info.IsDir() {
			return dir, nil
		}
	}
	return "", fmt.Errorf("working directory %s does not exist", cwd)
}

// find is the command of that id, unless execd has forgotten it.
func (s *Server) find(b *box, id string) *command {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, c := range s.commands {
		if c.box == b && c.id == id && !c.forgotten {
			return c
		}
	}
	return nil
}

func (s *Server) interruptCommand(w http.ResponseWriter, r *http.Request, b *box) {
	id := r.URL.Query().Get("id")
	if id == "" {
		jsonError(w, http.StatusBadRequest, "MISSING_QUERY", "missing query parameter 'id'")
		return
	}
	c := s.find(b, id)
	if c == nil || !s.interrupt(c) {
		jsonError(w, http.StatusInternalServerError, "RUNTIME_ERROR", "error interrupting: command "+id+" is not running")
		return
	}
	c.group(terminate)
	if !c.groupEnds(s.options.Kill, s.closing) {
		c.group(kill)
		c.groupEnds(s.options.Kill, s.closing)
	}
	w.WriteHeader(http.StatusOK)
}

func (s *Server) status(w http.ResponseWriter, r *http.Request, b *box) {
	c := s.find(b, r.PathValue("id"))
	if c == nil {
		jsonError(w, http.StatusNotFound, "INVALID_REQUEST_BODY", "command not found: "+r.PathValue("id"))
		return
	}
	s.mu.Lock()
	view := map[string]any{"id": c.id, "content": c.text, "running": !c.over, "error": c.message, "started_at": c.started.Format(time.RFC3339Nano)}
	if c.over {
		view["exit_code"] = c.code()
		view["finished_at"] = c.finished.Format(time.RFC3339Nano)
	}
	s.mu.Unlock()
	switch fault := callOf(r).fault; fault.Kind {
	case StillRunning:
		view["running"] = true
		delete(view, "exit_code")
		delete(view, "finished_at")
	case NoExitCode:
		view["running"] = false
		delete(view, "exit_code")
	case OtherExitCode:
		code, _ := view["exit_code"].(int)
		view["exit_code"] = code + 1
	case OtherID:
		view["id"] = fmt.Sprintf("%032x", 0xbad)
		view["running"], view["exit_code"] = false, 0
	}
	writeJSON(w, http.StatusOK, view)
}

func (s *Server) logs(w http.ResponseWriter, r *http.Request, b *box) {
	c := s.find(b, r.PathValue("id"))
	cursor, _ := strconv.ParseInt(r.URL.Query().Get("cursor"), 10, 64)
	if c == nil || !c.background || cursor < 0 {
		jsonError(w, http.StatusBadRequest, "INVALID_REQUEST_BODY", "no such command in the background")
		return
	}
	data, err := os.ReadFile(c.stdout) // both streams are in it
	if err != nil {
		jsonError(w, http.StatusBadRequest, "INVALID_REQUEST_BODY", err.Error())
		return
	}
	cursor = min(cursor, int64(len(data)))
	next := strconv.Itoa(len(data))
	switch fault := callOf(r).fault; {
	case fault.Kind == BackCursor && fault.Text != "":
		next = fault.Text
	case fault.Kind == BackCursor:
		next = strconv.FormatInt(max(0, cursor-1), 10)
	}
	if callOf(r).fault.Kind != NoCursor {
		w.Header().Set(CursorHeader, next)
	}
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	_, _ = w.Write(data[cursor:])
}

// upload takes pairs of parts: what a file is called, itself a part with a file
// name, and the file.
func (s *Server) upload(w http.ResponseWriter, r *http.Request, b *box) {
	if err := r.ParseMultipartForm(maxRequestBody); err != nil {
		jsonError(w, http.StatusBadRequest, "INVALID_FILE", "multipart form is empty")
		return
	}
	names, files := r.MultipartForm.File["metadata"], r.MultipartForm.File["file"]
	if len(names) == 0 || len(names) != len(files) {
		jsonError(w, http.StatusBadRequest, "INVALID_FILE_METADATA", "metadata and file count mismatch")
		return
	}
	for i := range names {
		var about struct {
			Path string `json:"path"`
			Mode int    `json:"mode"` // octal digits read as a decimal number
		}
		part, err := names[i].Open()
		if err == nil {
			err = json.NewDecoder(part).Decode(&about)
		}
		if err != nil || about.Path == "" {
			jsonError(w, http.StatusBadRequest, "INVALID_FILE_METADATA", "metadata path is empty")
			return
		}
		mode, err := strconv.ParseUint(strconv.Itoa(about.Mode), 8, 32)
		if err != nil || mode == 0 {
			mode = 0o644
		}
		content, err := files[i].Open()
		if err == nil {
			err = save(b.inside(about.Path), content, os.FileMode(mode)&os.ModePerm)
		}
		if err != nil {
			jsonError(w, http.StatusInternalServerError, "RUNTIME_ERROR", err.Error())
			return
		}
	}
	w.WriteHeader(http.StatusOK)
}

func save(name string, content io.Reader, mode os.FileMode) error {
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		return err
	}
	file, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	_, err = io.Copy(file, content)
	return errors.Join(err, file.Close(), os.Chmod(name, mode))
}

func (s *Server) download(w http.ResponseWriter, r *http.Request, b *box) {
	file, err := os.Open(b.inside(r.URL.Query().Get("path")))
	if err != nil {
		jsonError(w, http.StatusNotFound, "FILE_NOT_FOUND", "file not found")
		return
	}
	defer file.Close()
	w.Header().Set("Content-Type", "application/octet-stream")
	_, _ = io.Copy(w, file)
}

func (s *Server) makeDirs(w http.ResponseWriter, r *http.Request, b *box) {
	var dirs map[string]json.RawMessage
	body, _ := readBody(r)
	if err := json.Unmarshal(body, &dirs); err != nil {
		jsonError(w, http.StatusBadRequest, "INVALID_REQUEST_BODY", err.Error())
		return
	}
	for name := range dirs {
		if err := os.MkdirAll(b.inside(name), 0o755); err != nil {
			jsonError(w, http.StatusInternalServerError, "RUNTIME_ERROR", err.Error())
			return
		}
	}
	w.WriteHeader(http.StatusOK)
}

// Read returns a file of a sandbox.
func (s *Server) Read(sandbox, name string) ([]byte, error) {
	b := s.box(sandbox)
	if b == nil {
		return nil, fmt.Errorf("sandbox %s: %w", sandbox, os.ErrNotExist)
	}
	return os.ReadFile(b.inside(name))
}
