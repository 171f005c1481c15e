package server

import (
	"cmp"
	"context"
	"encoding/base64"
	"unicode/utf8"

	"github.com/confine-dev/confine/rpc"
	"github.com/confine-dev/confine/rpc/proto"
	"github.com/confine-dev/confine/sandbox"
)

// maxTerminal is how many columns or rows a terminal may have.
const maxTerminal = 10000

// terminalOf is the terminal that is asked for, with its defaults; nil for none.
func terminalOf(p proto.RunCommandParams) (*sandbox.TerminalSize, error) {
	if p.Pty == nil {
		return nil, nil
	}
	size := sandbox.TerminalSize{Columns: cmp.Or(p.Pty.Columns, 80), Rows: cmp.Or(p.Pty.Rows, 24)}
	return &size, checkSize(size)
}

func checkSize(size sandbox.TerminalSize) error {
	if min(size.Columns, size.Rows) < 1 || max(size.Columns, size.Rows) > maxTerminal {
		return invalid("columns and rows of a terminal must be 1 to %d", maxTerminal)
	}
	return nil
}

// interaction is what commands can have in the configured mode.
func (c *client) interaction(s *Settings) sandbox.Interaction {
	provider, err := c.providerIn(s, s.Mode)
	if err != nil {
		return sandbox.Interaction{}
	}
	return provider.Interaction()
}

// interactive checks that what is to run the command can have open input, or a
// terminal, if that is asked for. What cannot run anything says so later.
func (c *client) interactive(p plan) error {
	if !p.open {
		return nil
	}
	provider, err := c.provider(p)
	if err != nil {
		return nil // deciding about the run tells it
	}
	can := provider.Interaction()
	switch {
	case p.terminal != nil && !can.Terminal:
		return invalid("pty: there are no terminals for commands here: leave it out and the command gets pipes")
	case !can.Input:
		return invalid("stdinOpen: input cannot be kept open here: give all of it in stdin")
	}
	return nil
}

// runsWrite gives a running command more input. It is answered on the read loop, so
// that what is typed comes in the order in which it was.
func (c *client) runsWrite(_ context.Context, req *rpc.Request) (any, error) {
	var params proto.WriteParams
	if err := req.Decode(&params); err != nil {
		return nil, err
	}
	data, err := inputData(params)
	if err != nil {
		return nil, err
	}
	r, err := c.runs.find(params.RunID)
	if err != nil {
		return nil, err
	}
	switch {
	case !r.plan.open:
		return nil, invalid("run %q has no open input: begin it with stdinOpen or pty", params.RunID)
	case params.Close && r.plan.terminal != nil:
		return nil, invalid("the input of a terminal has no end; write what means it there, \\u0004")
	}
	process := r.facts().process
	if process == nil {
		return nil, inputClosed("run %q has not begun", params.RunID)
	}
	input := process.Input()
	taken, err := input.Write(data[:fitting(data, input.Room(), params.Base64 == "")])
	if err != nil {
		return nil, inputClosed("run %q: %v", params.RunID, err)
	}
	if params.Close && taken == len(data) {
		input.Close()
	}
	return proto.WriteResult{RunID: params.RunID, Taken: taken, Queued: input.Queued(), Open: input.Open()}, nil
}

// inputData is what the params hold, as bytes.
func inputData(params proto.WriteParams) ([]byte, error) {
	if params.Base64 == "" {
		return []byte(params.Data), nil
	}
	if params.Data != "" {
		return nil, invalid("data and base64 exclude each other")
	}
	data, err := base64.StdEncoding.DecodeString(params.Base64)
	if err != nil {
		return nil, invalid("base64 cannot be read: %v", err)
	}
	return data, nil
}

// fitting is how much of data goes into a room; no character of a text is cut.
func fitting(data []byte, room int, text bool) int {
	if len(data) <= room {
		return len(data)
	}
	for text && room > 0 && !utf8.RuneStart(data[room]) {
		room--
	}
	return room
}

// runsResize changes the size of a run's terminal, in the order of writes.
func (c *client) runsResize(_ context.Context, req *rpc.Request) (any, error) {
	var params proto.ResizeParams
	if err := req.Decode(&params); err != nil {
		return nil, err
	}
	size := sandbox.TerminalSize{Columns: params.Columns, Rows: params.Rows}
	if err := checkSize(size); err != nil {
		return nil, err
	}
	r, err := c.runs.find(params.RunID)
	if err != nil {
		return nil, err
	}
	if r.plan.terminal == nil {
		return nil, invalid("run %q has no terminal: begin it with pty", params.RunID)
	}
	return nil, r.resize(size)
}

// inputClosed is the error of a run that takes no input, or none yet.
func inputClosed(format string, args ...any) error {
	err := rpc.Errorf(proto.CodeRequestFailed, format, args...)
	err.Data = proto.FailureData{Code: proto.FailureInputClosed}
	return err
}
