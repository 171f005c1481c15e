package osbtest

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"time"
)

// command is one that was started, or is about to be.
type command struct {
	id         string
	text       string
	dir        string // as asked for
	env        map[string]string
	background bool
	box        *box // one without an id, for the one-call contract

	stdout, stderr string // files; in the background both are one
	cmd            *exec.Cmd
	started        time.Time
	ended          chan struct{} // closed when over
	dropped        chan struct{} // closed when forgotten

	// Guarded by Server.mu.
	forgotten   bool
	over        bool
	exit        int
	signal      string // SIGKILL, …
	message     string // as the system words the end; empty for status 0
	finished    time.Time
	interrupted bool
}

// code is the exit code as the API gives it, Server.mu held.
func (c *command) code() int {
	if c.signal != "" {
		return -1
	}
	return c.exit
}

func (s *Server) newCommand(b *box, o order) *command {
	s.mu.Lock()
	defer s.mu.Unlock()
	text := o.Command
	if text == "" {
		text = fmt.Sprintf("%q", o.Argv)
	}
	s.serial++
	id := fmt.Sprintf("%032x", s.serial)
	c := &command{id: id, text: text, dir: o.Cwd, env: o.Envs, background: o.Background, box: b,
		ended: make(chan struct{}), dropped: make(chan struct{})}
	c.stdout = filepath.Join(b.logs, id+".stdout")
	c.stderr = filepath.Join(b.logs, id+".stderr")
	if c.background {
		c.stderr = c.stdout
	}
	return c
}

// start begins a command in a process group of its own and enters it in the ledger.
func (s *Server) start(c *command, dir string, o order) error {
	argv := o.Argv
	if argv == nil {
		argv = []string{"bash", "--noprofile", "--norc", "-c", o.Command}
	}
	out, err := os.OpenFile(c.stdout, os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return err
	}
	defer out.Close()
	errs, err := os.OpenFile(c.stderr, os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return err
	}
	defer errs.Close()
	c.cmd = exec.Command(argv[0], argv[1:]...)
	c.cmd.Stdout, c.cmd.Stderr = out, errs
	c.cmd.Dir = dir
	c.cmd.Env = environment(filepath.Dir(c.box.root), c.box.root, o.Envs)
	ownGroup(c.cmd)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed || !c.box.exists() {
		return errors.New("the sandbox is gone")
	}
	c.started = time.Now()
	if err := c.cmd.Start(); err != nil {
		return err
	}
	s.commands = append(s.commands, c)
	s.change()
	s.waiting.Go(func() { s.wait(c) })
	if o.Timeout > 0 {
		timer := time.AfterFunc(time.Duration(o.Timeout)*time.Millisecond, func() {
			if s.interrupt(c) {
				c.group(kill)
			}
		})
		s.waiting.Go(func() { <-c.ended; timer.Stop() })
	}
	return nil
}

// marker names the variable by which every process of a sandbox is known.
const marker = "OSBTEST_SCRATCH"

func environment(mark, home string, added map[string]string) []string {
	env := []string{"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "HOME=" + home, "TMPDIR=" + filepath.Join(home, "tmp"), "LANG=C.UTF-8"}
	for name, value := range added {
		env = append(env, name+"="+value)
	}
	slices.Sort(env[4:])
	return append(env, marker+"="+mark) // the last one of a name holds
}

// wait notes how a command ended.
func (s *Server) wait(c *command) {
	err := c.cmd.Wait()
	s.mu.Lock()
	c.over, c.finished = true, time.Now()
	c.exit = c.cmd.ProcessState.ExitCode()
	c.signal = signalOf(c.cmd.ProcessState)
	if err != nil {
		c.message = err.Error()
	}
	s.change()
	s.mu.Unlock()
	close(c.ended)
}

// interrupt notes that a command is ended by somebody else, and reports whether it
// still ran. The number of one that is over may be another process's by now.
func (s *Server) interrupt(c *command) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	c.interrupted = c.interrupted || !c.over
	return !c.over
}

func (s *Server) outcome(c *command) outcome {
	s.mu.Lock()
	defer s.mu.Unlock()
	return outcome{code: c.code(), message: c.message, took: c.finished.Sub(c.started)}
}

// groupEnds waits until nothing is left of a command's process group.
func (c *command) groupEnds(most time.Duration, closing <-chan struct{}) bool {
	deadline := time.NewTimer(most)
	defer deadline.Stop()
	look := time.NewTicker(2 * time.Millisecond)
	defer look.Stop()
	for c.group(probe) {
		select {
		case <-look.C:
		case <-deadline.C:
			return false
		case <-closing:
			return false
		}
	}
	return true
}

// oneCall runs a command to its end and answers with everything at once. It knows
// no folder, no time limit and no way to stop: a client that leaves changes nothing.
func (s *Server) oneCall(w http.ResponseWriter, r *http.Request) {
	if r.Header.Get("Authorization") != "Bearer "+s.options.Key {
		jsonError(w, http.StatusUnauthorized, "INVALID_API_KEY", "credentials are invalid: "+r.Header.Get("Authorization"))
		return
	}
	var o struct {
		Cmd *string           `json:"cmd"`
		Env map[string]string `json:"env"`
	}
	body, _ := readBody(r)
	if err := json.Unmarshal(body, &o); err != nil || o.Cmd == nil {
		jsonError(w, http.StatusBadRequest, "INVALID_REQUEST", "cmd is needed")
		return
	}
	c, err := s.startOneCall(*o.Cmd, o.Env)
	if err != nil {
		jsonError(w, http.StatusInternalServerError, "RUNTIME_ERROR", err.Error())
		return
	}
	if callOf(r).fault.After && (&stream{w: w}).discards() {
		return
	}
	select {
	case <-c.ended:
	case <-r.Context().Done():
		panic(http.ErrAbortHandler)
	case <-s.closing:
		panic(http.ErrAbortHandler)
	}
	out, _ := os.ReadFile(c.stdout)
	errs, _ := os.ReadFile(c.stderr)
	s.mu.Lock()
	code := c.code()
	s.mu.Unlock()
	answer := map[string]any{"stdout": string(out), "stderr": string(errs), "exit_code": code, "duration_ms": 1}
	if fault := callOf(r).fault; fault.Kind == NoExitCode {
		delete(answer, "exit_code")
	} else if fault.Kind == BadExit {
		answer["exit_code"] = fault.Text
		if json.Valid([]byte(fault.Text)) {
			answer["exit_code"] = json.RawMessage(fault.Text)
		}
	}
	writeJSON(w, http.StatusOK, answer)
}

// startOneCall makes a sandbox that no API knows, for one command.
func (s *Server) startOneCall(text string, env map[string]string) (*command, error) {
	dir, err := os.MkdirTemp(s.scratch, "run-")
	if err != nil {
		return nil, err
	}
	b := &box{root: dir, logs: dir, state: "Running"}
	if err := os.Mkdir(filepath.Join(dir, "tmp"), 0o700); err != nil {
		return nil, err
	}
	c := &command{text: text, env: env, box: b, ended: make(chan struct{}), dropped: make(chan struct{}),
		stdout: filepath.Join(dir, ".stdout"), stderr: filepath.Join(dir, ".stderr")}
	if err := s.start(c, dir, order{Command: text, Envs: env}); err != nil {
		return nil, err
	}
	return c, nil
}
