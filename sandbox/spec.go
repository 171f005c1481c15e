package sandbox

import (
	"context"
	"errors"
	"slices"
	"strings"
)

// Check finds what a caller got wrong, before anything is made. Its errors are about
// the Spec, or ctx's.
func (s Spec) Check(ctx context.Context) error {
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case (s.Command == "") == (len(s.Argv) == 0):
		return errors.New("exactly one of command and argv must be given")
	case len(s.Argv) > 0 && s.Argv[0] == "":
		return errors.New("the program's name is empty")
	case s.Dir == "":
		return errors.New("no working directory was given")
	case hasNUL(s.Dir):
		return &StartError{Kind: BadWorkingDirectory, Path: s.Dir, Err: errors.New("it holds a NUL byte, which no path can have")}
	case hasNUL(s.Command):
		return errors.New("the command holds a NUL byte, which no shell can be given")
	case slices.ContainsFunc(s.Argv, hasNUL):
		return errors.New("an argument holds a NUL byte, which no program can be given")
	case slices.ContainsFunc(s.Env, hasNUL):
		return errors.New("the environment holds a NUL byte, which no program can be given")
	}
	return nil
}

func hasNUL(s string) bool { return strings.ContainsRune(s, 0) }
