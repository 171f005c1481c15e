//go:build unix

package local

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"

	"github.com/confine-dev/confine/sandbox"
)

// behind starts confined commands behind a front.
type behind struct {
	front Front
	self  string // path of this program
	state string // confine's own folder, closed to commands
	dir   string // of this server, in it

	keeper *keeper // ends commands if the server cannot

	mu       sync.Mutex
	verdicts map[frontKey]frontVerdict // guarded by mu
	sessions map[string]string         // guarded by mu: folders, by session
	made     int                       // guarded by mu: numbers folders
}

// frontKey is what a verdict depends on.
type frontKey struct {
	mode    sandbox.Mode
	network bool
}

func newBehind(front Front, self, state, dir string, keeper *keeper) *behind {
	return &behind{front: front, self: self, state: state, dir: dir, keeper: keeper, verdicts: map[frontKey]frontVerdict{}, sessions: map[string]string{}}
}

// verdict tries the front the first time for a kind of policy. That it is not usable
// is found out anew each time: a person may have mended it.
func (b *behind) verdict(ctx context.Context, key frontKey) (frontVerdict, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if v, known := b.verdicts[key]; known {
		return v, nil
	}
	dir, err := os.MkdirTemp(b.dir, "p")
	if err != nil {
		return frontVerdict{}, err
	}
	defer removeTree(dir)
	v := tryFront(ctx, b.front, b.self, dir, key.mode, key.network)
	if ctx.Err() != nil {
		return frontVerdict{}, ctx.Err()
	}
	if v.usable {
		b.verdicts[key] = v
	}
	return v, nil
}

// report is about workspace-write without network.
func (b *behind) report(ctx context.Context) sandbox.Report {
	r := sandbox.Report{Provider: b.front.Name(), Kind: b.front.Kind()}
	v, err := b.verdict(ctx, frontKey{sandbox.WorkspaceWrite, false})
	if err != nil {
		r.Reason = fmt.Sprintf("it could not be tried: %v", err)
		return r
	}
	r.Usable, r.Reason, r.Remedies, r.Checks = v.usable, v.reason, v.remedies, v.checks
	if v.usable {
		r.Layers, r.Facets = []string{b.front.Name()}, v.facets
		r.Limits = map[sandbox.Resource]sandbox.FacetReport{}
		for _, resource := range sandbox.Resources {
			r.Limits[resource] = sandbox.FacetReport{State: sandbox.Open, Reason: noLimits}
		}
	}
	return r
}

const noLimits = "nothing is limited on this system"

// session is the folder of a session for temporary files. It is outside of state as
// far as commands can see.
func (b *behind) session(name string) (string, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if dir, ok := b.sessions[name]; ok {
		return dir, nil
	}
	b.made++
	dir := filepath.Join(b.dir, fmt.Sprintf("t%d", b.made))
	if err := os.Mkdir(dir, 0o700); err != nil {
		return "", err
	}
	b.sessions[name] = dir
	return dir, nil
}

// closeSession forgets a session whose commands have ended.
func (b *behind) closeSession(name string) {
	b.mu.Lock()
	dir, ok := b.sessions[name]
	delete(b.sessions, name)
	b.mu.Unlock()
	if ok {
		removeTree(dir)
	}
}

// begin starts a command. Its working directory and program were looked for.
func (b *behind) begin(ctx context.Context, spec sandbox.Spec, program resolved) (*run, error) {
	unavailable := func(detail string, remedies ...string) error {
		return &sandbox.UnavailableError{Mode: spec.Policy.Mode, Detail: b.front.Name() + ": " + detail, Remedies: remedies}
	}
	key := frontKey{spec.Policy.Mode, spec.Policy.Network}
	verdict, err := b.verdict(ctx, key)
	if err != nil {
		return nil, err
	}
	if !verdict.usable {
		return nil, unavailable(verdict.reason, verdict.remedies...)
	}
	for _, root := range slices.Concat(spec.Policy.Roots, spec.Policy.Writable, spec.Policy.Readable) {
		if again, err := root.Reopen(); err != nil {
			return nil, unavailable(err.Error())
		} else if err := again.Close(); err != nil {
			return nil, err
		}
	}
	tmp, err := b.session(spec.Session)
	if err != nil {
		return nil, unavailable(fmt.Sprintf("making a folder for temporary files: %v", err))
	}
	argv, err := b.front.Argv(spec.Policy, []string{tmp}, []string{b.state})
	if err != nil {
		return nil, unavailable(err.Error())
	}
	facts := sandbox.Facts{Mode: spec.Policy.Mode, Provider: b.front.Name(), Kind: b.front.Kind(), Layers: []string{b.front.Name()},
		Facets: frontFacets(b.front.Facets(spec.Policy), verdict.facets), Limits: unlimited()}
	facts.Enforcement = sandbox.Sum(spec.Policy, facts.Facets)
	r, err := b.launch(ctx, spec, program, argv, facts, tmp)
	if f, ok := errors.AsType[*frontError](err); ok {
		b.mu.Lock()
		delete(b.verdicts, key) // it is not what it was
		b.mu.Unlock()
		detail, remedies := b.front.Explain(f.said)
		return nil, unavailable(detail, remedies...)
	}
	return r, err
}

// frontFacets are what the front claims for this policy, and no more than was shown
// to hold for one of its kind.
func frontFacets(claims, shown map[sandbox.Facet]sandbox.FacetReport) map[sandbox.Facet]sandbox.FacetReport {
	facets := maps.Clone(claims)
	for facet, claim := range claims {
		if known, ok := shown[facet]; ok && claim.State != sandbox.Open && known.State == sandbox.Open {
			facets[facet] = known
		}
	}
	return facets
}

// unlimited reports that no limit holds.
func unlimited() (list []sandbox.LimitReport) {
	for _, resource := range sandbox.Resources {
		list = append(list, sandbox.LimitReport{Resource: resource, State: sandbox.Open, Reason: noLimits})
	}
	return list
}

// launch starts the command and follows it.
func (b *behind) launch(ctx context.Context, spec sandbox.Spec, program resolved, argv []string, facts sandbox.Facts, tmp string) (*run, error) {
	vars := cacheVariables(os.Getenv, func(path string) bool { return spec.Policy.MayWrite(path) }, tmp)
	for name := range vars {
		if lookupEnv(spec.Env, name) != "" {
			delete(vars, name) // a request may know better
		}
	}
	vars["TMPDIR"] = tmp
	maps.Copy(vars, sandbox.Markers(facts))
	streams, err := openStreams(takesInput(spec))
	if err != nil {
		return nil, err
	}
	f := &fronted{
		Cmd:    &exec.Cmd{Stdout: streams.outWrite, Stderr: streams.errWrite, SysProcAttr: &syscall.SysProcAttr{Setsid: true}},
		Orders: frontOrders{Path: []byte(program.path), Dir: []byte(spec.Dir), Argv: toBytes(program.argv), Env: toBytes(withVariables(spec.Env, vars))},
		Self:   b.self,
		Ends:   streams.theirs(),
		Begun:  b.keeper.add,
	}
	if streams.inRead != nil { // else it is /dev/null
		f.Cmd.Stdin = streams.inRead
	}
	if err := f.start(ctx, argv, streams.errRead); err != nil {
		if f.Cmd.Process != nil {
			b.keeper.remove(f.Cmd.Process.Pid)
		}
		streams.close()
		return nil, err
	}
	r := newRun(spec, facts, sandbox.CaptureOptions{})
	r.leader = &frontLeader{f, b.keeper}
	r.writable, r.refusal = []string{tmp}, "EPERM"
	r.unobserved = "nobody is told what " + b.front.Name() + " refuses"
	r.follow(streams.outRead, streams.errRead, streams.inWrite)
	return r, nil
}

func lookupEnv(env []string, name string) string {
	for _, entry := range env {
		if value, ok := strings.CutPrefix(entry, name+"="); ok {
			return value
		}
	}
	return ""
}

// withVariables replaces variables of an environment.
func withVariables(env []string, vars map[string]string) []string {
	out := slices.DeleteFunc(slices.Clone(env), func(entry string) bool {
		name, _, _ := strings.Cut(entry, "=")
		_, replaced := vars[name]
		return replaced
	})
	for _, name := range slices.Sorted(maps.Keys(vars)) {
		out = append(out, name+"="+vars[name])
	}
	return out
}

// frontLeader is a command behind a front, which is the leader of its session.
type frontLeader struct {
	f      *fronted
	keeper *keeper
}

func (l *frontLeader) wait(over func()) (ending, error) {
	err := l.f.Cmd.Wait()
	over()
	l.kill() // what is left of the group
	l.keeper.remove(l.f.Cmd.Process.Pid)
	if _, ok := errors.AsType[*exec.ExitError](err); err != nil && !ok {
		return ending{}, err
	}
	if status, ok := l.f.Cmd.ProcessState.Sys().(syscall.WaitStatus); ok && status.Signaled() {
		return ending{signal: status.Signal()}, nil
	}
	return ending{code: l.f.Cmd.ProcessState.ExitCode()}, nil
}

func (l *frontLeader) signal(sig syscall.Signal) error {
	return syscall.Kill(-l.f.Cmd.Process.Pid, sig)
}
func (l *frontLeader) kill() { l.f.kill() }

// streams are the pipes of a command.
type streams struct {
	outRead, outWrite, errRead, errWrite, inRead, inWrite *os.File
}

func openStreams(stdin bool) (s *streams, err error) {
	s = &streams{}
	pipe := func(read, write **os.File) {
		if err == nil {
			*read, *write, err = os.Pipe()
		}
	}
	pipe(&s.outRead, &s.outWrite)
	pipe(&s.errRead, &s.errWrite)
	if stdin {
		pipe(&s.inRead, &s.inWrite)
	}
	if err != nil {
		s.close()
		return nil, err
	}
	return s, nil
}

// theirs are the ends that the command gets.
func (s *streams) theirs() []*os.File {
	return slices.DeleteFunc([]*os.File{s.outWrite, s.errWrite, s.inRead}, func(f *os.File) bool { return f == nil })
}

// close closes everything; what is closed already does no harm.
func (s *streams) close() {
	for _, f := range []*os.File{s.outRead, s.outWrite, s.errRead, s.errWrite, s.inRead, s.inWrite} {
		if f != nil {
			f.Close()
		}
	}
}
