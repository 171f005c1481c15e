package main

import (
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/confine-dev/confine/cmd/confine/config"
	"github.com/confine-dev/confine/rpc/proto"
	"github.com/confine-dev/confine/sandbox"
	"github.com/confine-dev/confine/sandbox/harden"
)

var setupCommand = command{
	name:     "setup",
	synopsis: "--status [--json]",
	summary:  "Say in a line each what is set up and what is missing.",
	details: `
It changes no setting: there is nothing that confine has to set up. Each line has
a name, a state (ok, partly, missing, failed, off) and what there is to say. More
is in "confine doctor", of which --json prints the object.

Exit status: 0 if the configured mode can be enforced, else 1; 2 for a mistake in
these arguments.`,
	run:    runSetup,
	failed: exitUnenforceable,
}

func runSetup(args []string) (int, error) {
	flags := newFlags("setup")
	status := flags.Bool("status", false, "")
	asJSON := flags.Bool("json", false, "")
	if err := parseOnlyFlags(flags, args); err != nil {
		return 0, err
	}
	if !*status {
		return 0, usageErrorf("run \"confine setup --status\"; what can be set is in docs/configuration.md", "setup changes nothing and can only show the status")
	}
	interrupts := watchInterrupts(nil)
	defer interrupts.stop()
	d := diagnose(interrupts.arrived, doctorOptions{})
	if sig := interrupts.signal(); sig != nil {
		return interruptStatus(sig), nil
	}
	if *asJSON {
		return d.status(), printJSON(d)
	}
	var b strings.Builder
	for _, line := range d.statusLines() {
		line.print(&b)
	}
	if _, err := io.WriteString(os.Stdout, b.String()); err != nil {
		return 0, fmt.Errorf("writing the status: %w", err)
	}
	return d.status(), nil
}

// The states of what is set up.
const (
	stateOK      = "ok"
	statePartly  = "partly"  // it works, with less than it could have
	stateMissing = "missing" // it is not there or not usable, and something else does its work
	stateFailed  = "failed"  // commands are refused, or run with nothing that confines them
	stateOff     = "off"     // by choice
)

// statusLine is one thing and how it is.
type statusLine struct{ name, state, details string }

func (l statusLine) print(w io.Writer) {
	printRow(w, "%-12s  %-7s  %s", printable(l.name), l.state, printable(l.details))
}

// statusLines has a line for each thing, the verdict first.
func (d diagnosis) statusLines() []statusLine {
	lines := []statusLine{d.sandboxLine()}
	for _, report := range d.Providers {
		lines = append(lines, providerLine(report))
	}
	lines = append(lines, d.settingsLine())
	if d.Hardening != nil {
		lines = append(lines, hardeningLine(*d.Hardening))
	}
	for _, hint := range d.Hints {
		lines = append(lines, statusLine{"environment", statePartly, hint})
	}
	state := statusLine{"state", stateOK, d.Paths.State}
	if d.Paths.StateProblem != "" {
		state.state, state.details = stateFailed, d.Paths.StateProblem
	}
	return append(lines, state, statusLine{"version", stateOK, d.Build.String()})
}

func (d diagnosis) sandboxLine() statusLine {
	state := stateOK
	switch {
	case !d.OK:
		state = stateFailed
	case !d.Mode.Confined():
		state = stateOff
	}
	details := d.summary()
	if len(d.Providers) == 0 { // else their lines and that of the settings say why
		details = strings.Join(append([]string{details}, d.Problems...), " ")
	}
	return statusLine{"sandbox", state, details}
}

func providerLine(r sandbox.Report) statusLine {
	var said []string
	add := func(text string) {
		if text != "" {
			said = append(said, text)
		}
	}
	add(r.Version)
	add(strings.Join(r.Layers, ", "))
	add(r.Reason)
	if len(r.MissingRights) > 0 {
		add("this Landlock cannot refuse " + strings.Join(r.MissingRights, ", "))
	}
	said = append(said, r.Remedies...)
	state := stateOK
	switch {
	case !r.Usable:
		state = stateMissing
	case r.Reason != "" || len(r.MissingRights) > 0:
		state = statePartly
	}
	return statusLine{r.Provider, state, strings.Join(said, "; ")}
}

func (d diagnosis) settingsLine() statusLine {
	set := 0
	for _, s := range d.Settings {
		if s.Origin != config.OriginDefault {
			set++
		}
	}
	line := statusLine{"settings", stateOK, fmt.Sprintf("%d of %d set; file %s", set, len(d.Settings), d.Paths.Settings)}
	if !d.Paths.SettingsExists {
		line.details += " (does not exist)"
	}
	for _, problem := range d.SettingsProblems {
		if line.state == stateOK {
			line.state = statePartly
		}
		if problem.Severity == proto.SeverityError {
			line.state = stateFailed
		}
		line.details += "; " + problem.Message
	}
	if len(d.Settings) == 0 { // why is said of the sandbox
		line.state, line.details = stateFailed, "not read; file "+d.Paths.Settings
	}
	return line
}

func hardeningLine(s harden.State) statusLine {
	line := statusLine{"hardening", stateOK, "confine's own process"}
	say := func(name string, held bool, problem string) {
		if problem == "" && held {
			return
		}
		line.state = statePartly
		line.details += "; " + strings.TrimSuffix(name+": "+problem, ": ")
	}
	say("dumpable", s.Dumpable.Held(), s.Dumpable.Error)
	say("no_new_privs", s.NoNewPrivs.Held(), s.NoNewPrivs.Error)
	say("core limit", s.CoreLimit.Held(), s.CoreLimit.Error)
	return line
}
