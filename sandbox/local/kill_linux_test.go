package local_test

import (
	"bufio"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/confine-dev/confine/sandbox/local"
)

// target is what a round kills.
type target string

const (
	killServer   target = "server"
	killGuardian target = "guardian"
	killBoth     target = "guardian and server"
	killInit     target = "init"
	killSession  target = "session helper"
)

var targets = []target{killServer, killInit, killGuardian, killSession, killBoth}

// leftTime is how long something may be left after a kill.
const leftTime = 2 * time.Second

// TestKillAtRandomMoments kills parts of servers full of unruly commands.
// Whatever is killed, and when: nothing is left, no process, no mount, no file.
// With CONFINE_SLOW set it does so a hundred times.
func TestKillAtRandomMoments(t *testing.T) {
	rounds := 20 // each target twice as each user
	switch {
	case os.Getenv("CONFINE_SLOW") != "":
		rounds = 100
	case testing.Short():
		rounds = 10
	}
	few := make(chan struct{}, 3) // servers at a time: they are hungry
	r := rand.New(rand.NewPCG(2, 100))
	for n := range rounds {
		v := victim{level: levels[r.IntN(len(levels))], target: targets[n%len(targets)], plain: isRoot() && n%2 == 1}
		if v.target == killSession {
			v.level = namespaces // no other level has one
		}
		delay := time.Duration(r.IntN(150)) * time.Millisecond
		t.Run(fmt.Sprintf("%d %s %s", n, v.level, v.target), func(t *testing.T) {
			t.Parallel()
			few <- struct{}{}
			defer func() { <-few }()
			v.start(t)
			time.Sleep(delay) // not to wait for anything: this is the random moment
			v.round(t)
		})
	}
}

// victim is a server in a process of its own.
type victim struct {
	level  level
	target target
	plain  bool // as another user than root

	base, state, mark string
	cmd               *exec.Cmd
	stdin             io.WriteCloser
	began             chan struct{} // closed when the first command began
	ended             chan struct{} // closed when the process was reaped
}

func (v *victim) start(t *testing.T) {
	t.Helper()
	base, err := os.MkdirTemp("", "confine-kill-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(base) })
	if v.base, err = filepath.EvalSymlinks(base); err != nil {
		t.Fatal(err)
	}
	v.state, v.mark = filepath.Join(v.base, "state"), filepath.Base(v.base)
	// The link works where the folder of the test's program is closed to others.
	v.cmd = exec.Command("/proc/self/exe", "__server", string(v.level), v.base, string(v.target))
	v.cmd.Env = []string{"PATH=/usr/bin:/bin", "HOME=/nonexistent"}
	v.cmd.Stderr = os.Stderr
	if v.plain {
		const nobody = 65534
		v.cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobody, Gid: nobody}}
		if err := os.Chown(base, nobody, nobody); err != nil {
			t.Fatal(err)
		}
	}
	if v.stdin, err = v.cmd.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	stdout, err := v.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := v.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	v.began, v.ended = make(chan struct{}), make(chan struct{})
	go func() {
		defer close(v.ended)
		if line, _ := bufio.NewReader(stdout).ReadString('\n'); line == "began\n" {
			close(v.began)
		}
		v.cmd.Wait() // how it ended matters only where it was asked to
	}()
	t.Cleanup(func() {
		v.cmd.Process.Kill()
		<-v.ended
		if t.Failed() {
			v.cleanUp(t)
		}
	})
}

func (v *victim) round(t *testing.T) {
	switch v.target {
	case killServer:
		v.kill()
		if v.hasBegun() { // then there was a guardian
			v.nothingLeft(t)
		}
	case killGuardian:
		killed := v.killOne(t, isGuardian)
		eventually(t, "another guardian", func() bool {
			now := guardians(t, v.state)
			return len(now) == 1 && now[0] != killed.pid
		})
		v.kill()
		v.nothingLeft(t)
	case killBoth:
		v.killOne(t, isGuardian)
		v.kill()
		// The dying hold the folder's lock to their last moment, which cannot
		// be seen, so one start may come too early.
		within(t, leftTime, "the next start to clean up", func() bool {
			v.sweep(t)
			return len(serverFolders(t, v.state)) == 0
		})
	case killInit:
		init := v.killOne(t, isInit)
		below := descendantsOf(init.pid)
		syscall.Kill(init.pid, syscall.SIGKILL)
		v.end(t, init, below)
		v.stop(t)
	case killSession:
		v.killSession(t)
		v.stop(t)
	}
	v.sweep(t)
	v.nothingLeft(t)
}

// end waits until nothing is left of a run whose init was killed.
func (v *victim) end(t *testing.T, init proc, below map[int]string) {
	t.Helper()
	for end := time.Now().Add(leftTime); anyLives(below); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			var left []string
			for _, p := range v.processes() {
				if below[p.pid] != "" {
					left = append(left, p.String()+" "+strings.Join(statFields(p.pid), " "))
				}
			}
			t.Fatalf("left of %v after %v:\n%s", init, leftTime, strings.Join(left, "\n"))
		}
	}
}

// killOne waits until the victim has a process of a kind and kills it.
func (v *victim) killOne(t *testing.T, kind func(proc) bool) (killed proc) {
	t.Helper()
	eventually(t, "the process to kill", func() bool {
		for _, p := range v.processes() {
			if kind(p) {
				killed = p
				if v.target != killInit { // whose processes are to be known before
					syscall.Kill(p.pid, syscall.SIGKILL)
				}
				return true
			}
		}
		return false
	})
	return killed
}

// killSession kills a helper that lives for some milliseconds only, so it is
// looked for among the newest processes.
func (v *victim) killSession(t *testing.T) {
	t.Helper()
	eventually(t, "a session helper", func() bool {
		for end := time.Now().Add(50 * time.Millisecond); time.Now().Before(end); {
			for pid := newestProcess(t); pid > newestProcess(t)-50; pid-- {
				cmdline, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
				if text := string(cmdline); strings.Contains(text, "\x00__session\x00") && strings.Contains(text, v.mark) {
					return syscall.Kill(pid, syscall.SIGKILL) == nil
				}
			}
		}
		return false
	})
}

// newestProcess is the number that was given last.
func newestProcess(t *testing.T) int {
	t.Helper()
	data, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		t.Fatal(err)
	}
	fields := strings.Fields(string(data))
	pid, err := strconv.Atoi(fields[len(fields)-1])
	if err != nil {
		t.Fatal(err)
	}
	return pid
}

func isInit(p proc) bool { return initNameOf(p) != "" }

func isGuardian(p proc) bool { return strings.Contains(p.cmdline, " __guardian ") }

// kill ends the server as nothing can prepare for.
func (v *victim) kill() {
	v.cmd.Process.Kill()
	<-v.ended
}

// stop ends the server in an orderly manner.
func (v *victim) stop(t *testing.T) {
	t.Helper()
	v.stdin.Close()
	wait(t, "the server to end", v.ended)
	if state := v.cmd.ProcessState; !state.Success() {
		t.Errorf("the server ended with %v", state)
	}
	v.nothingLeft(t)
}

// cleanUp ends what a failed round left, so that it does not harm others.
func (v *victim) cleanUp(t *testing.T) {
	eventually(t, "what was left to be killed", func() bool {
		left := v.processes()
		for _, p := range left {
			syscall.Kill(p.pid, syscall.SIGKILL)
		}
		return len(left) == 0
	})
}

func (v *victim) hasBegun() bool {
	select {
	case <-v.began:
		return true
	default:
		return false
	}
}

// sweep starts another server in the same place, which cleans up what the
// guardian could not.
func (v *victim) sweep(t *testing.T) {
	t.Helper()
	e, err := local.New(nil, local.Options{StateDir: v.state})
	if err != nil {
		t.Fatal(err)
	}
	if err := e.Close(); err != nil {
		t.Error(err)
	}
}

// processes lists what belongs to the victim: every process of it names its
// folder on the command line or in the environment.
func (v *victim) processes() []proc {
	var found []proc
	for _, p := range livingProcesses() {
		if p.pid != os.Getpid() && (strings.Contains(p.cmdline, v.mark) || strings.Contains(p.environ, v.mark)) {
			found = append(found, p)
		}
	}
	return found
}

func (v *victim) nothingLeft(t *testing.T) {
	t.Helper()
	var left []string
	for end := time.Now().Add(leftTime); ; time.Sleep(5 * time.Millisecond) {
		left = nil
		for _, p := range v.processes() {
			left = append(left, p.String())
		}
		left = append(left, serverFolders(t, v.state)...)
		left = append(left, v.otherFiles(t)...)
		mounts, err := os.ReadFile("/proc/self/mountinfo")
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(string(mounts), v.mark) {
			left = append(left, "a mount")
		}
		if len(left) == 0 {
			return
		}
		if time.Now().After(end) {
			t.Fatalf("left after %v:\n%s", leftTime, strings.Join(left, "\n"))
		}
	}
}

// otherFiles lists what does not belong beside the state folder.
func (v *victim) otherFiles(t *testing.T) []string {
	t.Helper()
	entries, err := os.ReadDir(v.base)
	if err != nil {
		t.Fatal(err)
	}
	var other []string
	for _, e := range entries {
		if e.Name() != "state" && e.Name() != "work" {
			other = append(other, filepath.Join(v.base, e.Name()))
		}
	}
	return other
}
