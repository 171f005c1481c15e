package local_test

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
)

// mark is an environment entry that no other test's commands have.
func mark(t testing.TB) string {
	return fmt.Sprintf("MARK=%d %s", os.Getpid(), t.Name())
}

// proc is a living process as far as /proc shows it.
type proc struct {
	pid     int
	cmdline string // arguments, separated by blanks
	environ string // entries, separated by NUL; empty if it may not be read
}

func (p proc) String() string { return fmt.Sprintf("%d (%s)", p.pid, short(p.cmdline)) }

// livingProcesses reads the process table without zombies, which run nothing.
func livingProcesses() []proc {
	dirs, _ := filepath.Glob("/proc/[0-9]*")
	var all []proc
	for _, dir := range dirs {
		pid, err := strconv.Atoi(filepath.Base(dir))
		if err != nil {
			continue
		}
		cmdline, err := os.ReadFile(dir + "/cmdline")
		if err != nil || len(cmdline) == 0 {
			continue // gone, a zombie or of the kernel
		}
		environ, _ := os.ReadFile(dir + "/environ")
		all = append(all, proc{pid, string(bytes.ReplaceAll(cmdline, []byte{0}, []byte{' '})), string(environ)})
	}
	return all
}

// marked lists the living processes that have an environment entry.
func marked(entry string) []proc {
	var found []proc
	for _, p := range livingProcesses() {
		if strings.Contains("\x00"+p.environ, "\x00"+entry+"\x00") {
			found = append(found, p)
		}
	}
	return found
}

// initsBelow lists the inits of the servers of a state folder.
func initsBelow(t testing.TB, state string) []int {
	t.Helper()
	var pids []int
	for _, folder := range serverFolders(t, state) {
		for _, p := range livingProcesses() {
			if name := initNameOf(p); strings.HasSuffix(name, ":"+filepath.Base(folder)) {
				pids = append(pids, p.pid)
			}
		}
	}
	return pids
}

// initNameOf is what an init is called, and empty for other processes.
func initNameOf(p proc) string {
	if words := strings.Fields(p.cmdline); len(words) > 1 && strings.HasPrefix(words[1], "confine-init:") {
		return words[1]
	}
	return ""
}

// guardians lists the guardians of the servers of a state folder.
func guardians(t testing.TB, state string) []int {
	t.Helper()
	var pids []int
	for _, p := range livingProcesses() {
		if strings.Contains(p.cmdline, " __guardian ") && strings.Contains(p.cmdline, state) {
			pids = append(pids, p.pid)
		}
	}
	return pids
}

// ignores reports whether a process ignores a signal.
func ignores(pid int, sig syscall.Signal) bool {
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return false
	}
	for line := range strings.Lines(string(status)) {
		if mask, ok := strings.CutPrefix(line, "SigIgn:\t"); ok {
			n, err := strconv.ParseUint(strings.TrimSpace(mask), 16, 64)
			return err == nil && n&(1<<(sig-1)) != 0
		}
	}
	return false
}

// descendantsOf lists the processes below one, zombies left out, each with its
// start time, which tells it from a later one of the same number.
func descendantsOf(pid int) map[int]string {
	parents, starts := map[int]int{}, map[int]string{}
	dirs, _ := filepath.Glob("/proc/[0-9]*")
	for _, dir := range dirs {
		child, err := strconv.Atoi(filepath.Base(dir))
		if err != nil {
			continue
		}
		if fields := statFields(child); fields != nil && fields[0] != "Z" {
			parents[child], _ = strconv.Atoi(fields[1])
			starts[child] = fields[19]
		}
	}
	below := map[int]string{}
	for child := range parents {
		for up := child; up != 0; up = parents[up] {
			if parents[up] == pid {
				below[child] = starts[child]
			}
		}
	}
	return below
}

// statFields are the fields of /proc/PID/stat from the state on, or nil.
func statFields(pid int) []string {
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return nil
	}
	_, rest, _ := strings.Cut(string(data[bytes.LastIndexByte(data, ')'):]), " ")
	if fields := strings.Fields(rest); len(fields) > 19 {
		return fields
	}
	return nil
}

// anyLives reports whether one of the processes still runs.
func anyLives(processes map[int]string) bool {
	for pid, start := range processes {
		if fields := statFields(pid); fields != nil && fields[19] == start && lives(pid) {
			return true
		}
	}
	return false
}

// lives reports whether a process is there and not dead but unreaped.
func lives(pid int) bool {
	fields := statFields(pid)
	return fields != nil && fields[0] != "Z" && fields[0] != "X"
}
