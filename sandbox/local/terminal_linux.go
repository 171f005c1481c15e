package local

import (
	"encoding/binary"
	"fmt"
	"os"

	"github.com/confine-dev/confine/sandbox"
	"golang.org/x/sys/unix"
)

// hasTerminals says that commands can have terminals on this system.
const hasTerminals = true

// terminal is the pseudoterminal of a run. It is made where the command sees it, so
// that its name holds there: in the view's own devpts, if there is one.
type terminal struct {
	master *os.File

	// slave keeps the terminal from being hung up as long as the run goes on, though
	// the command may have closed it; whoever has /dev/tty can open it again.
	slave *os.File
}

// stepTerminal is what fails where there are no pseudoterminals, or no more.
const stepTerminal = "making a terminal"

// makeTerminal adds the calls that make a terminal. Both results are beyond the
// numbers that are given to others, and closed when a program is executed.
func (s *Script) makeTerminal(size sandbox.TerminalSize) (master, slave Ref) {
	control := func(fd Ref, request uint, arg Arg) Ref {
		return s.Call(stepTerminal, unix.SYS_IOCTL, Result(fd), Int(uintptr(request)), arg)
	}
	keep := func(fd Ref) Ref {
		return s.Call(stepTerminal, unix.SYS_FCNTL, Result(fd), Int(unix.F_DUPFD_CLOEXEC), Int(fdHigh))
	}
	const flags = unix.O_RDWR | unix.O_NOCTTY | unix.O_CLOEXEC
	master = keep(s.Call(stepTerminal, unix.SYS_OPENAT, Int(unix.AT_FDCWD), Text("/dev/ptmx"), Int(flags)))
	control(master, unix.TIOCSPTLCK, Bytes(make([]byte, 4))) // unlock it
	control(master, unix.TIOCSWINSZ, Struct(winsize(size)))
	slave = keep(control(master, unix.TIOCGPTPEER, Int(flags)))
	control(slave, unix.TCSETS, Struct(settings()))
	return master, slave
}

// allowTerminal adds the calls for a rule of the command's ruleset.
func (s *Script) allowTerminal(ruleset, slave Ref, rights uint64) {
	attr := binary.NativeEndian.AppendUint64(nil, rights) // struct landlock_path_beneath_attr, packed
	attr = append(attr, 0, 0, 0, 0)
	s.Call(stepTerminal, unix.SYS_FCNTL, Result(slave), Int(unix.F_DUPFD_CLOEXEC), Int(fdHigh))
	s.Patch(attr[8:])
	const pathBeneath = 1 // LANDLOCK_RULE_PATH_BENEATH
	s.Call("allowing the command its terminal", unix.SYS_LANDLOCK_ADD_RULE, Result(ruleset), Int(pathBeneath), Bytes(attr), Int(0))
}

// settings are those that the kernel gives a new terminal, and one more: what is
// typed is UTF-8, so that erasing takes a whole character.
func settings() *unix.Termios {
	t := &unix.Termios{
		Iflag: unix.ICRNL | unix.IXON | unix.IUTF8,
		Oflag: unix.OPOST | unix.ONLCR,
		Cflag: unix.B38400 | unix.CS8 | unix.CREAD,
		Lflag: unix.ISIG | unix.ICANON | unix.ECHO | unix.ECHOE | unix.ECHOK | unix.ECHOCTL | unix.ECHOKE | unix.IEXTEN,
	}
	const ctrl = 0x1f // held down with a letter
	for key, value := range map[int]uint8{
		unix.VINTR: 'C' & ctrl, unix.VQUIT: '\\' & ctrl, unix.VERASE: 0x7f, unix.VKILL: 'U' & ctrl, unix.VEOF: 'D' & ctrl, unix.VMIN: 1,
		unix.VSTART: 'Q' & ctrl, unix.VSTOP: 'S' & ctrl, unix.VSUSP: 'Z' & ctrl, unix.VREPRINT: 'R' & ctrl, unix.VDISCARD: 'O' & ctrl,
		unix.VWERASE: 'W' & ctrl, unix.VLNEXT: 'V' & ctrl,
	} {
		t.Cc[key] = value
	}
	return t
}

func winsize(size sandbox.TerminalSize) *unix.Winsize {
	return &unix.Winsize{Col: uint16(size.Columns), Row: uint16(size.Rows)}
}

// newTerminal takes the two ends over, whether or not it fails.
func newTerminal(master, slave *os.File) (*terminal, error) {
	t := &terminal{slave: slave}
	// As pipes are, it is read with a deadline, which takes a file that was made of a
	// descriptor that does not block.
	fd, err := unix.FcntlInt(master.Fd(), unix.F_DUPFD_CLOEXEC, 0)
	master.Close()
	if err == nil {
		err = unix.SetNonblock(fd, true)
		t.master = os.NewFile(uintptr(fd), "terminal")
	}
	if err != nil {
		t.close()
		return nil, fmt.Errorf("%s: %w", stepTerminal, err)
	}
	return t, nil
}

// name is what the terminal is called where its devpts is the host's.
func (t *terminal) name() string {
	number := -1 // of no terminal
	if conn, err := t.master.SyscallConn(); err == nil {
		conn.Control(func(fd uintptr) { number, _ = unix.IoctlGetInt(int(fd), unix.TIOCGPTN) })
	}
	return fmt.Sprintf("/dev/pts/%d", number)
}

// resize changes the size, and tells the command.
func (t *terminal) resize(size sandbox.TerminalSize) error {
	conn, err := t.master.SyscallConn()
	if err != nil {
		return err
	}
	var failed error
	if err := conn.Control(func(fd uintptr) { failed = unix.IoctlSetWinsize(int(fd), unix.TIOCSWINSZ, winsize(size)) }); err != nil {
		return err
	}
	return failed
}

// release lets go of the command's end, so that the output ends with what is there.
func (t *terminal) release() { closeFiles(&t.slave) }

func (t *terminal) close() { closeFiles(&t.master, &t.slave) }
