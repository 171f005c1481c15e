package local

import (
	"errors"
	"fmt"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// childEntries are the hidden subcommands by which confine starts itself.
var childEntries = map[string]func(args []string) int{
	"__namespaces": namespacesMain,
	"__session":    sessionMain,
	"__guardian":   guardianMain,
	"__probe":      probeMain,
}

// Child runs a hidden subcommand and ends the process, if args (os.Args)
// names one. It must come first in main, and in TestMain of tests that start
// commands.
func Child(args []string) {
	if len(args) < 2 {
		return
	}
	if entry, ok := childEntries[args[1]]; ok {
		os.Exit(entry(args[2:]))
	}
}

// openSelf returns a descriptor of this running program, so that a confined
// child can execute it whatever lies at its path by then.
func openSelf() (*os.File, error) {
	fd, err := unix.Open("/proc/self/exe", unix.O_PATH|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, fmt.Errorf("opening confine's own program: %w", err)
	}
	return os.NewFile(uintptr(fd), "confine"), nil
}

// startSelf starts a hidden subcommand with descriptors 3… and an empty
// environment. Its output goes nowhere.
func startSelf(attr *syscall.SysProcAttr, args []string, files ...*os.File) (pid int, err error) {
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		return 0, err
	}
	defer null.Close()
	fds := []uintptr{null.Fd(), null.Fd(), null.Fd()}
	for _, f := range files {
		fds = append(fds, f.Fd())
	}
	children.mu.RLock() // until the number is noted
	defer children.mu.RUnlock()
	// The link names this running program, whatever lies at its path by now. A
	// number of ours would not do: ForkExec moves descriptors about before it
	// executes and may put another in its place.
	pid, err = syscall.ForkExec("/proc/self/exe", append([]string{"confine"}, args...),
		&syscall.ProcAttr{Files: fds, Sys: attr, Env: helperEnv, Dir: "/"})
	if err == nil {
		children.note(pid)
	}
	return pid, err
}

// waitChild waits for a child started by startSelf.
func waitChild(pid int) error {
	status, err := children.reap(pid)
	switch {
	case err != nil:
		return err
	case status.Signaled():
		return fmt.Errorf("killed by %v", status.Signal())
	case status.ExitStatus() != 0:
		return fmt.Errorf("exit status %d", status.ExitStatus())
	}
	return nil
}

// socketPair makes two connected, close-on-exec unix sockets.
func socketPair(kind int) (a, b *os.File, err error) {
	fds, err := unix.Socketpair(unix.AF_UNIX, kind|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, nil, fmt.Errorf("making a socket pair: %w", err)
	}
	return os.NewFile(uintptr(fds[0]), "socket"), os.NewFile(uintptr(fds[1]), "socket"), nil
}

// maxMessage bounds what a helper says, which is mostly paths.
const maxMessage = 64 << 10

var errNoDescriptors = errors.New("no descriptors came")

// receiveFiles reads one message of at most size bytes with descriptors.
func receiveFiles(socket *os.File, size, count int) (text string, files []*os.File, err error) {
	data, control := make([]byte, size), make([]byte, unix.CmsgSpace(4*count))
	n, cn, err := 0, 0, error(unix.EINTR)
	for err == unix.EINTR {
		n, cn, _, _, err = unix.Recvmsg(int(socket.Fd()), data, control, unix.MSG_CMSG_CLOEXEC)
	}
	if err != nil {
		return "", nil, err
	}
	messages, err := unix.ParseSocketControlMessage(control[:cn])
	if err != nil {
		return "", nil, err
	}
	for i := range messages {
		fds, err := unix.ParseUnixRights(&messages[i])
		if err != nil {
			return "", nil, err
		}
		for _, fd := range fds {
			files = append(files, os.NewFile(uintptr(fd), "received"))
		}
	}
	if len(files) != count {
		for _, f := range files {
			f.Close()
		}
		return string(data[:n]), nil, errNoDescriptors
	}
	return string(data[:n]), files, nil
}
