package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"strings"
)

// command is one subcommand.
type command struct {
	name     string
	synopsis string // what follows the name
	summary  string // one line
	details  string // for its own help; may be empty

	// run does the work. The status counts only without an error; an error is
	// printed and ends confine with failed, or with exitUsage for a usageError.
	run    func(args []string) (status int, err error)
	failed int
}

// Exit statuses of confine itself. `confine run` otherwise ends as its command
// does; 125 to 127 mean there what they mean for env(1) and timeout(1).
const (
	exitNotServed     = 1 // serve: the editor left without shutdown, or serving failed
	exitUnenforceable = 1 // doctor: the configured mode cannot be enforced, or nothing could be verified
	exitUsage         = 2
	exitContradicted  = 3 // doctor --verify: something is not as claimed
	exitTimedOut      = 124
	exitNotRun        = 125 // confine failed or refused
	exitNotExecutable = 126
	exitNotFound      = 127
	exitSignalled     = 128 // plus the number of the signal
)

// commands lists the subcommands as help shows them. It is a function because
// help is one of them.
func commands() []command {
	return []command{serveCommand, runCommand, explainCommand, configCommand, doctorCommand, setupCommand, bugReportCommand, versionCommand, helpCommand}
}

// runCommandLine runs the subcommand that the arguments name and returns the
// status to exit with.
func runCommandLine(args []string) int {
	if len(args) == 0 {
		printError(usageErrorf("run \"confine help\" for the list", "no subcommand was given"))
		return exitUsage
	}
	name := args[0]
	switch name {
	case "-h", "-help", "--help":
		name = "help"
	case "-version", "--version":
		name = "version"
	}
	for _, c := range commands() {
		if c.name == name {
			return c.execute(args[1:])
		}
	}
	printError(usageErrorf("run \"confine help\" for the list; to run a command in the sandbox: confine run 'COMMAND'", "there is no subcommand %q", name))
	return exitUsage
}

func (c command) execute(args []string) int {
	status, err := c.run(args)
	var usage *usageError
	switch {
	case err == nil:
		return status
	case errors.Is(err, flag.ErrHelp):
		c.help(os.Stdout)
		return 0
	case errors.As(err, &usage):
		printError(err)
		return exitUsage
	}
	printError(err)
	return c.failed
}

func (c command) help(w io.Writer) {
	fmt.Fprintf(w, "usage: confine %s\n\n%s\n", strings.TrimSpace(c.name+" "+c.synopsis), c.summary)
	if c.details != "" {
		fmt.Fprintf(w, "\n%s\n", strings.TrimSpace(c.details))
	}
}

// usageError is a mistake in the command line.
type usageError struct {
	what, next string
}

func (e *usageError) Error() string { return e.what }
func (e *usageError) Hint() string  { return e.next }

func usageErrorf(next, format string, args ...any) error {
	return &usageError{fmt.Sprintf(format, args...), next}
}

// newFlags returns an empty set of flags for a subcommand.
func newFlags(name string) *flag.FlagSet {
	flags := flag.NewFlagSet(name, flag.ContinueOnError)
	flags.SetOutput(io.Discard) // mistakes are printed by execute
	flags.Usage = func() {}
	return flags
}

// parseFlags parses the arguments of a subcommand.
func parseFlags(flags *flag.FlagSet, args []string) error {
	err := flags.Parse(args)
	if err == nil || errors.Is(err, flag.ErrHelp) {
		return err
	}
	return usageErrorf(fmt.Sprintf("run \"confine help %s\"", flags.Name()), "%v", err)
}

// parseOnlyFlags is parseFlags for a subcommand that takes nothing else.
func parseOnlyFlags(flags *flag.FlagSet, args []string) error {
	if err := parseFlags(flags, args); err != nil {
		return err
	}
	if flags.NArg() > 0 {
		return usageErrorf(fmt.Sprintf("run \"confine help %s\"", flags.Name()), "%s takes no argument, but %q was given", flags.Name(), flags.Arg(0))
	}
	return nil
}

// givenFlags names the flags that were given, whatever their values.
func givenFlags(flags *flag.FlagSet) map[string]bool {
	given := map[string]bool{}
	flags.Visit(func(f *flag.Flag) { given[f.Name] = true })
	return given
}
