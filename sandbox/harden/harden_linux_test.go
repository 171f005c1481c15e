package harden_test

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"unsafe"

	"github.com/confine-dev/confine/sandbox/harden"
	"golang.org/x/sys/unix"
)

// role makes the test binary a process that protects itself.
const role = "HARDEN_TEST_ROLE"

func TestMain(m *testing.M) {
	switch os.Getenv(role) {
	case "":
		os.Exit(m.Run())
	case "all":
		protect(harden.Options{})
	case "gaining":
		protect(harden.Options{MayGain: true, Source: "somebody"})
	case "refused":
		refuse()
		protect(harden.Options{})
	}
}

// report is what a protected process found out about itself, without the package.
type report struct {
	State    harden.State
	Log      string
	Before   []int // no_new_privs of threads that were there, one each
	After    int   // … of one that was made later
	Dumpable int
	Core     unix.Rlimit
	Child    string
}

// protect protects this process, prints its report and ends with its input.
func protect(o harden.Options) {
	var log bytes.Buffer
	o.Log = slog.New(slog.NewTextHandler(&log, nil))
	ask, said := make(chan bool), make(chan int)
	const threads = 8
	for range threads {
		go flagOfThread(ask, said)
	}
	for range threads {
		<-said // all are there
	}
	h := harden.Apply(o)
	var r report
	for range threads {
		ask <- true
		r.Before = append(r.Before, <-said)
	}
	go flagOfThread(ask, said)
	<-said
	ask <- true
	r.After = <-said
	r.State, r.Log = h.State(), log.String()
	r.Dumpable, _ = unix.PrctlRetInt(unix.PR_GET_DUMPABLE, 0, 0, 0, 0)
	unix.Getrlimit(unix.RLIMIT_CORE, &r.Core)
	child, err := exec.Command("/bin/sh", "-c", `ulimit -Sc; ulimit -Hc; grep NoNewPrivs /proc/self/status; ulimit -c 1 2>/dev/null || echo kept`).Output()
	if err != nil {
		child = []byte(err.Error())
	}
	r.Child = strings.Join(strings.Fields(string(child)), " ")
	json.NewEncoder(os.Stdout).Encode(r)
	io.Copy(io.Discard, os.Stdin)
	os.Exit(0)
}

// flagOfThread has a thread of its own and tells its flag, once at the start and
// each time it is asked.
func flagOfThread(ask chan bool, said chan int) {
	runtime.LockOSThread()
	for {
		flag, err := unix.PrctlRetInt(unix.PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0)
		if err != nil {
			flag = -1
		}
		said <- flag
		<-ask
	}
}

// refuse makes the kernel refuse two of the three protections to every thread.
func refuse() {
	stmt := func(code uint16, k uint32) unix.SockFilter { return unix.SockFilter{Code: code, K: k} }
	unless := func(k uint32, skip uint8) unix.SockFilter {
		return unix.SockFilter{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, K: k, Jf: skip}
	}
	const load, give, argument = unix.BPF_LD | unix.BPF_W | unix.BPF_ABS, unix.BPF_RET | unix.BPF_K, 16 // of struct seccomp_data
	filter := []unix.SockFilter{
		stmt(load, 0),
		unless(unix.SYS_PRCTL, 3),
		stmt(load, argument),
		unless(unix.PR_SET_DUMPABLE, 7),
		stmt(give, unix.SECCOMP_RET_ERRNO|uint32(unix.EPERM)),
		unless(unix.SYS_PRLIMIT64, 5),
		stmt(load, argument+8),
		unless(unix.RLIMIT_CORE, 3),
		stmt(load, argument+16), // the new limit; NULL only asks
		{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, K: 0, Jt: 1},
		stmt(give, unix.SECCOMP_RET_ERRNO|uint32(unix.EPERM)),
		stmt(give, unix.SECCOMP_RET_ALLOW),
	}
	program := unix.SockFprog{Len: uint16(len(filter)), Filter: &filter[0]}
	runtime.LockOSThread()
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		panic(err)
	}
	_, _, errno := unix.Syscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, unix.SECCOMP_FILTER_FLAG_TSYNC, uintptr(unsafe.Pointer(&program)))
	if errno != 0 {
		panic(errno)
	}
}

// plainUser is who nothing is open to but what is its own.
const plainUser = 65534

// start starts this program in a role, as a plain user, and reads its report.
func start(t *testing.T, name string) (report, *exec.Cmd) {
	t.Helper()
	cmd := exec.Command("/proc/self/exe")
	cmd.Env = []string{role + "=" + name, "SECRET=hush", "GORACE=atexit_sleep_ms=0"}
	cmd.Dir, cmd.Stderr = "/", os.Stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{}
	if os.Geteuid() == 0 {
		cmd.SysProcAttr.Credential = &syscall.Credential{Uid: plainUser, Gid: plainUser}
	}
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		in.Close()
		if err := cmd.Wait(); err != nil {
			t.Errorf("the protected process: %v", err)
		}
	})
	var r report
	if err := json.NewDecoder(bufio.NewReader(out)).Decode(&r); err != nil {
		t.Fatal(err)
	}
	return r, cmd
}

// needPure skips what a program that was built with cgo cannot do.
func needPure(t *testing.T, r report) {
	t.Helper()
	if strings.Contains(r.State.NoNewPrivs.Error, "CGO_ENABLED=0") {
		t.Skip("the race detector builds with cgo, and no_new_privs then cannot be set for every thread")
	}
}

func TestEveryThreadAndChild(t *testing.T) {
	r, _ := start(t, "all")
	needPure(t, r)
	for i, flag := range append(r.Before, r.After) {
		if flag != 1 {
			t.Errorf("thread %d has no_new_privs %d", i, flag)
		}
	}
	if len(r.Before) != 8 || r.Dumpable != 0 || r.Core.Cur != 0 || r.Core.Max != 0 {
		t.Errorf("%d threads, dumpable %d, core limit %+v", len(r.Before), r.Dumpable, r.Core)
	}
	if want := "0 0 NoNewPrivs: 1 kept"; r.Child != want {
		t.Errorf("a child says %q, want %q", r.Child, want)
	}
	if !r.State.Dumpable.Held() || !r.State.NoNewPrivs.Held() || !r.State.CoreLimit.Held() || r.Log != "" {
		t.Errorf("the state is %+v, the log %q", r.State, r.Log)
	}
}

// TestGaining: full access leaves one of the three out, and says who decided.
func TestGaining(t *testing.T) {
	r, _ := start(t, "gaining")
	c := r.State.NoNewPrivs
	if c.Value == nil || *c.Value || c.Wanted != nil || c.Source != "somebody" || c.Error != "" || !c.Held() {
		t.Errorf("no_new_privs is %+v", c)
	}
	if r.After != 0 || r.Dumpable != 0 || r.Core.Max != 0 || r.Child != "0 0 NoNewPrivs: 0 kept" {
		t.Errorf("flag %d, dumpable %d, core limit %+v, a child says %q", r.After, r.Dumpable, r.Core, r.Child)
	}
}

// TestFailuresAreSurvived: what the kernel refuses is logged, and the state says
// what is, not what was meant.
func TestFailuresAreSurvived(t *testing.T) {
	r, _ := start(t, "refused")
	d, c := r.State.Dumpable, r.State.CoreLimit
	if d.Held() || d.Value == nil || *d.Value != 1 || !strings.Contains(d.Error, "operation not permitted") {
		t.Errorf("dumpable is %+v", d)
	}
	limited := r.Core.Max == 0 // before it began: then nothing is missing
	if c.Held() != limited || c.Value == nil || !limited && !strings.Contains(c.Error, "operation not permitted") {
		t.Errorf("the core limit is %+v", c)
	}
	for _, want := range []string{"it can be traced", "it can leave core files"} {
		if !strings.Contains(r.Log, want) {
			t.Errorf("the log does not say %q: %s", want, r.Log)
		}
	}
	if n := r.State.NoNewPrivs; n.Value == nil || !*n.Value || n.Error != "" {
		t.Errorf("no_new_privs, which was set before, is %+v", n)
	}
}

// TestSameUserCannotLook: another process of the same user, which can look into one
// that is not protected, cannot look into one that is.
func TestSameUserCannotLook(t *testing.T) {
	_, open := start(t, "refused")
	_, closed := start(t, "all")
	look := exec.Command("/bin/sh", "-c", `for p; do
			tr '\0' '\n' 2>/dev/null </proc/$p/environ | grep SECRET || echo closed
			ls /proc/$p/fd >/dev/null 2>&1 && echo files || echo closed
		done`, "look", fmt.Sprint(open.Process.Pid), fmt.Sprint(closed.Process.Pid))
	look.SysProcAttr, look.Dir = closed.SysProcAttr, "/"
	out, err := look.Output()
	if err != nil {
		t.Fatal(err)
	}
	if got, want := strings.Join(strings.Fields(string(out)), " "), "SECRET=hush files closed closed"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}
