package sandbox_test

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/confine-dev/confine/sandbox"
)

func TestWay(t *testing.T) {
	top, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	at := func(name string) string { return filepath.Join(top, name) }
	for _, dir := range []string{"a/b", "c"} {
		if err := os.MkdirAll(at(dir), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	for link, target := range map[string]string{"a/rel": "../c", "abs": at("a"), "loop": "loop", "dangling": "missing/x"} {
		if err := os.Symlink(target, at(link)); err != nil {
			t.Skip(err)
		}
	}
	step := func(folder, name string, link bool) sandbox.Step {
		return sandbox.Step{Folder: filepath.Join(top, folder), Name: name, Link: link}
	}
	above := len(sandbox.Way(top))
	for _, test := range []struct {
		path string
		want []sandbox.Step
	}{
		{"a/b", []sandbox.Step{step("", "a", false), step("a", "b", false)}},
		{"a/rel/x", []sandbox.Step{step("", "a", false), step("a", "rel", true), step("", "c", false), step("c", "x", false)}},
		{"a/missing/x", []sandbox.Step{step("", "a", false), step("a", "missing", false)}},
		{"dangling", []sandbox.Step{step("", "dangling", true), step("", "missing", false)}},
	} {
		got := sandbox.Way(at(test.path))
		if !slices.Equal(got[above:], test.want) {
			t.Errorf("%s: got %+v, want %+v", test.path, got[above:], test.want)
		}
	}
	through := sandbox.Way(at("abs/b"))
	if last := through[len(through)-1]; last != step("a", "b", false) || !slices.Contains(through, step("", "abs", true)) {
		t.Errorf("through a link: %+v", through)
	}
	if n := len(sandbox.Way(at("loop"))); n > above+50 {
		t.Errorf("a loop has %d steps", n)
	}
}
