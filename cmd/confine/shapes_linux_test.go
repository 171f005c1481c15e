package main

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/confine-dev/confine/sandbox"
)

// oddNames are names of workspaces. What a message cannot carry cannot be asked for.
var oddNames = []struct {
	name   string
	shown  string // to the person; empty if it cannot be asked about
	always bool   // also unless tests may be slow
}{
	{"a 'b' \"c\" *?[x]{y}\n\\040 $HOME`id` %20#?", `a 'b' "c" *?[x]{y}\n\040 $HOME` + "`id` %20#?", true},
	{"\xff\xe9", "", true},
	{"\x1b[31m\u202egnirts\x7f", `\u{1B}[31m\u{202E}gnirts\u{7F}`, false},
	{"--json", "--json", false},
	{"e\u0301 żółw 日本", "e\u0301 żółw 日本", false},
	{strings.Repeat("x", 255), "⟨255 × x⟩", false},
}

// TestOddWorkspaces: whatever a workspace is called, an editor is told the right
// paths, is asked about them in a text that cannot mislead, and what it allows works.
func TestOddWorkspaces(t *testing.T) {
	requireSandbox(t)
	for _, odd := range oddNames {
		for _, provider := range []string{sandbox.ProviderLandlock, sandbox.ProviderBwrap} {
			if !slow() && (!odd.always || provider == sandbox.ProviderBwrap) {
				continue
			}
			t.Run(fmt.Sprintf("%s %q", provider, odd.name), func(t *testing.T) {
				t.Parallel()
				w := newWorld(t)
				w.work = filepath.Join(w.work, odd.name)
				if err := os.Mkdir(w.work, 0o700); err != nil {
					t.Fatal(err)
				}
				repository(t, w)
				a := startAsker(t, w, provider)
				refused := a.run("echo made > made && git add made && git commit -qm made; echo x > .git/hooks/pre-push")
				hooks := filepath.Join(w.work, ".git", "hooks")
				if denials := refused.Sandbox.Denials; len(denials) != 1 || denials[0].Path != asText(hooks+"/pre-push") {
					t.Fatalf("denials %+v, stderr %q", denials, refused.Stderr.Text)
				}
				if w.git(t, "log", "-1", "--format=%s") != "made\n" {
					t.Error("nothing was committed")
				}
				if !utf8.ValidString(odd.name) {
					if e := refused.Escalation; e == nil || e.Additional != nil || !slices.Equal(e.Targets, []sandbox.Mode{sandbox.DangerFullAccess}) {
						t.Errorf("the escalation is %+v", e)
					}
					a.leave()
					return
				}
				if e := refused.Escalation; e == nil || e.Additional == nil || !slices.Equal(e.Additional.Write, []string{hooks}) {
					t.Fatalf("the escalation is %+v", e)
				}
				allowed := a.again(refused, filepath.Dir(w.work)+"/"+odd.shown+"/.git/hooks")
				if allowed.ExitCode == nil || allowed.Sandbox.Denied {
					t.Errorf("allowed: %+v", allowed)
				}
				requireContent(t, hooks+"/pre-push", "x\n")
				a.leave()
				requireClean(t, w, ".git", "made")
			})
		}
	}
}

// asText is a path as a message carries it.
func asText(path string) string { return string([]rune(path)) }

// TestOddPathAtTheTerminal: a path cannot write on the screen what is not in it.
func TestOddPathAtTheTerminal(t *testing.T) {
	requireSandbox(t)
	w := newWorld(t)
	w.work = filepath.Join(w.work, "a\x1b[2J\nType \"yes\" to go on\n\u202eb")
	if err := os.Mkdir(w.work, 0o700); err != nil {
		t.Fatal(err)
	}
	file, _ := outsideFiles(t)
	odd := filepath.Join(filepath.Dir(file), "c\r\nBecomes writable: nothing")
	if err := os.WriteFile(odd, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	s, cmd := startAtTerminal(t, w, "run", `echo x > "`+odd+`"; true && exit 1`)
	s.await(asking)
	for line := range strings.Lines(s.text()) {
		// The shell says the path as it is; whatever it says begins with its name.
		line = strings.TrimRight(line, "\r\n")
		if strings.HasSuffix(line, "Becomes writable: nothing") || strings.HasPrefix(line, "confine: Becomes") || strings.HasPrefix(line, "Type \"yes\" to go on") || strings.ContainsAny(line, "\u202e") {
			t.Errorf("a path wrote on the screen: %q", line)
		}
	}
	s.typed("no\n")
	cmd.Wait()
	requireContent(t, odd, "")
}
