package local

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/confine-dev/confine/sandbox"
	"golang.org/x/sys/unix"
)

// verdict is what a probe found for one kind of policy.
type verdict struct {
	namespaces bool
	claims     Claims
	checks     []sandbox.Check
	reason     string // why there are no namespaces
	provider   string
	kind       string
}

// facts are what a run by this verdict can truthfully say.
func (v verdict) facts(p sandbox.Policy) sandbox.Facts {
	return sandbox.Facts{Mode: p.Mode, Provider: v.provider, Kind: v.kind, Layers: v.claims.Layers,
		Facets: v.claims.Facets, Enforcement: sandbox.Sum(p, v.claims.Facets)}
}

// probeKey tells kinds of policies apart that are enforced by other means.
type probeKey struct {
	mode    sandbox.Mode
	network bool
}

// probes keeps what was found until something failed.
type probes struct {
	mu         sync.Mutex // held while probing, so that one probe serves all who wait
	found      map[probeKey]verdict
	namespaces bool // they worked once
}

func (p *probes) forget() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.found = nil
}

// probeTime bounds one probe.
const probeTime = 10 * time.Second

// verdict returns what holds for a policy, trying it out the first time.
func (e *Engine) verdict(ctx context.Context, policy sandbox.Policy) (verdict, error) {
	if e.wrapper == nil {
		return verdict{}, &sandbox.UnavailableError{Mode: policy.Mode}
	}
	e.probes.mu.Lock()
	defer e.probes.mu.Unlock()
	key := probeKey{policy.Mode, policy.Network}
	if v, ok := e.probes.found[key]; ok {
		return v, nil
	}
	v, err := e.try(ctx, key)
	if err != nil {
		return verdict{}, err
	}
	if e.probes.found == nil {
		e.probes.found = map[probeKey]verdict{}
	}
	e.probes.found[key] = v
	e.probes.namespaces = e.probes.namespaces || v.namespaces
	return v, nil
}

// try probes with namespaces, then without.
func (e *Engine) try(ctx context.Context, key probeKey) (verdict, error) {
	policy := sandbox.Policy{Mode: key.mode, Network: key.network}
	var reasons []string
	for _, namespaces := range []bool{true, false} {
		if namespaces && e.options.NoNamespaces {
			reasons = append(reasons, "namespaces are switched off")
			continue
		}
		if !namespaces && e.probes.namespaces {
			// Something is short for a moment, perhaps because a command saw to
			// it. That is no reason to confine less from now on.
			return verdict{}, &sandbox.UnavailableError{Mode: key.mode, Detail: strings.Join(reasons, "; "),
				Remedies: []string{"try again", "restart confine, if this host is to refuse namespaces from now on"}}
		}
		claims := e.wrapper.Claims(policy, namespaces)
		if claims.Missing != "" {
			return verdict{}, &sandbox.UnavailableError{Mode: key.mode, Detail: claims.Missing, Remedies: claims.Remedies}
		}
		checks, err := e.probeAt(ctx, key, namespaces)
		if ctx.Err() != nil {
			return verdict{}, ctx.Err()
		}
		if namespaces && passing(err) {
			return verdict{}, &sandbox.UnavailableError{Mode: key.mode, Detail: err.Error(), Remedies: remedies(err)}
		}
		if err != nil {
			reasons = append(reasons, err.Error())
			continue
		}
		v := verdict{namespaces: namespaces, claims: claims, checks: checks, provider: e.wrapper.Name(), kind: e.wrapper.Kind()}
		if !namespaces {
			v.reason = strings.Join(reasons, "; ")
		}
		v.claims.Facets = confirm(claims.Facets, checks)
		return v, nil
	}
	return verdict{}, &sandbox.UnavailableError{Mode: key.mode, Detail: strings.Join(reasons, "; "),
		Remedies: []string{"allow unprivileged user namespaces for confine, or boot a kernel with Landlock (5.13 or newer)", "run `confine doctor` for details"}}
}

var errProbeSlow = fmt.Errorf("the probe did not end within %v; this machine is too busy", probeTime)

// passing reports whether a failure says that something is short for now, not
// that the host refuses. To confine less because of it would make the first
// command of a busy moment decide for all that follow.
func passing(err error) bool {
	if errors.Is(err, errProbeSlow) {
		return true
	}
	var errno syscall.Errno
	return errors.As(err, &errno) && slices.Contains([]syscall.Errno{syscall.EMFILE, syscall.ENFILE, syscall.ENOMEM, syscall.EAGAIN, syscall.EINTR}, errno)
}

// confirm takes back every claim that a check contradicts, or that none tried.
func confirm(claims map[sandbox.Facet]sandbox.FacetReport, checks []sandbox.Check) map[sandbox.Facet]sandbox.FacetReport {
	facets := maps.Clone(claims)
	tried := map[sandbox.Facet]bool{}
	takeBack := func(facet sandbox.Facet, reason string) {
		if facets[facet].State == sandbox.Enforced {
			facets[facet] = sandbox.FacetReport{State: sandbox.Open, Reason: reason}
		}
	}
	for _, c := range checks {
		name, _, _ := strings.Cut(c.Name, ": ")
		tried[sandbox.Facet(name)] = true
		if !c.OK {
			takeBack(sandbox.Facet(name), "the probe found: "+c.Detail)
		}
	}
	for facet := range claims {
		if !tried[facet] {
			takeBack(facet, "the probe could not try it on this host")
		}
	}
	return facets
}

// probeOrders is what the probing child is told.
type probeOrders struct {
	Inside   string   // folder that must be writable
	Outside  []string // files that must not be created
	Beside   string   // file that may seem to be created, in a private folder, but must not appear
	File     string   // file outside whose metadata must not change
	Device   string   // device of the host that must not be opened; empty if there is none that we could open
	Address  string   // TCP listener on the host that must not be reached; empty if the network is granted or nothing can listen
	Abstract string   // abstract unix socket of the host
	Server   int      // process that must not be signalled
	Started  uint64   // when that process did; another one may have its number inside
}

// probeAt runs the very profile once with confine itself as the command, which
// tries what must work and what must not.
func (e *Engine) probeAt(ctx context.Context, key probeKey, namespaces bool) ([]sandbox.Check, error) {
	stage, err := e.newProbeStage(key)
	if err != nil {
		return nil, err
	}
	defer stage.close()
	orders, err := json.Marshal(stage.orders)
	if err != nil {
		return nil, err
	}
	session := fmt.Sprintf("\x00probe %v", key)
	defer e.CloseSession(session)
	policy := sandbox.Policy{Mode: key.mode, Network: key.network, Roots: []*sandbox.Root{stage.root}}
	spec := sandbox.Spec{RunID: "probe", Session: session, Argv: []string{"confine"}, Dir: stage.root.Path,
		Policy: policy, Timeout: probeTime, Env: append([]string{"PATH=/usr/bin:/bin"}, helperEnv...), SpillDir: stage.outside}
	program := resolved{path: scriptPath, argv: []string{"confine", "__probe", string(orders)}, script: e.self}
	v := verdict{namespaces: namespaces, claims: e.wrapper.Claims(policy, namespaces), provider: e.wrapper.Name(), kind: e.wrapper.Kind()}
	r, err := e.confine(spec, program, v)
	if err != nil {
		return nil, err
	}
	stop := context.AfterFunc(ctx, r.Cancel)
	defer stop()
	result, err := r.Wait()
	if err != nil {
		return nil, err
	}
	return stage.judge(r, result)
}

// probeStage is what a probe needs on the host.
type probeStage struct {
	dir, outside string
	root         *sandbox.Root
	orders       probeOrders
	tcp, unix    net.Listener
}

func (e *Engine) newProbeStage(key probeKey) (s *probeStage, err error) {
	s = &probeStage{}
	defer func() {
		if err != nil {
			s.close()
			err = fmt.Errorf("preparing the probe: %w", err)
		}
	}()
	if s.dir, err = os.MkdirTemp(e.home.dir, "probe-"); err != nil {
		return s, err
	}
	inside := filepath.Join(s.dir, "inside")
	s.outside = filepath.Join(s.dir, "outside")
	for _, dir := range []string{inside, s.outside} {
		if err = os.Mkdir(dir, 0o700); err != nil {
			return s, err
		}
	}
	file := filepath.Join(s.outside, "file")
	if err = os.WriteFile(file, []byte("host"), 0o600); err != nil {
		return s, err
	}
	if s.root, err = sandbox.DeclareRoot(inside, sandbox.Forbidden{}); err != nil {
		return s, err
	}
	// Beside the state folder, where nothing but the sandbox stops a write.
	beside := filepath.Join(filepath.Dir(e.options.StateDir), ".confine-"+filepath.Base(s.dir))
	server, _ := readProcess(os.Getpid())
	s.orders = probeOrders{Inside: s.root.Path, File: file, Device: hostDevice(), Server: server.pid, Started: server.start,
		Outside: []string{filepath.Join(s.outside, "new"), file}, Beside: beside}
	if key.mode == sandbox.ReadOnly {
		s.orders.Outside = append(s.orders.Outside, filepath.Join(inside, "new"))
		s.orders.Inside = ""
	}
	if !key.network {
		if s.tcp, err = net.Listen("tcp", "127.0.0.1:0"); err == nil {
			s.orders.Address = s.tcp.Addr().String()
		}
	}
	s.orders.Abstract = "@confine-" + e.home.id + filepath.Base(s.dir)
	s.unix, err = net.Listen("unix", s.orders.Abstract)
	return s, err
}

// hostDevice is a device that no command gets and that this process could open:
// that a command cannot then says something.
func hostDevice() string {
	for _, path := range []string{"/dev/fuse", "/dev/net/tun", "/dev/kvm", "/dev/kmsg", "/dev/vsock", "/dev/rfkill", "/dev/mem"} {
		if unix.Access(path, unix.W_OK) == nil {
			return path
		}
	}
	return ""
}

func (s *probeStage) close() {
	for _, l := range []net.Listener{s.tcp, s.unix} {
		if l != nil {
			l.Close()
		}
	}
	if s.root != nil {
		s.root.Close()
	}
	if s.orders.Beside != "" {
		os.Remove(s.orders.Beside) // left only by a sandbox that does not hold
	}
	removeTree(s.dir)
}

// judge reads the child's report and compares it with what is on the disk. An
// error means that this level cannot be used at all.
func (s *probeStage) judge(r *run, result sandbox.Result) ([]sandbox.Check, error) {
	text, _ := r.Output(sandbox.StdoutStream).Tail()
	var checks []sandbox.Check
	if err := json.Unmarshal([]byte(text), &checks); err != nil || len(checks) == 0 {
		if result.TimedOut {
			return nil, errProbeSlow
		}
		stderr, _ := r.Output(sandbox.StderrStream).Tail()
		return nil, fmt.Errorf("the probe gave no report (exit code %d, signal %q): %s", result.ExitCode, result.Signal, firstLine(stderr))
	}
	for _, path := range append(s.orders.Outside, s.orders.Beside) {
		if path == s.orders.File {
			continue
		}
		_, err := os.Lstat(path)
		checks = append(checks, sandbox.Check{Name: "fileWrite: nothing appeared outside", OK: errors.Is(err, os.ErrNotExist), Detail: path})
	}
	for _, c := range checks {
		if !c.OK && (strings.HasPrefix(c.Name, "fileWrite: ") || strings.HasPrefix(c.Name, "control: ")) {
			return nil, fmt.Errorf("the probe found that the sandbox does not hold: %s: %s", c.Name, c.Detail)
		}
	}
	return checks, nil
}

func firstLine(s string) string {
	line, _, _ := strings.Cut(strings.TrimSpace(s), "\n")
	return line
}

// Probe implements sandbox.Provider: the report is for workspace-write without
// network.
func (e *Engine) Probe(ctx context.Context) sandbox.Report {
	if e.wrapper == nil {
		return sandbox.Report{Provider: sandbox.ProviderNone, Usable: true, Reason: "nothing is confined"}
	}
	report := sandbox.Report{Provider: e.wrapper.Name(), Kind: e.wrapper.Kind()}
	if !e.enter() {
		report.Reason = errClosed.Error()
		return report
	}
	defer e.starting.Done()
	if err := e.guard.start(); err != nil { // a probe is a run like any other
		report.Reason = "starting the guardian: " + err.Error()
		return report
	}
	v, err := e.verdict(ctx, sandbox.Policy{Mode: sandbox.WorkspaceWrite})
	if err != nil {
		report.Reason = err.Error()
		var unavailable *sandbox.UnavailableError
		if errors.As(err, &unavailable) {
			report.Reason, report.Remedies = unavailable.Detail, unavailable.Remedies
		}
		return report
	}
	report.Usable, report.Version, report.Layers = true, v.claims.Version, v.claims.Layers
	report.Facets, report.Checks, report.Reason, report.Remedies = v.claims.Facets, v.checks, v.reason, v.claims.Remedies
	return report
}
