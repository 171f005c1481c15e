package rules

import (
	"iter"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// pieces are what scripts for TestAllowedAgainstBash are put together from: every
// character that means something to a shell, in the company in which it does.
var pieces = []string{
	"ls", "echo a", "true", "pwn", " ", "\n", ";", "&&", "||", "|", "&", "(", ")", "{ ", ";}", "'", `"`, `\`,
	"\\\n", "#", " #", " #\\\n", "$", "`", "$(", "$'", `$"`, "${", "}", "<", ">", "<<", "<<E\n", "\nE\n", "<<<", "<(", "/dev/null", "2>&1", "!", "=", "A=", "~", "*", "?", "[", "]", "@(", ",", "..",
	"if ", "then ", "fi", "do ", "done", "case ", "in ", "esac", "function ", "() ", "time ", "coproc ", "[[ ", "]]", "((", "))", "\t", "\r", "\v", "\u00a0", "--", "-n", "cd", "sed -n ", "1p", "E",
}

// TestAgainstBash lets a real bash run made scripts that name a command, pwn, of
// which the rules say that it does not run: those that are allowed, and those in
// which a rule that denies it finds nothing. The parser and bash do not read every
// script alike.
func TestAgainstBash(t *testing.T) {
	bash, err := exec.LookPath("bash")
	if err != nil {
		if os.Getenv("CI") != "" {
			t.Fatal("no bash")
		}
		t.Skip("no bash to compare with")
	}
	dir := t.TempDir()
	marker := filepath.Join(dir, "ran")
	bin := filepath.Join(dir, "bin")
	if err := os.Mkdir(bin, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(bin, "pwn"), []byte("#!"+bash+"\n: > '"+marker+"'\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	slow := os.Getenv("CONFINE_SLOW") != ""
	run := func(script string) bool {
		cmd := exec.Command(bash, "-c", script)
		cmd.Dir, cmd.Env = dir, []string{"PATH=" + bin}
		cmd.Run() // however it ends
		_, err := os.Stat(marker)
		os.Remove(marker)
		return err == nil
	}
	if !run("pwn") {
		t.Fatal("the test cannot see that a command ran")
	}
	allowed, passed := 0, 0
	for script := range madeScripts(slow) {
		if judge(script).Decision == Allow {
			// Each takes a process: a quick run tries every fourth.
			if allowed++; (slow || allowed%4 == 0) && run(script) {
				t.Errorf("allowed, and bash runs pwn: %q", script)
			}
			continue
		}
		switch judge(script, rule(Deny, "pwn")).Decision {
		case Deny, Ask:
			continue
		}
		if passed++; passed%8 == 0 && run(script) {
			t.Errorf("not denied, and bash runs pwn: %q", script)
		}
	}
	if allowed < 50 || passed < 50 {
		t.Errorf("only %d scripts that name pwn were allowed, and only %d not denied", allowed, passed)
	}
	t.Logf("%d allowed scripts and %d that are not denied", allowed, passed)
}

// madeScripts puts pwn behind ls and every two pieces; if there is time, also before
// a third, and among random ones.
func madeScripts(slow bool) iter.Seq[string] {
	return func(yield func(string) bool) {
		ends := []string{""}
		if slow {
			for i := 0; i < len(pieces); i += 3 {
				ends = append(ends, pieces[i])
			}
		}
		for _, first := range pieces {
			for _, second := range pieces {
				for _, end := range ends {
					if !yield("ls" + first + second + "pwn" + end) {
						return
					}
				}
			}
		}
		if !slow {
			return
		}
		r := rand.New(rand.NewPCG(1, 2))
		for range 200_000 {
			var b strings.Builder
			for range 2 + r.IntN(12) {
				b.WriteString(pieces[r.IntN(len(pieces))])
			}
			if script := b.String(); strings.Contains(script, "pwn") && !yield(script) {
				return
			}
		}
	}
}

// FuzzJudge wants no panic, and no allowing of a script in which the parser finds a
// command that is neither harmless nor in a rule.
func FuzzJudge(f *testing.F) {
	for _, seed := range []string{"ls", "git push", "ls #\\\npwn", "env -S 'a b' c", "find . -exec a ;", "bash -c 'x'", "cat <<E\na\nE", "$'\\x41'", "{a,b}", "sudo -", "xargs", "git -c alias.x=y"} {
		f.Add(seed)
	}
	rs := Rules{rule(Allow, "make"), rule(Ask, "npm publish"), rule(Deny, "git push --force")}
	f.Fuzz(func(t *testing.T, script string) {
		v := rs.Judge(Command{Script: script})
		rs.Judge(Command{Argv: append([]string{"env"}, strings.Fields(script)...)})
		if v.Decision != Allow {
			return
		}
		s := read(Command{Script: script})
		for _, c := range s.calls {
			if words := c.texts(); !c.inner && !harmless(words) && words[0] != "make" {
				t.Errorf("%q is allowed with %q", script, words)
			}
			for _, w := range c.words {
				if !c.inner && !w.plain {
					t.Errorf("%q is allowed with %q, which is not literal", script, w.text)
				}
			}
		}
	})
}
