package protect

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"

	"github.com/confine-dev/confine/sandbox"
)

// worktree makes a repository with one linked worktree, by git itself.
func worktree(t *testing.T) (repository, tree string) {
	t.Helper()
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip("git is not installed")
	}
	base, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	repository, tree = filepath.Join(base, "main"), filepath.Join(base, "tree")
	for _, args := range [][]string{
		{"init", "-q", repository},
		{"-C", repository, "-c", "user.name=a", "-c", "user.email=a@example.invalid", "commit", "-q", "--allow-empty", "-m", "a"},
		{"-C", repository, "worktree", "add", "-q", tree},
	} {
		cmd := exec.Command("git", args...)
		cmd.Env = append(os.Environ(), "HOME="+base, "GIT_CONFIG_NOSYSTEM=1")
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("git %v: %v\n%s", args, err, out)
		}
	}
	return repository, tree
}

func metadataOf(t *testing.T, folder string) (paths, protected []string) {
	t.Helper()
	root, err := sandbox.DeclareRoot(folder, sandbox.Forbidden{})
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	found := new(Finder).Find([]*sandbox.Root{root}, sandbox.Forbidden{})
	protected = found.Protected
	for _, r := range found.Metadata {
		paths = append(paths, r.Path)
		r.Close()
	}
	return paths, protected
}

func TestMetadataOfALinkedWorktree(t *testing.T) {
	repository, tree := worktree(t)
	paths, protected := metadataOf(t, tree)
	git := filepath.Join(repository, ".git")
	for _, want := range []string{"worktrees/tree", "objects", "refs", "logs"} {
		if !slices.Contains(paths, filepath.Join(git, want)) {
			t.Errorf("%s is not among the roots %q", want, paths)
		}
	}
	for _, path := range paths {
		for _, never := range []string{"hooks", "config", "info"} {
			if sandbox.Within(filepath.Join(git, never), path) {
				t.Errorf("root %q opens %s", path, never)
			}
		}
	}
	if want := filepath.Join(git, "worktrees/tree/commondir"); !slices.Contains(protected, want) {
		t.Errorf("%q is not protected: %q", want, protected)
	}
}

func TestMetadataBelievesOnlyTheRepository(t *testing.T) {
	write := func(path, text string) {
		t.Helper()
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	tests := map[string]func(workspace, victim string){
		"a pointer to any folder": func(workspace, victim string) {
			write(workspace+"/.git", "gitdir: "+victim+"\n")
		},
		"a forged worktree inside the workspace": func(workspace, victim string) {
			write(workspace+"/.git", "gitdir: "+workspace+"/fake\n")
			write(workspace+"/fake/commondir", victim+"\n")
			write(workspace+"/fake/gitdir", workspace+"/.git\n")
		},
		"a forged worktrees folder inside the workspace": func(workspace, victim string) {
			write(workspace+"/.git", "gitdir: "+workspace+"/worktrees/fake\n")
			write(workspace+"/worktrees/fake/commondir", victim+"\n")
			write(workspace+"/worktrees/fake/gitdir", workspace+"/.git\n")
		},
		"another worktree of the repository": func(workspace, victim string) {
			write(victim+"/worktrees/other/commondir", "../..\n")
			write(victim+"/worktrees/other/gitdir", victim+"/elsewhere/.git\n")
			write(victim+"/elsewhere/.git", "x")
			write(workspace+"/.git", "gitdir: "+victim+"/worktrees/other\n")
		},
		"a pointer that never ends": func(workspace, victim string) {
			write(workspace+"/.git", "gitdir: "+victim+"/worktrees/x\n")
			write(victim+"/worktrees/x/gitdir", workspace+"/.git\n")
			if err := os.Symlink("/dev/zero", victim+"/worktrees/x/commondir"); err != nil {
				t.Fatal(err)
			}
		},
	}
	for name, plant := range tests {
		t.Run(name, func(t *testing.T) {
			base, err := filepath.EvalSymlinks(t.TempDir())
			if err != nil {
				t.Fatal(err)
			}
			workspace, victim := filepath.Join(base, "ws"), filepath.Join(base, "victim")
			write(victim+"/objects/x", "")
			write(workspace+"/file", "")
			plant(workspace, victim)
			if paths, _ := metadataOf(t, workspace); len(paths) > 0 {
				t.Errorf("roots outside: %q", paths)
			}
		})
	}
}
