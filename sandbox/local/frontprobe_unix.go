//go:build unix

package local

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"syscall"

	"github.com/confine-dev/confine/sandbox"
)

// frontVerdict is what a front enforces for one kind of policy, from having tried.
type frontVerdict struct {
	usable   bool
	reason   string
	remedies []string
	facets   map[sandbox.Facet]sandbox.FacetReport
	checks   []sandbox.Check
}

// frontTrial is something that is tried twice: behind the front, and by a child that
// nothing confines. Only what the one could not and the other could was refused.
type frontTrial struct {
	facet sandbox.Facet // empty: it must be possible
	name  string        // after "to"
	frontAttempt
}

// tryFront tries a front on a scene of its own in folder, for policies of one mode
// with or without network.
func tryFront(ctx context.Context, front Front, self, folder string, mode sandbox.Mode, network bool) frontVerdict {
	broken := func(err error) frontVerdict {
		v := frontVerdict{reason: err.Error()}
		if f, ok := errors.AsType[*frontError](err); ok {
			v.reason, v.remedies = front.Explain(f.said)
		}
		return v
	}
	inside, err := newFrontScene(filepath.Join(folder, "inside"), mode, network)
	if err != nil {
		return broken(fmt.Errorf("preparing to try it: %w", err))
	}
	defer inside.close()
	outside, err := newFrontScene(filepath.Join(folder, "outside"), mode, network)
	if err != nil {
		return broken(fmt.Errorf("preparing to try it: %w", err))
	}
	defer outside.close()
	argv, err := front.Argv(inside.policy, inside.own, nil)
	if err != nil {
		return broken(err)
	}
	trials, controls := inside.trials(), outside.trials()
	refused, err := attemptBehind(ctx, argv, self, trials)
	if err != nil {
		return broken(err)
	}
	alone, err := attemptBehind(ctx, nil, self, controls)
	if err != nil {
		return broken(fmt.Errorf("trying the same unconfined: %w", err))
	}
	return judgeFront(front.Facets(inside.policy), trials, refused, alone)
}

// judgeFront compares claims with the errors of trials inside and outside.
func judgeFront(claims map[sandbox.Facet]sandbox.FacetReport, trials []frontTrial, inside, outside []int) frontVerdict {
	v := frontVerdict{usable: true, facets: map[sandbox.Facet]sandbox.FacetReport{}}
	told := map[sandbox.Facet][]sandbox.Trial{}
	for i, t := range trials {
		errno := syscall.Errno(inside[i])
		if t.facet == "" {
			check := sandbox.Check{Name: t.name, OK: errno == 0}
			if errno != 0 {
				check.Detail = errno.Error()
				v.usable, v.reason = false, fmt.Sprintf("what must be possible was not: to %s (%v)", t.name, errno)
			}
			v.checks = append(v.checks, check)
			continue
		}
		outcome := sandbox.Untried
		switch {
		case errno == 0:
			outcome = sandbox.Possible
		case outside[i] == 0 && (errno == syscall.EPERM || errno == syscall.EACCES):
			outcome = sandbox.Refused
		}
		told[t.facet] = append(told[t.facet], sandbox.Trial{Name: t.name, Outcome: outcome})
		v.checks = append(v.checks, sandbox.Check{Name: "refused: " + t.name, OK: outcome != sandbox.Possible, Detail: string(outcome)})
	}
	for facet, claim := range claims {
		v.facets[facet] = sandbox.Confirm(claim, told[facet])
	}
	if state := v.facets[sandbox.FileWrite]; v.usable && state.State != sandbox.Enforced {
		v.usable, v.reason = false, "it confines nothing: "+state.Reason
	}
	return v
}

// frontScene is what is tried on.
type frontScene struct {
	dir      string
	policy   sandbox.Policy
	own      []string
	loopback net.Listener
	service  net.Listener // nil if its path is too long
}

func newFrontScene(dir string, mode sandbox.Mode, network bool) (s *frontScene, err error) {
	s = &frontScene{}
	defer func() {
		if err != nil {
			s.close()
		}
	}()
	for _, folder := range []string{"own", "root/kept", "hidden", "plain"} {
		if err := os.MkdirAll(filepath.Join(dir, folder), 0o700); err != nil {
			return nil, err
		}
	}
	if s.dir, err = filepath.EvalSymlinks(dir); err != nil {
		return nil, err
	}
	for _, file := range []string{"root/kept/file", "hidden/file", "plain/file"} {
		if err := os.WriteFile(s.path(file), []byte("x"), 0o600); err != nil {
			return nil, err
		}
	}
	root, err := sandbox.DeclareRoot(s.path("root"), sandbox.Forbidden{})
	if err != nil {
		return nil, err
	}
	s.own = []string{s.path("own")}
	s.policy = sandbox.Policy{Mode: mode, Network: network, Roots: []*sandbox.Root{root},
		Protected: []string{s.path("root/kept"), s.path("root/absent")}, Unreadable: []string{s.path("hidden")}}
	if s.loopback, err = net.Listen("tcp", "127.0.0.1:0"); err != nil {
		return nil, err
	}
	s.service, _ = net.Listen("unix", s.path("plain/s"))
	return s, nil
}

func (s *frontScene) path(name string) string { return filepath.Join(s.dir, name) }

func (s *frontScene) close() {
	for _, root := range s.policy.Roots {
		root.Close()
	}
	for _, l := range []net.Listener{s.loopback, s.service} {
		if l != nil {
			l.Close()
		}
	}
	if s.dir != "" {
		removeTree(s.dir)
	}
}

// trials are the same for every scene. Later ones may need what earlier ones made.
func (s *frontScene) trials() []frontTrial {
	list := []frontTrial{
		{"", "write a temporary file", frontAttempt{"create", s.path("own/file")}},
		{"", "read a file", frontAttempt{"read", s.path("plain/file")}},
		{sandbox.FileWrite, "make a file outside", frontAttempt{"create", s.path("plain/new")}},
		{sandbox.FileWrite, "change a file outside", frontAttempt{"append", s.path("plain/file")}},
		{sandbox.FileWrite, "change a file outside by a second name", frontAttempt{"link", s.path("plain/file") + "\n" + s.path("own/link")}},
		{sandbox.FileWrite, "move a file from outside", frontAttempt{"rename", s.path("plain/file") + "\n" + s.path("own/moved")}},
		{sandbox.FileWrite, "change what is protected", frontAttempt{"append", s.path("root/kept/file")}},
		{sandbox.FileWrite, "move what is protected", frontAttempt{"rename", s.path("root/kept") + "\n" + s.path("root/gone")}},
		{sandbox.FileWrite, "make what is kept absent", frontAttempt{"create", s.path("root/absent")}},
		{sandbox.Metadata, "change the mode of a file outside", frontAttempt{"chmod", s.path("hidden")}},
		{sandbox.FileRead, "read what is hidden", frontAttempt{"read", s.path("hidden/file")}},
		{sandbox.Network, "connect to this host's loopback", frontAttempt{"tcp", s.loopback.Addr().String()}},
		{sandbox.Processes, "signal confine", frontAttempt{"signal", strconv.Itoa(os.Getpid())}},
	}
	if s.service != nil {
		list = append(list, frontTrial{sandbox.UnixSockets, "connect to a service", frontAttempt{"unix", s.path("plain/s")}})
	}
	if s.policy.Mode == sandbox.WorkspaceWrite {
		list = append(list, frontTrial{"", "write in a root", frontAttempt{"create", s.path("root/file")}})
	}
	return list
}

// attemptBehind runs a child that attempts everything, behind a front or, without
// one, unconfined, and returns the error numbers.
func attemptBehind(ctx context.Context, argv []string, self string, trials []frontTrial) ([]int, error) {
	attempts := make([]frontAttempt, len(trials))
	for i, t := range trials {
		attempts[i] = t.frontAttempt
	}
	list, err := json.Marshal(attempts)
	if err != nil {
		return nil, err
	}
	child := []string{self, attemptName, string(list)}
	stdout, stdoutWrite, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	defer stdout.Close()
	stderr, stderrWrite, err := os.Pipe()
	if err != nil {
		return nil, errors.Join(err, stdoutWrite.Close())
	}
	defer stderr.Close()
	f := &fronted{Cmd: &exec.Cmd{Stdout: stdoutWrite, Stderr: stderrWrite, SysProcAttr: &syscall.SysProcAttr{Setsid: true}},
		Orders: frontOrders{Path: []byte(self), Dir: []byte("/"), Argv: toBytes(child)}, Self: self, Ends: []*os.File{stdoutWrite, stderrWrite}}
	if len(argv) == 0 {
		argv = []string{"/usr/bin/env"} // becomes what it is given
	}
	if err := f.start(ctx, argv, stderr); err != nil {
		return nil, err
	}
	stop := context.AfterFunc(ctx, f.kill)
	defer stop()
	answer, _ := io.ReadAll(io.LimitReader(stdout, 64<<10))
	said, _ := io.ReadAll(io.LimitReader(stderr, 4<<10))
	if err := f.Cmd.Wait(); err != nil {
		return nil, fmt.Errorf("trying it: %w: %s", err, said)
	}
	var errnos []int
	if err := json.Unmarshal(answer, &errnos); err != nil || len(errnos) != len(trials) {
		return nil, fmt.Errorf("trying it: the answer was %q (%w)", answer, err)
	}
	return errnos, nil
}
