package main

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"github.com/confine-dev/confine/approval"
	"github.com/confine-dev/confine/cmd/confine/config"
	"github.com/confine-dev/confine/rpc/proto"
	"github.com/confine-dev/confine/rpc/server"
	"github.com/confine-dev/confine/sandbox/hide"
)

var configCommand = command{
	name:     "config",
	synopsis: "[--json] [--workspace DIR] | --schema",
	summary:  "Show the settings in force and where each comes from.",
	details: `
  --workspace DIR  also read DIR/.confine/config.toml, which may only tighten;
                   default: the current folder
  --json           print one object: settings (key, value, origin), warnings,
                   errors, refusal
  --schema         print a JSON Schema of the settings file instead

Exit status: 0; 1 if a file or variable has a mistake, so that nothing runs; 2 for
a mistake in these arguments. Lines that are ignored are warnings.`,
	run:    runConfig,
	failed: exitUnenforceable,
}

func runConfig(args []string) (int, error) {
	flags := newFlags("config")
	asJSON := flags.Bool("json", false, "")
	schema := flags.Bool("schema", false, "")
	workspace := flags.String("workspace", "", "")
	if err := parseOnlyFlags(flags, args); err != nil {
		return 0, err
	}
	if *schema {
		return 0, printSchema(os.Stdout)
	}
	folder, err := filepath.Abs(*workspace)
	if err != nil {
		return 0, fmt.Errorf("finding the workspace: %w", err)
	}
	snapshot, err := currentSettings(folder)
	switch {
	case err != nil && *asJSON:
		return exitUnenforceable, printJSON(&config.Snapshot{Values: []config.Value{}, Warnings: []string{}, Errors: []string{err.Error()}, Refusal: err.Error()})
	case err != nil:
		return 0, err
	case *asJSON:
		err = printJSON(snapshot)
	default:
		err = printSettings(os.Stdout, snapshot)
	}
	if err == nil && snapshot.Refusal != "" {
		return exitUnenforceable, nil
	}
	return 0, err
}

// currentSettings are what a server with this workspace folder would have.
func currentSettings(folder string) (*config.Snapshot, error) {
	source, err := openSettings(config.Options{})
	if err != nil {
		return nil, err
	}
	defer source.Close()
	c := source.Connect(func() {})
	defer c.Close()
	c.SetFolders([]string{folder})
	return c.Current(), nil
}

// openSettings reads the settings. Its errors say what to do.
func openSettings(o config.Options) (*config.Source, error) {
	source, err := config.Open(o)
	if err != nil {
		return nil, withHint(err, "correct it; docs/configuration.md lists what may stand there")
	}
	return source, nil
}

func printSchema(w io.Writer) error {
	encoder := json.NewEncoder(w)
	encoder.SetIndent("", "  ")
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(config.Schema()); err != nil {
		return fmt.Errorf("writing the schema: %w", err)
	}
	return nil
}

func printSettings(w io.Writer, s *config.Snapshot) error {
	var b strings.Builder
	for _, v := range s.Values {
		printRow(&b, "%-19s  %-22s  %s", v.Key, printable(shownValue(v.Value)), printable(v.Origin))
	}
	for _, warning := range s.Warnings {
		fmt.Fprintf(&b, "warning: %s\n", printable(warning))
	}
	if s.Refusal != "" {
		fmt.Fprintf(&b, "error: no command runs: %s\n", printable(s.Refusal))
	}
	if _, err := io.WriteString(w, b.String()); err != nil {
		return fmt.Errorf("writing the settings: %w", err)
	}
	return nil
}

// shownValue spells a value as the settings file has it.
func shownValue(value any) string {
	if value == nil {
		return "not set"
	}
	text, err := json.Marshal(value)
	if err != nil {
		return fmt.Sprint(value)
	}
	return string(text)
}

// configuration is the settings of one connection in the words of the server.
type configuration struct {
	*config.Connection
	make func(*config.Snapshot) *server.Settings

	mu   sync.Mutex // guards what follows
	of   *config.Snapshot
	made *server.Settings // of it
}

// Current implements server.Configuration.
func (c *configuration) Current() *server.Settings {
	c.mu.Lock()
	defer c.mu.Unlock()
	if now := c.Connection.Current(); now != c.of {
		c.of, c.made = now, c.make(now)
	}
	return c.made
}

func (w *wiring) serverSettings(from *config.Snapshot) *server.Settings {
	s := from.Settings
	choice := w.providers.under(s)
	policy := approval.Policy(s.ApprovalPolicy)
	if w.unasked && policy == approval.PolicyAsk { // what "untrusted" asks about must not run for want of somebody
		policy = approval.PolicyNever
	}
	return &server.Settings{
		Provider: s.ConfinedBy(), Mode: s.Mode, Network: s.Network, ApprovalPolicy: policy, Rules: s.Rules,
		WritableRoots: s.Writable(w.paths.Home), Limits: s.Limits,
		Refusal: from.Refusal, Shown: shownSettings(from), Problems: settingsProblems(from),
		Confined: choice.confined, Elsewhere: remotely(s), ConfinedReport: choice.report, Skipped: choice.skipped,
		Unreadable: w.finder(s).Find,
	}
}

// finder finds what commands cannot read. It knows what earlier ones found.
func (w *wiring) finder(s config.Settings) *hide.Finder {
	finder := hide.New(w.hidden(s), w.found.Load())
	w.found.Store(finder)
	return finder
}

// shownSettings are the settings as they go over the wire.
func shownSettings(s *config.Snapshot) []proto.Setting {
	list := make([]proto.Setting, len(s.Values))
	for i, v := range s.Values {
		list[i] = proto.Setting{Key: v.Key, Value: v.Value, Origin: v.Origin}
	}
	return list
}

func settingsProblems(s *config.Snapshot) []proto.SettingsProblem {
	list := []proto.SettingsProblem{}
	add := func(severity proto.Severity, message string) {
		list = append(list, proto.SettingsProblem{Severity: severity, Message: message})
	}
	if s.Refusal != "" {
		add(proto.SeverityError, "no command runs: "+s.Refusal)
	}
	for _, message := range s.Errors {
		add(proto.SeverityError, message)
	}
	for _, message := range s.Warnings {
		add(proto.SeverityWarning, message)
	}
	return list
}
