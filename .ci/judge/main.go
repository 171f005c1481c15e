// Command judge reads the output of "go test -json", prints what failed, and
// fails when a test failed, when nothing ran, or when a test was skipped that
// the list of allowed skips does not name for this step.
//
//	go test -json ./... | judge -step unit -allow skips.txt [-strict] [-totals FILE]
package main

import (
	"bufio"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"os"
	"path"
	"sort"
	"strings"
)

// event is one line of go test -json (go doc test2json).
type event struct {
	Action, Package, Test, Output, ImportPath string
}

// tally is what came of all tests. A test is known by package and name.
type tally struct {
	passed, failed, skipped map[string]bool
	running                 map[string]bool     // began and did not end
	output                  map[string][]string // of what has not passed
	broken                  map[string]bool     // packages that failed, failing tests or not
	notTests                []string            // lines that are not events, such as compiler messages
}

func main() {
	step := flag.String("step", "", "name of this step in the list of allowed skips")
	allow := flag.String("allow", "", "file of allowed skips: STEP PACKAGE TEST REASON, '*' for any")
	strict := flag.Bool("strict", false, "a skip that is not allowed is a failure")
	totals := flag.String("totals", "", "file to which 'passed failed skipped' is added")
	flag.Parse()

	allowed, err := readAllowed(*allow, *step)
	if err != nil {
		fmt.Fprintln(os.Stderr, "judge:", err)
		os.Exit(2)
	}
	t, err := read(os.Stdin)
	if err != nil {
		fmt.Fprintln(os.Stderr, "judge: reading events:", err)
		os.Exit(2)
	}
	ok := t.report(os.Stdout, allowed, *strict)
	if *totals != "" {
		if err := appendLine(*totals, fmt.Sprintf("%d %d %d", len(t.passed), len(t.failed), len(t.skipped))); err != nil {
			fmt.Fprintln(os.Stderr, "judge:", err)
			os.Exit(2)
		}
	}
	if !ok {
		os.Exit(1)
	}
}

func read(r io.Reader) (*tally, error) {
	t := &tally{
		passed: map[string]bool{}, failed: map[string]bool{}, skipped: map[string]bool{},
		running: map[string]bool{}, broken: map[string]bool{}, output: map[string][]string{},
	}
	lines := bufio.NewReader(r)
	for {
		line, err := lines.ReadString('\n')
		if line != "" {
			t.add(line)
		}
		if err == io.EOF {
			return t, nil
		}
		if err != nil {
			return nil, err
		}
	}
}

func (t *tally) add(line string) {
	var e event
	if json.Unmarshal([]byte(line), &e) != nil {
		t.notTests = append(t.notTests, line)
		return
	}
	key := e.Package + " " + e.Test
	switch e.Action {
	case "run":
		t.running[key] = true
	case "pass", "fail", "skip":
		delete(t.running, key)
	}
	switch e.Action {
	case "output":
		t.output[key] = append(t.output[key], e.Output)
	case "build-output":
		t.notTests = append(t.notTests, e.Output)
	case "build-fail":
		t.broken[strings.Fields(e.ImportPath)[0]] = true // "PACKAGE [PACKAGE.test]"
	case "pass":
		if e.Test != "" {
			t.passed[key] = true
		}
		delete(t.output, key)
	case "fail":
		if e.Test == "" {
			t.broken[e.Package] = true
		} else {
			t.failed[key] = true
		}
	case "skip":
		if e.Test != "" {
			t.skipped[key] = true
		}
	}
}

// report prints what matters and says whether all is well.
func (t *tally) report(w io.Writer, allowed []skip, strict bool) bool {
	for _, line := range t.notTests {
		fmt.Fprint(w, line)
	}
	for _, key := range keys(t.failed) {
		fmt.Fprintf(w, "FAILED %s\n%s", key, strings.Join(t.output[key], ""))
	}
	for _, key := range keys(t.running) {
		fmt.Fprintf(w, "FAILED %s did not end\n%s", key, strings.Join(t.output[key], ""))
	}
	for _, pkg := range keys(t.broken) {
		fmt.Fprintf(w, "FAILED package %s\n%s", pkg, strings.Join(t.output[pkg+" "], ""))
	}
	refused := 0
	for _, key := range keys(t.skipped) {
		reason, ok := reasonFor(allowed, key)
		switch {
		case ok:
			fmt.Fprintf(w, "skipped %s: %s\n", key, reason)
		case strict:
			refused++
			fmt.Fprintf(w, "FAILED %s was skipped, and the list of allowed skips does not name it\n%s", key, strings.Join(t.output[key], ""))
		default:
			fmt.Fprintf(w, "skipped %s\n%s", key, strings.Join(t.output[key], ""))
		}
	}
	if len(t.passed) == 0 {
		fmt.Fprintln(w, "FAILED: no test ran")
	}
	fmt.Fprintf(w, "%d passed, %d failed, %d skipped\n", len(t.passed), len(t.failed), len(t.skipped))
	return len(t.failed) == 0 && len(t.running) == 0 && len(t.broken) == 0 && refused == 0 && len(t.passed) > 0
}

func keys(set map[string]bool) []string {
	var out []string
	for key := range set {
		out = append(out, key)
	}
	sort.Strings(out)
	return out
}

// skip is one line of the list. Its parts are patterns of package path.
type skip struct{ pkg, test, reason string }

func readAllowed(file, step string) ([]skip, error) {
	if file == "" {
		return nil, nil
	}
	data, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("reading allowed skips: %w", err)
	}
	var out []skip
	for n, line := range strings.Split(string(data), "\n") {
		line = strings.TrimSpace(line)
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		parts := strings.Fields(line)
		if len(parts) < 4 {
			return nil, fmt.Errorf("%s:%d: want STEP PACKAGE TEST REASON", file, n+1)
		}
		if parts[0] == step || parts[0] == "*" {
			out = append(out, skip{parts[1], parts[2], strings.Join(parts[3:], " ")})
		}
	}
	return out, nil
}

func reasonFor(allowed []skip, key string) (string, bool) {
	pkg, test, _ := strings.Cut(key, " ")
	for _, s := range allowed {
		inPkg, err1 := path.Match(s.pkg, strings.TrimPrefix(pkg, "github.com/confine-dev/confine/"))
		isTest, err2 := path.Match(s.test, test)
		if err1 == nil && err2 == nil && inPkg && isTest {
			return s.reason, true
		}
	}
	return "", false
}

func appendLine(file, line string) error {
	f, err := os.OpenFile(file, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
	if err != nil {
		return fmt.Errorf("adding to totals: %w", err)
	}
	if _, err := fmt.Fprintln(f, line); err != nil {
		f.Close()
		return fmt.Errorf("adding to totals: %w", err)
	}
	return f.Close()
}
