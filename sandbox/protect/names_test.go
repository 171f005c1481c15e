package protect

import (
	"os"
	"slices"
	"strings"
	"testing"
)

// TestNamesAreDocumented: a person reads which files a command cannot change, and each
// is noted where it is made deeper in a workspace.
func TestNamesAreDocumented(t *testing.T) {
	text, err := os.ReadFile("../../docs/security.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range slices.Concat(autoRun, alsoRun) {
		if !strings.Contains(string(text), "`"+name+"`") {
			t.Errorf("docs/security.md does not name %s", name)
		}
		if !Notable(name, true) || !Notable(name, false) {
			t.Errorf("%s is not noted when it is made", name)
		}
	}
	if Notable("src", true) || Notable("objects", false) || !Notable("objects", true) {
		t.Error("ordinary names are noted, or the parts of a bare repository are not")
	}
}
