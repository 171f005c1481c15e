package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"strings"
	"syscall"
	"time"

	"github.com/confine-dev/confine/rpc"
	"github.com/confine-dev/confine/rpc/proto"
	"github.com/confine-dev/confine/sandbox"
)

var runCommand = command{
	name:     "run",
	synopsis: "[flags] ('COMMAND' | -- COMMAND | -- PROGRAM ARGUMENT… | --command-file FILE)",
	summary:  "Run one command in the sandbox and end as it does.",
	details: `
COMMAND is one word that bash runs; put it in quotes, and -- before one that
somebody else wrote. Several words behind -- are a program and its arguments,
which no shell sees.

  --mode MODE          read-only, workspace-write, danger-full-access or
                       external-sandbox; default: the setting sandbox_mode
  --network            let the command reach the network; default: the setting
                       network_access
  --workspace DIR      the folder that workspace-write makes writable; default:
                       the working directory
  --cwd DIR            the working directory; default: the current directory
  --timeout DURATION   end the command after this time, such as 90s; default 2m,
                       at most 10m
  --env NAME=VALUE     set a variable for the command; may be given again
  --provider NAME      auto, landlock, bwrap or seatbelt; default: the setting
                       provider
  --command-file FILE  read COMMAND from a file
  --pty                give the command a terminal of its own, behind yours: for
                       editors, pagers, shells. Keys go to the command, ^C too;
                       there is no timeout unless you give one
  --json               print the run result as one line of JSON instead of the
                       output; after a failure, an object with the key "error"

What you name here counts as configured: you are not asked about it. When the
sandbox refused something and standard input and standard error are a terminal,
you are asked there whether the command may run once more, wider.

Standard input passes to the command unless it is a terminal; in a shell loop,
give </dev/null to keep the loop's own input.

Exit status: that of the command; 128 and the number of the signal that ended
it; 124 after the timeout; 125 if confine failed or refused, with the reason on
standard error; 126 and 127 if PROGRAM cannot be executed or was not found; 2 for
a mistake in these arguments.`,
	run:    runRun,
	failed: exitNotRun,
}

func runRun(args []string) (int, error) {
	options, err := parseRunOptions("run", args)
	status := 0
	if err == nil {
		status, err = runInSandbox(options)
	}
	if err == nil || errors.Is(err, flag.ErrHelp) {
		return status, err
	}
	status = failureStatus(err)
	switch {
	case options.json:
		return status, printJSON(map[string]any{"error": errorObject(err)})
	case !errors.Is(err, syscall.EPIPE): // whoever closed the pipe knows
		printError(err)
	}
	return status, nil
}

// jsonOutput is how many bytes of each stream --json prints. There is no file
// with the rest, since it would end with this process.
const jsonOutput = 4 << 20

func runInSandbox(options runOptions) (_ int, err error) {
	r := &runner{options: options}
	if options.params.Pty != nil {
		if err := r.lendTerminal(); err != nil {
			return 0, err
		}
		defer r.giveBack()
	}
	r.interrupts = watchInterrupts(r.giveBack)
	defer r.interrupts.stop()
	wiring := wiringOptions{named: options.named, unasked: !canAsk(options), input: r.commandInput(os.Stdin), brief: true}
	if options.json {
		wiring.keep = jsonOutput
	} else {
		r.output = newLiveOutput(os.Stdout, os.Stderr, r.kill)
		defer r.output.close()
		wiring.output = r.output
	}
	w, err := newWiring(wiring)
	if err != nil {
		return 0, err
	}
	defer w.close()
	o := clientOptions{folder: options.workspace}
	if canAsk(options) {
		o.ask = r.ask
	}
	if r.client, err = connect(context.Background(), w.server, o); err != nil {
		return 0, err
	}
	defer r.client.close()
	if !options.json {
		for _, warning := range w.current.Load().Current().Warnings {
			printNote("settings: %s", warning)
		}
	}
	if len(r.client.refused) > 0 && w.settings.Mode == sandbox.WorkspaceWrite {
		// Running all the same would only make every write fail.
		return 0, withHint(errors.New("making the workspace writable: "+r.client.refused[0].Reason), "name another folder with --workspace DIR")
	}
	return r.run()
}

// commandInput says what the command reads: nothing if the person's keyboard is
// there, which the questions need, unless it is lent.
func (r *runner) commandInput(stdin *os.File) func(*sandbox.Spec) error {
	switch {
	case r.loan != nil:
		return r.inputAtTerminal
	case isTerminal(stdin):
		return nil
	}
	return func(spec *sandbox.Spec) error {
		// Not the file itself: a descriptor of the host can be more than a stream.
		spec.Stdin = struct{ io.Reader }{stdin}
		return nil
	}
}

// canAsk reports whether a person sits at the terminal.
func canAsk(options runOptions) bool {
	return !options.json && isTerminal(os.Stdin) && isTerminal(os.Stderr)
}

// runner runs one command, and again as often as the person widens it.
type runner struct {
	options    runOptions
	client     *client
	interrupts *interrupts
	output     *liveOutput // nil with --json
	loan       *loan       // of the terminal, with --pty; else nil
}

// runIDs are the ids of the possible runs, in order.
var runIDs = []string{"run-1", "run-2", "run-3", "run-4", "run-5"}

// run returns the status to exit with.
func (r *runner) run() (int, error) {
	params := r.options.params
	params.RunID = runIDs[0]
	result, err := r.perform(proto.MethodRunCommand, params)
	if err != nil {
		return 0, err
	}
	if r.options.json {
		return r.status(result), printJSON(result)
	}
	if s := result.Sandbox; s != nil && s.Provider == sandbox.ProviderNone {
		printNote("nothing confined this command: no provider could enforce mode %s, and on_unavailable is \"run-unconfined\"", s.Mode)
		printHint("run `confine doctor` to see why")
	}
	if !denied(result) || r.interrupts.signal() != nil {
		return r.status(result), refusal(result)
	}
	for _, id := range runIDs[1:] {
		printDenials(result)
		if result.ExitCode != nil && *result.ExitCode == 0 {
			return 0, nil // it did without
		}
		step, ok := nextStep(result)
		if !ok {
			break
		}
		again, err := r.escalate(result, step, id)
		if err != nil {
			return 0, err
		}
		if again == nil {
			return r.status(result), nil
		}
		if result = *again; !denied(result) || r.interrupts.signal() != nil {
			return r.status(result), nil
		}
	}
	printHint("%s", wideningHint(result, r.options.workspace))
	return r.status(result), nil
}

// escalate asks whether the command may run again, under a new id and wider by
// one step, and runs it. The result is nil if it did not run.
func (r *runner) escalate(before proto.RunResult, step proto.EscalationParams, id string) (*proto.RunResult, error) {
	step.RunID, step.NewRunID = before.RunID, id
	step.Justification = "none; confine run asks this by itself"
	after, err := r.perform(proto.MethodRequestEscalation, step)
	if err != nil {
		return nil, err
	}
	if ran := after.ExitCode != nil || after.Signal != ""; !ran || after.RunID != id {
		why := "cancelled"
		if a := after.Approval; a != nil {
			why = a.Outcome + " by " + a.By
		}
		printNote("the command did not run again: %s", why)
		return nil, nil
	}
	return &after, nil
}

// perform makes one request that runs a command, and returns when its output
// is written.
func (r *runner) perform(method string, params any) (result proto.RunResult, err error) {
	defer r.interrupts.onFirst(r.kill)()
	if r.loan != nil {
		result, err = r.performAtTerminal(method, params)
	} else {
		err = r.client.conn.Call(context.Background(), method, params, &result)
	}
	if r.output != nil {
		lost, outputErr := r.output.flush()
		r.takeTerminalBack(result)
		switch {
		case outputErr != nil:
			return result, outputErr
		case lost > 0:
			// A status of 0 would make a script take the output for complete.
			return result, withHint(fmt.Errorf("passing the command's output on: %d bytes came faster than they were taken and were dropped", lost),
				"let the command write to a file")
		}
		if isTerminal(os.Stderr) && (err != nil || saysMore(result.Sandbox)) {
			io.WriteString(os.Stderr, ifKnown(legible)) // whatever the command left there
		}
		printPlanted(result)
		printReached(result)
	}
	if err != nil {
		return result, advise(err)
	}
	return result, nil
}

// saysMore reports whether the person is told something behind the output.
func saysMore(s *proto.SandboxFacts) bool {
	return s != nil && (s.Denied || len(s.Planted) > 0 || len(sandbox.ReachedLimits(s.Limits)) > 0)
}

// kill ends what runs, and what is about to begin, until the connection ends:
// after it nothing is to run any more.
func (r *runner) kill() {
	for {
		for _, id := range runIDs {
			err := r.client.conn.Call(context.Background(), proto.MethodRunsKill, proto.RunParams{RunID: id}, nil)
			if errors.Is(err, rpc.ErrClosed) {
				return
			}
		}
		time.Sleep(20 * time.Millisecond) // a run that has not begun yet cannot be ended yet
	}
}

// ask brings a question of the server to the terminal. While a command has that,
// which draws there and gets what is typed, nobody is asked.
func (r *runner) ask(ctx context.Context, question proto.Question) proto.ApprovalAnswer {
	cancelled := proto.ApprovalAnswer{Outcome: proto.ApprovalOutcome{Outcome: proto.OutcomeCancelled}}
	if r.loan != nil && r.loan.out() {
		return cancelled
	}
	t, err := openTerminal()
	if err != nil {
		printError(err)
		return cancelled
	}
	defer t.Close()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer r.interrupts.onFirst(cancel)()
	return t.ask(ctx, question)
}

// status maps how a run ended to the status that confine exits with.
func (r *runner) status(result proto.RunResult) int {
	switch sig := r.interrupts.signal(); {
	case sig != nil:
		return interruptStatus(sig)
	case result.TimedOut:
		return exitTimedOut
	case result.ExitCode != nil:
		return *result.ExitCode
	case result.Signal != "":
		return exitSignalled + signalNumber(result.Signal)
	}
	return exitNotRun
}

// refusal is the reason why a run never ran; nil if it did.
func refusal(result proto.RunResult) error {
	if result.Status != proto.StatusRefused {
		return nil
	}
	why := ""
	if result.Approval != nil {
		why = ": " + result.Approval.Reason
	}
	return withHint(errors.New("the command was refused and did not run"+why), "run \"confine explain\" with it to see what decides, \"confine config\" to see the settings in force")
}

// failureStatus maps an error to the status that confine exits with.
func failureStatus(err error) int {
	if _, ok := errors.AsType[*usageError](err); ok {
		return exitUsage
	}
	if errors.Is(err, syscall.EPIPE) {
		return exitSignalled + int(syscall.SIGPIPE)
	}
	switch sandbox.StartErrorKind(failureData(err).Code) {
	case sandbox.ProgramNotFound:
		return exitNotFound
	case sandbox.ProgramNotExecutable:
		return exitNotExecutable
	}
	return exitNotRun
}

// failureData is the data of a server's error; zero for any other error.
func failureData(err error) (data proto.FailureData) {
	wire, ok := errors.AsType[*rpc.Error](err)
	if !ok {
		return data
	}
	if raw, ok := wire.Data.(json.RawMessage); ok {
		json.Unmarshal(raw, &data) // what cannot be read stays zero
	}
	return data
}

// advise adds to a server's error what the person can do.
func advise(err error) error {
	data := failureData(err)
	switch {
	case len(data.Remedies) > 0:
		return withHint(err, strings.Join(data.Remedies, "\n"))
	case data.Code == string(sandbox.BadWorkingDirectory):
		return withHint(err, "name another folder with --cwd DIR")
	case data.Code == string(sandbox.ProgramNotFound), data.Code == string(sandbox.ProgramNotExecutable):
		return withHint(err, "to have a shell run it, give the whole command as one word")
	case data.Code == proto.FailureSettings:
		return withHint(err, "run \"confine config\" to see the settings in force and where each comes from")
	}
	return withHint(err, "run \"confine doctor\" to see what this machine can enforce")
}

// errorObject is what --json prints for a failure, in the form of the wire.
func errorObject(err error) proto.Error {
	object := proto.Error{Code: proto.CodeInternalError, Message: err.Error()}
	if _, ok := errors.AsType[*usageError](err); ok {
		object.Code = proto.CodeInvalidParams
	}
	if wire, ok := errors.AsType[*rpc.Error](err); ok {
		object.Code = wire.Code
	}
	if data := failureData(err); data.Code != "" {
		object.Data = &data
	}
	return object
}
