package local

import (
	"fmt"
	"net"
	"path/filepath"
	"strings"
	"time"

	"github.com/confine-dev/confine/sandbox"
	"golang.org/x/sys/unix"
)

// networkTrials reach the network of the host.
var networkTrials = []trial{
	{facet: sandbox.Network, name: "connect to a server of the host",
		when: func(o probeOrders) string { return missing(o.Address, "nothing could listen on 127.0.0.1") },
		try:  func(o probeOrders, _ string) error { return dial("tcp", o.Address) }},
	{facet: sandbox.Network, name: "send a datagram to a server of the host", thorough: true, blind: true,
		// Sending succeeds whether or not anybody hears it.
		when: func(o probeOrders) string { return missing(o.Datagram, "nothing could listen on 127.0.0.1") },
		try: func(o probeOrders, _ string) error {
			c, err := net.Dial("udp", o.Datagram)
			if err != nil {
				return err
			}
			defer c.Close()
			_, err = c.Write([]byte("x"))
			return err
		},
		seen: func(s *probeStage) bool { return s.heard(s.udp) }},
	{facet: sandbox.Network, name: "open a socket of virtual machines", thorough: true,
		try: func(probeOrders, string) error {
			fd, err := unix.Socket(unix.AF_VSOCK, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
			if err == nil {
				unix.Close(fd)
			}
			return err
		}},
}

func dial(network, address string) error {
	c, err := net.DialTimeout(network, address, time.Second)
	if err == nil {
		c.Close()
	}
	return err
}

func talkToOneself() error {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	defer l.Close()
	return dial("tcp", l.Addr().String())
}

// serviceTrials reach services of the host on this machine.
var serviceTrials = []trial{
	{facet: sandbox.UnixSockets, name: "connect to an abstract socket of the host",
		fits: func(o probeOrders) bool { return !o.Network },
		try:  func(o probeOrders, _ string) error { return dial("unix", o.Abstract) }},
	// They come with the network, unless Landlock can refuse them (Linux 6.12).
	{facet: sandbox.UnixSockets, name: "connect to an abstract socket of the host, whose network is granted", exception: true,
		fits: func(o probeOrders) bool { return o.Network },
		try:  func(o probeOrders, _ string) error { return dial("unix", o.Abstract) }},
	{facet: sandbox.UnixSockets, name: "write to a FIFO of the host",
		fits: func(o probeOrders) bool { return !belowTemp(o.Outside) },
		when: func(o probeOrders) string { return missing(o.Pipe, "no FIFO could be made") },
		try:  func(o probeOrders, _ string) error { return overwrite(o.Pipe) }},
	// Landlock allows below /tmp, where the view shows some folders of the host,
	// what it allows there: a FIFO is nothing that a read-only mount protects.
	{facet: sandbox.UnixSockets, name: "write to a FIFO of the host that is shown below /tmp", exception: true,
		fits: func(o probeOrders) bool { return belowTemp(o.Outside) },
		when: func(o probeOrders) string { return missing(o.Pipe, "no FIFO could be made") },
		try:  func(o probeOrders, _ string) error { return overwrite(o.Pipe) }},
	socketTrial("connect to a socket in /tmp", inTemp),
	socketTrial("connect to a socket in the runtime folder", inRuntime),
	socketTrial("connect to a socket in /run", inRun),
	socketTrial("connect to a socket in an ordinary folder", inOutside),
	// The kernel knows it by a name that means nothing to us.
	socketTrial("connect to a socket that cannot be found by its name", inUnnamed).excepted(),
	{facet: sandbox.UnixSockets, name: "attach to shared memory of the host", thorough: true,
		when: func(o probeOrders) string {
			if !o.HasMemory {
				return "there is no shared memory"
			}
			return ""
		},
		try: func(o probeOrders, _ string) error {
			data, err := unix.SysvShmAttach(o.Memory, 0, unix.SHM_RDONLY)
			if err != nil {
				return err
			}
			defer unix.SysvShmDetach(data)
			if len(data) < len(o.Secret) || string(data[:len(o.Secret)]) != o.Secret {
				return unix.EINVAL // of the session's own, by chance with the same number
			}
			return nil
		}},
}

func belowTemp(path string) bool { return sandbox.Within(path, "/tmp") }

// Places of sockets on the stage.
const (
	inTemp    = "tmp"
	inRuntime = "runtime"
	inRun     = "run"
	inOutside = "outside"
	inUnnamed = "unnamed"
)

func socketTrial(name, place string) trial {
	return trial{facet: sandbox.UnixSockets, name: name, thorough: true,
		when: func(o probeOrders) string { return missing(o.Sockets[place], "confine cannot make a socket there") },
		try:  func(o probeOrders, _ string) error { return dialSocket(o.Sockets[place]) }}
}

// dialSocket connects to a socket whose path may be longer than the address of
// one can be.
func dialSocket(path string) error {
	dir, err := unix.Open(filepath.Dir(path), unix.O_PATH|unix.O_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(dir)
	return dial("unix", socketName(dir, path))
}

func socketName(dir int, path string) string {
	return fmt.Sprintf("/proc/self/fd/%d/%s", dir, filepath.Base(path))
}

// processTrials see and touch other processes.
var processTrials = []trial{
	processTrial("signal confine", server, func(_ probeOrders, pid int) error { return unix.Kill(pid, 0) }).quick(),
	processTrial("open the memory of confine", server, func(_ probeOrders, pid int) error {
		return openTo(fmt.Sprintf("/proc/%d/mem", pid), unix.O_RDWR)
	}).quick(),
	processTrial("signal a process", stranger, func(_ probeOrders, pid int) error { return unix.Kill(pid, unix.SIGWINCH) }),
	processTrial("signal a process by its descriptor", stranger, func(_ probeOrders, pid int) error {
		fd, err := unix.PidfdOpen(pid, 0)
		if err != nil {
			return err
		}
		defer unix.Close(fd)
		return unix.PidfdSendSignal(fd, unix.SIGWINCH, nil, 0)
	}),
	processTrial("trace a process", stranger, func(_ probeOrders, pid int) error { return unix.PtraceSeize(pid) }),
	processTrial("open the memory of a process", stranger, func(_ probeOrders, pid int) error {
		return openTo(fmt.Sprintf("/proc/%d/mem", pid), unix.O_RDWR)
	}),
	processTrial("read the memory of a process", stranger, func(o probeOrders, pid int) error {
		return readMemory(pid, o.StrangerMemory)
	}),
	processTrial("limit a process", stranger, func(_ probeOrders, pid int) error {
		var limit unix.Rlimit
		if err := unix.Prlimit(pid, unix.RLIMIT_CORE, nil, &limit); err != nil {
			return err
		}
		return unix.Prlimit(pid, unix.RLIMIT_CORE, &limit, nil) // to what it is
	}),
	processTrial("lower the priority of a process", stranger, func(_ probeOrders, pid int) error {
		return unix.Setpriority(unix.PRIO_PROCESS, pid, 19)
	}).excepted(),
	processTrial("choose the processors of a process", stranger, func(_ probeOrders, pid int) error {
		var set unix.CPUSet
		if err := unix.SchedGetaffinity(pid, &set); err != nil {
			return err
		}
		return unix.SchedSetaffinity(pid, &set)
	}).excepted(),
	processTrial("see a process", stranger, func(_ probeOrders, pid int) error {
		return openTo(fmt.Sprintf("/proc/%d/cmdline", pid), unix.O_RDONLY)
	}).excepted(),
	{facet: sandbox.Processes, name: "leave a process behind", thorough: true, blind: true, certain: true,
		try: func(o probeOrders, _ string) error { return leaveBehind(o.Lock) },
		// Whoever holds the lock lives on.
		seen: func(s *probeStage) bool { return s.locked() }},
}

func server(o probeOrders) (pinned, string)   { return o.Server, "" }
func stranger(o probeOrders) (pinned, string) { return o.Stranger, o.NoStranger }

// processTrial tries something on a process of the host, if that can be found
// at all: numbers begin anew inside, and one in a container may be low.
func processTrial(name string, which func(probeOrders) (pinned, string), try func(o probeOrders, pid int) error) trial {
	return trial{facet: sandbox.Processes, name: name, thorough: true,
		when: func(o probeOrders) string { _, reason := which(o); return reason },
		try: func(o probeOrders, _ string) error {
			p, _ := which(o)
			// A process of the run with that number, perhaps a thread of our own,
			// is another one.
			if found, ok := readProcess(p.PID); ok && found.start != p.Started {
				return unix.ESRCH
			}
			return try(o, p.PID)
		}}
}

// deviceTrials make and use devices.
var deviceTrials = []trial{
	{facet: sandbox.Devices, name: "make a device node",
		when: func(o probeOrders) string {
			if !o.MakesDevices {
				return "confine itself may not"
			}
			return ""
		},
		try: func(o probeOrders, _ string) error {
			return unix.Mknod(o.writable()+"/device", unix.S_IFCHR|0o600, int(unix.Mkdev(1, 3)))
		}},
	{facet: sandbox.Devices, name: "open a device of the host for writing",
		when: func(o probeOrders) string {
			return missing(o.Device, "there is none that confine could open")
		},
		try: func(o probeOrders, _ string) error { return openTo(o.Device, unix.O_WRONLY) }},
	{facet: sandbox.Devices, name: "write to a terminal of the host",
		when: func(o probeOrders) string { return missing(o.Terminal, "no terminal could be made") },
		try:  func(o probeOrders, _ string) error { return openTo(o.Terminal, unix.O_WRONLY) }},
	{facet: sandbox.Devices, name: "read from a terminal of the host", thorough: true, exception: true,
		when: func(o probeOrders) string { return missing(o.Terminal, "no terminal could be made") },
		try:  func(o probeOrders, _ string) error { return openTo(o.Terminal, unix.O_RDONLY) }},
	{facet: sandbox.Devices, name: "type into a terminal", thorough: true,
		try: func(probeOrders, string) error {
			// A pipe is no terminal: the kernel, if asked, says so.
			fds := make([]int, 2)
			if err := unix.Pipe2(fds, unix.O_CLOEXEC); err != nil {
				return need(err)
			}
			defer unix.Close(fds[0])
			defer unix.Close(fds[1])
			if err := unix.IoctlSetPointerInt(fds[0], unix.TIOCSTI, 'x'); err != unix.ENOTTY {
				return err
			}
			return nil
		}},
}

func splitLines(s string) []string { return strings.Split(strings.TrimSpace(s), "\n") }
