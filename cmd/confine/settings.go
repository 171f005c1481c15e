package main

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/confine-dev/confine/cmd/confine/config"
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
		printRow(&b, "%-18s  %-22s  %s", v.Key, printable(shownValue(v.Value)), printable(v.Origin))
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
