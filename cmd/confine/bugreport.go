package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/confine-dev/confine/cmd/confine/config"
)

var bugReportCommand = command{
	name:     "bug-report",
	synopsis: "[--out FILE] [--log FILE] [--verify]",
	summary:  "Write a file with what a report of a bug needs, without secrets.",
	details: `
  --out FILE  where to write it: a new file, which only you can read; default:
              confine-bug-report-DATE-TIME.json in the current folder
  --log FILE  add the end of the log that "confine serve --log FILE" wrote; it
              holds commands
  --verify    add what "confine doctor --verify" finds

It has what the doctor says, the system, the names of all environment variables
and the values of a few. Keys, tokens, passwords, your home folder and the names
of you and this machine are replaced; no redaction is perfect, so read the file
before you send it. Nothing is sent.

Exit status: 0 if it was written, else 1; 2 for a mistake in these arguments.`,
	run:    runBugReport,
	failed: 1,
}

// bugReport is what is written, as one JSON object.
type bugReport struct {
	Format      int               `json:"bugReport"` // 1
	Made        string            `json:"made"`      // RFC 3339, UTC
	Doctor      diagnosis         `json:"doctor"`
	System      systemFacts       `json:"system"`
	Environment environmentReport `json:"environment"`
	Log         *logReport        `json:"log,omitempty"` // with --log only
	Audit       auditReport       `json:"audit"`
}

// environmentReport has every variable's name, and some values.
type environmentReport struct {
	Names  []string          `json:"names"`
	Values map[string]string `json:"values"`
}

// logReport is the end of a log.
type logReport struct {
	File  string   `json:"file"`
	Lines []string `json:"lines"`
	Error string   `json:"error,omitempty"` // why there are none
}

func runBugReport(args []string) (int, error) {
	flags := newFlags("bug-report")
	out := flags.String("out", "", "")
	log := flags.String("log", "", "")
	verify := flags.Bool("verify", false, "")
	if err := parseOnlyFlags(flags, args); err != nil {
		return 0, err
	}
	now := time.Now().UTC()
	if *out == "" {
		*out = now.Format("confine-bug-report-20060102-150405.json")
	}
	interrupts := watchInterrupts(nil)
	defer interrupts.stop()
	report := collect(interrupts.arrived, now, *log, doctorOptions{verify: *verify})
	if sig := interrupts.signal(); sig != nil {
		return interruptStatus(sig), nil
	}
	paths := config.FindPaths()
	r := newRedactor(append(environmentSecrets(os.Environ()), settingsSecrets(paths)...), thisIdentity(paths.Home, os.Getenv))
	text, err := r.report(report)
	if err != nil {
		return 0, err
	}
	if err := writeNew(*out, text); err != nil {
		return 0, err
	}
	fmt.Fprintln(os.Stdout, printable(*out))
	printNote("the report is in %q; replaced were %s", *out, r.tally())
	printHint("read it before you send it: what nobody can know to be secret is still in it")
	return 0, nil
}

// collect asks everything that goes into a report.
func collect(ctx context.Context, now time.Time, log string, o doctorOptions) bugReport {
	report := bugReport{
		Format: 1, Made: now.Format(time.RFC3339),
		Doctor:      diagnose(ctx, o),
		System:      readSystemFacts(),
		Environment: reportEnvironment(os.Environ()),
	}
	report.Audit = countAudit(filepath.Join(report.Doctor.Paths.State, auditName))
	if log != "" {
		report.Log = readLog(log)
	}
	return report
}

// shownVariables are those whose values help and are no secret.
var shownVariables = strings.Fields(`PATH HOME SHELL TERM COLORTERM LANG LC_ALL LC_CTYPE TMPDIR TZ XDG_CONFIG_HOME XDG_STATE_HOME
	XDG_RUNTIME_DIR XDG_SESSION_TYPE XDG_CURRENT_DESKTOP TERM_PROGRAM WSL_DISTRO_NAME container CI`)

func reportEnvironment(environ []string) environmentReport {
	shown := slices.Clone(shownVariables)
	for i := range config.Keys {
		if key := &config.Keys[i]; key.Env != "" && !key.Secret {
			shown = append(shown, key.Env)
		}
	}
	e := environmentReport{Names: []string{}, Values: map[string]string{}}
	for _, entry := range environ {
		name, value, _ := strings.Cut(entry, "=")
		e.Names = append(e.Names, name)
		if slices.Contains(shown, name) {
			e.Values[name] = value
		}
	}
	slices.Sort(e.Names)
	return e
}

// report is the text of a report without what nobody shall know.
func (r *redactor) report(report bugReport) (string, error) {
	if report.Log != nil { // the one thing with secrets of several lines
		whole := privateKey.ReplaceAllStringFunc(strings.Join(report.Log.Lines, "\n"), func(string) string {
			r.counts[hiddenSecret]++
			return hiddenSecret
		})
		report.Log.Lines = strings.Split(whole, "\n")
	}
	data, err := json.Marshal(report)
	if err != nil {
		return "", fmt.Errorf("encoding the report: %w", err)
	}
	decoder := json.NewDecoder(bytes.NewReader(data))
	decoder.UseNumber() // as they are
	var value map[string]any
	if err := decoder.Decode(&value); err != nil {
		return "", fmt.Errorf("encoding the report: %w", err)
	}
	r.cleanAll(value)
	value["redacted"] = r.counts
	var b bytes.Buffer
	encoder := json.NewEncoder(&b)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", "  ")
	if err := encoder.Encode(value); err != nil {
		return "", fmt.Errorf("encoding the report: %w", err)
	}
	return b.String(), nil
}

// tally says what was replaced how often.
func (r *redactor) tally() string {
	var parts []string
	for _, k := range []struct{ placeholder, name string }{
		{hiddenSecret, "secrets"}, {hiddenHome, "your home folder"}, {hiddenUser, "your name"}, {hiddenHost, "this machine's name"},
	} {
		parts = append(parts, fmt.Sprintf("%s %d times", k.name, r.counts[k.placeholder]))
	}
	return strings.Join(parts, ", ")
}

// writeNew writes a file that is not there yet, for its owner alone.
func writeNew(path, text string) error {
	file, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if errors.Is(err, fs.ErrExist) {
		return withHint(fmt.Errorf("writing the report: %q is there already", path), "name a new file with --out")
	}
	if err != nil {
		return withHint(fmt.Errorf("writing the report: %w", err), "name a file in a folder that you can write to with --out")
	}
	_, err = file.WriteString(text)
	if err := errors.Join(err, file.Close()); err != nil {
		os.Remove(path) // half a report helps nobody
		return fmt.Errorf("writing the report: %w", err)
	}
	return nil
}
