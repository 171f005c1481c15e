package opensandbox

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/confine-dev/confine/sandbox"
)

const (
	// maxCommand is how long the text may be that a remote shell is given: Linux
	// takes less than 128 KiB in one argument.
	maxCommand = 120 << 10

	// maxInput is how much standard input there may be. It travels in that text.
	maxInput = 64 << 10
)

// checkSpec finds what a caller got wrong and what no remote sandbox can be given,
// before anything is sent.
func checkSpec(ctx context.Context, spec sandbox.Spec) error {
	if err := spec.Check(ctx); err != nil {
		return err
	}
	switch {
	case spec.StdinOpen || spec.Terminal != nil:
		return errors.New("a remote sandbox takes no input while a command runs, and gives it no terminal")
	case !spec.Policy.Mode.Confined():
		return fmt.Errorf("mode %q is for commands on this machine, not in a remote sandbox", spec.Policy.Mode)
	case len(spec.Policy.Writable)+len(spec.Policy.Readable) > 0:
		return errors.New("files and folders of this machine cannot be granted to a remote sandbox one by one")
	case !strings.HasPrefix(spec.Dir, "/"):
		return &sandbox.StartError{Kind: sandbox.BadWorkingDirectory, Path: spec.Dir, Err: errors.New("a remote sandbox has paths that begin with /")}
	}
	return nil
}

// script is what a remote bash -c is given.
func script(ctx context.Context, spec sandbox.Spec, patience time.Duration) (string, error) {
	text := spec.Command
	if len(spec.Argv) > 0 {
		quotedArgs := make([]string, len(spec.Argv))
		for i, arg := range spec.Argv {
			quotedArgs[i] = quote(arg)
		}
		text = strings.Join(quotedArgs, " ")
	}
	input, err := wholeInput(ctx, spec.Stdin, patience)
	if err != nil {
		return "", err
	}
	if len(input) > 0 {
		text = fmt.Sprintf("printf %%s %s | base64 -d | bash -c %s", base64.StdEncoding.EncodeToString(input), quote(text))
	}
	if len(text) > maxCommand {
		name := "bash"
		if len(spec.Argv) > 0 {
			name = spec.Argv[0]
		}
		return "", &sandbox.StartError{Kind: sandbox.ArgumentListTooLong, Path: name, Err: fmt.Errorf("a remote sandbox takes %d bytes", maxCommand)}
	}
	return text, nil
}

// wholeInput reads standard input to its end, since no interface takes it while a
// command runs.
func wholeInput(ctx context.Context, stdin io.Reader, patience time.Duration) ([]byte, error) {
	if stdin == nil {
		return nil, nil
	}
	type input struct {
		data []byte
		err  error
	}
	read := make(chan input, 1)
	go func() { // a Read of the caller's stdin cannot be interrupted
		data, err := io.ReadAll(io.LimitReader(stdin, maxInput+1))
		read <- input{data, err}
	}()
	timer := time.NewTimer(patience)
	defer timer.Stop()
	select {
	case in := <-read:
		switch {
		case in.err != nil:
			return nil, fmt.Errorf("reading standard input: %w", in.err)
		case len(in.data) > maxInput:
			return nil, fmt.Errorf("a remote sandbox takes %d bytes of standard input, and there is more: put it in a file that the sandbox has", maxInput)
		}
		return in.data, nil
	case <-timer.C:
		return nil, errors.New("a remote sandbox takes standard input only when it is complete before the start, and it did not end: give the command none, as with </dev/null")
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// quote makes one word of a text for a POSIX shell.
func quote(text string) string { return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'" }

// variables is the environment as the interfaces take it.
func variables(spec sandbox.Spec, facts sandbox.Facts) map[string]string {
	vars := map[string]string{}
	for _, entry := range spec.Env {
		name, value, _ := strings.Cut(entry, "=")
		vars[name] = value
	}
	for name, value := range sandbox.Markers(facts) {
		vars[name] = value
	}
	return vars
}
