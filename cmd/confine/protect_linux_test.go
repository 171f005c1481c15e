package main

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/confine-dev/confine/rpc/proto"
	"github.com/confine-dev/confine/sandbox"
)

// repository makes the workspace a repository with one commit and, beside it, one
// to push to.
func repository(t *testing.T, w world) {
	t.Helper()
	if _, err := exec.LookPath("git"); err != nil {
		unavailable(t, "git is not installed")
	}
	w.git(t, "config", "--global", "user.name", "a")
	w.git(t, "config", "--global", "user.email", "a@example.invalid")
	w.git(t, "init", "-q", "-b", "main", ".")
	w.git(t, "commit", "-q", "--allow-empty", "-m", "one")
	w.git(t, "branch", "other")
	w.git(t, "remote", "add", "origin", ".")
	w.git(t, "fetch", "-q", "origin")
}

// git runs git as the person would, in the workspace.
func (w world) git(t *testing.T, args ...string) string {
	t.Helper()
	cmd := exec.Command("git", args...)
	cmd.Dir, cmd.Env = w.work, append(slices.Clone(w.env), "GIT_CONFIG_NOSYSTEM=1")
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("git %q: %v\n%s", args, err, out)
	}
	return string(out)
}

// asker is an editor that says yes to every question.
type asker struct {
	*editor
	t  *testing.T
	id int
}

func startAsker(t *testing.T, w world, provider string) *asker {
	t.Helper()
	w.configure(t, "sandbox_mode = \"workspace-write\"\nprovider = \""+provider+"\"\n")
	a := &asker{editor: startServe(t, w), t: t}
	a.request(proto.MethodInitialize, map[string]any{
		"capabilities":     map[string]any{"experimental": map[string]any{"confine": proto.ClientConfine{ProtocolVersion: 1, Approval: true}}},
		"workspaceFolders": []proto.WorkspaceFolder{{URI: fileURI(w.work), Name: "work"}},
	})
	a.answer("1")
	a.send(`{"jsonrpc":"2.0","method":"initialized","params":{}}`)
	return a
}

func (a *asker) request(method string, params any) {
	a.t.Helper()
	a.id++
	message, err := json.Marshal(map[string]any{"jsonrpc": "2.0", "id": a.id, "method": method, "params": params})
	if err != nil {
		a.t.Fatal(err)
	}
	a.send(string(message))
}

func (a *asker) result() (r proto.RunResult) {
	a.t.Helper()
	answer := a.answer(fmt.Sprint(a.id))
	if err := json.Unmarshal(answer["result"], &r); err != nil {
		a.t.Fatalf("%v: error %s", err, answer["error"])
	}
	return r
}

func (a *asker) run(command string) proto.RunResult {
	a.t.Helper()
	a.request(proto.MethodRunCommand, proto.RunCommandParams{Command: command})
	return a.result()
}

// again runs a command once more with what its result advised. The question must
// name that, as shown or, if nothing is, as it is.
func (a *asker) again(r proto.RunResult, shown ...string) proto.RunResult {
	a.t.Helper()
	a.request(proto.MethodRequestEscalation, proto.EscalationParams{RunID: r.RunID, Additional: r.Escalation.Additional, Justification: "x"})
	asked := a.await(func(m map[string]json.RawMessage) bool {
		return string(m["method"]) == `"`+proto.MethodRequestApproval+`"` || m["error"] != nil
	})
	var q proto.Question
	if err := json.Unmarshal(asked["params"], &q); err != nil {
		a.t.Fatalf("%v: %s", err, asked["error"])
	}
	if len(shown) == 0 {
		shown = r.Escalation.Additional.Write
	}
	for _, path := range shown {
		if !strings.Contains(q.Text, "«"+path+"»") {
			a.t.Errorf("the question does not name %s: %s", path, q.Text)
		}
	}
	a.send(fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"result":{"outcome":{"outcome":"selected","optionId":%q}}}`, asked["id"], q.Options[1].OptionID))
	return a.result()
}

// TestProtectedIsAskedFor: what a protected path refuses is a denial, and what the
// result advises makes the same command work.
func TestProtectedIsAskedFor(t *testing.T) {
	requireSandbox(t)
	for _, provider := range []string{sandbox.ProviderLandlock, sandbox.ProviderBwrap} {
		t.Run(provider, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			repository(t, w)
			if err := os.WriteFile(filepath.Join(w.work, ".mcp.json"), []byte("host"), 0o600); err != nil {
				t.Fatal(err)
			}
			a := startAsker(t, w, provider)
			for _, test := range []struct{ command, grant, check string }{
				{"git config a.b c", ".git/config", "git config a.b"},
				{"git remote add more .", ".git/config", "git remote get-url more"},
				{"git switch -q -C mine origin/other", ".git/config", "git config branch.mine.remote"},
				{"git init -q .", ".git/config", "true"},
				{"echo x > .git/hooks/pre-push", ".git/hooks", "test -e .git/hooks/pre-push"},
				{"mkdir -p .vscode && echo x > .vscode/tasks.json", ".vscode", "grep -q x .vscode/tasks.json"},
				{"echo x > .envrc", ".envrc", "grep -q x .envrc"},
				{"echo x > new && mv -T new .exrc", ".exrc", "grep -q x .exrc"},
				{"echo x > .mcp.json", ".mcp.json", "grep -q x .mcp.json"},
				{"echo x > .mcp.json~ && mv .mcp.json~ .mcp.json", ".mcp.json", "grep -q x .mcp.json"},
			} {
				refused := a.run(test.command)
				want := []string{filepath.Join(w.work, test.grant)}
				if !refused.Sandbox.Denied || refused.Escalation == nil || refused.Escalation.Additional == nil || !slices.Equal(refused.Escalation.Additional.Write, want) {
					t.Errorf("%s: denials %+v, escalation %+v, stderr %q", test.command, refused.Sandbox.Denials, refused.Escalation, refused.Stderr.Text)
					continue
				}
				if len(refused.Sandbox.Planted) > 0 {
					t.Errorf("%s: planted %q", test.command, refused.Sandbox.Planted)
				}
				allowed := a.again(refused)
				if allowed.ExitCode == nil || *allowed.ExitCode != 0 || allowed.Sandbox.Denied || len(allowed.Sandbox.Planted) > 0 {
					t.Errorf("%s, allowed: exit %v, denials %+v, planted %q, stderr %q", test.command, allowed.ExitCode, allowed.Sandbox.Denials, allowed.Sandbox.Planted, allowed.Stderr.Text)
				}
				check := exec.Command("bash", "-c", test.check)
				if check.Dir, check.Env = w.work, w.env; check.Run() != nil {
					t.Errorf("%s: it has not happened", test.command)
				}
			}
			a.leave()
			requireClean(t, w, ".envrc", ".exrc", ".git", ".mcp.json", ".vscode")
		})
	}
}

// requireClean fails if anything but these is in the workspace.
func requireClean(t *testing.T, w world, want ...string) {
	t.Helper()
	list, err := os.ReadDir(w.work)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, e := range list {
		names = append(names, e.Name())
	}
	if !slices.Equal(names, want) {
		t.Errorf("the workspace holds %q, want %q", names, want)
	}
	if _, err := os.Lstat(filepath.Join(w.work, ".git", "commondir")); err == nil {
		t.Error("a cover is left in the git folder")
	}
}

// awaitUncovered waits, not for ever, until nothing keeps paths absent.
func awaitUncovered(w world) {
	for end := time.Now().Add(20 * time.Second); time.Now().Before(end); time.Sleep(5 * time.Millisecond) {
		left := slices.ContainsFunc([]string{".envrc", ".gemini", ".git/commondir"}, func(name string) bool {
			_, err := os.Lstat(filepath.Join(w.work, name))
			return err == nil
		})
		if !left {
			return
		}
	}
}

// TestCoversEndWithTheServer: what keeps paths absent is gone when the run is over,
// and when the server is killed in the middle of one.
func TestCoversEndWithTheServer(t *testing.T) {
	requireSandbox(t)
	w := newWorld(t)
	repository(t, w)
	a := startAsker(t, w, sandbox.ProviderLandlock)
	if r := a.run("git status --porcelain; ls -d .envrc"); r.Stdout.Text != ".envrc\n" {
		t.Errorf("a command sees %q, %q", r.Stdout.Text, r.Stderr.Text)
	}
	awaitUncovered(w)
	requireClean(t, w, ".git")
	a.request(proto.MethodRunCommand, proto.RunCommandParams{Command: "echo begun; sleep 600", Background: true})
	a.result()
	if status := w.git(t, "status", "--porcelain"); status != "" {
		t.Errorf("the person's git sees %q", status)
	}
	if _, err := os.Lstat(filepath.Join(w.work, ".git", "commondir")); err != nil {
		t.Errorf("nothing keeps commondir absent: %v", err)
	}
	a.cmd.Process.Kill()
	a.cmd.Wait()
	awaitUncovered(w)
	requireClean(t, w, ".git")
}

// TestOrdinaryGit: what people do all day needs no question. A quick run does it with
// one provider.
func TestOrdinaryGit(t *testing.T) {
	requireSandbox(t)
	for _, provider := range []string{sandbox.ProviderLandlock, sandbox.ProviderBwrap} {
		if provider != sandbox.ProviderLandlock && !slow() {
			continue
		}
		t.Run(provider, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			repository(t, w)
			a := startAsker(t, w, provider)
			for _, command := range []string{
				"git status && git log --oneline && git diff",
				"echo a > a && git add a && git commit -qm a && git switch -q -c topic && echo b > b && git add b && git commit -qm b",
				"git switch -q main && echo c > c && git add c && git commit -qm c && git merge -q --no-edit topic",
				"git switch -q topic && git rebase -q main && git switch -q main && git merge -q topic && git branch -d topic && git tag v1",
				"echo more >> a && echo new > new && git stash -q -u && test ! -e new && git stash pop -q && test -e new",
				"git clean -qfd && git checkout -q a && test ! -e new && test -z \"$(git status --porcelain)\"",
				"echo p > p && git add p && git commit -qm p && git format-patch -q -1 -o patches && git reset -q --hard HEAD~1 && git am -q patches/* && rm -r patches",
				"git worktree add -q wt && cd wt && echo w > w && git add w && git commit -qm w && cd .. && git worktree remove wt && git worktree prune",
				"git gc -q && git fsck && git fetch -q origin && git repack -qad",
				"git init -q fresh && cd fresh && git config a.b c && git commit -q --allow-empty -m x && cd .. && rm -rf fresh",
				"git clone -q . copy && git -C copy log -1 --format=%s && rm -rf copy",
				"mkdir -p x/y && mv x z && rm -r z",
				"git bisect start HEAD HEAD~1 && git bisect reset && git notes add -m n && git reflog",
			} {
				r := a.run(command)
				if r.ExitCode == nil || *r.ExitCode != 0 || r.Sandbox.Denied || len(r.Sandbox.Planted) > 0 || r.Sandbox.Facets[sandbox.FileWrite].State != sandbox.Enforced {
					t.Errorf("%s: %v, denials %+v, planted %q, stderr %q", command, r.ExitCode, r.Sandbox.Denials, r.Sandbox.Planted, r.Stderr.Text)
				}
			}
			planted := []string{filepath.Join(w.work, "bare", "HEAD"), filepath.Join(w.work, "d", ".vscode"), filepath.Join(w.work, "moved", "in", ".git"), filepath.Join(w.work, "new", ".git")}
			if r := a.run("git init -q new && git -C new config core.fsmonitor x; mkdir -p d/.vscode; echo x > d/.vscode/tasks.json; git init -q m/in; mv m moved; git init -q --bare bare"); !slices.Equal(r.Sandbox.Planted, planted) || r.Sandbox.Facets[sandbox.FileWrite].State != sandbox.Partial {
				t.Errorf("planted is %q, %+v", r.Sandbox.Planted, r.Sandbox.Facets[sandbox.FileWrite])
			}
			if r := a.run("git -C new config core.fsmonitor y; git -C bare config core.fsmonitor y"); len(r.Sandbox.Denials) != 2 {
				t.Error("what was planted by one run can be changed by the next")
			}
			a.leave()
		})
	}
}
