package main

import (
	"context"
	"encoding/json"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/confine-dev/confine/rpc"
	"github.com/confine-dev/confine/rpc/proto"
	"github.com/confine-dev/confine/sandbox"
)

// lendTerminal prepares for a command with a terminal of its own.
func (r *runner) lendTerminal() error {
	if r.options.json {
		return usageErrorf("leave one of them out", "--pty shows the output at the terminal and --json does not")
	}
	if !isTerminal(os.Stdin) || !isTerminal(os.Stdout) {
		return usageErrorf("leave --pty out: the command gets pipes then",
			"--pty needs a terminal on standard input and standard output")
	}
	r.loan = &loan{}
	return nil
}

// inputAtTerminal gives a command the keyboard. What it draws is for the terminal
// that the person has, unless they named another: no change of theirs to its
// environment, which no allow rule would cover.
func (r *runner) inputAtTerminal(spec *sandbox.Spec) (err error) {
	term := os.Getenv("TERM")
	if _, named := r.options.params.Env["TERM"]; term != "" && !named {
		spec.Env = append(slices.DeleteFunc(slices.Clone(spec.Env), func(entry string) bool {
			return strings.HasPrefix(entry, "TERM=")
		}), "TERM="+term)
	}
	spec.Stdin, err = r.loan.take()
	return err
}

// giveBack gives a lent terminal back to the person.
func (r *runner) giveBack() {
	if r.loan != nil {
		r.loan.giveBack()
	}
}

// performAtTerminal makes a request that runs a command with a terminal, and returns
// when that has ended.
func (r *runner) performAtTerminal(method string, params any) (result proto.RunResult, err error) {
	id := ""
	switch p := params.(type) {
	case proto.RunCommandParams:
		size := r.loan.size()
		p.Pty = &size
		params, id = p, p.RunID
	case proto.EscalationParams:
		id = p.NewRunID
	}
	resize := func(size proto.TerminalSize) {
		// What has not begun yet, or has ended, cannot be told.
		r.client.conn.Call(context.Background(), proto.MethodRunsResize, proto.ResizeParams{RunID: id, Columns: size.Columns, Rows: size.Rows}, nil)
	}
	defer r.loan.watch(resize)()
	err = r.client.conn.Call(context.Background(), method, params, &result)
	if err != nil || result.RunID != id || result.Status != proto.StatusRunning {
		return result, err
	}
	resize(r.loan.size()) // it may have changed before the command was there to be told
	for err == nil && result.Status == proto.StatusRunning {
		result, err = r.await(id)
	}
	if err == nil {
		err = endError(result)
	}
	return result, err
}

// await waits for the end of a run that is answered already, as long as one request
// may.
func (r *runner) await(id string) (result proto.RunResult, err error) {
	longest := sandbox.MaxTimeout.Milliseconds()
	err = r.client.conn.Call(context.Background(), proto.MethodRunsWait, proto.WaitParams{RunID: id, TimeoutMs: &longest}, &result)
	return result, err
}

// endError is why the sandbox of such a run broke; nil if it did not.
func endError(result proto.RunResult) error {
	if result.Error == nil {
		return nil
	}
	err := rpc.Errorf(result.Error.Code, "%s", result.Error.Message)
	if data, failed := json.Marshal(result.Error.Data); failed == nil {
		err.Data = json.RawMessage(data)
	}
	return err
}

// takeTerminalBack ends a loan when the command is over and its output is shown. One
// that was ended had no chance to tidy the screen up.
func (r *runner) takeTerminalBack(result proto.RunResult) {
	if r.loan == nil {
		return
	}
	if ended := result.Signal != "" || result.TimedOut || result.Status == proto.StatusCancelled || result.Error != nil; ended && r.loan.out() {
		io.WriteString(os.Stdout, ifKnown(sane))
	}
	r.loan.giveBack()
}
