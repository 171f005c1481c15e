package local

import (
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"time"

	"github.com/confine-dev/confine/sandbox"
	"golang.org/x/sys/unix"
)

// probeStage is what the trials of one probe need on the host.
type probeStage struct {
	orders  probeOrders
	dir     string
	key     probeKey
	root    *sandbox.Root
	files   map[string]fileState // of orders.Outside, before anything was tried
	udp     *net.UDPConn         // nil if there is none
	closers []func()             // last opened, first closed
}

// newProbeStage makes a stage in the engine's home. What a quick probe does not
// need is left out.
func (e *Engine) newProbeStage(x experiment) (s *probeStage, err error) {
	s = &probeStage{key: x.key}
	defer func() {
		if err != nil {
			s.close()
			err = fmt.Errorf("preparing the probe: %w", err)
		}
	}()
	if s.dir, err = os.MkdirTemp(e.home.dir, "probe-"); err != nil {
		return s, err
	}
	s.closers = append(s.closers, func() { removeTree(s.dir) })
	outside := filepath.Join(s.dir, "outside")
	beside := filepath.Dir(e.options.StateDir) // where nothing but the sandbox stops a write
	if x.thorough {
		// What lies in the state folder is hidden and shown again; an ordinary
		// folder is better.
		if ordinary, err := s.makeFolder(beside); err == nil {
			outside = filepath.Join(ordinary, "outside")
		}
	}
	server, _ := readProcess(os.Getpid())
	s.orders = probeOrders{Thorough: x.thorough, ReadOnly: x.key.mode == sandbox.ReadOnly, Network: x.key.network, Namespaces: x.namespaces,
		Inside: filepath.Join(s.dir, "inside"), Outside: outside,
		Beside: filepath.Join(beside, ".confine-"+filepath.Base(s.dir)),
		Own:    filepath.Join(s.dir, "own"),
		Hidden: filepath.Join(outside, "hidden"), HiddenIn: filepath.Join(outside, "hidden folder", "file"),
		Server:   pinned{server.pid, server.start},
		Device:   hostDevice(),
		Secret:   e.home.id + filepath.Base(s.dir),
		Abstract: "@confine-" + e.home.id + filepath.Base(s.dir), MakesDevices: hasCapability(unix.CAP_MKNOD)}
	if err := s.makeFiles(); err != nil {
		return s, err
	}
	if s.root, err = sandbox.DeclareRoot(s.orders.Inside, sandbox.Forbidden{}); err != nil {
		return s, err
	}
	s.closers = append(s.closers, func() { s.root.Close() })
	if err := s.listen(); err != nil {
		return s, err
	}
	if master, path, err := hostTerminal(); err == nil {
		s.orders.Terminal = path
		s.closers = append(s.closers, func() { master.Close() })
	}
	if x.thorough {
		s.makeThorough()
	}
	s.files, err = readStates(s.orders.Outside)
	return s, err
}

// close takes the stage apart.
func (s *probeStage) close() {
	for i := len(s.closers) - 1; i >= 0; i-- {
		s.closers[i]()
	}
	if s.orders.Beside != "" {
		os.Remove(s.orders.Beside) // left only by a sandbox that does not hold
	}
}

// policy is what the probing child may do.
func (s *probeStage) policy() sandbox.Policy {
	return sandbox.Policy{Mode: s.key.mode, Network: s.key.network, Roots: []*sandbox.Root{s.root},
		Protected: s.protected(), Unreadable: s.unreadable(), Limits: probeLimits}
}

// unreadable are the file and the folder that the policy hides.
func (s *probeStage) unreadable() []string {
	return []string{s.orders.Hidden, filepath.Dir(s.orders.HiddenIn)}
}

// Names in the workspace that the policy protects. The second does not exist.
const (
	keptFile   = "kept"
	keptAbsent = "absent"
)

// protected are paths of the workspace that must stay as they are.
func (s *probeStage) protected() []string {
	return []string{filepath.Join(s.orders.Inside, keptFile), filepath.Join(s.orders.Inside, keptAbsent)}
}

// makeFiles makes the workspace and, outside, a file for each trial that would
// change one.
func (s *probeStage) makeFiles() error {
	for _, dir := range []string{s.orders.Inside, s.orders.Outside, filepath.Dir(s.orders.HiddenIn)} {
		if err := os.Mkdir(dir, 0o700); err != nil {
			return err
		}
	}
	files := []string{s.protected()[0], s.orders.Own, s.orders.Hidden, s.orders.HiddenIn, filepath.Join(s.orders.Outside, ordinaryFile)}
	if s.orders.Thorough {
		s.orders.Lock = filepath.Join(s.orders.Outside, "lock")
		files = append(files, s.orders.Lock)
	}
	for _, t := range trials {
		if t.hasVictim() && s.orders.wants(t) {
			files = append(files, filepath.Join(s.orders.Outside, t.name))
		}
	}
	for _, path := range files {
		if err := os.WriteFile(path, []byte(hostText), 0o600); err != nil {
			return err
		}
	}
	pipe := filepath.Join(s.orders.Outside, "pipe")
	if unix.Mkfifo(pipe, 0o600) != nil {
		return nil // no such thing on this file system
	}
	reader, err := os.OpenFile(pipe, os.O_RDWR|unix.O_NONBLOCK, 0)
	if err != nil {
		return err
	}
	s.orders.Pipe = pipe
	s.closers = append(s.closers, func() { reader.Close() })
	return nil
}

// listen opens what children may try to reach.
func (s *probeStage) listen() error {
	if !s.orders.Network || s.orders.Thorough {
		if l, err := net.Listen("tcp", "127.0.0.1:0"); err == nil {
			s.orders.Address = l.Addr().String()
			s.closers = append(s.closers, func() { l.Close() })
		}
	}
	l, err := net.Listen("unix", s.orders.Abstract)
	if err != nil {
		return err
	}
	s.closers = append(s.closers, func() { l.Close() })
	return nil
}

// makeThorough adds what only Verify tries. What cannot be made is missing in
// the orders, and the trials that need it say so.
func (s *probeStage) makeThorough() {
	if c, err := net.ListenUDP("udp", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)}); err == nil {
		s.udp, s.orders.Datagram = c, c.LocalAddr().String()
		s.closers = append(s.closers, func() { c.Close() })
	}
	s.orders.Sockets = map[string]string{}
	s.nameSocket()
	for place, folder := range map[string]string{inTemp: "/tmp", inRuntime: os.Getenv("XDG_RUNTIME_DIR"), inRun: "/run", inUnnamed: s.orders.Outside} {
		if filepath.IsAbs(folder) { // the variable may be missing
			s.makeSocket(place, folder)
		}
	}
	if id, err := unix.SysvShmGet(unix.IPC_PRIVATE, 4096, unix.IPC_CREAT|0o600); err == nil {
		data, err := unix.SysvShmAttach(id, 0, 0)
		unix.SysvShmCtl(id, unix.IPC_RMID, nil) // it lives as long as it is attached
		if err == nil {
			copy(data, s.orders.Secret)
			s.orders.Memory, s.orders.HasMemory = id, true
			s.closers = append(s.closers, func() { unix.SysvShmDetach(data) })
		}
	}
	if err := s.startStranger(); err != nil {
		s.orders.NoStranger = "no process for it could be started: " + err.Error()
	}
}

// makeSocket listens in a new folder below another one.
func (s *probeStage) makeSocket(place, folder string) {
	folder, err := s.makeFolder(folder)
	if err != nil {
		return
	}
	dir, err := unix.Open(folder, unix.O_PATH|unix.O_CLOEXEC, 0)
	if err != nil {
		return
	}
	defer unix.Close(dir)
	path := filepath.Join(folder, "socket")
	l, err := net.ListenUnix("unix", &net.UnixAddr{Net: "unix", Name: socketName(dir, path)})
	if err != nil {
		return
	}
	l.SetUnlinkOnClose(false) // by that name it will not be found; the folder is removed
	s.orders.Sockets[place] = path
	s.closers = append(s.closers, func() { l.Close() })
}

// nameSocket listens outside by a name that everybody can look up, if that is
// short enough.
func (s *probeStage) nameSocket() {
	path := filepath.Join(s.orders.Outside, "named")
	if l, err := net.Listen("unix", path); err == nil {
		s.orders.Sockets[inOutside] = path
		s.closers = append(s.closers, func() { l.Close() })
	}
}

// folderPrefix begins the names of folders that Verify makes outside confine's
// own.
const folderPrefix = ".confine-verify-"

// makeFolder makes a folder that the stage's end removes. If we are killed
// before, it is not locked any more, and the next one made beside it removes it.
func (s *probeStage) makeFolder(parent string) (string, error) {
	old, _ := filepath.Glob(filepath.Join(parent, folderPrefix+"*")) // at worst none is found
	for _, folder := range old {
		removeDead(folder)
	}
	folder, err := os.MkdirTemp(parent, folderPrefix)
	if err != nil {
		return "", err
	}
	lock, err := os.Open(folder)
	if err == nil {
		err = flock(lock, unix.LOCK_EX|unix.LOCK_NB)
	}
	s.closers = append(s.closers, func() {
		removeTree(folder)
		lock.Close()
	})
	return folder, err
}

// removeDead removes a folder that nobody holds. One that was made this moment
// is not locked yet: young ones are spared.
func removeDead(folder string) {
	lock, err := os.OpenFile(folder, os.O_RDONLY|unix.O_NOFOLLOW|unix.O_DIRECTORY, 0)
	if err != nil {
		return // another user's
	}
	defer lock.Close()
	var stat unix.Stat_t
	if unix.Fstat(int(lock.Fd()), &stat) != nil || int(stat.Uid) != os.Geteuid() || time.Since(time.Unix(stat.Mtim.Unix())) < time.Minute {
		return
	}
	if flock(lock, unix.LOCK_EX|unix.LOCK_NB) == nil {
		removeTree(folder)
	}
}

// startStranger starts a process of the host for children to see and touch.
func (s *probeStage) startStranger() error {
	lifeRead, lifeWrite, err := os.Pipe()
	if err != nil {
		return err
	}
	defer lifeRead.Close()
	reportRead, reportWrite, err := os.Pipe()
	if err != nil {
		lifeWrite.Close()
		return err
	}
	defer reportRead.Close()
	pid, err := startSelf(nil, []string{"__probe", strangerArg}, lifeRead, reportWrite)
	reportWrite.Close()
	if err != nil {
		lifeWrite.Close()
		return err
	}
	s.closers = append(s.closers, func() {
		unix.Kill(pid, unix.SIGKILL) // our child, not reaped: the number is its own
		children.reap(pid)
		lifeWrite.Close() // by which it ends if we are killed
	})
	reportRead.SetReadDeadline(time.Now().Add(probeTime))
	if _, err := fmt.Fscanln(reportRead, &s.orders.StrangerMemory); err != nil {
		return err
	}
	found, ok := readProcess(pid)
	if !ok {
		return errors.New("it cannot be seen")
	}
	s.orders.Stranger = pinned{pid, found.start}
	return nil
}

// hostDevice is a device that no command gets and that this process could open:
// that a command cannot then says something.
func hostDevice() string {
	for _, path := range []string{"/dev/fuse", "/dev/net/tun", "/dev/kvm", "/dev/kmsg", "/dev/vsock", "/dev/rfkill", "/dev/mem"} {
		if unix.Access(path, unix.W_OK) == nil {
			return path
		}
	}
	return ""
}

// hostTerminal makes a terminal of the host; it is there while master is open.
func hostTerminal() (master *os.File, path string, err error) {
	fd, err := unix.Open("/dev/ptmx", unix.O_RDWR|unix.O_NOCTTY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, "", err
	}
	master = os.NewFile(uintptr(fd), "terminal")
	number, err := unix.IoctlGetInt(fd, unix.TIOCGPTN)
	if err == nil {
		err = unix.IoctlSetPointerInt(fd, unix.TIOCSPTLCK, 0)
	}
	path = fmt.Sprintf("/dev/pts/%d", number)
	if err == nil {
		err = unix.Access(path, unix.R_OK|unix.W_OK)
	}
	if err != nil {
		master.Close()
		return nil, "", err
	}
	return master, path, nil
}
