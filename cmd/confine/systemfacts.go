package main

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"runtime"
	"strings"
	"syscall"
)

// systemFacts are what a report says of the machine, as far as it is known: most of
// it is there on Linux only.
type systemFacts struct {
	OS           string            `json:"os"`
	Kernel       string            `json:"kernel,omitempty"`
	Distribution string            `json:"distribution,omitempty"`
	Modules      string            `json:"securityModules,omitempty"` // of the kernel, as in lsm=
	Container    string            `json:"container,omitempty"`       // the file by which one is known
	Root         bool              `json:"root"`
	Sysctl       map[string]string `json:"sysctl"`  // those that refuse what confine needs
	Process      map[string]string `json:"process"` // what confine was started with
}

func readSystemFacts() systemFacts {
	s := systemFacts{OS: runtime.GOOS, Root: os.Geteuid() == 0, Sysctl: map[string]string{}, Process: map[string]string{}}
	s.Kernel = strings.TrimSpace(firstOf("/proc/sys/kernel/osrelease") + " " + firstOf("/proc/sys/kernel/version"))
	s.Distribution = distribution(firstOf("/etc/os-release", "/usr/lib/os-release"))
	s.Modules = firstOf("/sys/kernel/security/lsm")
	for _, file := range []string{"/.dockerenv", "/run/.containerenv"} {
		if _, err := os.Stat(file); err == nil {
			s.Container = file
		}
	}
	for _, name := range []string{"kernel/unprivileged_userns_clone", "kernel/apparmor_restrict_unprivileged_userns", "user/max_user_namespaces", "user/max_mnt_namespaces", "user/max_pid_namespaces", "user/max_net_namespaces", "kernel/yama/ptrace_scope", "kernel/io_uring_disabled"} {
		if value := firstOf("/proc/sys/" + name); value != "" {
			s.Sysctl[strings.ReplaceAll(name, "/", ".")] = value
		}
	}
	for line := range strings.Lines(firstOf("/proc/self/status")) {
		switch name, value, _ := strings.Cut(line, ":"); name {
		case "NoNewPrivs", "Seccomp", "Seccomp_filters", "CapEff", "CapBnd":
			s.Process[name] = strings.TrimSpace(value)
		}
	}
	return s
}

// firstOf is what the first of these small files holds that can be read.
func firstOf(files ...string) string {
	for _, file := range files {
		if data, err := readEnd(file, 64<<10); err == nil {
			return strings.TrimSpace(string(data))
		}
	}
	return ""
}

// distribution finds the name in an os-release file.
func distribution(text string) string {
	for line := range strings.Lines(text) {
		if name, ok := strings.CutPrefix(line, "PRETTY_NAME="); ok {
			return strings.Trim(strings.TrimSpace(name), `"'`)
		}
	}
	return ""
}

// readEnd reads the end of a regular file, at most so many bytes. It waits for
// nobody, as the open of a FIFO would.
func readEnd(path string, most int64) ([]byte, error) {
	file, info, err := openRegular(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	if info.Size() > most { // files of the kernel have no size
		if _, err := file.Seek(-most, io.SeekEnd); err != nil {
			return nil, err
		}
	}
	return io.ReadAll(io.LimitReader(file, most))
}

func openRegular(path string) (*os.File, fs.FileInfo, error) {
	file, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, nil, err
	}
	info, err := file.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = fmt.Errorf("%q is not a regular file", path)
	}
	if err != nil {
		file.Close()
		return nil, nil, err
	}
	return file, info, nil
}

// Of a log a report has the end.
const (
	logLines = 200
	logBytes = 64 << 10
)

func readLog(path string) *logReport {
	report := &logReport{File: path, Lines: []string{}}
	data, err := readEnd(path, logBytes)
	if err != nil {
		report.Error = err.Error()
		return report
	}
	lines := strings.Split(strings.TrimSuffix(string(data), "\n"), "\n")
	if len(data) == logBytes { // the first began earlier, perhaps within a secret
		lines = lines[1:]
	}
	report.Lines = lines[max(0, len(lines)-logLines):]
	return report
}

// auditReport counts the lines of the audit file, whose content is nobody's business.
type auditReport struct {
	Records int    `json:"records"`
	Error   string `json:"error,omitempty"`
}

func countAudit(path string) auditReport {
	var a auditReport
	file, _, err := openRegular(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return a
	case err != nil:
		a.Error = err.Error()
		return a
	}
	defer file.Close()
	scanner := bufio.NewReader(file)
	for {
		switch _, err := scanner.ReadSlice('\n'); {
		case err == nil:
			a.Records++
		case errors.Is(err, bufio.ErrBufferFull): // a long line goes on
		case errors.Is(err, io.EOF):
			return a
		default:
			a.Error = err.Error()
			return a
		}
	}
}
