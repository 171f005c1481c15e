package local

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
	"time"
	"unsafe"

	"github.com/confine-dev/confine/sandbox"
	"golang.org/x/sys/unix"
)

// probeOrders is what the probing child is told.
type probeOrders struct {
	Thorough   bool // try what takes time as well
	Free       bool // nothing is confined: say what is possible at all
	ReadOnly   bool
	Network    bool // it is granted
	Namespaces bool

	Bounded  bool     // probeLimits are set
	Counting counting // how processes are counted then

	Inside  string // the workspace
	Outside string // a folder of which nothing may be changed, with a file for each trial that would
	Scratch string // where to write freely; empty: in the workspace, or where temporary files go
	Beside  string // file that may seem to be created, in a private folder, but must not appear
	Own     string // a file of confine's own

	Hidden, HiddenIn string // a file that the policy hides, and one in a folder that it hides
	Lock             string // a file outside for whoever is left behind

	Address  string            // TCP listener on the host; empty if nothing can listen
	Datagram string            // UDP socket on the host; the same
	Abstract string            // abstract unix socket of the host
	Pipe     string            // FIFO of the host
	Sockets  map[string]string // unix sockets of the host, by place

	HasMemory bool // Memory is shared memory that begins with Secret
	Memory    int
	Secret    string

	Server         pinned // the process that must not be signalled
	Stranger       pinned // another one, which lets in whom plain permissions let in
	StrangerMemory uintptr
	NoStranger     string // why there is none

	MakesDevices bool   // this process may make device nodes
	Device       string // device of the host; empty if there is none that we could open
	Terminal     string // of the host; empty if we could not make one
}

// pinned is a process by its number and its beginning: another one may have
// its number inside.
type pinned struct {
	PID     int
	Started uint64
}

// missing is the reason unless there is a value.
func missing(value, reason string) string {
	if value == "" {
		return reason
	}
	return ""
}

// writable is a folder that can be written to.
func (o probeOrders) writable() string {
	switch {
	case o.Scratch != "":
		return o.Scratch
	case o.ReadOnly:
		return os.TempDir()
	}
	return o.Inside
}

// mine makes a file where one can write.
func (o probeOrders) mine(name string) (string, error) {
	path := filepath.Join(o.writable(), name)
	return path, need(os.WriteFile(path, []byte("mine"), 0o600))
}

// wants reports whether a trial is to be made.
func (o probeOrders) wants(t trial) bool {
	return (o.Thorough || !t.thorough) && !(o.Free && (t.facet == "" || t.certain)) && (t.fits == nil || t.fits(o))
}

// attempt is what came of one trial.
type attempt struct {
	Title   string
	Outcome sandbox.Outcome
	Detail  string
}

// make tries one thing.
func (t trial) make(o probeOrders) attempt {
	a := attempt{Title: t.title(), Outcome: sandbox.Possible}
	if t.when != nil {
		if reason := t.when(o); reason != "" {
			return attempt{a.Title, sandbox.Untried, reason}
		}
	}
	err := t.try(o, filepath.Join(o.Outside, t.name))
	var not untried
	var errno syscall.Errno
	switch {
	case errors.As(err, &not):
		a.Outcome, a.Detail = sandbox.Untried, not.reason
	case errors.As(err, &errno):
		a.Outcome, a.Detail = sandbox.Refused, errno.Error()
	case err != nil:
		a.Outcome, a.Detail = sandbox.Refused, err.Error()
	}
	return a
}

// probeMain is the hidden subcommand of all processes that a probe starts.
func probeMain(args []string) int {
	switch {
	case len(args) == 1 && args[0] == strangerArg:
		return strangerMain()
	case len(args) == 2 && args[0] == lingerArg:
		return lingerMain(args[1])
	case len(args) == 1:
		return proberMain(args[0], os.Stdout)
	case len(args) == 2 && args[0] == freeArg:
		return proberMain(args[1], os.NewFile(3, "report"))
	}
	return 2
}

// First arguments of __probe.
const (
	freeArg     = "free"     // report to descriptor 3, not confined
	strangerArg = "stranger" // be a process of the host
	lingerArg   = "linger"   // outlive the command
)

// proberMain tries everything that the orders want and reports as JSON.
func proberMain(text string, report *os.File) int {
	var o probeOrders
	if json.Unmarshal([]byte(text), &o) != nil {
		return 2
	}
	attempts := []attempt{}
	for _, t := range trials {
		if o.wants(t) {
			attempts = append(attempts, t.make(o))
		}
	}
	if json.NewEncoder(report).Encode(attempts) != nil {
		return 1
	}
	return 0
}

// strangerMemory is what lies in the stranger where it says.
var strangerMemory = [4]byte{'h', 'o', 's', 't'}

// strangerMain is a process that lets everybody in whom plain permissions let
// in. It writes to descriptor 4 where its memory is, and ends when nobody holds
// the other end of descriptor 3 any more.
func strangerMain() int {
	unix.Prctl(unix.PR_SET_PTRACER, ^uintptr(0), 0, 0, 0) // EINVAL without Yama, which is as good
	fmt.Fprintln(os.NewFile(4, "report"), strconv.FormatUint(uint64(uintptr(unsafe.Pointer(&strangerMemory))), 10))
	unix.CloseOnExec(3)
	os.NewFile(3, "life").Read(make([]byte, 1))
	return 0
}

// leaveBehind starts a process that holds a lock and would live on.
func leaveBehind(lock string) error {
	var ready [2]int
	if err := unix.Pipe2(ready[:], unix.O_CLOEXEC); err != nil {
		return need(err)
	}
	r, w := os.NewFile(uintptr(ready[0]), "ready"), os.NewFile(uintptr(ready[1]), "ready")
	defer r.Close()
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		w.Close()
		return need(err)
	}
	defer null.Close()
	_, err = syscall.ForkExec("/proc/self/exe", []string{"confine", "__probe", lingerArg, lock}, &syscall.ProcAttr{
		Files: []uintptr{null.Fd(), null.Fd(), null.Fd(), w.Fd()}, Env: os.Environ(), Sys: &syscall.SysProcAttr{Setsid: true}})
	w.Close()
	if err != nil {
		return need(err)
	}
	if n, _ := r.Read(make([]byte, 1)); n != 1 {
		return untried{"the process that was to stay could not take its lock"}
	}
	return nil
}

// lingerMain holds a lock for longer than a probe takes, says so on descriptor
// 3, and ends by itself if nobody ends it.
func lingerMain(lock string) int {
	f, err := os.Open(lock)
	if err != nil || flock(f, unix.LOCK_EX|unix.LOCK_NB) != nil {
		return 1
	}
	ready := os.NewFile(3, "ready")
	ready.Write([]byte{0})
	ready.Close()
	time.Sleep(probeTime)
	f.Close() // and not before
	return 0
}
