package local

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/confine-dev/confine/sandbox"
	"golang.org/x/sys/unix"
)

// counting is a way in which the kernel can be made to count the processes and
// threads of a command.
type counting int

const (
	countNone      counting = iota
	countUser               // RLIMIT_NPROC over everything that the user runs
	countNamespace          // RLIMIT_NPROC, counted for each user namespace
	countNumbers            // the numbers that a PID namespace may give away
)

// countingFor chooses the way for a run; isolated means that it has a user and a
// PID namespace of its own or its session's, ours that confine made them.
//
// RLIMIT_NPROC never stops the machine's root, whatever user namespace it is in.
func countingFor(isolated, ours bool) counting {
	root := isMachineRoot()
	switch {
	case isolated && !root && kernelSince(5, 14):
		return countNamespace
	case !root:
		return countUser
	case ours && kernelSince(6, 14) && unix.Access(pidMaxPath, unix.W_OK) == nil:
		return countNumbers
	}
	return countNone
}

// pidMaxPath speaks of the PID namespace of whoever opens it since Linux 6.14.
// Before, it speaks of the whole machine: only countNumbers may write to it.
const pidMaxPath = "/proc/sys/kernel/pid_max"

// reservedNumbers are never given away again once the numbers have wrapped around.
const reservedNumbers = 300

// isMachineRoot reports whether this process is user 0 outside all user
// namespaces, as far as can be told from inside one.
var isMachineRoot = sync.OnceValue(func() bool {
	if os.Geteuid() != 0 {
		return false
	}
	text, err := os.ReadFile("/proc/self/uid_map")
	var inside, outside int
	_, scanErr := fmt.Sscan(string(text), &inside, &outside)
	return err != nil || scanErr != nil || inside != 0 || outside == 0
})

// kernelSince reports whether this kernel calls itself that version or a newer one.
func kernelSince(major, minor int) bool {
	var name unix.Utsname
	if unix.Uname(&name) != nil {
		return false
	}
	return releaseSince(unix.ByteSliceToString(name.Release[:]), major, minor)
}

func releaseSince(release string, major, minor int) bool {
	var a, b int
	if n, _ := fmt.Sscanf(release, "%d.%d", &a, &b); n != 2 {
		return false
	}
	return a > major || a == major && b >= minor
}

// bounds are the limits of one run, as far as this host lets them be set.
type bounds struct {
	counting  counting
	processes uint64       // what cannot be exceeded; 0: nothing is set
	limits    []rlimit     // set in the run's own user namespace
	memory    sandbox.Room // of temporary files
	session   *session     // nil if temporary files are no file system of its own
}

// rlimit is one limit of setrlimit(2).
type rlimit struct {
	what     string // gerund
	resource int
	value    unix.Rlimit
}

// bound plans the limits of a run.
func (e *Engine) bound(asked sandbox.Limits, l *Launch, s *session) *bounds {
	b := &bounds{counting: countingFor(l.isolated(), l.Namespaces), memory: asked.TempRoom()}
	if l.Namespaces {
		b.session = s
	}
	b.add("turning core dumps off", unix.RLIMIT_CORE, 0)
	if asked.FileSize != 0 {
		b.add("limiting the size of files", unix.RLIMIT_FSIZE, asked.FileSize)
	}
	if asked.OpenFiles != 0 {
		b.addFrom("limiting open files", unix.RLIMIT_NOFILE, e.inherited.openFiles(), asked.OpenFiles)
	}
	if asked.Processes != 0 {
		b.boundProcesses(min(asked.Processes, maxTasks))
	}
	return b
}

// maxTasks is how many processes and threads no kernel has more of.
const maxTasks = 4<<20 - 1

func (b *bounds) boundProcesses(asked uint64) {
	const what = "limiting processes"
	switch b.counting {
	case countNamespace:
		b.processes = b.add(what, unix.RLIMIT_NPROC, asked)
	case countUser:
		if running, ok := tasksRunning(); ok {
			b.processes = b.add(what, unix.RLIMIT_NPROC, running+asked)
		}
	case countNumbers:
		b.processes = min(max(asked+reservedNumbers, fewestNumbers()), maxTasks)
	}
}

// fewestNumbers is the least that the kernel lets a PID namespace have: eight for
// each processor that there could be.
var fewestNumbers = sync.OnceValue(func() uint64 {
	text, _ := os.ReadFile("/sys/devices/system/cpu/possible") // such as 0-7
	_, last, _ := strings.Cut(strings.TrimSpace(string(text)), "-")
	n, err := strconv.ParseUint(last, 10, 32)
	if err != nil {
		n = uint64(runtime.NumCPU())
	}
	return 8 * (n + 1)
})

// add sets a limit, but never to more than there is, and returns what becomes of it.
func (b *bounds) add(what string, resource int, value uint64) uint64 {
	now := unix.Rlimit{Cur: unix.RLIM_INFINITY, Max: unix.RLIM_INFINITY}
	if unix.Getrlimit(resource, &now) != nil {
		now.Max = value
	}
	return b.addFrom(what, resource, now, value)
}

func (b *bounds) addFrom(what string, resource int, now unix.Rlimit, value uint64) uint64 {
	hard := min(now.Max, value)
	b.limits = append(b.limits, rlimit{what, resource, unix.Rlimit{Cur: min(now.Cur, hard), Max: hard}})
	return hard
}

// of is the hard limit that is set on a resource; 0 if there is none.
func (b *bounds) of(resource int) uint64 {
	i := slices.IndexFunc(b.limits, func(l rlimit) bool { return l.resource == resource })
	if i < 0 {
		return 0
	}
	return b.limits[i].value.Max
}

// tasksRunning is how many processes and threads there are on this machine, or in
// this container.
func tasksRunning() (n uint64, ok bool) {
	text, err := os.ReadFile("/proc/loadavg")
	fields := strings.Fields(string(text))
	if err != nil || len(fields) < 4 {
		return 0, false
	}
	_, total, _ := strings.Cut(fields[3], "/")
	n, err = strconv.ParseUint(total, 10, 64)
	return n, err == nil
}

// crowdedError says that a command did not begin because there are too many
// processes already.
type crowdedError struct {
	cause error
	limit uint64
}

func (e *crowdedError) Error() string {
	return fmt.Sprintf("%v: what runs in this session may have reached its limit of %d processes and threads", e.cause, e.limit)
}

func (e *crowdedError) Unwrap() error { return e.cause }

// crowded explains why a command did not begin, if its limits may be the reason.
func (b *bounds) crowded(err error) error {
	if b == nil || b.of(unix.RLIMIT_NPROC) == 0 || !errors.Is(err, unix.EAGAIN) {
		return err
	}
	return &crowdedError{err, b.processes}
}

// numbered reports whether a PID namespace of its own bounds the run.
func (b *bounds) numbered() bool { return b != nil && b.counting == countNumbers && b.processes != 0 }

// setNumbers bounds the numbers of a new PID namespace, in which the child must be,
// and sees that the kernel took the bound. It needs the host's /proc.
func (b *bounds) setNumbers(s *Script) {
	if !b.numbered() {
		return
	}
	const what = "limiting processes"
	number := []byte(strconv.FormatUint(b.processes+1, 10)) // the first number that is not given away
	fd := s.Call(what, unix.SYS_OPENAT, Int(unix.AT_FDCWD), Text(pidMaxPath), Int(unix.O_RDWR|unix.O_CLOEXEC))
	s.Call(what, unix.SYS_WRITE, Result(fd), Bytes(number), Int(len(number)))
	now := make([]byte, len(number))
	s.Call(what, unix.SYS_PREAD64, Result(fd), Bytes(now), Int(len(now)), Int(0))
	s.Expect(now, number)
	s.Call(what, unix.SYS_CLOSE, Result(fd))
}

// set adds the limits that a process hands on, last of all: until it executes the
// init a child has copies of all descriptors of this process. It must be in the run's
// user namespace: the kernel compares a limit on processes with those counted there.
func (b *bounds) set(s *Script) {
	if b == nil {
		return
	}
	for _, l := range b.limits {
		s.Call(l.what, unix.SYS_PRLIMIT64, Int(0), Int(l.resource), Struct(&l.value), Int(0))
	}
}
