package local

import (
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// What only the child has, the descriptor of a run's init or the listener of its
// filter, it hands over in one message on a socket before it starts the command.

// handOverFlags mark the message of the child, which an observer's filter must
// let pass: whoever would answer it has yet to receive the listener. They mean
// nothing to a unix socket.
const handOverFlags = unix.MSG_NOSIGNAL | unix.MSG_CONFIRM | unix.MSG_DONTROUTE

// handOver adds the call that sends the results of earlier ones over a socket.
func (s *Script) handOver(socket Arg, files ...Ref) {
	control := make([]byte, unix.CmsgSpace(4*len(files)))
	binary.NativeEndian.PutUint64(control, uint64(unix.CmsgLen(4*len(files)))) // struct cmsghdr
	binary.NativeEndian.PutUint32(control[8:], unix.SOL_SOCKET)
	binary.NativeEndian.PutUint32(control[12:], unix.SCM_RIGHTS)
	for i, file := range files {
		s.Call("handing over a descriptor", unix.SYS_FCNTL, Result(file), Int(unix.F_DUPFD_CLOEXEC), Int(fdHigh))
		s.Patch(control[16+4*i:])
	}
	payload, vector := []byte{1}, make([]byte, 16) // struct iovec
	s.Point(vector, payload)
	binary.NativeEndian.PutUint64(vector[8:], 1)
	header := make([]byte, 56) // struct msghdr
	s.Point(header[16:], vector)
	binary.NativeEndian.PutUint64(header[24:], 1)
	s.Point(header[32:], control)
	binary.NativeEndian.PutUint64(header[40:], uint64(len(control)))
	s.Call("handing over descriptors", unix.SYS_SENDMSG, socket, Bytes(header), Int(handOverFlags))
}

// letHandOver puts before a filter what lets the message above pass.
func letHandOver(filter []unix.SockFilter) []unix.SockFilter {
	const (
		load = unix.BPF_LD | unix.BPF_W | unix.BPF_ABS
		eq   = unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K
		ret  = unix.BPF_RET | unix.BPF_K
	)
	const dataNumber, dataThird = 0, 16 + 2*8 // offsets in struct seccomp_data
	return append([]unix.SockFilter{
		{Code: load, K: dataNumber},
		{Code: eq, K: unix.SYS_SENDMSG, Jf: 3},
		{Code: load, K: dataThird},
		{Code: eq, K: handOverFlags, Jf: 1},
		{Code: ret, K: unix.SECCOMP_RET_ALLOW},
	}, filter...)
}

// listen adds the call that installs an observer's filter. Result: its listener.
func (s *Script) listen(filter []unix.SockFilter) Ref {
	filter = letHandOver(filter)
	program := make([]byte, 16) // struct sock_fprog
	binary.NativeEndian.PutUint16(program, uint16(len(filter)))
	s.Point(program[8:], bytesOf(filter))
	return s.Call("installing the observer's filter", unix.SYS_SECCOMP, Int(unix.SECCOMP_SET_MODE_FILTER), Int(listenFlags), Bytes(program))
}

// listenFlags install a filter with a listener. A signal must not end the wait
// of a call that was seen (seccomp_unotify(2)): rename and its like would fail
// with EINTR, which no program expects.
const listenFlags = unix.SECCOMP_FILTER_FLAG_NEW_LISTENER | unix.SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV

// handOverTime bounds how long a runner may take to get ready.
const handOverTime = 15 * time.Second

var errNotHandedOver = errors.New("nothing was handed over")

// handed is what a child hands over, in this order, as far as it has it.
type handed struct {
	terminal *terminal
	init     *os.File // of a runner
	listener *os.File // of an observer
}

// receiveHanded waits for what the child of a launch hands over; nothing of it is
// left open if that fails.
func receiveHanded(p *pipes, l *Launch, filtered bool) (h handed, err error) {
	var master, slave *os.File
	var wanted []**os.File
	if l.terminal != nil {
		wanted = append(wanted, &master, &slave)
	}
	if l.Runner != nil {
		wanted = append(wanted, &h.init)
	}
	if filtered {
		wanted = append(wanted, &h.listener)
	}
	if len(wanted) == 0 {
		return h, nil
	}
	files, err := receiveHandOver(p.control, len(wanted))
	if err != nil {
		return h, err
	}
	for i, file := range files {
		*wanted[i] = file
	}
	if l.terminal != nil {
		if h.terminal, err = newTerminal(master, slave); err != nil {
			h.close()
			return handed{}, err
		}
	}
	return h, nil
}

// close closes what was not taken.
func (h *handed) close() {
	closeFiles(&h.init, &h.listener)
	if h.terminal != nil {
		h.terminal.close()
	}
}

// receiveHandOver waits for the child's message. It fails with errNotHandedOver
// if the child ended without sending one.
func receiveHandOver(socket *os.File, count int) ([]*os.File, error) {
	limit := unix.NsecToTimeval(int64(handOverTime))
	if err := unix.SetsockoptTimeval(int(socket.Fd()), unix.SOL_SOCKET, unix.SO_RCVTIMEO, &limit); err != nil {
		return nil, fmt.Errorf("limiting the wait for the child: %w", err)
	}
	text, files, err := receiveFiles(socket, 1, count)
	switch {
	case err == nil:
		return files, nil
	case errors.Is(err, errNoDescriptors) && text == "":
		return nil, errNotHandedOver
	case errors.Is(err, unix.EAGAIN):
		return nil, fmt.Errorf("the sandbox was not ready after %v", handOverTime)
	}
	return nil, fmt.Errorf("receiving descriptors from the child: %w", err)
}
