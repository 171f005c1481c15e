package server

import (
	"cmp"
	"context"
	"encoding/base64"
	"time"
	"unicode/utf8"

	"github.com/confine-dev/confine/rpc"
	"github.com/confine-dev/confine/rpc/proto"
	"github.com/confine-dev/confine/sandbox"
)

// Limits of confine/runs/….
const (
	readBytes    = 64 << 10 // returned by default
	maxReadBytes = 1 << 20
	listBytes    = 4 << 10          // of a command in a list
	waitTime     = 30 * time.Second // by default
	maxWaitTime  = 600 * time.Second
)

func (c *client) runsList(_ context.Context, req *rpc.Request) (any, error) {
	var params proto.ListParams
	if err := req.Decode(&params); err != nil {
		return nil, err
	}
	list := proto.ListResult{Runs: []proto.RunInfo{}}
	for _, r := range c.runs.all() {
		if params.Session == "" || params.Session == r.plan.label {
			list.Runs = append(list.Runs, c.info(r))
		}
	}
	return list, nil
}

func (c *client) info(r *run) proto.RunInfo {
	f, p := r.facts(), r.plan
	info := proto.RunInfo{
		RunID: p.id, Session: p.label, Status: f.status(),
		Command: beginning(p.command, listBytes), Argv: firstOf(p.argv, listBytes), Bytes: p.commandSize(), Cwd: p.dir,
		Mode: modeInForce(p, f), Background: p.background, StdinOpen: f.takesInput(p), Pty: p.terminal != nil,
		StartedAt:  r.asked.UTC().Format(time.RFC3339Nano),
		DurationMs: f.duration().Milliseconds(),
	}
	if f.ending != nil {
		var result proto.RunResult
		f.ending.describe(&result)
		info.ExitCode, info.Signal, info.TimedOut = result.ExitCode, result.Signal, result.TimedOut
	}
	return info
}

// beginning is at most the first limit bytes of s.
func beginning(s string, limit int) string {
	if len(s) <= limit {
		return s
	}
	for limit > 0 && !utf8.RuneStart(s[limit]) {
		limit--
	}
	return s[:limit]
}

// firstOf is as many arguments as fit into limit bytes.
func firstOf(argv []string, limit int) []string {
	for i, arg := range argv {
		if limit -= len(arg); limit < 0 {
			return argv[:i]
		}
	}
	return argv
}

func (c *client) runsRead(_ context.Context, req *rpc.Request) (any, error) {
	var params proto.ReadParams
	if err := req.Decode(&params); err != nil {
		return nil, err
	}
	r, err := c.runs.find(params.RunID)
	if err != nil {
		return nil, err
	}
	stream := cmp.Or(params.Stream, sandbox.StdoutStream)
	switch {
	case stream != sandbox.StdoutStream && stream != sandbox.StderrStream:
		return nil, invalid("stream must be %q or %q", sandbox.StdoutStream, sandbox.StderrStream)
	case params.Offset < 0 || params.MaxBytes < 0:
		return nil, invalid("offset and maxBytes cannot be negative")
	}
	limit := readBytes
	if params.MaxBytes > 0 {
		limit = min(params.MaxBytes, maxReadBytes)
	}
	// The facts are taken first: what they call ended prints nothing more.
	f := r.facts()
	result := proto.ReadResult{RunID: r.plan.id, Stream: stream, Status: f.status(), Offset: params.Offset, NextOffset: params.Offset}
	if f.process != nil {
		readCapture(&result, f.process.Output(stream), limit)
	}
	result.EOF = f.ending != nil && result.NextOffset >= result.TotalBytes
	return result, nil
}

// readCapture fills in what the capture holds from result.Offset on.
func readCapture(result *proto.ReadResult, capture *sandbox.Capture, limit int) {
	asked := result.Offset
	data, at := capture.ReadAt(asked, limit)
	result.TotalBytes = capture.Total()
	if len(data) == 0 {
		return
	}
	result.Offset, result.Skipped, result.NextOffset = at, at-asked, at+int64(len(data))
	if utf8.Valid(data) {
		result.Data = string(data)
	} else {
		result.Base64 = base64.StdEncoding.EncodeToString(data)
	}
}

func (c *client) runsWait(ctx context.Context, req *rpc.Request) (any, error) {
	var params proto.WaitParams
	if err := req.Decode(&params); err != nil {
		return nil, err
	}
	r, err := c.runs.find(params.RunID)
	if err != nil {
		return nil, err
	}
	limit := waitTime
	if ms := params.TimeoutMs; ms != nil {
		if *ms < 0 {
			return nil, invalid("timeoutMs cannot be negative")
		}
		limit = time.Duration(min(*ms, maxWaitTime.Milliseconds())) * time.Millisecond
	}
	timer := time.NewTimer(limit)
	defer timer.Stop()
	select {
	case <-r.done:
		if r.running() { // it never became a run
			return nil, invalid("run %q did not begin: the answer to its own request says why", params.RunID)
		}
	case <-timer.C:
	case <-ctx.Done(): // whoever waited gets what is known
	}
	return c.result(r), nil
}

func (c *client) runsKill(_ context.Context, req *rpc.Request) (any, error) {
	var params proto.RunParams
	if err := req.Decode(&params); err != nil {
		return nil, err
	}
	return c.kill(params.RunID)
}

// kill begins to end a run, also one that still waits for an answer.
func (c *client) kill(id string) (proto.KillResult, error) {
	r, err := c.runs.find(id)
	if err != nil {
		return proto.KillResult{}, err
	}
	going := r.running()
	r.cancel()
	return proto.KillResult{RunID: id, Killed: going}, nil
}
