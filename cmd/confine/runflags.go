package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/confine-dev/confine/cmd/confine/config"
	"github.com/confine-dev/confine/rpc/proto"
	"github.com/confine-dev/confine/sandbox"
)

// runOptions is what the arguments of `confine run` say.
type runOptions struct {
	params    proto.RunCommandParams // command, working directory, environment, timeout
	workspace string                 // absolute
	json      bool

	// named holds what the person set for this run, by key, over the settings file.
	named map[string]any
}

// maxCommandFile bounds --command-file, in bytes: it must fit into a message.
const maxCommandFile = 16 << 20

// runFlags are the flags of `confine run` as given.
type runFlags struct {
	mode, provider, workspace, cwd, commandFile string
	network, json, pty                          bool
	timeout                                     time.Duration
	env                                         envFlag
	given                                       map[string]bool
}

// parseRunOptions reads the arguments of the named subcommand. With an error too, it says whether the
// person wants JSON.
func parseRunOptions(name string, args []string) (runOptions, error) {
	var f runFlags
	flags := newFlags(name)
	flags.StringVar(&f.mode, "mode", "", "")
	flags.BoolVar(&f.network, "network", false, "")
	flags.BoolVar(&f.json, "json", false, "")
	flags.BoolVar(&f.pty, "pty", false, "")
	flags.StringVar(&f.workspace, "workspace", "", "")
	flags.StringVar(&f.cwd, "cwd", "", "")
	flags.DurationVar(&f.timeout, "timeout", sandbox.DefaultTimeout, "")
	flags.StringVar(&f.provider, "provider", "", "")
	flags.Var(&f.env, "env", "")
	flags.StringVar(&f.commandFile, "command-file", "", "")
	if err := parseFlags(flags, args); err != nil {
		return runOptions{json: f.json}, err
	}
	f.given = givenFlags(flags)
	words := flags.Args()
	separated := len(words) < len(args) && args[len(args)-len(words)-1] == "--"

	o := runOptions{json: f.json}
	o.params.Env = f.env
	for _, read := range []func() error{
		func() error { return f.command(&o, words, separated) },
		func() error { return f.folders(&o) },
		func() error { return f.limits(&o) },
		func() error { return f.settings(&o) },
		func() error { return sayable(o.params) },
	} {
		if err := read(); err != nil {
			return o, err
		}
	}
	f.terminal(&o)
	return o, nil
}

// command takes the command from a file, from one word, or, behind "--", from
// several: those are a program and its arguments, which no shell sees again.
func (f *runFlags) command(o *runOptions, words []string, separated bool) error {
	switch {
	case f.given["command-file"] && len(words) > 0:
		return usageErrorf("give --command-file or a command", "two commands were given: a file and %q", words[0])
	case f.given["command-file"]:
		command, err := readCommandFile(f.commandFile)
		o.params.Command = command
		return err
	case len(words) == 0:
		return usageErrorf("put it in quotes: confine run 'go test ./...'", "no command was given")
	case len(words) == 1:
		o.params.Command = words[0]
	case separated:
		o.params.Argv = words
	default:
		return usageErrorf("put the command in quotes, flags before it; or give a program and its arguments behind --", "more than one word was given as the command")
	}
	if strings.TrimSpace(words[0]) == "" {
		return usageErrorf("put it in quotes: confine run 'go test ./...'", "the command is empty")
	}
	return nil
}

func readCommandFile(path string) (string, error) {
	file, err := os.Open(path)
	if err != nil {
		return "", usageErrorf("--command-file takes a readable file", "opening the command file: %v", err)
	}
	defer file.Close()
	data, err := io.ReadAll(io.LimitReader(file, maxCommandFile+1))
	switch {
	case err != nil:
		return "", usageErrorf("--command-file takes a readable file", "reading the command file: %v", err)
	case len(data) > maxCommandFile:
		return "", usageErrorf("keep it in a script and run that", "the command file is larger than %d bytes", maxCommandFile)
	case slices.Contains(data, 0):
		return "", usageErrorf("a command is text for the shell", "the command file has NUL bytes")
	case strings.TrimSpace(string(data)) == "":
		return "", usageErrorf("write a command into it", "the command file is empty")
	}
	return string(data), nil
}

// folders sets the working directory, by default the current one, and the
// workspace, by default the working directory: no more than where the person
// stands becomes writable by itself.
func (f *runFlags) folders(o *runOptions) error {
	cwd, err := filepath.Abs(f.cwd) // of the empty path: the current directory
	if err != nil {
		return fmt.Errorf("finding the working directory: %w", err)
	}
	workspace := cwd
	if f.given["workspace"] {
		if workspace, err = filepath.Abs(f.workspace); err != nil {
			return fmt.Errorf("finding the workspace: %w", err)
		}
		if info, err := os.Stat(workspace); err != nil || !info.IsDir() {
			return usageErrorf("--workspace takes an existing folder", "the workspace %q is not a folder", workspace)
		}
	}
	o.workspace = workspace
	if utf8.ValidString(cwd) {
		o.params.Cwd = cwd
	} else if cwd != workspace { // else it is where commands run that name no folder
		return usageErrorf("rename it, or make it the workspace", "the path of the working directory %q is not UTF-8", cwd)
	}
	return nil
}

// sayable refuses what is not UTF-8. A message would have U+FFFD for such bytes, and
// another command would run than the one that was given.
func sayable(p proto.RunCommandParams) error {
	const hint = "let the shell make such bytes, for example by $'\\xff'"
	for _, text := range append([]string{p.Command}, p.Argv...) {
		if !utf8.ValidString(text) {
			return usageErrorf(hint, "the command is not UTF-8")
		}
	}
	for name, value := range p.Env {
		if !utf8.ValidString(name) || !utf8.ValidString(value) {
			return usageErrorf(hint, "the variable %q is not UTF-8", name)
		}
	}
	return nil
}

func (f *runFlags) limits(o *runOptions) error {
	if f.timeout < time.Millisecond || f.timeout > sandbox.MaxTimeout {
		return usageErrorf(fmt.Sprintf("give a duration up to %v, such as 90s", sandbox.MaxTimeout), "the timeout %v is out of range", f.timeout)
	}
	ms := f.timeout.Milliseconds()
	o.params.TimeoutMs = &ms
	return nil
}

// terminal asks for a terminal. Such a run is one in the background, which nothing
// ends but itself and the person: nobody knows how long an editor stays open.
func (f *runFlags) terminal(o *runOptions) {
	if !f.pty {
		return
	}
	o.params.Pty, o.params.Background = &proto.TerminalSize{}, true
	if !f.given["timeout"] {
		o.params.TimeoutMs = nil
	}
}

// settings notes which settings the person named. They count as configured for
// this run: nobody is asked about what was just typed.
func (f *runFlags) settings(o *runOptions) error {
	var mode sandbox.Mode
	if f.given["mode"] {
		var err error
		if mode, err = sandbox.ParseMode(f.mode); err != nil {
			return usageErrorf("for example --mode workspace-write", "%v", err)
		}
	}
	// Wrappers that resolve whatever may be a path turn a bare name into one.
	f.provider = filepath.Base(f.provider)
	if f.given["provider"] && !slices.Contains(config.Providers, f.provider) {
		return usageErrorf("use one of "+strings.Join(config.Providers, ", "), "unknown provider %q", f.provider)
	}
	o.named = map[string]any{}
	if f.given["mode"] {
		o.named[config.KeyMode] = string(mode)
	}
	if f.given["network"] {
		o.named[config.KeyNetwork] = f.network
	}
	if f.given["provider"] {
		o.named[config.KeyProvider] = f.provider
	}
	return nil
}

// envFlag collects --env K=V.
type envFlag map[string]string

func (e *envFlag) String() string { return "" }

func (e *envFlag) Set(text string) error {
	name, value, found := strings.Cut(text, "=")
	if !found || name == "" {
		return errors.New("it must be NAME=VALUE")
	}
	if *e == nil {
		*e = envFlag{}
	}
	(*e)[name] = value
	return nil
}
