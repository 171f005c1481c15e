//go:build unix

package local

import (
	"encoding/json"
	"errors"
	"net"
	"os"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// attemptName is the hidden subcommand that attempts what it is told to.
const attemptName = "__attempt"

// frontAttempt is one operation and what it is about: a path, or two on a line each, an
// address, a process.
type frontAttempt struct{ Op, On string }

// attemptAll prints the error number of each attempt, 0 for one that succeeded, -1
// where the system named none.
func attemptAll(args []string) int {
	var list []frontAttempt
	if len(args) != 1 || json.Unmarshal([]byte(args[0]), &list) != nil {
		return 2
	}
	errnos := make([]int, len(list))
	for i, a := range list {
		err := a.try()
		errno, ok := errors.AsType[syscall.Errno](err)
		switch {
		case ok:
			errnos[i] = int(errno)
		case err != nil:
			errnos[i] = -1
		}
	}
	if json.NewEncoder(os.Stdout).Encode(errnos) != nil {
		return 1
	}
	return 0
}

func (a frontAttempt) try() error {
	from, to, _ := strings.Cut(a.On, "\n")
	switch a.Op {
	case "create":
		return closing(os.OpenFile(a.On, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600))
	case "append":
		return closing(os.OpenFile(a.On, os.O_WRONLY|os.O_APPEND, 0))
	case "read":
		_, err := os.ReadFile(a.On)
		return err
	case "chmod":
		return os.Chmod(a.On, 0o711)
	case "rename":
		return errors.Join(os.Rename(from, to), os.Rename(to, from))
	case "link":
		if err := os.Link(from, to); err != nil {
			return err
		}
		return closing(os.OpenFile(to, os.O_WRONLY|os.O_APPEND, 0))
	case "tcp", "unix":
		conn, err := net.DialTimeout(a.Op, a.On, time.Second)
		if err != nil {
			return err
		}
		return conn.Close()
	case "signal":
		pid, err := strconv.Atoi(a.On)
		if err != nil {
			return err
		}
		return syscall.Kill(pid, 0)
	}
	return errors.New("unknown operation")
}

func closing(f *os.File, err error) error {
	if err != nil {
		return err
	}
	return f.Close()
}
