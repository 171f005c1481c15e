package sandboxtest

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"

	"golang.org/x/sys/unix"
)

// Hidden entries by which a test binary runs as a part of the suite.
const (
	entryOp         = "__op"           // ROW STAGE: try a row's operation
	entryQuarantine = "__op-alone"     // ROW STAGE: the same in namespaces of its own
	entryVictim     = "__victim"       // be a process on the host
	entryBare       = "__world"        // TEST-ARGS: see bareMain
	entryBareInside = "__world-inside" // TEST-ARGS
	entryMounted    = "__world-mounts" // UID BASE TEST-ARGS: see mountedMain
	entryNothing    = "__nothing"      // end well
	entryServe      = "__serve"        // serve on the loopback network
	entryReach      = "__reach"        // ADDRESS TOKEN: reach a server
	entryUseUp      = "__use-up"       // WHAT: use it up
)

var childEntries = map[string]func(args []string) int{
	entryOp:         opMain,
	entryQuarantine: quarantineMain,
	entryVictim:     victimMain,
	entryBare:       bareMain,
	entryBareInside: bareInsideMain,
	entryMounted:    mountedMain,
	entryNothing:    func([]string) int { return 0 },
	entryServe:      serveMain,
	entryReach:      reachMain,
	entryUseUp:      useUpMain,
}

// Child runs a hidden entry of the suite and ends the process, if args
// (os.Args) names one. TestMain must call it first.
func Child(args []string) {
	if len(args) < 2 {
		return
	}
	if entry, ok := childEntries[args[1]]; ok {
		os.Exit(entry(args[2:]))
	}
}

// stage is what an operation finds. It travels to the child as JSON.
type stage struct {
	Inside  string // writable folder of the row; empty in read-only mode: a new one below TMPDIR
	Outside string // folder of the row in which nothing may change: see furnish
	Root    string // the writable root
	State   string // confine's own folder
	Token   string // what tells this try from every other of the world
	Name    string // what tells it from every other on the machine
	Control bool   // nothing is confined

	TCP, UDP      string // addresses of services of the host
	Abstract      string // abstract unix socket of the host, begins with @
	RuntimeSocket string // stream socket in the user's runtime folder
	RuntimeLog    string // datagram socket there
	RuntimePipe   string // FIFO there
	RuntimeFile   string // file there
	TempSocket    string // stream socket below the host's /tmp
	HomeSocket    string // stream socket in the home folder
	HomePipe      string // FIFO in the home folder
	CacheSocket   string // stream socket in the home folder's cache
	HomeUnnamed   string // stream socket in the home folder that the kernel knows by another name

	Cgroup  string  // a control group that could be made; empty if there is none
	Victim  int     // process of the host; 0 if the row wants none
	Address uintptr // in the victim's memory, of victimMemory
	Pts     string  // pseudoterminal of the host
	ID      int     // of a System V shared memory segment of the host
}

func (s stage) in(name string) string  { return filepath.Join(s.Inside, name) }
func (s stage) out(name string) string { return filepath.Join(s.Outside, name) }

// outcome is what the child says.
type outcome struct {
	Errno  syscall.Errno `json:"errno"`  // 0: the operation was possible
	Detail string        `json:"detail"` // for people
	Broken string        `json:"broken"` // why it could not be tried at all
}

func (o outcome) String() string {
	switch {
	case o.Broken != "":
		return "could not be tried: " + o.Broken
	case o.Errno == 0:
		return "was possible"
	}
	return fmt.Sprintf("failed with %s (%s)", unix.ErrnoName(o.Errno), o.Detail)
}

// brokenError is a failure of what an operation needs, not of itself.
type brokenError struct{ err error }

func (e brokenError) Error() string { return e.err.Error() }

// need marks the failure of a preparation.
func need(err error) error {
	if err == nil {
		return nil
	}
	return brokenError{err}
}

func judgeTry(err error) outcome {
	var broken brokenError
	var errno syscall.Errno
	switch {
	case err == nil:
		return outcome{}
	case errors.As(err, &broken):
		return outcome{Broken: broken.Error()}
	case errors.As(err, &errno):
		return outcome{Errno: errno, Detail: err.Error()}
	}
	return outcome{Broken: err.Error()}
}

// opMain tries one operation and prints its outcome.
func opMain(args []string) int {
	if len(args) != 2 {
		return 2
	}
	var s stage
	try := tryOf(args[0])
	if err := json.Unmarshal([]byte(args[1]), &s); err != nil || try == nil {
		return 2
	}
	if s.Inside == "" {
		dir, err := os.MkdirTemp("", "inside-")
		if err != nil {
			return report(judgeTry(need(err)))
		}
		s.Inside = dir
	}
	return report(judgeTry(try(s)))
}

func report(o outcome) int {
	if json.NewEncoder(os.Stdout).Encode(o) != nil {
		return 1
	}
	return 0
}

// tryOf finds a row's operation.
func tryOf(name string) func(stage) error {
	for _, r := range refusals {
		if r.name == name {
			return r.try
		}
	}
	for _, r := range allowances {
		if r.name == name {
			return r.try
		}
	}
	return nil
}

// quarantineMain tries an operation as root of new namespaces, where it works
// for everybody and changes nothing for others.
func quarantineMain(args []string) int {
	cmd := exec.Command("/proc/self/exe", append([]string{entryOp}, args...)...)
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: unix.CLONE_NEWUSER | unix.CLONE_NEWNS,
		UidMappings: []syscall.SysProcIDMap{{HostID: os.Geteuid(), Size: 1}},
		GidMappings: []syscall.SysProcIDMap{{HostID: os.Getegid(), Size: 1}}}
	if err := cmd.Run(); err != nil {
		return report(outcome{Broken: "quarantine: " + err.Error()})
	}
	return 0
}
