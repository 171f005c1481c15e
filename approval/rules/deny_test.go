package rules

import (
	"strings"
	"testing"
)

// Spellings of what a rule denies, and what only resembles it.
func TestDeny(t *testing.T) {
	for _, c := range []struct {
		rule          string
		denied, other []string
	}{
		{
			"git push",
			[]string{
				"git push", "git push origin main", "/usr/bin/git push", "./git push", "GIT push", `g"i"t 'pu'sh`, `\git p\ush`, "g\\\nit push", "$'\\x67it' push", `$'\147it' push`, `$'\u0067it' push`,
				"git -C x push", "git --no-pager push", "git -c a=b -c d push", "git --git-dir x push", "A=1 git push", "ls; git push", "ls && git push", "ls | git push", "ls\ngit push", "git push &",
				"(git push)", "{ git push; }", "if x; then git push; fi", "for i in a; do git push; done", "while git push; do x; done", "case a in a) git push;; esac", "f() { git push; }", "! git push", "time git push", "coproc git push",
				"echo $(git push)", "echo `git push`", `echo "$(git push)"`, "cat <(git push)", "x > >(git push)", "echo ${A:-$(git push)}", "A=$(git push)", "export A=$(git push)", "echo $(( $(git push) ))", "[[ $(git push) ]]", "cat <<E\n$(git push)\nE", "a[$(git push)]=1",
				"env git push", "env -u B A=1 git push", "env -i git push", "env -S 'git push'", "env --split-string='git push'", "sudo git push", "sudo -u root -n A=1 git push", "sudo -uroot git push", "doas git push", "nice -n 5 git push", "nice -5 git push", "nohup git push", "setsid -w git push",
				"timeout 5 git push", "timeout -k 1 5 git push", "timeout --signal=KILL 5 git push", "stdbuf -oL git push", "\\time -f x git push", "command git push", "builtin command git push", "exec git push", "exec -a x git push", "nice nohup env git push",
				"xargs git push", "xargs -n 1 -I {} git push {}", "ls | xargs -0 git push", "find . -exec git push {} +", "find . -execdir git push ';' -ok x ';'", "find . -ok x ';' -exec git push ';'", "busybox env git push", "chroot / git push", "flock f git push", "flock f -c 'git push'",
				"bash -c 'git push'", "sh -xc 'ls; git push'", "bash -lc 'git push' a b", "bash -euo pipefail -c 'git push'", "bash -O extglob -c 'git push'", "bash --norc -c 'git push'", "/bin/sh -c \"bash -c 'git push'\"", "zsh -c 'git push'", "su -c 'git push' root", "script -qc 'git push' f", "eval git push", "eval 'git push'", "watch git push",
				"bash <<E\ngit push\nE", "bash <<'E'\ngit push\nE", "sh <<< 'git push'", "trap 'git push' EXIT", "alias p='git push'", "git -c alias.p=push p", "git -c alias.p='!git push' p", "parallel git push ::: a",
				"env '-Sgit push'", "env '-iSgit push'", "env --split-string=git push", "env --split 'git push'", "su -c'git push' root", "su root -c 'git push'", "script f -c 'git push'", "runuser root -c 'git push'", "script -qc'git push' f",
				"time -- git push", ". /dev/stdin <<< 'git push'", "source /dev/stdin <<E\ngit push\nE", "setarch x86_64 git push", "choom -n 0 -- git push", "ssh-agent git push",
			},
			[]string{"git status", "git commit -m push", "echo git push", "git pushx", "mygit push", "grep -r 'git push' .", "# git push", "echo 'git push'", "git stash push", "ls push", "env -u git ls", "xargs -I git echo push", "git log --grep push", "cat <<'E'\ngit push\nE", "python3 push.py", `git commit -m "$MSG"`, "ls $X", "echo $X", "go test ./..."},
		},
		{"rm -rf", []string{"rm -rf /", "rm -fr x", "rm -r -f x", "rm x -rf", "rm -rvf x", "sudo rm -rf x", "rm --recursive --force x", "rm x --force -R", "rm --rec -f x", "rm -vR x --for", "find . -exec rm --force --recursive {} +"}, []string{"rm x", "rm -r x", "rm -f x", "rm -R x", "rm --recursive x", "rm --force ./-r", "ls -rf"}},
		{"rm --recursive", []string{"rm -r x", "rm -fR x", "rm --recursive x"}, []string{"rm -f x", "rm recursive", "cp -r x y"}},
		{"chmod -R", []string{"chmod -R a+w x", "chmod --recursive a+w x"}, []string{"chmod -r x", "chmod +x y"}},
		{"git push --force", []string{"git push --force", "git push origin --force", "git push --forc x", "git -C a push --force=x",
			"git push -f", "git push origin main -uf", "git -C a push -vf", "git push origin +main", "git push origin +$B"}, []string{"git push", "git push -n", "git push origin a+b", "git commit --force", "git commit -f", "git fetch -f"}},
		{"git push -f", []string{"git push --force", "git push -f", "git push origin +a:b"}, []string{"git push", "git push --follow-tags"}},
		{"docker system prune --all", []string{"docker system prune -a", "docker system prune -fa"}, []string{"docker system prune -f", "docker ps -a"}},
		{"curl --upload-file", []string{"curl -T x u", "curl -sT x u"}, []string{"curl -s u"}},
		{"/usr/bin/curl", []string{"curl x", "/bin/curl x"}, []string{"wget x"}},
		{"find -delete", []string{"find . -delete"}, []string{"find . -type d -empty -level"}},
	} {
		deny := rule(Deny, c.rule)
		for _, script := range c.denied {
			if v := judge(script, deny, rule(Allow, "git")); v.Decision != Deny {
				t.Errorf("%q with %s denied: %q (%s)", script, c.rule, v.Decision, v.Why)
			}
		}
		for _, script := range c.other {
			if v := judge(script, deny); v.Decision == Deny || v.Decision == Ask {
				t.Errorf("%q with %s denied: %q (%s)", script, c.rule, v.Decision, v.Why)
			}
		}
	}
}

// What could be denied and cannot be read is asked.
func TestDoubt(t *testing.T) {
	for _, script := range []string{
		"$X", "$X push", `"$X" push`, "git $X", `git "$X"`, "git $X push", "git p$X", "g$X push", "git${IFS}push", "g?t push", "/usr/bin/g*t push", "{git,push}", "git {push,x}", "~/git push", "git $'\\cx'",
		"eval $X", "bash -c \"$X\"", "curl x | sh", "bash $X", "bash", "echo x | bash -s", "bash <<E\n$X\nE", "sudo $X", "xargs git", "ls # x \\\ngit push", "coproc ls #\\\ngit push", "#\\\ngit push", "ls\\\n#\\\ngit push", "env -S \"$X\"", "sudo --unknown x git push",
		"xargs -I{} {} push", "xargs -I % sh -c %", "xargs -I{} sh -c '{}'", "parallel {} push ::: git", "shopt -s expand_aliases\nalias g=git\ng push",
		"if", "git push '", "echo $(", strings.Repeat("a", maxScript+1), strings.Repeat("env ", 50) + "ls", strings.Repeat("eval ", 50) + "ls",
	} {
		v := judge(script, rule(Deny, "git push"))
		if v.Decision != Ask && v.Decision != Deny || v.Rule == nil {
			t.Errorf("%.60q: %q (%s)", script, v.Decision, v.Why)
		}
	}
}

// So are options, by any of their names.
func TestDoubtOfOptions(t *testing.T) {
	for denied, scripts := range map[string][]string{
		"rm -rf":           {"rm $X y", "rm -r $X", `rm -f "$X"`, "rm --recursive -$X", "rm -{r,f} x"},
		"git push --force": {"git push $X", `git push "$X"`, `git push -u"$X" a`},
	} {
		for _, script := range scripts {
			if v := judge(script, rule(Deny, denied)); v.Decision != Ask {
				t.Errorf("%s: %q (%s)", script, v.Decision, v.Why)
			}
		}
	}
}

// An allow rule means what it says and no other name of it.
func TestAllowKnowsNoSynonyms(t *testing.T) {
	for allowed, scripts := range map[string][]string{
		"rm -r x":            {"rm --recursive x", "rm -R x"},
		"git push -n origin": {"git push --dry-run origin"},
	} {
		for _, script := range scripts {
			if v := judge(script, rule(Allow, allowed)); v.Decision != "" {
				t.Errorf("%s: %q (%s)", script, v.Decision, v.Why)
			}
		}
	}
}

// An ask rule is met in the same ways, and beats what allows.
func TestAsk(t *testing.T) {
	for _, script := range []string{"npm publish", "env npm --tag x publish", "bash -c 'npm publish'"} {
		if v := judge(script, rule(Allow, "npm"), rule(Ask, "npm publish")); v.Decision != Ask {
			t.Errorf("%s: %q (%s)", script, v.Decision, v.Why)
		}
	}
}
