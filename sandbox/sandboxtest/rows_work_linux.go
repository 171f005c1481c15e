package sandboxtest

import (
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"sync"
	"syscall"
	"time"
	"unsafe"

	"github.com/confine-dev/confine/sandbox"
	"golang.org/x/sys/unix"
)

// processWork is done with processes.
var processWork = []allowance{
	work("run programs", func(stage) error {
		out, err := exec.Command("/bin/sh", "-c", "echo a | cat; (exit 3); echo $?").Output()
		if err == nil && string(out) != "a\n3\n" {
			err = fmt.Errorf("got %q", out)
		}
		return err
	}).with(inBothModes),
	work("run a here-document", func(stage) error {
		out, err := exec.Command("/bin/bash", "-c", "cat <<E\nsome text\nE\ncat < <(echo more)").Output()
		if err == nil && string(out) != "some text\nmore\n" {
			err = fmt.Errorf("got %q", out)
		}
		return err
	}).with(inBothModes),
	work("print by the names of its streams", func(stage) error {
		out, err := exec.Command("/bin/sh", "-c", "echo a >/dev/stdout; echo b >/dev/fd/1; echo c | cat /dev/stdin").Output()
		if err == nil && string(out) != "a\nb\nc\n" {
			err = fmt.Errorf("got %q", out)
		}
		return err
	}).with(inBothModes),
	work("signal own processes", func(stage) error {
		cmd := exec.Command("/bin/sleep", "100")
		cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
		if err := cmd.Start(); err != nil {
			return err
		}
		err := unix.Kill(-cmd.Process.Pid, unix.SIGTERM)
		cmd.Wait()
		if status, ok := cmd.ProcessState.Sys().(syscall.WaitStatus); err == nil && (!ok || status.Signal() != unix.SIGTERM) {
			err = fmt.Errorf("the process ended with %v", cmd.ProcessState)
		}
		return err
	}).with(inBothModes),
	work("look into an own process", func(stage) error {
		runtime.LockOSThread() // a tracer is a thread
		cmd := exec.Command("/bin/sleep", "100")
		cmd.SysProcAttr = &syscall.SysProcAttr{Ptrace: true}
		if err := cmd.Start(); err != nil {
			return err
		}
		pid := cmd.Process.Pid
		defer cmd.Wait()
		defer unix.Kill(pid, unix.SIGKILL)
		var status unix.WaitStatus
		if _, err := unix.Wait4(pid, &status, 0, nil); err != nil {
			return err
		}
		if _, err := os.ReadFile(fmt.Sprintf("/proc/%d/maps", pid)); err != nil {
			return err
		}
		return errors.Join(fileHas(fmt.Sprintf("/proc/%d/environ", pid), "PATH="), unix.PtraceDetach(pid))
	}).with(inBothModes),
	work("run many threads", func(stage) error {
		var all sync.WaitGroup
		for range 50 {
			all.Go(func() {
				runtime.LockOSThread() // never unlocked: each needs a thread
				time.Sleep(time.Millisecond)
			})
		}
		all.Wait()
		return nil
	}).with(inBothModes),
	work("set own limits and priority", func(stage) error {
		var now unix.Rlimit
		return errors.Join(unix.Getrlimit(unix.RLIMIT_NOFILE, &now), unix.Setrlimit(unix.RLIMIT_NOFILE, &now), unix.Prlimit(0, unix.RLIMIT_CORE, &unix.Rlimit{}, nil),
			unix.Setpriority(unix.PRIO_PROCESS, 0, 19), unix.Prctl(unix.PR_SET_NAME, uintptr(unsafe.Pointer(&[]byte("suite\x00")[0])), 0, 0, 0))
	}).with(inBothModes),
	work("choose a processor", func(stage) error {
		var cores unix.CPUSet
		return errors.Join(unix.SchedGetaffinity(0, &cores), unix.SchedSetaffinity(unix.Gettid(), &cores))
	}).with(inBothModes),
	work("name another thread", func(stage) error {
		return openAndWriteText(fmt.Sprintf("/proc/self/task/%d/comm", unix.Getpid()), "suite")
	}).with(inBothModes).with(byNamespaces),
	work("use a memory file", func(stage) error {
		fd, err := unix.MemfdCreate("suite", unix.MFD_CLOEXEC|unix.MFD_ALLOW_SEALING)
		if err != nil {
			return err
		}
		_, err = unix.Write(fd, []byte("x"))
		if err == nil {
			_, err = unix.FcntlInt(uintptr(fd), unix.F_ADD_SEALS, unix.F_SEAL_WRITE)
		}
		return err
	}).with(inBothModes),
	work("share memory", func(stage) error {
		id, err := unix.SysvShmGet(unix.IPC_PRIVATE, 4096, unix.IPC_CREAT|0o600)
		if err != nil {
			return err
		}
		data, err := unix.SysvShmAttach(id, 0, 0)
		if err != nil {
			return err
		}
		data[0] = 1
		_, err = unix.SysvShmCtl(id, unix.IPC_RMID, nil)
		return err
	}).with(inBothModes),
	work("wait for events", func(stage) error {
		event, err := unix.Eventfd(1, unix.EFD_CLOEXEC)
		if err != nil {
			return err
		}
		timer, err := unix.TimerfdCreate(unix.CLOCK_MONOTONIC, unix.TFD_CLOEXEC)
		if err != nil {
			return err
		}
		poll, err := unix.EpollCreate1(unix.EPOLL_CLOEXEC)
		if err != nil {
			return err
		}
		events := make([]unix.EpollEvent, 1)
		err = errors.Join(unix.EpollCtl(poll, unix.EPOLL_CTL_ADD, event, &unix.EpollEvent{Events: unix.EPOLLIN}), unix.EpollCtl(poll, unix.EPOLL_CTL_ADD, timer, &unix.EpollEvent{Events: unix.EPOLLIN}))
		if err == nil {
			_, err = unix.EpollWait(poll, events, 1000)
		}
		return err
	}).with(inBothModes),
	work("begin where it was told to", func(s stage) error {
		dir, err := os.Getwd()
		if err == nil && dir != s.Inside {
			err = fmt.Errorf("the working directory is %s", dir)
		}
		return err
	}),
	work("begin in the workspace", func(s stage) error {
		dir, err := os.Getwd()
		if err == nil && dir != s.Root {
			err = fmt.Errorf("the working directory is %s", dir)
		}
		return errors.Join(err, holds("workspace-file", "host"))
	}).with(func(r *allowance) { r.modes = []sandbox.Mode{sandbox.ReadOnly} }),
}

// socketWork is done with sockets of the run's own.
var socketWork = []allowance{
	work("serve on a socket in the workspace", func(s stage) error { return serve("unix", s.in("socket")) }),
	work("serve on a socket in the temporary folder", func(s stage) error {
		return serve("unix", filepath.Join(os.TempDir(), s.Token))
	}).with(inBothModes),
	work("serve on an abstract socket", func(s stage) error { return serve("unix", "@"+s.Token) }).with(inBothModes),
	work("use a socket pair", func(stage) error {
		fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
		if err == nil {
			_, err = unix.Write(fds[0], []byte("x"))
		}
		return err
	}).with(inBothModes),
	work("ask for the network's state", func(stage) error {
		fd, err := unix.Socket(unix.AF_NETLINK, unix.SOCK_RAW|unix.SOCK_CLOEXEC, unix.NETLINK_ROUTE)
		if err == nil {
			err = unix.Bind(fd, &unix.SockaddrNetlink{Family: unix.AF_NETLINK})
		}
		return err
	}).with(inBothModes),
	work("serve on the loopback network", func(stage) error { return serve("tcp", "127.0.0.1:0") }).with(inBothModes).with(byNamespaces),
	work("serve on the loopback network by IPv6", func(stage) error {
		err := serve("tcp", "[::1]:0")
		if errors.Is(err, unix.EAFNOSUPPORT) {
			return nil // a kernel without it
		}
		return err
	}).with(inBothModes).with(byNamespaces),
	work("send on the loopback network", func(stage) error {
		c, err := net.ListenPacket("udp", "127.0.0.1:0")
		if err != nil {
			return err
		}
		defer c.Close()
		if _, err := c.WriteTo([]byte("x"), c.LocalAddr()); err != nil {
			return err
		}
		_, _, err = c.ReadFrom(make([]byte, 1))
		return err
	}).with(inBothModes).with(byNamespaces),
}

// serve listens and connects to itself.
func serve(network, address string) error {
	l, err := net.Listen(network, address)
	if err != nil {
		return err
	}
	defer l.Close()
	c, err := net.Dial(network, l.Addr().String())
	if err != nil {
		return err
	}
	defer c.Close()
	other, err := l.Accept()
	if err != nil {
		return err
	}
	defer other.Close()
	if _, err := c.Write([]byte("x")); err != nil {
		return err
	}
	_, err = io.ReadFull(other, make([]byte, 1))
	return err
}
