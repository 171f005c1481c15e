package hide

import (
	"os"
	"slices"
	"strings"
	"testing"
)

// TestDocumented: docs/configuration.md names every place, with its group.
func TestDocumented(t *testing.T) {
	data, err := os.ReadFile("../../docs/configuration.md")
	if err != nil {
		t.Fatal(err)
	}
	rows := map[string]string{}
	for line := range strings.Lines(string(data)) {
		if cells := strings.Split(line, " | "); len(cells) == 3 {
			rows[strings.TrimPrefix(cells[0], "| ")] = cells[1]
		}
	}
	for _, s := range Stores {
		row, ok := rows[s.What]
		if !ok {
			t.Errorf("there is no row %q", s.What)
			continue
		}
		names := slices.Concat(s.Home, s.Mixed, s.Folders, s.Ordinary, s.System)
		for _, v := range s.Variables {
			names = append(names, v[0])
		}
		for _, name := range names {
			if !strings.Contains(row, "`"+name+"`") {
				t.Errorf("%s: %q is not there", s.What, name)
			}
		}
		for i, name := range strings.Split(row, "`") {
			if i%2 == 1 && !slices.Contains(names, name) {
				t.Errorf("%s: %q is not hidden", s.What, name)
			}
		}
	}
}
