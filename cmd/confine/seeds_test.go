package main

import (
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// TestSeedTable: docs/seeds.md names tests and files that are there, each of them one,
// and every row that is not open names a test or script that shows it.
func TestSeedTable(t *testing.T) {
	top := repositoryTop(t)
	data, err := os.ReadFile(filepath.Join(top, "docs/seeds.md"))
	if err != nil {
		t.Fatal(err)
	}
	tests := testNames(t, top)
	rows := 0
	for n, line := range strings.Split(string(data), "\n") {
		cells := strings.Split(strings.Trim(line, "| "), " | ")
		if !strings.HasPrefix(line, "| ") || len(cells) != 5 || cells[0] == "Heading" {
			if strings.Count(line, " | ") >= 3 && cells[0] != "Heading" {
				t.Errorf("line %d has %d cells, want 5: %s", n+1, len(cells), line)
			}
			continue
		}
		rows++
		for _, fault := range rowFaults(top, tests, cells[2], cells[3], cells[4]) {
			t.Errorf("line %d, %q: %s", n+1, cells[1], fault)
		}
	}
	if rows < 100 {
		t.Errorf("the tables have %d rows; were some lost?", rows)
	}
}

var (
	quoted   = regexp.MustCompile("`([^`]+)`")
	testName = regexp.MustCompile(`^(?:(\w+)\.)?(Test[A-Z]\w*)$`)
	isPath   = regexp.MustCompile(`^[.a-z][\w.-]*(/[\w.-]+)+$`)
)

func rowFaults(top string, tests map[string][]string, state, here, shown string) (faults []string) {
	if state != "met" && state != "differs" && state != "open" {
		faults = append(faults, "the state is "+state)
	}
	proofs := 0
	for _, cell := range []string{here, shown} {
		for _, match := range quoted.FindAllStringSubmatch(cell, -1) {
			switch name := match[1]; {
			case testName.MatchString(name):
				proofs++
				parts := testName.FindStringSubmatch(name)
				switch in := tests[parts[2]]; {
				case len(in) == 0, parts[1] != "" && !slices.Contains(in, parts[1]):
					faults = append(faults, "there is no test "+name)
				case parts[1] == "" && len(in) > 1:
					faults = append(faults, "there is a test "+name+" in each of "+strings.Join(in, ", ")+": name the package, as in "+in[0]+"."+name)
				}
			case isPath.MatchString(name):
				if strings.Contains(name, "testdata/script/") || strings.HasPrefix(name, ".ci/") {
					proofs++
				}
				if _, err := os.Stat(filepath.Join(top, name)); err != nil {
					faults = append(faults, "there is no file "+name)
				}
			}
		}
	}
	if proofs == 0 && state != "open" {
		faults = append(faults, "nothing shows it")
	}
	return faults
}

// testNames are the names of all Go tests of the repository, with the last parts of
// the paths of the packages that have one of that name.
func testNames(t *testing.T, top string) map[string][]string {
	t.Helper()
	names := map[string][]string{}
	declared := regexp.MustCompile(`(?m)^func (Test[A-Z]\w*)\(t \*testing\.T\)`)
	for _, file := range sourceFiles(t) {
		if !file.test {
			continue
		}
		data, err := os.ReadFile(filepath.Join(top, file.name))
		if err != nil {
			t.Fatal(err)
		}
		for _, match := range declared.FindAllStringSubmatch(string(data), -1) {
			if pkg := path.Base(file.pkg); !slices.Contains(names[match[1]], pkg) { // systems have tests of one name
				names[match[1]] = append(names[match[1]], pkg)
			}
		}
	}
	return names
}

// TestSeedRows shows that the rule above can fail.
func TestSeedRows(t *testing.T) {
	top, tests := repositoryTop(t), map[string][]string{"TestThere": {"one"}, "TestTwice": {"one", "two"}}
	for row, want := range map[[3]string]int{
		{"met", "`sandbox/mode.go`", "`TestThere`"}:          0,
		{"open", "–", "–"}:                                   0,
		{"met", "`sandbox/mode.go`", "–"}:                    1,
		{"met", "`sandbox/no.go`", "`TestThere`"}:            1,
		{"met", "", "`TestThere`, `TestGone`"}:               1,
		{"met", "", "`one.TestThere`, `two.TestTwice`"}:      0,
		{"met", "", "`TestTwice`"}:                           1,
		{"met", "", "`two.TestThere`"}:                       1,
		{"done", "", "`TestThere`"}:                          1,
		{"differs", "", "`.ci/peer/checks_process.py`"}:      0,
		{"open", "`cmd/confine/testdata/script/no.txt`", ""}: 1,
	} {
		if got := rowFaults(top, tests, row[0], row[1], row[2]); len(got) != want {
			t.Errorf("%v: %d faults, want %d: %v", row, len(got), want, got)
		}
	}
}
