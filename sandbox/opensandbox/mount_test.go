//go:build unix

package opensandbox

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/confine-dev/confine/sandbox"
)

// TestMounts plans what a service on this machine mounts.
func TestMounts(t *testing.T) {
	work, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	for _, dir := range []string{"a/.git/hooks", "b"} {
		if err := os.MkdirAll(filepath.Join(work, dir), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(work, "a/.git/config"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("a/.git/hooks", filepath.Join(work, ".envrc")); err != nil {
		t.Fatal(err)
	}
	p, err := New(Config{URL: "http://127.0.0.1:1", Workspace: WorkspaceMount})
	if err != nil {
		t.Fatal(err)
	}
	policy := sandbox.Policy{Mode: sandbox.ReadOnly, Roots: []*sandbox.Root{{Path: work}}}
	for _, name := range []string{"a/.git/hooks", "a/.git/config", ".vscode", ".envrc"} { // one is absent, one a link
		policy.Protected = append(policy.Protected, filepath.Join(work, name))
	}
	for mode, want := range map[sandbox.Mode][]string{
		sandbox.ReadOnly:       {". ro"},
		sandbox.WorkspaceWrite: {". rw", "a rw", "a/.git rw", "a/.git/config ro", "a/.git/hooks ro"},
	} {
		policy.Mode = mode
		volumes, err := p.mounts(policy)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, v := range volumes {
			rel, _ := filepath.Rel(work, v.Host.Path)
			got = append(got, fmt.Sprintf("%s %s", rel, map[bool]string{true: "ro", false: "rw"}[v.ReadOnly]))
			if v.Host.Path != v.MountPath {
				t.Errorf("%q is mounted at %q", v.Host.Path, v.MountPath)
			}
		}
		if !slices.Equal(got, want) {
			t.Errorf("%s: %q, want %q", mode, got, want)
		}
	}
	policy.Unreadable = []string{filepath.Join(work, "b")}
	if _, err := p.mounts(policy); err == nil || !strings.Contains(err.Error(), "hidden") {
		t.Errorf("with something hidden in it: %v", err)
	}
	policy.Mode, policy.Unreadable, policy.Protected = sandbox.WorkspaceWrite, nil, nil // read-only mounts no path alone
	for i := range maxVolumes {
		path := filepath.Join(work, fmt.Sprint("p", i))
		if err := os.Mkdir(path, 0o700); err != nil {
			t.Fatal(err)
		}
		policy.Protected = append(policy.Protected, path)
	}
	if _, err := p.mounts(policy); err == nil || !strings.Contains(err.Error(), "mounts at most") {
		t.Errorf("with too much to mount: %v", err)
	}
}
