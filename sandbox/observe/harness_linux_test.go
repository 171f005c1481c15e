package observe

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/confine-dev/confine/sandbox"
	"github.com/confine-dev/confine/sandbox/local"
	"github.com/confine-dev/confine/sandbox/restrict"
	"golang.org/x/sys/unix"
)

// scene is a workspace that a child can write to and a place outside that it
// cannot, though this process could.
type scene struct {
	t         testing.TB
	view      bool // with namespaces; else Landlock alone
	work, out string
	orders    orders
	options   Options
	change    func(*watch) // before the first call is taken
	network   bool
}

// levels runs a test with and without namespaces.
func levels(t *testing.T, f func(*testing.T, *scene)) {
	t.Run("view", func(t *testing.T) { f(t, newScene(t, true)) })
	t.Run("landlock", func(t *testing.T) { f(t, newScene(t, false)) })
}

func newScene(t *testing.T, view bool) *scene {
	t.Helper()
	if view {
		needNamespaces(t)
	} else if restrict.Version() < 3 {
		skip(t, "the kernel has no Landlock of version 3")
	}
	top, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	s := &scene{t: t, view: view, work: filepath.Join(top, "work"), out: filepath.Join(top, "out")}
	for _, dir := range []string{s.work, s.out} {
		if err := os.Mkdir(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	s.orders = orders{Namespaces: view, Writable: []string{s.work}, Dir: s.work}
	return s
}

// skip skips a test, but not where everything must be shown.
func skip(t testing.TB, reason string) {
	t.Helper()
	if os.Getenv("CI") != "" {
		t.Fatal(reason)
	}
	t.Skip(reason)
}

func needNamespaces(t testing.TB) {
	t.Helper()
	cmd := exec.Command("/bin/true")
	cmd.SysProcAttr = namespaces()
	if err := cmd.Run(); err != nil {
		skip(t, fmt.Sprintf("this host refuses namespaces: %v", err))
	}
}

func namespaces() *syscall.SysProcAttr {
	count := 1
	if os.Geteuid() == 0 {
		count = 1 << 16
	}
	return &syscall.SysProcAttr{
		Cloneflags:                 unix.CLONE_NEWUSER | unix.CLONE_NEWNS | unix.CLONE_NEWPID | unix.CLONE_NEWNET,
		UidMappings:                []syscall.SysProcIDMap{{ContainerID: os.Geteuid(), HostID: os.Geteuid(), Size: count}},
		GidMappings:                []syscall.SysProcIDMap{{ContainerID: os.Getegid(), HostID: os.Getegid(), Size: count}},
		GidMappingsEnableSetgroups: os.Geteuid() == 0,
		AmbientCaps:                []uintptr{unix.CAP_SYS_ADMIN, unix.CAP_NET_ADMIN, unix.CAP_SETPCAP, unix.CAP_CHOWN, unix.CAP_DAC_OVERRIDE, unix.CAP_FOWNER, unix.CAP_FSETID},
	}
}

// started is a child that is being observed.
type started struct {
	t      testing.TB
	cmd    *exec.Cmd
	watch  local.Watch
	stdout bytes.Buffer
	stderr bytes.Buffer
}

// start executes a program in the scene.
func (s *scene) start(argv ...string) *started {
	s.t.Helper()
	o := s.orders
	o.Argv = argv
	text, err := json.Marshal(o)
	if err != nil {
		s.t.Fatal(err)
	}
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		s.t.Fatal(err)
	}
	theirs := os.NewFile(uintptr(pair[1]), "socket")
	defer unix.Close(pair[0])
	c := &started{t: s.t, cmd: exec.Command("/proc/self/exe")}
	c.cmd.Env = []string{childVariable + "=" + string(text), "PATH=" + os.Getenv("PATH")}
	c.cmd.ExtraFiles = []*os.File{theirs}
	c.cmd.Stdout, c.cmd.Stderr = &c.stdout, &c.stderr
	if s.view {
		c.cmd.SysProcAttr = namespaces()
	}
	err = c.cmd.Start()
	theirs.Close()
	if err != nil {
		s.t.Fatal(err)
	}
	if o.Unwatched {
		return c
	}
	if err := c.receive(s, pair[0]); err != nil {
		c.cmd.Process.Kill()
		c.cmd.Wait()
		s.t.Fatalf("no listener: %v\n%s", err, c.stderr.String())
	}
	return c
}

// receive takes the listener and begins to watch.
func (c *started) receive(s *scene, socket int) error {
	data, control := make([]byte, 1), make([]byte, unix.CmsgSpace(4))
	_, n, _, _, err := unix.Recvmsg(socket, data, control, unix.MSG_CMSG_CLOEXEC)
	if err != nil {
		return err
	}
	messages, err := unix.ParseSocketControlMessage(control[:n])
	if err != nil || len(messages) == 0 {
		return fmt.Errorf("no descriptor came: %v", err)
	}
	fds, err := unix.ParseUnixRights(&messages[0])
	if err != nil {
		return err
	}
	run := s.watched()
	w := New(s.options).(*observer).prepare(os.NewFile(uintptr(fds[0]), "listener"), run)
	if s.change != nil {
		s.change(w)
	}
	go w.loop()
	c.watch = w
	return nil
}

func (s *scene) watched() local.Watched {
	policy := sandbox.Policy{Mode: sandbox.WorkspaceWrite, Network: s.network}
	for _, path := range s.orders.Writable {
		policy.Roots = append(policy.Roots, &sandbox.Root{Path: path})
	}
	return local.Watched{Policy: policy, Namespaces: s.view, Writable: []string{"/dev/null"}, Progress: &local.Progress{}}
}

// wait waits for the end of a child and returns what was seen. The child must
// have exited with status 0.
func (c *started) wait() local.Observed {
	c.t.Helper()
	err := c.cmd.Wait()
	observed := c.end()
	if err != nil {
		c.t.Fatalf("the child failed: %v\n%s%s", err, c.stdout.String(), c.stderr.String())
	}
	return observed
}

// end calls End, which must come back.
func (c *started) end() local.Observed {
	c.t.Helper()
	result := make(chan local.Observed, 1)
	go func() { result <- c.watch.End() }()
	select {
	case observed := <-result:
		return observed
	case <-time.After(20 * time.Second):
		c.t.Fatal("End does not come back")
		return local.Observed{}
	}
}

// actor is the program that does what its arguments say.
func (s *scene) act(actions ...string) (answers []string, observed local.Observed) {
	s.t.Helper()
	c := s.start(append([]string{"/proc/self/exe"}, actions...)...)
	observed = c.wait()
	answers = strings.Fields(c.stdout.String())
	if len(answers) != len(actions) {
		s.t.Fatalf("%d actions gave %d answers: %s%s", len(actions), len(answers), c.stdout.String(), c.stderr.String())
	}
	return answers, observed
}

// told is a denial as tests write it.
func told(d sandbox.Denial) string {
	return d.Op + " " + d.Path + d.Address + " " + d.Errno
}

// lines lists denials as tests write them.
func lines(denials []sandbox.Denial) (list []string) {
	for _, d := range denials {
		list = append(list, told(d))
	}
	return list
}
