package local_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/confine-dev/confine/sandbox"
	"github.com/confine-dev/confine/sandbox/landlock"
	"github.com/confine-dev/confine/sandbox/local"
)

func TestSignalsOfACommand(t *testing.T) {
	eachLevel(t, func(t *testing.T, f *fixture) {
		// Not bash's own, which changes some: those of a program that it starts.
		spec := f.argv("", "sed", "-n", "s/^Sig\\(Blk\\|Ign\\|Cgt\\|Pnd\\):\\t//p", "/proc/self/status")
		o := finish(t, f.start(t, spec))
		if want := strings.Repeat("0000000000000000\n", 4); o.stdout != want {
			t.Errorf("pending, blocked, ignored and caught signals are\n%swant\n%s", o.stdout, want)
		}
	})
}

func TestDescriptorsOfACommand(t *testing.T) {
	eachLevel(t, func(t *testing.T, f *fixture) {
		// An open file of ours that is not closed on exec would be a leak too.
		leak, err := os.Open("/")
		if err != nil {
			t.Fatal(err)
		}
		defer leak.Close()
		// ls itself opens the folder that it lists, as the next free number.
		o := finish(t, f.start(t, f.argv("", "ls", "-U", "/proc/self/fd")))
		if got := strings.Fields(o.stdout); strings.Join(got, " ") != "0 1 2 3" {
			t.Errorf("open are %v, want 0 to 2 and the 3 of ls", got)
		}
		for _, fd := range []string{"1", "2"} {
			flags := f.succeed(t, "sed -n 's/^flags:[[:space:]]*//p' /proc/self/fdinfo/"+fd)
			if nonblock := 0o4000; flags == "" || octal(t, flags)&nonblock != 0 {
				t.Errorf("descriptor %s has flags %s: programs do not expect it not to block", fd, flags)
			}
		}
	})
}

func octal(t testing.TB, s string) int {
	t.Helper()
	var n int
	if _, err := fmt.Sscanf(s, "%o", &n); err != nil {
		t.Fatalf("%q is not octal: %v", s, err)
	}
	return n
}

func TestCommandLeadsASessionWithoutTerminal(t *testing.T) {
	eachLevel(t, func(t *testing.T, f *fixture) {
		// Fields of proc_pid_stat(5): state, ppid, pgrp, session, tty_nr, tpgid.
		got := f.succeed(t, `read -r stat </proc/$$/stat; set -- ${stat##*) }; test $3 = $$ && test $4 = $$ && echo $5 $6; test -e /dev/tty && (: </dev/tty) 2>/dev/null && echo terminal`+" || true")
		if got != "0 -1" {
			t.Errorf("terminal and its foreground group are %q, want none; or it leads no session", got)
		}
	})
}

// In a PID namespace nothing inside can end the init.
func TestInitCannotBeEndedFromInside(t *testing.T) {
	t.Parallel()
	f := newFixture(t, namespaces)
	got := f.succeed(t, `for s in $(seq 64); do kill -$s 1 2>/dev/null; done; echo alive; cat /proc/1/comm`)
	if !strings.HasPrefix(got, "alive\nconfine-init:") {
		t.Errorf("the output is %q", got)
	}
	// Nor look into it or change it.
	for _, command := range []string{"cat /proc/1/environ", "cat /proc/1/maps", "readlink /proc/1/fd/3", "echo x >/proc/1/fd/3", "echo x >/proc/1/mem", "readlink /proc/1/exe", "cat /proc/1/stack"} {
		if o := f.run(t, command+" 2>/dev/null"); o.ExitCode == 0 || o.stdout != "" {
			t.Errorf("%q succeeded: %q", command, o.stdout)
		}
	}
}

// What a server was started with reaches its commands, and what it or the Go
// runtime changed for itself does not.
func TestInheritance(t *testing.T) {
	for _, level := range levels {
		t.Run(string(level), func(t *testing.T) {
			t.Parallel()
			if level == namespaces {
				newFixture(t, level) // skips where there are none
			}
			self, err := os.Executable()
			if err != nil {
				t.Fatal(err)
			}
			const start = `umask 027; ulimit -Sn 777; ulimit -Hn 1777; trap '' HUP INT QUIT PIPE USR1; exec "$0" "$@"`
			cmd := exec.Command("bash", "-c", start, self, "__inherit", string(level), realDir(t))
			out, err := cmd.CombinedOutput()
			if err != nil {
				t.Fatalf("%v: %s", err, out)
			}
			var got map[string]string
			if err := json.Unmarshal(out, &got); err != nil {
				t.Fatalf("%v: %s", err, out)
			}
			// The server itself has the raised limit, or this shows nothing.
			want := map[string]string{"server": "1776", "soft": "777", "hard": "1777", "umask": "0027", "ignored": "0000000000000000"}
			for name, value := range want {
				if got[name] != value {
					t.Errorf("%s is %s, want %s", name, got[name], value)
				}
			}
		})
	}
}

func init() { testEntries["__inherit"] = inheritMain }

// inheritMain is a server: args are the level and its state folder. It prints
// what a command of it finds.
func inheritMain(args []string) int {
	found := map[string]string{}
	limits, err := os.ReadFile("/proc/self/limits")
	if err != nil {
		return fail(err)
	}
	for line := range strings.Lines(string(limits)) {
		if rest, ok := strings.CutPrefix(line, "Max open files"); ok {
			found["server"] = strings.Fields(rest)[0]
		}
	}
	e, err := local.New(landlock.New(), local.Options{StateDir: args[1], NoNamespaces: level(args[0]) == noNamespaces})
	if err != nil {
		return fail(err)
	}
	defer e.Close()
	policy := sandbox.Policy{Mode: sandbox.ReadOnly}
	provider := sandbox.Provider(e)
	if level(args[0]) == unconfined {
		policy.Mode, provider = sandbox.DangerFullAccess, e.Unconfined()
	}
	for name, command := range map[string]string{"soft": "ulimit -Sn", "hard": "ulimit -Hn", "umask": "umask",
		"ignored": "exec sed -n 's/^SigIgn:\\t//p' /proc/self/status"} {
		p, err := provider.Start(context.Background(), sandbox.Spec{RunID: name, Command: command, Dir: "/",
			Env: []string{"PATH=/usr/bin:/bin"}, Policy: policy, Timeout: patience})
		if err != nil {
			return fail(err)
		}
		if _, err := p.Wait(); err != nil {
			return fail(err)
		}
		text, _ := p.Output(sandbox.StdoutStream).Tail()
		found[name] = strings.TrimSpace(text)
	}
	if err := json.NewEncoder(os.Stdout).Encode(found); err != nil {
		return fail(err)
	}
	return 0
}

func fail(err error) int {
	fmt.Println(err)
	return 1
}
