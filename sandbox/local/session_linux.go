package local

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"

	"github.com/confine-dev/confine/sandbox"
	"github.com/confine-dev/confine/sandbox/harden"
	"golang.org/x/sys/unix"
)

// session is what the runs of one session share: with namespaces a user, a
// network and a mount namespace that hold the loopback network and the
// temporary file system, kept as descriptors; without, a temporary folder.
type session struct {
	user, network, mount *os.File // nil without namespaces
	dir                  string   // of the session in the server's folder
	tmp                  string   // mount point or folder for temporary files
	files                *os.File // root of the file system for temporary files; nil if it is no own one
	room                 sandbox.Room
	caches               []Cache // folders with a writable layer over them

	mu       sync.Mutex
	runs     map[*run]bool  // guarded by mu: what still lives
	closed   bool           // guarded by mu
	starting sync.WaitGroup // runs that use what is above; not added to once closed
}

// makeSession makes the session's folder and, if asked, its namespaces. policy
// is that of its first run.
func (e *Engine) makeSession(namespaces bool, policy sandbox.Policy) (*session, error) {
	dir := filepath.Join(e.home.sessions(), strconv.FormatInt(e.made.Add(1), 10))
	if err := os.Mkdir(dir, 0o700); err != nil {
		return nil, fmt.Errorf("making the session's folder: %w", err)
	}
	s := &session{dir: dir, tmp: filepath.Join(dir, "tmp"), room: policy.Limits.TempRoom(), runs: map[*run]bool{}}
	if err := os.Mkdir(s.tmp, 0o700); err != nil {
		os.Remove(dir)
		return nil, fmt.Errorf("making the session's folder: %w", err)
	}
	if !namespaces {
		return s, nil
	}
	if err := s.makeNamespaces(overlayable(os.Getenv, policy, e.options.StateDir)); err != nil {
		removeTree(dir)
		return nil, err
	}
	return s, nil
}

// makeNamespaces starts a helper in new namespaces, which prepares them, sends
// their descriptors and ends.
func (s *session) makeNamespaces(caches []string) error {
	store := filepath.Join(s.dir, "caches")
	if err := os.Mkdir(store, 0o700); err != nil {
		return fmt.Errorf("making the session's folder: %w", err)
	}
	ours, theirs, err := socketPair(unix.SOCK_SEQPACKET)
	if err != nil {
		return err
	}
	defer ours.Close()
	pid, err := startInNamespaces(append([]string{"__session", s.tmp, roomOptions(s.room), store}, caches...), theirs)
	theirs.Close()
	if err != nil {
		return &StepError{stepNamespaces, errnoOf(err)}
	}
	text, files, err := receiveFiles(ours, maxMessage, 4)
	waitErr := waitChild(pid)
	if err != nil {
		if step, errno, ok := parseStep(text); ok {
			return &StepError{step, errno}
		}
		return fmt.Errorf("preparing the session's namespaces: %w", errors.Join(err, waitErr))
	}
	s.user, s.network, s.mount, s.files = files[0], files[1], files[2], files[3]
	if text != sessionReady {
		for path := range strings.SplitSeq(strings.TrimPrefix(text, sessionReady), "\n") {
			s.caches = append(s.caches, Cache{Path: path, Layer: cacheLayer(store, slices.Index(caches, path))})
		}
	}
	return nil
}

// stepNamespaces is what fails where the host refuses namespaces.
const stepNamespaces = "making a user namespace"

// startInNamespaces starts a hidden subcommand in new namespaces. Only root may
// write their maps in place of a child that shares or copies the memory of a
// process which nobody can trace (harden); else a helper in between does it, whose memory
// is its own and holds nothing yet.
func startInNamespaces(args []string, socket *os.File) (pid int, err error) {
	dumpable, err := unix.PrctlRetInt(unix.PR_GET_DUMPABLE, 0, 0, 0, 0)
	if os.Geteuid() == 0 || err == nil && dumpable == 1 {
		return startSelf(namespaceAttr(), args, socket)
	}
	return startSelf(nil, append([]string{"__namespaces"}, args...), socket)
}

// namespacesMain is the helper in between: args are a hidden subcommand and its
// arguments, descriptor 3 is the socket, on which a failure is told.
func namespacesMain(args []string) int {
	const socket = 3
	pid, err := startSelf(namespaceAttr(), args, os.NewFile(socket, "socket"))
	if err != nil {
		sendStep(socket, stepNamespaces, err)
		return 1
	}
	if waitChild(pid) != nil {
		return 1
	}
	return 0
}

// temporary is where a run's temporary files go, and what removes them. Without
// namespaces a read-only run gets a folder of its own, because nothing it
// writes is kept.
func (s *session) temporary(mode sandbox.Mode, namespaces bool) (path string, remove func(), err error) {
	if namespaces || mode != sandbox.ReadOnly {
		return s.tmp, func() {}, nil
	}
	path, err = os.MkdirTemp(s.dir, "run-")
	if err != nil {
		return "", nil, fmt.Errorf("making the run's temporary folder: %w", err)
	}
	return path, func() { removeTree(path) }, nil
}

var errSessionClosed = errors.New("the session was closed")

// enter says that a run is being started, unless the session is closed.
func (s *session) enter() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.closed {
		s.starting.Add(1)
	}
	return !s.closed
}

// close ends the session's runs, waits for them and removes its folder.
func (s *session) close() {
	s.mu.Lock()
	s.closed = true
	s.mu.Unlock()
	s.kill()
	s.starting.Wait() // what began meanwhile found the session closed and was killed
	for _, r := range s.kill() {
		<-r.done
	}
	for _, f := range []*os.File{s.user, s.network, s.mount, s.files} {
		if f != nil {
			f.Close()
		}
	}
	removeTree(s.dir)
}

// kill ends everything in the session and returns what has yet to settle.
func (s *session) kill() []*run {
	s.mu.Lock()
	runs := slices.Collect(maps.Keys(s.runs))
	s.mu.Unlock()
	for _, r := range runs {
		r.kill()
	}
	return runs
}

// add notes a living run and reports whether it may go on: not when the
// session is being closed.
func (s *session) add(r *run) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.runs[r] = true
	return !s.closed
}

func (s *session) drop(r *run) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.runs, r)
}

// namespaceAttr asks for the session's namespaces. Root maps every id that it
// has, so that files of other owners keep them; anybody else maps itself.
func namespaceAttr() *syscall.SysProcAttr {
	attr := &syscall.SysProcAttr{
		Cloneflags: unix.CLONE_NEWUSER | unix.CLONE_NEWNET | unix.CLONE_NEWNS,
		// An overlay works with the rights of who mounted it, in folders that it
		// closes to everybody else.
		AmbientCaps: []uintptr{unix.CAP_SYS_ADMIN, unix.CAP_NET_ADMIN, unix.CAP_DAC_OVERRIDE, unix.CAP_FOWNER, unix.CAP_CHOWN},
	}
	if os.Geteuid() == 0 && hasCapability(unix.CAP_SETUID) && hasCapability(unix.CAP_SETGID) {
		attr.UidMappings, attr.GidMappings = identityMap("/proc/self/uid_map"), identityMap("/proc/self/gid_map")
		attr.GidMappingsEnableSetgroups = true
		return attr
	}
	attr.UidMappings = []syscall.SysProcIDMap{{ContainerID: os.Geteuid(), HostID: os.Geteuid(), Size: 1}}
	attr.GidMappings = []syscall.SysProcIDMap{{ContainerID: os.Getegid(), HostID: os.Getegid(), Size: 1}}
	return attr
}

// identityMap maps every id that exists in our own user namespace to itself.
func identityMap(path string) []syscall.SysProcIDMap {
	data, err := os.ReadFile(path)
	if err != nil {
		return []syscall.SysProcIDMap{{Size: 1}}
	}
	var maps []syscall.SysProcIDMap
	for line := range strings.Lines(string(data)) {
		var inside, outside, size int
		if n, _ := fmt.Sscan(line, &inside, &outside, &size); n == 3 {
			maps = append(maps, syscall.SysProcIDMap{ContainerID: inside, HostID: inside, Size: size})
		}
	}
	return maps
}

func hasCapability(c int) bool {
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var data [2]unix.CapUserData
	if unix.Capget(&header, &data[0]) != nil {
		return false
	}
	return data[c/32].Effective&(1<<(c%32)) != 0
}

// roomOptions say to mount(2) how large a file system in memory may become.
func roomOptions(r sandbox.Room) string {
	return fmt.Sprintf("size=%d,nr_inodes=%d", r.Bytes, r.Files)
}

// sessionReady begins the helper's message when all went well; the caches that
// can be written to follow, a newline between them.
const sessionReady = "0"

// sessionMain is the helper in the new namespaces: args are the mount point of
// the temporary file system, its size as options, a mount point for what is written to
// caches, and the caches; descriptor 3 is the socket.
func sessionMain(args []string) int {
	runtime.LockOSThread()
	harden.Apply(harden.Options{})
	const socket = 3
	step, err := prepareNamespaces(args)
	if err != nil {
		sendStep(socket, step, err)
		return 1
	}
	var fds []int
	for _, name := range []string{"user", "net", "mnt"} {
		fd, err := unix.Open("/proc/thread-self/ns/"+name, unix.O_RDONLY|unix.O_CLOEXEC, 0)
		if err != nil {
			sendStep(socket, fmt.Sprintf("opening the %s namespace", name), err)
			return 1
		}
		fds = append(fds, fd)
	}
	files, err := unix.Open(args[0], unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		unix.Send(socket, []byte(fmt.Sprintf("%d opening the session's temporary file system", int(errnoOf(err)))), unix.MSG_NOSIGNAL)
		return 1
	}
	fds = append(fds, files)
	message := sessionReady + strings.Join(mountCaches(args[2], args[1], args[3:]), "\n")
	if unix.Sendmsg(socket, []byte(message), unix.UnixRights(fds...), nil, unix.MSG_NOSIGNAL) != nil {
		return 1
	}
	return 0
}

func prepareNamespaces(args []string) (step string, err error) {
	if len(args) < 3 {
		return "reading the orders", unix.EINVAL
	}
	if err := loopbackUp(); err != nil {
		return "starting the loopback network", err
	}
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_SLAVE, ""); err != nil {
		return "separating the mount namespace", err
	}
	if err := unix.Mount("tmpfs", args[0], "tmpfs", unix.MS_NOSUID|unix.MS_NODEV, "mode=1777,"+args[1]); err != nil {
		return "mounting the session's temporary file system", err
	}
	return "", nil
}

func loopbackUp() error {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	request, err := unix.NewIfreq("lo")
	if err != nil {
		return err
	}
	request.SetUint16(unix.IFF_UP | unix.IFF_RUNNING)
	return unix.IoctlIfreq(fd, unix.SIOCSIFFLAGS, request)
}

// sendStep tells the server which step failed.
func sendStep(socket int, step string, err error) {
	unix.Send(socket, []byte(fmt.Sprintf("%d %s", int(errnoOf(err)), step)), unix.MSG_NOSIGNAL)
}

// parseStep reads "errno step".
func parseStep(text string) (step string, errno syscall.Errno, ok bool) {
	number, step, ok := strings.Cut(text, " ")
	n, err := strconv.Atoi(number)
	return step, syscall.Errno(n), ok && err == nil
}

func errnoOf(err error) syscall.Errno {
	var errno syscall.Errno
	if errors.As(err, &errno) {
		return errno
	}
	return unix.EIO
}
