package local

import (
	"os"
	"path/filepath"
	"testing"
)

// TestFindingPrograms: by the names that people give them, and never a batch file.
func TestFindingPrograms(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"tool.exe", "old.com", "batch.bat", "batch.cmd"} {
		if err := os.WriteFile(filepath.Join(dir, name), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	env := []string{"A=PATH=x", `Path=C:\no\such\folder;` + dir}
	for name, want := range map[string]string{
		"tool": "tool.exe", "tool.exe": "tool.exe", "TOOL.EXE": "TOOL.EXE", "old.com": "old.com",
		filepath.Join(dir, "tool"): "tool.exe", `.\tool`: "tool.exe",
		"batch": "", "batch.bat": "", "batch.cmd": "", `.\batch.bat`: "", "nothing": "",
	} {
		got, err := lookPath(name, dir, pathOf(env))
		if want == "" && err == nil || want != "" && (err != nil || got != filepath.Join(dir, want)) {
			t.Errorf("%q is %q, %v", name, got, err)
		}
	}
}
