//go:build unix

package local

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"time"

	"github.com/confine-dev/confine/sandbox"
)

// Front confines commands by a program of the system that is put in front of them,
// confines itself and becomes the command. It is how macOS does it; what follows
// here is built for every Unix, so that it can be tried without a Mac.
//
// The program starts confine once more, which is confined by then, says so, and
// becomes the command. So whether the command began is known from that process, and
// everything before it from nobody but the program. The command's arguments and
// environment come through a pipe and reach nothing but the command.
type Front interface {
	Name() string

	// Kind is what reports call it.
	Kind() string

	// Argv is the program and its arguments, to which those of what it is to become
	// are added. Nothing else may be writable than what the policy says and own,
	// folders of the session; state are folders that are closed besides.
	Argv(policy sandbox.Policy, own, state []string) ([]string, error)

	// Facets are claimed for a policy.
	Facets(sandbox.Policy) map[sandbox.Facet]sandbox.FacetReport

	// Explain says why the program failed, from what it printed.
	Explain(said string) (detail string, remedies []string)
}

// frontOrders are what the confined start of a command is told. They are bytes, which
// need not be text.
type frontOrders struct {
	Path []byte
	Dir  []byte
	Argv [][]byte
	Env  [][]byte
}

// frontTime bounds how long a program may take to confine itself.
const frontTime = 20 * time.Second

// fronted is a command that is being started behind a program.
type fronted struct {
	Cmd    *exec.Cmd // its standard streams are those of the command
	Orders frontOrders
	Self   string     // path of this program, or of one that calls Child
	Ends   []*os.File // of the command's, closed when it has them

	// Begun is called with the process's number, which is its group's as well, before
	// the command can begin; nil does nothing.
	Begun func(pid int) error
}

// frontError says that the program in front failed, before it became the command.
type frontError struct{ said string }

func (e *frontError) Error() string {
	return "it ended before the command began and said: " + strings.TrimSpace(e.said)
}

// start returns when the command began, or did not. said reads what the program
// prints to stderr, which is the command's from then on.
func (f *fronted) start(ctx context.Context, argv []string, said *os.File) error {
	orderRead, orderWrite, err := os.Pipe()
	if err != nil {
		return err
	}
	reportRead, reportWrite, err := os.Pipe()
	if err != nil {
		return errors.Join(err, orderRead.Close(), orderWrite.Close())
	}
	defer reportRead.Close()
	f.Cmd.Path, f.Cmd.Args = argv[0], append(argv[:len(argv):len(argv)], f.Self, startName)
	f.Cmd.Env = []string{} // nothing of the command reaches the program
	f.Cmd.Dir = "/"
	f.Cmd.ExtraFiles = []*os.File{orderRead, reportWrite}
	err = f.Cmd.Start()
	orderRead.Close()
	reportWrite.Close()
	for _, end := range f.Ends {
		end.Close()
	}
	if err != nil {
		return errors.Join(&frontError{err.Error()}, orderWrite.Close())
	}
	if f.Begun != nil {
		if err := f.Begun(f.Cmd.Process.Pid); err != nil {
			f.abandon()
			return errors.Join(err, orderWrite.Close())
		}
	}
	go func() {
		json.NewEncoder(orderWrite).Encode(f.Orders) // whoever does not read them does not report either
		orderWrite.Close()
	}()
	ctx, cancel := context.WithTimeout(ctx, frontTime)
	defer cancel()
	stop := context.AfterFunc(ctx, func() { reportRead.SetReadDeadline(time.Now()) })
	defer stop()
	report, err := io.ReadAll(io.LimitReader(reportRead, 4<<10))
	if err != nil {
		f.abandon()
		return fmt.Errorf("waiting for the command to begin: %w", errors.Join(context.Cause(ctx), err))
	}
	if string(report) == confinedReport {
		return nil
	}
	f.abandon()
	if failure, ok := bytes.CutPrefix(report, []byte(confinedReport)); ok {
		return f.startError(failure)
	}
	said.SetReadDeadline(time.Now().Add(time.Second)) // all who hold it were ended
	text, _ := io.ReadAll(io.LimitReader(said, 4<<10))
	return &frontError{string(text)}
}

// abandon ends what has not begun.
func (f *fronted) abandon() {
	f.kill()
	f.Cmd.Wait()
}

// kill ends the command's group, which its Setsid made before it was executed.
func (f *fronted) kill() { syscall.Kill(-f.Cmd.Process.Pid, syscall.SIGKILL) }

// startError is what kept a confined process from becoming the command.
func (f *fronted) startError(report []byte) error {
	var failure startFailure
	if err := json.Unmarshal(report, &failure); err != nil {
		return fmt.Errorf("reading why the command did not begin: %w", err)
	}
	errno := syscall.Errno(failure.Errno)
	start := &sandbox.StartError{Kind: sandbox.ProgramNotExecutable, Path: string(f.Orders.Path), Err: errno}
	switch {
	case failure.Call == "chdir":
		start.Kind, start.Path = sandbox.BadWorkingDirectory, string(f.Orders.Dir)
	case failure.Call != "execve":
		return fmt.Errorf("starting the command: %s: %w", failure.Call, errno)
	case errno == syscall.E2BIG:
		start.Kind = sandbox.ArgumentListTooLong
	case errors.Is(errno, fs.ErrNotExist):
		start.Kind = sandbox.ProgramNotFound
	}
	return start
}

func toBytes(list []string) [][]byte {
	out := make([][]byte, len(list))
	for i, s := range list {
		out[i] = []byte(s)
	}
	return out
}

func toStrings(list [][]byte) []string {
	out := make([]string, len(list))
	for i, b := range list {
		out[i] = string(b)
	}
	return out
}
