package sandboxtest

import (
	"fmt"
	"net"
	"os"
	"strings"
	"syscall"
	"unsafe"

	"github.com/confine-dev/confine/sandbox"
	"golang.org/x/sys/unix"
)

// unreachable are the answers of a network on which there is nobody, and of
// filters.
var unreachable = []syscall.Errno{unix.ECONNREFUSED, unix.ENETUNREACH, unix.EHOSTUNREACH, unix.EACCES, unix.EPERM}

// network makes a row about reaching the host's network.
func network(name string, try func(stage) error) refusal {
	return refusal{name: name, facet: sandbox.Network, modes: bothModes, errnos: unreachable, try: try}
}

// networkReaches are ways of reaching the network of the host.
var networkReaches = []refusal{
	network("connect by TCP", func(s stage) error {
		fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
		if err != nil {
			return err
		}
		if err := unix.Connect(fd, inet(s.TCP)); err != nil {
			return err
		}
		return converse(fd, s.Token)
	}).with(func(r *refusal) { r.seen = heardBy }),
	network("send by UDP", func(s stage) error {
		fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
		if err != nil {
			return err
		}
		if err := unix.Connect(fd, inet(s.UDP)); err != nil {
			return err
		}
		return answer(fd, unix.Send(fd, []byte(s.Token), 0))
	}).with(func(r *refusal) { r.seen = heardBy }),
	network("send to an address by UDP", func(s stage) error {
		fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
		if err != nil {
			return err
		}
		if err := unix.SetsockoptInt(fd, unix.IPPROTO_IP, unix.IP_RECVERR, 1); err != nil {
			return need(err)
		}
		return answer(fd, unix.Sendto(fd, []byte(s.Token), 0, inet(s.UDP)))
	}).with(func(r *refusal) { r.seen = heardBy }),
	network("connect while sending", func(s stage) error {
		fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
		if err != nil {
			return err
		}
		return answer(fd, unix.Sendto(fd, []byte(s.Token+"\n"), unix.MSG_FASTOPEN, inet(s.TCP)))
	}).with(func(r *refusal) { r.seen, r.control.optional = heardBy, []syscall.Errno{unix.EOPNOTSUPP} }),
	network("connect by multipath TCP", func(s stage) error {
		fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, unix.IPPROTO_MPTCP)
		if err != nil {
			return err
		}
		if err := unix.Connect(fd, inet(s.TCP)); err != nil {
			return err
		}
		return converse(fd, s.Token)
	}).with(func(r *refusal) { // a kernel without it says so before it looks at who asks
		r.seen, r.control.optional = heardBy, []syscall.Errno{unix.EPROTONOSUPPORT, unix.ENOPROTOOPT}
		r.errnos = append(r.control.optional, unreachable...)
	}),
	network("open a socket of virtual machines", func(s stage) error {
		return closing(unix.Socket(unix.AF_VSOCK, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0))
	}).with(func(r *refusal) { r.control.optional = []syscall.Errno{unix.EAFNOSUPPORT} }),
	network("open a socket of the kernel's ciphers", func(s stage) error {
		return closing(unix.Socket(unix.AF_ALG, unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC, 0))
	}).with(func(r *refusal) {
		r.errnos, r.control.optional = []syscall.Errno{unix.EAFNOSUPPORT}, []syscall.Errno{unix.EAFNOSUPPORT}
	}),
	network("open a packet socket", func(s stage) error {
		return closing(unix.Socket(unix.AF_PACKET, unix.SOCK_RAW|unix.SOCK_CLOEXEC, 0))
	}).with(func(r *refusal) { r.control.root, r.control.optional = true, []syscall.Errno{unix.EAFNOSUPPORT} }),
	network("open a raw socket", func(s stage) error {
		return closing(unix.Socket(unix.AF_INET, unix.SOCK_RAW|unix.SOCK_CLOEXEC, unix.IPPROTO_ICMP))
	}).with(func(r *refusal) { r.control.root = true }),
}

func inet(address string) *unix.SockaddrInet4 {
	a, err := net.ResolveTCPAddr("tcp4", address)
	if err != nil {
		panic(err) // the suite made it
	}
	sa := &unix.SockaddrInet4{Port: a.Port}
	copy(sa.Addr[:], a.IP.To4())
	return sa
}

// converse sends the token to a stream server and waits until it was heard.
func converse(fd int, token string) error {
	_, err := unix.Write(fd, []byte(token+"\n"))
	return answer(fd, err)
}

// answer waits for the answer to what was sent.
func answer(fd int, sent error) error {
	if sent != nil {
		return sent
	}
	if err := unix.SetsockoptTimeval(fd, unix.SOL_SOCKET, unix.SO_RCVTIMEO, &unix.Timeval{Sec: 10}); err != nil {
		return need(err)
	}
	buffer := make([]byte, 16)
	n, err := unix.Read(fd, buffer)
	if err == nil && !strings.HasPrefix(string(buffer[:n]), "heard") {
		return unix.ENODATA
	}
	return err
}

// service makes a row about reaching a service of the host without network.
func service(name string, gap levels, try func(stage) error) refusal {
	return refusal{name: name, facet: sandbox.UnixSockets, modes: bothModes, gap: gap, try: try,
		errnos: []syscall.Errno{unix.ENOENT, unix.ECONNREFUSED, unix.EACCES, unix.EPERM}}
}

// serviceReaches are ways of reaching services of the host on the machine
// itself.
var serviceReaches = []refusal{
	service("connect to a socket in the runtime folder", withoutNamespaces, func(s stage) error {
		return connect(s.RuntimeSocket, s.Token)
	}).with(func(r *refusal) { r.seen = heardBy }),
	service("send to a datagram socket in the runtime folder", withoutNamespaces, func(s stage) error {
		fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
		if err != nil {
			return need(err)
		}
		return unix.Sendto(fd, []byte(s.Token), 0, &unix.SockaddrUnix{Name: s.RuntimeLog})
	}).with(func(r *refusal) { r.seen = heardByLog }),
	service("connect to a socket below the host's /tmp", withoutNamespaces, func(s stage) error {
		return connect(s.TempSocket, s.Token)
	}).with(func(r *refusal) { r.seen = heardBy }),
	service("connect to a socket in the home folder that cannot be found by its name", everywhere, func(s stage) error {
		return connect(s.HomeUnnamed, s.Token)
	}).with(func(r *refusal) { r.seen = heardBy }),
	service("connect to a socket in the home folder", withoutNamespaces, func(s stage) error {
		return connect(s.HomeSocket, s.Token)
	}).with(func(r *refusal) { r.seen = heardBy }),
	service("connect to a socket in a cache", withoutNamespaces, func(s stage) error {
		return connect(s.CacheSocket, s.Token)
	}).with(func(r *refusal) { r.seen = heardBy }),
	service("connect to an abstract socket", 0, func(s stage) error {
		return connect(s.Abstract, s.Token)
	}).with(func(r *refusal) { r.seen = heardBy }),
	service("write to a FIFO in the runtime folder", 0, func(s stage) error {
		return openAndWrite(unix.AT_FDCWD, s.RuntimePipe, unix.O_NONBLOCK)
	}).with(func(r *refusal) { r.seen = heardByPipe(func(s stage) string { return s.RuntimePipe }) }),
	service("write to a FIFO in the home folder", 0, func(s stage) error {
		return openAndWrite(unix.AT_FDCWD, s.HomePipe, unix.O_NONBLOCK)
	}).with(func(r *refusal) { r.seen = heardByPipe(func(s stage) string { return s.HomePipe }) }),
	service("write to a shared memory segment", withoutNamespaces, func(s stage) error {
		data, err := unix.SysvShmAttach(s.ID, 0, 0)
		if err != nil {
			return err
		}
		copy(data, "gone")
		return nil
	}).with(func(r *refusal) {
		r.errnos = []syscall.Errno{unix.EINVAL, unix.EIDRM, unix.EACCES, unix.EPERM} // there is none of that number
		r.arrange, r.seen = withSegment, func(s *scene) string {
			if data := s.aside.([]byte); string(data[:4]) != "host" {
				return fmt.Sprintf("the segment holds %q", data[:4])
			}
			return ""
		}
	}),
	service("write to a message queue", 0, func(s stage) error {
		fd, err := openQueue(s.Name, unix.O_WRONLY)
		return closing(fd, err)
	}).with(func(r *refusal) {
		r.control.optional = []syscall.Errno{unix.ENOSYS}
		r.arrange = func(s *scene) {
			if fd, err := openQueue(s.stage.Name, unix.O_RDWR|unix.O_CREAT|unix.O_EXCL); err == nil {
				s.t.Cleanup(func() {
					name := append([]byte(s.stage.Name), 0)
					unix.Syscall(unix.SYS_MQ_UNLINK, uintptr(unsafe.Pointer(&name[0])), 0, 0)
					unix.Close(fd)
				})
			}
		}
	}),
}

// connect converses with a unix stream server.
func connect(name, token string) error {
	fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return need(err)
	}
	if err := unix.Connect(fd, &unix.SockaddrUnix{Name: name}); err != nil {
		return err
	}
	return converse(fd, token)
}

// withSegment makes a System V shared memory segment. Its number is far from
// the low ones that a namespace of its own would begin with.
func withSegment(s *scene) {
	id, err := unix.SysvShmGet(unix.IPC_PRIVATE, 4096, unix.IPC_CREAT|0o600)
	if err != nil {
		s.t.Fatal(err)
	}
	data, err := unix.SysvShmAttach(id, 0, 0)
	if err != nil {
		s.t.Fatal(err)
	}
	unix.SysvShmCtl(id, unix.IPC_RMID, nil) // it lives as long as it is attached
	copy(data, "host")
	s.t.Cleanup(func() { unix.SysvShmDetach(data) })
	s.stage.ID, s.aside = id, data
}

func openQueue(name string, flags int) (int, error) {
	path := append([]byte(name), 0) // mq_open(2) wants it without the slash of mq_open(3)
	fd, _, errno := unix.Syscall6(unix.SYS_MQ_OPEN, uintptr(unsafe.Pointer(&path[0])), uintptr(flags|unix.O_CLOEXEC), 0o600, 0, 0, 0)
	if errno != 0 {
		return -1, errno
	}
	return int(fd), nil
}

// process makes a row about another process of the same user.
func process(name string, try func(stage) error) refusal {
	return refusal{name: name, facet: sandbox.Processes, try: try, arrange: withVictim, seen: harmed,
		errnos: []syscall.Errno{unix.ESRCH, unix.ENOENT, unix.EPERM, unix.EACCES}}
}

// unharmed is for rows that look at the victim without touching it.
func unharmed(r *refusal) { r.seen = nil }

// processReaches are ways of seeing and touching other processes.
var processReaches = []refusal{
	process("kill a process", func(s stage) error { return unix.Kill(s.Victim, unix.SIGKILL) }),
	process("kill a process group", func(s stage) error { return unix.Kill(-s.Victim, unix.SIGKILL) }),
	process("kill a thread", func(s stage) error { return unix.Tgkill(s.Victim, s.Victim, unix.SIGKILL) }),
	process("kill by a process descriptor", func(s stage) error {
		fd, err := unix.PidfdOpen(s.Victim, 0)
		if err != nil {
			return err
		}
		return unix.PidfdSendSignal(fd, unix.SIGKILL, nil, 0)
	}),
	process("kill by the owner of a descriptor", func(s stage) error {
		fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
		if err != nil {
			return need(err)
		}
		_, err = unix.FcntlInt(uintptr(fds[0]), unix.F_SETOWN, s.Victim)
		if err != nil {
			return err
		}
		if _, err := unix.FcntlInt(uintptr(fds[0]), unix.F_SETSIG, int(unix.SIGKILL)); err != nil {
			return need(err)
		}
		if _, err := unix.FcntlInt(uintptr(fds[0]), unix.F_SETFL, unix.O_ASYNC); err != nil {
			return need(err)
		}
		if _, err := unix.Write(fds[1], []byte("x")); err != nil {
			return need(err)
		}
		return unix.EPERM // nobody is told: the host sees
	}).with(func(r *refusal) { r.control.errno, r.control.traced = unix.EPERM, true }),
	process("signal every process", func(s stage) error {
		if s.Control { // not everybody's
			return unix.Kill(s.Victim, unix.SIGWINCH)
		}
		if err := unix.Kill(-1, unix.SIGWINCH); err != nil {
			return err
		}
		return unix.EPERM // this call does not tell that everybody refused: the host sees
	}).with(func(r *refusal) { r.arrange, r.seen = withShell, shellSignalled }),
	process("trace a process", func(s stage) error { return unix.PtraceSeize(s.Victim) }).with(unharmed),
	process("read the memory of a process", func(s stage) error { return moveMemory(unix.SYS_PROCESS_VM_READV, s) }).with(unharmed),
	process("write to the memory of a process", func(s stage) error { return moveMemory(unix.SYS_PROCESS_VM_WRITEV, s) }),
	process("write to the memory file of a process", func(s stage) error {
		fd, err := unix.Open(fmt.Sprintf("/proc/%d/mem", s.Victim), unix.O_RDWR|unix.O_CLOEXEC, 0)
		if err != nil {
			return err
		}
		_, err = unix.Pwrite(fd, []byte("gone"), int64(s.Address))
		return err
	}),
	process("read the environment of a process", func(s stage) error {
		return fileHas(fmt.Sprintf("/proc/%d/environ", s.Victim), victimSecret)
	}).with(unharmed),
	process("read the command line of a process", func(s stage) error {
		return fileHas(fmt.Sprintf("/proc/%d/cmdline", s.Victim), entryVictim)
	}).with(unharmed).with(func(r *refusal) { r.gap = withoutNamespaces }),
	process("follow the working directory of a process", func(s stage) error {
		_, err := unix.Readlink(fmt.Sprintf("/proc/%d/cwd", s.Victim), make([]byte, 100))
		return err
	}).with(unharmed),
	process("list the descriptors of a process", func(s stage) error {
		return closing(unix.Open(fmt.Sprintf("/proc/%d/fd/0", s.Victim), unix.O_PATH|unix.O_CLOEXEC, 0))
	}).with(unharmed),
	process("take a descriptor of a process", func(s stage) error {
		fd, err := unix.PidfdOpen(s.Victim, 0)
		if err != nil {
			return err
		}
		return closing(unix.PidfdGetfd(fd, 0, 0))
	}).with(unharmed),
	process("limit a process", func(s stage) error {
		return unix.Prlimit(s.Victim, unix.RLIMIT_NOFILE, &unix.Rlimit{Cur: 3, Max: 3}, nil)
	}).with(func(r *refusal) { r.seen = limited }),
	process("lower the priority of a process", func(s stage) error {
		return unix.Setpriority(unix.PRIO_PROCESS, s.Victim, 19)
	}).with(func(r *refusal) { r.seen, r.gap = limited, withoutNamespaces }),
	process("lower the priority of a process group", func(s stage) error {
		return unix.Setpriority(unix.PRIO_PGRP, s.Victim, 19)
	}).with(func(r *refusal) { r.seen, r.gap = limited, withoutNamespaces }),
	process("choose the processors of a process", func(s stage) error {
		var one unix.CPUSet
		one.Set(0)
		return unix.SchedSetaffinity(s.Victim, &one)
	}).with(unharmed).with(func(r *refusal) { r.gap = withoutNamespaces }),
	process("volunteer a process for being killed", func(s stage) error {
		return openAndWriteText(fmt.Sprintf("/proc/%d/oom_score_adj", s.Victim), "1000")
	}).with(unharmed),
}

func openAndWriteText(path, text string) error {
	fd, err := unix.Open(path, unix.O_WRONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	_, err = unix.Write(fd, []byte(text))
	return err
}

func fileHas(path, part string) error {
	data, err := os.ReadFile(path)
	if err == nil && !strings.Contains(string(data), part) {
		return unix.ENODATA
	}
	return err
}

// moveMemory reads from or writes to the victim's memory.
func moveMemory(call uintptr, s stage) error {
	buffer := []byte("gone")
	local := unix.Iovec{Base: &buffer[0]}
	local.SetLen(len(buffer))
	remote := unix.RemoteIovec{Base: s.Address, Len: len(buffer)}
	_, _, errno := unix.Syscall6(call, uintptr(s.Victim), uintptr(unsafe.Pointer(&local)), 1, uintptr(unsafe.Pointer(&remote)), 1, 0)
	if errno != 0 {
		return errno
	}
	return nil
}
