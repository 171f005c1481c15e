package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"

	"github.com/confine-dev/confine/cmd/confine/config"
	"github.com/confine-dev/confine/rpc/proto"
	"github.com/confine-dev/confine/rpc/server"
	"github.com/confine-dev/confine/sandbox"
	"github.com/confine-dev/confine/sandbox/harden"
)

var doctorCommand = command{
	name:     "doctor",
	synopsis: "[--verify] [--json]",
	summary:  "Say what this machine can enforce and how confine is set.",
	details: `
Every provider is tried, not looked up. --json prints one object; its fields are
described in docs/troubleshooting.md and stay.

--verify takes a second or two more: confined children try everything that a
facet speaks of, in each mode, with and without the network, on every level that
this machine has, and what happened is compared with what is claimed.

Exit status: 0 if the configured mode can be enforced, else 1; 2 for a mistake in
these arguments. With --verify also 1 if nothing could be verified, and 3 if
something is not as claimed.`,
	run:    runDoctor,
	failed: exitUnenforceable,
}

// diagnosis is what `confine doctor --json` prints. The field names are
// stable; docs/troubleshooting.md describes them.
type diagnosis struct {
	proto.Record

	Paths diagnosedPaths `json:"paths"`
	Build buildFacts     `json:"build"`

	Verification *verification `json:"verification,omitempty"` // with --verify only
}

type diagnosedPaths struct {
	Settings       string `json:"settings"` // empty if there is no place for it
	SettingsExists bool   `json:"settingsExists"`
	State          string `json:"state"`
	StateProblem   string `json:"stateProblem,omitempty"` // why nothing can be kept there
	Program        string `json:"program"`
}

func runDoctor(args []string) (int, error) {
	var o doctorOptions
	flags := newFlags("doctor")
	asJSON := flags.Bool("json", false, "")
	flags.BoolVar(&o.verify, "verify", false, "")
	if err := parseOnlyFlags(flags, args); err != nil {
		return 0, err
	}
	interrupts := watchInterrupts(nil) // children and what they are to find are taken away in order
	defer interrupts.stop()
	d := diagnose(interrupts.arrived, o)
	if sig := interrupts.signal(); sig != nil {
		return interruptStatus(sig), nil
	}
	if *asJSON {
		return d.status(), printJSON(d)
	}
	var b strings.Builder
	d.print(&b)
	if _, err := io.WriteString(os.Stdout, b.String()); err != nil {
		return 0, fmt.Errorf("writing the diagnosis: %w", err)
	}
	return d.status(), nil
}

// doctorOptions are what the person asked for.
type doctorOptions struct{ verify bool }

// status is what the doctor exits with.
func (d diagnosis) status() int {
	switch {
	case d.Verification != nil && len(d.Verification.Problems) > 0 && d.Verification.tried():
		return exitContradicted
	case !d.OK, d.Verification != nil && !d.Verification.OK:
		return exitUnenforceable
	}
	return 0
}

// diagnose asks a server in this process, so that the answer is an editor's.
func diagnose(ctx context.Context, o doctorOptions) diagnosis {
	d := diagnosis{Record: proto.NewRecord(), Paths: diagnosePaths(config.FindPaths()), Build: readBuildFacts()}
	w, err := newWiring(wiringOptions{})
	if err != nil {
		d.problem(err)
		return d
	}
	defer w.close()
	if err := d.ask(ctx, w.server); err != nil {
		d.problem(err)
		return d
	}
	if o.verify {
		d.Verification = verify(ctx, w.providers.choice.known)
	}
	return d
}

// ask takes the record of a server.
func (d *diagnosis) ask(ctx context.Context, srv *server.Server) error {
	c, err := connect(ctx, srv, clientOptions{})
	if err != nil {
		return err
	}
	defer c.close()
	var capabilities proto.Capabilities
	if err := c.conn.Call(ctx, proto.MethodCapabilities, proto.CapabilitiesParams{Wait: true}, &capabilities); err != nil {
		return err
	}
	d.Record = capabilities.Record
	return nil
}

func (d *diagnosis) problem(err error) {
	text := err.Error()
	if h, ok := errors.AsType[hinter](err); ok {
		text += "; " + h.Hint()
	}
	d.Problems = append(d.Problems, text)
}

func diagnosePaths(paths config.Paths) diagnosedPaths {
	d := diagnosedPaths{Settings: paths.SettingsFile(), State: paths.StateDir}
	if _, err := os.Stat(d.Settings); d.Settings != "" && !errors.Is(err, fs.ErrNotExist) {
		d.SettingsExists = true
	}
	if err := config.EnsurePrivate(paths.StateDir); err != nil {
		d.StateProblem = err.Error()
	}
	d.Program, _ = os.Executable() // empty if it cannot be told
	return d
}

// print writes the diagnosis in plain words.
func (d diagnosis) print(w io.Writer) {
	fmt.Fprintf(w, "%s\n\n", d.summary())
	for _, problem := range d.Problems {
		fmt.Fprintf(w, "  problem: %s\n", printable(problem))
	}
	for _, hint := range d.Hints {
		fmt.Fprintf(w, "  hint: %s\n", printable(hint))
	}
	if len(d.Problems)+len(d.Hints) > 0 {
		fmt.Fprintln(w)
	}
	fmt.Fprintf(w, "Settings\n")
	for _, s := range d.Settings {
		printRow(w, "  %-19s  %-18s  %s", s.Key, printable(shownValue(s.Value)), printable(s.Origin))
	}
	for _, problem := range d.SettingsProblems {
		fmt.Fprintf(w, "  %s: %s\n", problem.Severity, printable(problem.Message))
	}
	if d.Paths.SettingsExists {
		fmt.Fprintf(w, "  file: %s\n", printable(d.Paths.Settings))
	} else {
		fmt.Fprintf(w, "  file: %s (does not exist)\n", printable(d.Paths.Settings))
	}
	fmt.Fprintf(w, "\nProviders\n")
	for _, report := range d.Providers {
		printReport(w, report)
	}
	if d.Verification != nil {
		d.Verification.print(w)
	}
	if d.Hardening != nil {
		fmt.Fprintf(w, "\nconfine's own process\n")
		printControl(w, "dumpable", d.Hardening.Dumpable)
		printControl(w, "no_new_privs", d.Hardening.NoNewPrivs)
		printControl(w, "core limit", d.Hardening.CoreLimit)
	}
	fmt.Fprintf(w, "\nPaths\n  state    %s\n  program  %s\n", printable(d.Paths.State), printable(d.Paths.Program))
	fmt.Fprintf(w, "\nVersion\n  %s\n", d.Build)
}

func (d diagnosis) summary() string {
	switch {
	case d.Mode == "":
		return "confine cannot run commands here."
	case !d.OK && d.Provider != sandbox.ProviderNone:
		return "No command runs until the settings are mended."
	case !d.OK && d.setting(config.KeyOnUnavailable) == "run-unconfined" && d.setting(config.KeyBackend) != sandbox.ProviderOpenSandbox:
		return fmt.Sprintf("Commands run with NOTHING that confines them: mode %s is configured and cannot be enforced, and on_unavailable is \"run-unconfined\".", d.Mode)
	case !d.OK:
		return fmt.Sprintf("Commands are refused: mode %s is configured and cannot be enforced.", d.Mode)
	case !d.Mode.Confined():
		return fmt.Sprintf("Commands run in mode %s: confine does not confine them.", d.Mode)
	case d.Provider == sandbox.ProviderOpenSandbox:
		return fmt.Sprintf("Commands are sent to a remote OpenSandbox in mode %s; what holds there its operator answers for.", d.Mode)
	}
	return fmt.Sprintf("Commands run in mode %s, confined by %s.", d.Mode, d.Provider)
}

// setting is the value of one key; nil if it is not known.
func (d diagnosis) setting(key string) any {
	for _, s := range d.Settings {
		if s.Key == key {
			return s.Value
		}
	}
	return nil
}

// printReport writes what one provider can do, and what it was seen to do.
func printReport(w io.Writer, report sandbox.Report) {
	name := report.Provider
	if report.Version != "" {
		name += " (" + report.Version + ")"
	}
	if !report.Usable {
		fmt.Fprintf(w, "  %s: not usable: %s\n", printable(name), printable(report.Reason))
	} else {
		fmt.Fprintf(w, "  %s: usable\n", printable(name))
		if report.Reason != "" {
			fmt.Fprintf(w, "    %s\n", printable(report.Reason))
		}
	}
	if len(report.Layers) > 0 {
		fmt.Fprintf(w, "    layers: %s\n", printable(strings.Join(report.Layers, ", ")))
	}
	if len(report.MissingRights) > 0 {
		fmt.Fprintf(w, "    this Landlock cannot refuse: %s\n", printable(strings.Join(report.MissingRights, "; ")))
	}
	for _, facet := range sandbox.Facets {
		if f, ok := report.Facets[facet]; ok {
			printRow(w, "    %-11s  %-10s  %s", facet, f.State, printable(f.Reason))
		}
	}
	for _, resource := range sandbox.Resources {
		if l, ok := report.Limits[resource]; ok {
			printRow(w, "    limit %-9s  %-10s  %s", resource, l.State, printable(l.Reason))
		}
	}
	for _, check := range report.Checks {
		outcome := "ok"
		if !check.OK {
			outcome = "failed"
		}
		printRow(w, "    check %s: %s %s", printable(check.Name), outcome, printable(check.Detail))
	}
	for _, remedy := range report.Remedies {
		fmt.Fprintf(w, "    remedy: %s\n", printable(remedy))
	}
}

// printControl writes how confine protects itself, and what is amiss.
func printControl[T comparable](w io.Writer, name string, c harden.Control[T]) {
	value := "not known"
	if c.Value != nil {
		value = fmt.Sprint(*c.Value)
	}
	printRow(w, "  %-15s  %-18s  %-18s  %s", name, value, printable(c.Source), printable(c.Error))
}

// printRow prints a line of columns, the last of which may be empty.
func printRow(w io.Writer, format string, columns ...any) {
	fmt.Fprintln(w, strings.TrimRight(fmt.Sprintf(format, columns...), " "))
}
