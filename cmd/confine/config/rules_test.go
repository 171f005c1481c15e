package config

import (
	"slices"
	"strings"
	"testing"
)

// words lists rules as decision and command, with nothing of their origin.
func words(s *Snapshot) []string {
	list := []string{}
	for _, r := range s.Settings.Rules {
		list = append(list, string(r.Decision)+" "+r.String())
	}
	slices.Sort(list)
	return list
}

// one is a rule as a list, in TOML and in JSON.
func one(t *testing.T, layer, decision string) string {
	t.Helper()
	if strings.Contains(layer, "editor") || layer == "command line" {
		return `[{"decision": "` + decision + `", "command": ["` + strings.Fields(layer)[0] + `", "x"]}]`
	}
	return `[{decision = "` + decision + `", command = ["` + layer + `", "x"]}]`
}

// Rules of all layers hold together, and those that may only tighten add none that
// allows.
func TestRulesOfLayers(t *testing.T) {
	requireUnix(t)
	place := newPlace(t)
	for _, decision := range []string{"allow", "ask", "deny"} {
		for _, editor := range []string{"editor", "trusted editor"} {
			w := place.anew(t)
			origins := map[string]string{}
			for _, layer := range []string{"user", "managed", "workspace", editor} {
				origins[layer] = w.say(layer, "rules", one(t, layer, decision))
			}
			s := w.open()
			want := []string{decision + " managed x", decision + " user x"}
			if decision != "allow" || editor == "trusted editor" {
				want = append(want, decision+" "+strings.Fields(editor)[0]+" x")
			}
			if decision != "allow" {
				want = append(want, decision+" workspace x")
			}
			slices.Sort(want)
			if got := words(s); !slices.Equal(got, want) {
				t.Errorf("%s in every layer, with the %s: %q, want %q", decision, editor, got, want)
			}
			for _, r := range s.Settings.Rules {
				if !slices.Contains([]string{origins["user"], origins["managed"], origins["workspace"], origins[editor]}, r.Origin) {
					t.Errorf("%s comes from %q", r, r.Origin)
				}
			}
			ignored := 2
			switch {
			case decision != "allow":
				ignored = 0
			case editor == "trusted editor":
				ignored = 1
			}
			if len(s.Warnings) != ignored {
				t.Errorf("%s with the %s: the warnings are %q, want %d", decision, editor, s.Warnings, ignored)
			}
		}
	}
}

func TestRuleTables(t *testing.T) {
	entries, err := parseTOML("f", []byte(`network_access = true

[[rules]]
decision = "allow"
command  = ["go", "test"]

[limits]
processes = 100

[[rules]]
command  = ["git", "push"]
decision = "deny"
reason   = " use the release script "
`), false)
	if err != nil {
		t.Fatal(err)
	}
	s := compose([]layer{{entries: entries}}, nil)
	got := s.Settings.Rules
	if len(got) != 2 || got[0].Origin != "f:3" || got[0].String() != "go test" || got[0].Decision != "allow" {
		t.Fatalf("got %+v", got)
	}
	if got[1].Origin != "f:10" || got[1].Decision != "deny" || got[1].Reason != "use the release script" {
		t.Errorf("got %+v", got[1])
	}
	if !s.Settings.Network || s.Settings.Limits.Processes != 100 {
		t.Errorf("what stands around the rules is %+v", s.Settings)
	}
}

// What others wrote into a rule must not be quoted.
func TestRuleOfAnAlienFile(t *testing.T) {
	for _, text := range []string{"[[rules]]\ndecision = \"SECRET\"\ncommand = [\"x\"]\n", "[[rules]]\nSECRET = 1\n", "[[SECRET]]\n", "rules = [{SECRET = 1}]\n"} {
		_, err := parseTOML("f", []byte(text), true)
		if err == nil || strings.Contains(err.Error(), "SECRET") {
			t.Errorf("%q: %v", text, err)
		}
	}
}

// A workspace cannot switch off the questions of "untrusted" by wanting none at all.
func TestUntrustedIsNotLoosened(t *testing.T) {
	requireUnix(t)
	w := newPlace(t)
	w.say("user", "approval_policy", `"untrusted"`)
	for _, value := range []string{`"ask"`, `"never"`} {
		w.say("workspace", "approval_policy", value)
		if s := w.open(); s.Settings.ApprovalPolicy != "untrusted" || len(s.Warnings) != 1 {
			t.Errorf("a workspace that wants %s: %q, %q", value, s.Settings.ApprovalPolicy, s.Warnings)
		}
	}
	w = w.anew(t)
	w.say("workspace", "approval_policy", `"untrusted"`)
	if s := w.open(); s.Settings.ApprovalPolicy != "untrusted" || len(s.Warnings) != 0 {
		t.Errorf("a workspace that wants untrusted: %q, %q", s.Settings.ApprovalPolicy, s.Warnings)
	}
}
