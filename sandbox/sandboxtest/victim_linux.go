package sandboxtest

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// victim is a process of the host, of the same user, that lets everybody in
// whom plain permissions let in.
type victim struct {
	cmd   *exec.Cmd
	in    io.WriteCloser
	out   *bufio.Reader
	ended bool
}

// victimMemory is what lies in the victim at stage.Address.
var victimMemory = [16]byte{'u', 'n', 't', 'o', 'u', 'c', 'h', 'e', 'd'}

// victimSecret is a variable of the victim's environment.
const victimSecret = "CONFINE_SUITE_SECRET=victim"

// victimMain prints where its memory is and then answers each line with what
// that memory holds.
func victimMain([]string) int {
	unix.Prctl(unix.PR_SET_PTRACER, ^uintptr(0), 0, 0, 0) // EINVAL without Yama, which is as good
	fmt.Println(uintptr(unsafe.Pointer(&victimMemory)))
	for in := bufio.NewScanner(os.Stdin); in.Scan(); {
		fmt.Printf("%q\n", victimMemory[:9])
	}
	return 0
}

// withVictim is a row's arrange.
func withVictim(s *scene) {
	s.t.Helper()
	v := startVictim(s, exec.Command(s.place.program, entryVictim))
	if _, err := fmt.Fscanln(v.out, &s.stage.Address); err != nil {
		s.t.Fatal(err)
	}
}

// withShell is a row's arrange: the victim is a shell that says which signals
// it got before it answers.
func withShell(s *scene) {
	s.t.Helper()
	v := startVictim(s, exec.Command("/bin/sh", "-c", "trap 'echo signalled' WINCH; echo ready; while read line; do echo answered; done"))
	if _, err := v.out.ReadString('\n'); err != nil {
		s.t.Fatal(err)
	}
}

// shellSignalled is a row's seen.
func shellSignalled(s *scene) string {
	fmt.Fprintln(s.victim.in)
	if line, err := s.victim.out.ReadString('\n'); err != nil || line != "answered\n" {
		return fmt.Sprintf("the process said %q (%v)", line, err)
	}
	return ""
}

func startVictim(s *scene, cmd *exec.Cmd) *victim {
	s.t.Helper()
	v := &victim{cmd: cmd}
	v.cmd.Env = append(os.Environ(), victimSecret)
	v.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	var err error
	if v.in, err = v.cmd.StdinPipe(); err != nil {
		s.t.Fatal(err)
	}
	out, err := v.cmd.StdoutPipe()
	if err != nil {
		s.t.Fatal(err)
	}
	v.out = bufio.NewReader(out)
	if err := v.cmd.Start(); err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(v.end)
	s.victim, s.stage.Victim = v, v.cmd.Process.Pid
	return v
}

func (v *victim) end() {
	if !v.ended {
		v.ended = true
		v.in.Close()
		v.cmd.Wait() // however it ended
	}
}

// harmed is a row's seen: the victim is dead or changed.
func harmed(s *scene) string {
	fmt.Fprintln(s.victim.in)
	line, err := s.victim.out.ReadString('\n')
	if err != nil {
		return "the process was killed"
	}
	if want := fmt.Sprintf("%q\n", victimMemory[:9]); line != want {
		return "the memory of the process now holds " + line
	}
	return ""
}

// limited is a row's seen: something about how the victim is run changed.
func limited(s *scene) string {
	pid := s.stage.Victim
	var files unix.Rlimit
	nice, err := unix.Getpriority(unix.PRIO_PROCESS, pid)
	if err == nil {
		err = unix.Prlimit(pid, unix.RLIMIT_NOFILE, nil, &files)
	}
	var cores unix.CPUSet
	if err == nil {
		err = unix.SchedGetaffinity(pid, &cores)
	}
	switch own := ownLimits(); {
	case err != nil:
		return err.Error()
	case nice != own.nice:
		return fmt.Sprintf("the nice value of the process is now %d", 20-nice)
	case files != own.files:
		return fmt.Sprintf("the process may now open %d files", files.Cur)
	case cores.Count() != own.cores.Count():
		return fmt.Sprintf("the process may now use %d processors", cores.Count())
	}
	return ""
}

type limits struct {
	nice  int
	files unix.Rlimit
	cores unix.CPUSet
}

// ownLimits are this process's, which victims inherit.
func ownLimits() (l limits) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	l.nice, _ = unix.Getpriority(unix.PRIO_PROCESS, os.Getpid())
	unix.Prlimit(0, unix.RLIMIT_NOFILE, nil, &l.files)
	unix.SchedGetaffinity(os.Getpid(), &l.cores)
	return l
}
