package rules

import (
	"strings"
	"testing"
)

func rule(d Decision, words string) Rule {
	return Rule{Decision: d, Command: strings.Fields(words), Origin: "here:1"}
}

func judge(script string, rs ...Rule) Verdict { return Rules(rs).Judge(Command{Script: script}) }

func TestOrder(t *testing.T) {
	allow, ask, deny := rule(Allow, "make"), rule(Ask, "make install"), rule(Deny, "make clean")
	for _, order := range []Rules{{allow, ask, deny}, {deny, ask, allow}, {ask, deny, allow}} {
		for script, want := range map[string]Decision{
			"make test":                   Allow,
			"make install":                Ask,
			"make clean":                  Deny,
			"make test && make clean":     Deny,
			"make install; make clean":    Deny,
			"make test && make install":   Ask,
			"make test && ls":             Allow,
			"make test && cc x.c":         "",
			"make; touch x; make install": Ask,
		} {
			if v := order.Judge(Command{Script: script}); v.Decision != want {
				t.Errorf("%s: %q (%s), want %q", script, v.Decision, v.Why, want)
			}
		}
	}
}

func TestWhy(t *testing.T) {
	r := rule(Deny, "git push")
	r.Reason = "use\x1b[2J the \u202erelease script"
	v := judge("git push", r)
	if v.Rule == nil || v.Rule.String() != "git push" || !strings.Contains(v.Why, "here:1") || !strings.Contains(v.Why, "release script") {
		t.Errorf("the verdict does not name rule and reason: %+v", v)
	}
	if strings.ContainsAny(v.Why, "\x1b\u202e") {
		t.Errorf("the reason is shown as it is: %q", v.Why)
	}
	if v := judge("touch " + strings.Repeat("x", 5000)); len(v.Why) > 400 {
		t.Errorf("the explanation has %d bytes", len(v.Why))
	}
}

func TestCheck(t *testing.T) {
	for _, r := range []Rule{rule(Allow, "git status"), rule(Deny, "/usr/bin/git"), rule(Ask, "rm -rf")} {
		if fault := r.Check(); fault != "" {
			t.Errorf("%v: %s", r, fault)
		}
	}
	for _, r := range []Rule{
		{}, rule("permit", "ls"), rule(Allow, ""), {Decision: Allow, Command: []string{"git status"}},
		{Decision: Deny, Command: []string{"", "x"}}, {Decision: Deny, Command: []string{"/"}},
	} {
		if r.Check() == "" {
			t.Errorf("%+v passes", r)
		}
	}
}

// Programs and arguments are judged as they are: nothing in them is a script.
func TestArguments(t *testing.T) {
	deny := Rules{rule(Deny, "git push")}
	for _, c := range []struct {
		want Decision
		argv []string
	}{
		{Allow, []string{"ls", "$(touch x)", ";", "*"}},
		{"", []string{"touch", "x"}},
		{"", []string{"ls", "\u202e"}},
		{Deny, []string{"/usr/bin/git", "-C", "x", "push"}},
		{Deny, []string{"env", "A=1", "git", "push"}},
		{Deny, []string{"bash", "-c", "ls; git push"}},
		{Allow, []string{"echo", "git push"}},
	} {
		if v := deny.Judge(Command{Argv: c.argv}); v.Decision != c.want {
			t.Errorf("%q: %q (%s), want %q", c.argv, v.Decision, v.Why, c.want)
		}
	}
}

func TestVariablesOfTheRequest(t *testing.T) {
	if v := (Rules{}).Judge(Command{Script: "ls", Env: true}); v.Decision != "" {
		t.Errorf("a request that sets variables is judged %q", v.Decision)
	}
	if v := (Rules{rule(Deny, "ls")}).Judge(Command{Script: "ls", Env: true}); v.Decision != Deny {
		t.Errorf("such a request escapes a rule that denies: %q", v.Decision)
	}
}

func TestQuietWithoutRules(t *testing.T) {
	for _, script := range []string{"$X", "if", "cat <<", strings.Repeat("(", 100), "curl x | sh"} {
		if v := judge(script); v.Decision != "" {
			t.Errorf("%s: %q without any rule that denies or asks", script, v.Decision)
		}
	}
}
