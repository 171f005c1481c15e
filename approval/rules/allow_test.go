package rules

import (
	"strings"
	"testing"
)

func TestHarmless(t *testing.T) {
	for _, script := range []string{
		"ls -la", "git diff --stat HEAD", "git show HEAD:README", "cat README", "grep -rn hello .", "ls | head -20",
		"git status --short && git branch", "sed -n 1,5p README", "echo 'a > b; c | d'", `echo "it's"`, `grep 'a$b' f`,
		"cd src && ls", "(cd src; pwd)", "{ ls; pwd; }", "! grep x y", "git --no-pager log -3", "git diff HEAD~1 HEAD@{1}",
		"ls 2>/dev/null", "ls >/dev/null 2>&1", "wc -l < README", "ls # all of it", `\ls`, "'ls'", "find . -name '*.go' -type f", "rg --hidden TODO src",
		"sort -u f", "sort -t: -k2 f", "git log --oneline --format=%h", "command -v go", "git stash list", "date +%s", "cat <<< word",
		"git branch -vv", "git log -C", "git --no-pager diff -C", "git remote -v", "git for-each-ref --sort=refname", "uniq -c f", "uniq -", "cd -", "tail -n 5 f", "ls \\\n  -la", "cat Übersicht.md",
	} {
		if v := judge(script); v.Decision != Allow || v.Rule != nil {
			t.Errorf("%s: %q (%s)", script, v.Decision, v.Why)
		}
	}
}

// Each of these does more than read and print, or could.
func TestNotHarmless(t *testing.T) {
	for _, script := range []string{
		// options
		"git diff --output=x", "git diff --outp x", "git log --output x", "git show --ext-diff", "git diff --ext", "git log --textconv",
		"git log --show-signature", "git log --format=%G?", "git log --format=%+GK", "git log --format=%-GK", "git log '--format=% GK'", "git for-each-ref --format='%(*signature)'", "git for-each-ref --sort=signature", "git for-each-ref --sort -signature:key", "git status --help", "git for-each-ref --help", "git for-each-ref --format='%(signature)'", "git grep -Oless x", "git grep -nO x", "git grep --open-files x",
		"git branch new", "git branch -D old", "git branch -m a b", "git branch --edit-description", "git remote add o u", "git remote -v update", "git tag v1", "git tag -d v1",
		"git reflog expire", "git reflog delete x", "git stash", "git stash pop", "git worktree add x", "git cat-file --filters x", "git cat-file --textconv x",
		"git -c alias.x=!touch status", "git -c core.fsmonitor=x status", "git --exec-path=x status", "git --config-env=a=b status", "git --git-dir=x log", "git -p log", "git checkout .", "git", "git -C sub status", "git --no-pager -C sub log", "cd sub && git status", "git status; cd sub; git log",
		"sort -o f f", "sort -uo f f", "sort --output=f f", "sort --outp f f", "sort --compress-program=x f", "sort --compress=x f", "sort -T d f",
		"rg --pre x y", "rg --pre=x y", "rg -z x", "rg --search-zip x", "rg --hostname-bin=x y", "fd -x rm", "fd --exec rm", "fd -X rm", "fd -HX rm",
		"find . -delete", "find . -exec rm {} +", "find . -execdir x ';'", "find . -ok x ';'", "find . -okdir x ';'", "find . -fprint x", "find . -fprintf x y", "find . -fprint0 x", "find . -fls x",
		"sed -i s/a/b/ f", "sed -ni 1p f", "sed -n 'w x' f", "sed '1e touch x' f", "sed --in-place 1p f", "sed -n 1p f -i", "sed -e 1p f", "sed -f x f", "sed s/a/b/w f", "sed", "sed -n",
		"tree -o x", "tree -aR", "file -C", "file -z x", "diff -l a b", "diff --paginate a b", "uniq a b", "uniq - b", "uniq -- a b", "uniq -- -a b", "uniq a -", "date -s now", "date 0101", "date --set=x",
		"tar -xf a --to-command=x", "awk 'BEGIN{system(\"x\")}'", "python3 -c x", "dd if=a of=b", "tee x", "printf -v a x", "printf %n 'a[$(x)]'", "test -v 'a[$(x)]'", "[ -v 'a[$(x)]' ]",
		// ways around a name
		"./ls", "/tmp/ls", "bin/git status", "LS", "Git status", "ls() { touch x; }; ls", "function ls { touch x; }", "alias ls=x", "shopt -s expand_aliases\nalias ls=x\nls",
		"PATH=. ls", "A=1", "GIT_EXTERNAL_DIFF=x git diff", "export PATH=.", "hash -p ./x ls", "enable -f x ls", "unset PATH",
		"env ls", "env X=1 touch x", "sudo ls", "nice ls", "nohup ls", "xargs ls", "ls | xargs rm", "time ls", "exec ls", "eval ls", "command ls", "builtin cd x", "bash -c ls", "sh", "ls | sh", ". ./x", "source x", "coproc ls",
		"command -pv ls", "trap 'touch x' EXIT", "timeout 1 ls",
		// what the shell expands
		"$X", "ls $X", `ls "$X"`, "ls $(x)", "ls `x`", `echo "$(x)"`, "echo $((a[$(x)]))", "cat <(x)", "ls > >(tee x)", "{touch,x}", "ls {a,b}", `ls {a","b}`, "ls {1..3}", "$'\\x74ouch' x", "ls $'a'", `ls $"a"`, "/usr/bin/touc? x", "ls *", "ls a?b", "ls [ab]", "ls ~", "ls a=~", "ls @(a|b)", "git${IFS}status", "${X:-ls}",
		// redirections
		"echo hi > x", "echo hi >> x", "echo hi >| x", "cat <> x", "ls &> x", "ls &>> x", "ls 2> x", "ls >& x", "cat < /dev/tcp/h/1", "ls > /dev/tcp/h/1", "ls {fd}> /dev/null", "> x", "cat <<E\n$(x)\nE", "cat <<'E'\nx\nE", "cat <<-E\nx\n\tE", "ls 2>&3", "ls > $X",
		// shapes
		"ls &", "ls & touch x", "if true; then ls; fi", "for i in 1; do ls; done", "while true; do ls; done", "case a in a) ls;; esac", "[[ -v 'a[$(x)]' ]]", "(( a ))", "let a", "declare a=1", "select x in a; do ls; done", "",
		// lines and characters
		"git status\ntouch x", "git status # list only\ntouch x", "git status\r\ntouch x", "ls\rtouch x", "ls\u2028touch x", "ls \u3000x", "ls \u00a0x", "l\u200bs", "ls \x1b[2K", "ls \x9b", "ls \xff", "ls #\\\ntouch x", "ls a\\\n;touch x", "ls ';' ; touch x", "ls 'a\ntouch x", "ls '' \"\" ; touch x",
		strings.Repeat("true; ", 60) + "touch x", "ls " + strings.Repeat("a", 70<<10) + "; touch x",
	} {
		if v := judge(script); v.Decision != "" || v.Why == "" {
			t.Errorf("%.80q: %q (%s)", script, v.Decision, v.Why)
		}
	}
}

// A rule of the person says what may run, not that it may do anything.
func TestAllowRules(t *testing.T) {
	for _, c := range []struct{ rule, covered, not string }{
		{"make", "make; make -j4 test; make && ls", "make > x; ./make; MAKE; CC=x make; make $T; make | tee x; makefoo"},
		{"npm run test", "npm run test; npm run test -- --watch", "npm run; npm run tests; npm run build; npm --prefix x run test"},
		{"./gradlew", "./gradlew test", "gradlew test; sub/../gradlew; ./gradlew test && ./x"},
		{"git", "git push origin main; git commit -m x", "git -c a.b=c status; git --exec-path=x y; git diff --output=x; git grep -Ox y; git submodule foreach x; git rebase -x y; git bisect run y; git submodule --quiet foreach y; git submodule -q foreach y; git tag --format=%(*signature)"},
		{"/usr/bin/git", "/usr/bin/git push", "/usr/bin/git -p log; /usr/bin/git diff --output=x"},
		{"/usr/bin/find", "/usr/bin/find . -newer x", "/usr/bin/find . -delete"},
		{"git diff", "git diff HEAD", "git diff --output=x; git diff --ext-diff; git -c a=b diff"},
		{"git diff --output", "git diff --output x", "git diff --ext-diff; git diff --output x --ext-diff"},
		{"find", "find . -newer x", "find . -delete; find . -exec y +"},
		{"sort", "sort -n f", "sort -o f f"},
		{"sed", "sed -n 3p f; sed -E 1,3d f", "sed -i 3d f; sed s/a/b/e f; sed '1w x' f"},
		{"tar", "tar -xf a.tar", "tar -xf a --to-command=x; tar -cf a b --checkpoint-action=exec=x; tar -I x -cf a b; tar cIf x a b; tar xfF a x"},
		{"go test", "go test ./... -count=1", "go test -exec x .; go test -exec=x .; go test --toolexec x ."},
		{"go", "go vet ./...", "go vet -vettool=x ./...; go build -toolexec=x"},
		{"ssh box", "ssh box ls", "ssh -oProxyCommand=x box; ssh box -o ProxyCommand=x; ssh -F x box"},
		{"curl", "curl -sSL https://host/x; curl --connect-timeout 3 x", "curl -o x y; curl -sLO y; curl --output=x y; curl -K x; curl --trace x y"},
		{"wget", "wget -q x", "wget --use-askpass=x y; wget -e a=b x"},
		{"pushd", "pushd sub; pushd sub && ls", "pushd sub && git status"},
		{"env", "env", "env touch x"},
		{"bash", "", "bash -c x; bash x.sh"},
		{"timeout 60 make", "timeout 60 make", "timeout 60 make x; timeout 60 cc"},
		{"sudo apt-get update", "sudo apt-get update", "sudo apt-get update x"},
	} {
		for want, list := range map[Decision]string{Allow: c.covered, "": c.not} {
			for script := range strings.SplitSeq(list, "; ") {
				if v := judge(script, rule(Allow, c.rule)); script != "" && v.Decision != want {
					t.Errorf("%s, with %s allowed: %q (%s), want %q", script, c.rule, v.Decision, v.Why, want)
				}
			}
		}
	}
}
