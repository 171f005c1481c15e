package main

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
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
		file, err := os.Open(proc + name)
		if !os.IsPermission(err) {
			t.Errorf("process %d: %s can be opened: %v", pid, name, err)
		}
		file.Close() // of nil does nothing
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
