//go:build unix

package local

import (
	"encoding/json"
	"errors"
	"os"
	"syscall"
)

// startName is the hidden subcommand by which a command is started from inside.
const startName = "__start"

// Descriptors of that process.
const (
	ordersFD = 3
	reportFD = 4
)

// confinedReport is written when everything that confines the command is in place.
// What follows, if anything, is why the command did not begin.
const confinedReport = "confined\n"

// startFailure is the call that failed.
type startFailure struct {
	Call  string
	Errno int
}

// startInside becomes the command.
func startInside([]string) int {
	syscall.CloseOnExec(ordersFD)
	syscall.CloseOnExec(reportFD)
	var o frontOrders
	input := os.NewFile(ordersFD, "orders")
	if err := json.NewDecoder(input).Decode(&o); err != nil {
		return 1 // and nothing is reported: this was not the server
	}
	input.Close()
	report := os.NewFile(reportFD, "report")
	report.WriteString(confinedReport)
	call, err := becomeCommand(o)
	failure := startFailure{Call: call}
	if errno, ok := errors.AsType[syscall.Errno](err); ok {
		failure.Errno = int(errno)
	}
	json.NewEncoder(report).Encode(failure)
	return 1
}

// becomeCommand returns only if it failed, and which call did.
func becomeCommand(o frontOrders) (call string, err error) {
	if err := syscall.Chdir(string(o.Dir)); err != nil {
		return "chdir", err
	}
	return "execve", syscall.Exec(string(o.Path), toStrings(o.Argv), toStrings(o.Env))
}
