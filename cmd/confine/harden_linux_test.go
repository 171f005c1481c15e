package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"
)

// TestServerIsProtected looks from outside at a server that has run a command, and at
// its guardian: neither can be looked into, and neither leaves a core file.
func TestServerIsProtected(t *testing.T) {
	for _, mode := range []string{"read-only", "workspace-write", "danger-full-access", "external-sandbox"} {
		t.Run(mode, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.configure(t, fmt.Sprintf("sandbox_mode = %q\n", mode))
			if mode == "read-only" || mode == "workspace-write" {
				requireSandbox(t)
			}
			e := startServe(t, w)
			e.send(fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"processId":null,"capabilities":{},"workspaceFolders":[{"uri":"file://%s","name":"w"}]}}`, w.work))
			e.answer("1")
			e.send(`{"jsonrpc":"2.0","method":"initialized","params":{}}`)
			e.send(`{"jsonrpc":"2.0","id":2,"method":"runCommand","params":{"command":"ulimit -Hc; sleep 0 & wait; echo done"}}`)
			if answer := string(e.answer("2")["result"]); !strings.Contains(answer, `"text":"0\ndone\n"`) {
				t.Errorf("the command was answered %s", answer)
			}
			checkProtected(t, e.cmd.Process.Pid)
			checkProtected(t, guardianOf(t, e.cmd.Process.Pid))
			e.send(`{"jsonrpc":"2.0","id":3,"method":"shutdown"}`)
			e.answer("3")
			e.leave()
		})
	}
}

var noCore = regexp.MustCompile(`(?m)^Max core file size +0 +0 `)

// checkProtected looks at a process. What root may see tells nothing, because root
// may look into every process.
func checkProtected(t *testing.T, pid int) {
	t.Helper()
	proc := fmt.Sprintf("/proc/%d/", pid)
	limits, err := os.ReadFile(proc + "limits")
	if err != nil || !noCore.Match(limits) {
		t.Errorf("process %d: %v, %s", pid, err, limits)
	}
	if os.Geteuid() == 0 {
		return
	}
	for _, name := range []string{"environ", "mem", "maps", "fd"} {
		// One that has only just begun may not have closed itself yet.
		for end := time.Now().Add(20 * time.Second); ; time.Sleep(5 * time.Millisecond) {
			file, err := os.Open(proc + name)
			file.Close() // of nil does nothing
			if os.IsPermission(err) {
				break
			}
			if time.Now().After(end) {
				t.Fatalf("process %d: %s can be opened: %v", pid, name, err)
			}
		}
	}
}

// guardianOf finds it among a server's children, of which others come and go.
func guardianOf(t *testing.T, server int) (pid int) {
	t.Helper()
	lists, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", server))
	if err != nil || len(lists) == 0 {
		t.Fatalf("the kernel does not list children: %v", err)
	}
	for _, list := range lists {
		children, _ := os.ReadFile(list) // the thread may have ended
		for child := range strings.FieldsSeq(string(children)) {
			cmdline, _ := os.ReadFile("/proc/" + child + "/cmdline")
			if strings.Contains(string(cmdline), "\x00__guardian\x00") {
				fmt.Sscan(child, &pid)
				return pid
			}
		}
	}
	t.Fatal("the server has no guardian")
	return 0
}

// requireRoot skips a test of a plain user; root runs it elsewhere.
func requireRoot(t *testing.T, why string) {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip(why)
	}
}

// TestSetIDPrograms: sudo and its like are set-id programs. They work in full access,
// and in no sandbox.
func TestSetIDPrograms(t *testing.T) {
	requireRoot(t, "only root can make a program that is root's")
	requireSandbox(t)
	const plain = 65534
	w := newWorld(t)
	id, err := os.ReadFile("/usr/bin/id")
	if err != nil {
		t.Fatal(err)
	}
	program := filepath.Join(w.work, "id")
	if err := errors.Join(os.WriteFile(program, id, 0o755), os.Chmod(program, 0o755|os.ModeSetuid)); err != nil {
		t.Fatal(err)
	}
	for _, dir := range []string{filepath.Dir(w.home), w.home, w.work} {
		if err := os.Chown(dir, plain, plain); err != nil {
			t.Fatal(err)
		}
	}
	as := func(cmd *exec.Cmd) string {
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: plain, Gid: plain}}
		out, err := cmd.CombinedOutput()
		if err != nil {
			out = append(out, err.Error()...)
		}
		return strings.TrimSpace(string(out))
	}
	control := exec.Command(program, "-u")
	control.Dir = w.work
	if got := as(control); got != "0" {
		t.Skipf("the file system ignores set-id bits: %s", got)
	}
	for mode, want := range map[string]string{"read-only": "65534", "workspace-write": "65534", "danger-full-access": "0"} {
		cmd := w.confine(t, "run", "--mode", mode, "./id -u")
		cmd.Path = "/proc/self/exe" // others cannot walk to the test's program
		if got := as(cmd); got != want {
			t.Errorf("%s: the program runs as %s, want %s", mode, got, want)
		}
	}
}
