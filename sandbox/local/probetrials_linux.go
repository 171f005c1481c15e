package local

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"syscall"
	"unsafe"

	"github.com/confine-dev/confine/sandbox"
	"golang.org/x/sys/unix"
)

// trial is one operation that the probing child tries. Its facet and name
// identify it.
type trial struct {
	facet sandbox.Facet // what it speaks of; empty for a control
	name  string        // an infinitive without "to"

	// exception: a facet may be called partial although this is possible.
	exception bool

	// thorough: only Verify tries it, because it costs time.
	thorough bool

	// works: the control must be possible; others must be refused.
	works bool

	// fits says whether it has a meaning for a kind of run; nil means always.
	fits func(probeOrders) bool

	// when says why it cannot be tried; nil and an empty text mean that it can.
	when func(probeOrders) (reason string)

	// try makes the attempt. victim is a file outside of this trial's own, if
	// its facet is about files; victim+newSuffix does not exist. A missing error
	// means that it was possible.
	try func(o probeOrders, victim string) error

	// seen looks on the host for what came of it, after the child ended; nil if
	// the child's word is enough. What happens to victim is always seen.
	seen func(*probeStage) bool

	// blind: the child cannot tell; only what is seen on the host counts.
	blind bool

	// certain: it needs no proof that it is possible without a sandbox.
	certain bool
}

// newSuffix ends the names of files that trials make.
const newSuffix = " (new)"

// title is the name of a trial with its facet in front, unique among all.
func (t trial) title() string {
	if t.facet == "" {
		return "control: " + t.name
	}
	return string(t.facet) + ": " + t.name
}

// hasVictim reports whether the trial gets a file outside.
func (t trial) hasVictim() bool {
	return (t.facet == sandbox.FileWrite || t.facet == sandbox.Metadata) && t.seen == nil
}

// untried is the error of a trial that could not be made.
type untried struct{ reason string }

func (u untried) Error() string { return u.reason }

// need turns the failure of what a trial needs into an error that says so.
func need(err error) error {
	if err == nil {
		return nil
	}
	return untried{"it could not be prepared: " + err.Error()}
}

// trials are all that a probing child can try, in this order.
var trials = slices.Concat(controls, fileTrials, metadataTrials, networkTrials, serviceTrials, processTrials, deviceTrials, readTrials, limitTrials)

// trialByTitle finds a trial.
var trialByTitle = sync.OnceValue(func() map[string]trial {
	all := map[string]trial{}
	for _, t := range trials {
		all[t.title()] = t
	}
	return all
})

// controls are what must work, so that refusals mean something, and what no
// command may be able to do whatever the facets say.
var controls = []trial{
	{name: "write a file in the workspace", works: true, fits: writesWorkspace,
		try: func(o probeOrders, _ string) error {
			return os.WriteFile(filepath.Join(o.Inside, "file"), []byte("x"), 0o600)
		}},
	{name: "write a temporary file", works: true, try: func(probeOrders, string) error {
		return os.WriteFile(filepath.Join(os.TempDir(), "confine-probe"), []byte("x"), 0o600)
	}},
	{name: "write to /dev/null", works: true, try: func(probeOrders, string) error { return openTo("/dev/null", unix.O_WRONLY) }},
	{name: "move and remove files in the workspace", works: true, thorough: true, fits: writesWorkspace, try: housekeeping},
	{name: "talk to oneself by network", works: true, thorough: true,
		fits: func(o probeOrders) bool { return o.Namespaces || o.Network },
		try:  func(probeOrders, string) error { return talkToOneself() }},
	{name: "reach a server of the host, as was granted", works: true, thorough: true,
		fits: func(o probeOrders) bool { return o.Network },
		when: func(o probeOrders) string { return missing(o.Address, "nothing could listen on 127.0.0.1") },
		try:  func(o probeOrders, _ string) error { return dial("tcp", o.Address) }},
	{name: "read a file beside what is hidden", works: true, try: func(o probeOrders, _ string) error { return readHost(filepath.Join(o.Outside, ordinaryFile)) }},
	{name: "make a user namespace", try: func(probeOrders, string) error {
		// A process with several threads gets EINVAL from the kernel.
		if err := unix.Unshare(unix.CLONE_NEWUSER); err != unix.EINVAL {
			return err
		}
		return nil
	}},
	{name: "gain privileges by executing a program", try: func(probeOrders, string) error { return statusSays("NoNewPrivs:\t1") }},
	{name: "make every system call", try: func(probeOrders, string) error { return statusSays("Seccomp:\t2") }},
}

func writesWorkspace(o probeOrders) bool { return !o.ReadOnly }

// statusSays returns an error, because what it stands for is refused, if the
// process's status has a line.
func statusSays(line string) error {
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return need(err)
	}
	if !slices.Contains(splitLines(string(status)), line) {
		return nil
	}
	return errors.New("the status of the process says so")
}

func housekeeping(o probeOrders, _ string) error {
	folder, file := filepath.Join(o.Inside, "folder"), filepath.Join(o.Inside, "folder", "moved")
	return errors.Join(os.WriteFile(filepath.Join(o.Inside, "mine"), []byte("x"), 0o600), os.Mkdir(folder, 0o700),
		os.Rename(filepath.Join(o.Inside, "mine"), file), os.Truncate(file, 0), os.Chmod(file, 0o640), os.RemoveAll(folder))
}

// fileTrials change files outside.
var fileTrials = []trial{
	fileTrial("create a file outside", func(_ probeOrders, victim string) error {
		return openTo(victim+newSuffix, unix.O_WRONLY|unix.O_CREAT|unix.O_EXCL)
	}).quick(),
	fileTrial("write to a file outside", func(_ probeOrders, victim string) error { return overwrite(victim) }).quick(),
	{facet: sandbox.FileWrite, name: "create a file beside confine's own folder", blind: true,
		// Where that is hidden the file may seem to be made.
		try:  func(o probeOrders, _ string) error { return openTo(o.Beside, unix.O_WRONLY|unix.O_CREAT|unix.O_EXCL) },
		seen: func(s *probeStage) bool { return exists(s.orders.Beside) }},
	{facet: sandbox.FileWrite, name: "write to a protected file of the workspace", fits: writesWorkspace, exception: true,
		try:  func(o probeOrders, _ string) error { return overwrite(filepath.Join(o.Inside, keptFile)) },
		seen: func(s *probeStage) bool { return readHost(s.protected()[0]) != nil }},
	{facet: sandbox.FileWrite, name: "make a protected file of the workspace that is absent", fits: writesWorkspace, exception: true,
		try: func(o probeOrders, _ string) error {
			return openTo(filepath.Join(o.Inside, keptAbsent), unix.O_WRONLY|unix.O_CREAT)
		},
		seen: func(s *probeStage) bool {
			info, err := os.Lstat(s.protected()[1])
			return err == nil && info.Mode().IsRegular()
		}},
	{facet: sandbox.FileWrite, name: "create a file in the workspace", fits: func(o probeOrders) bool { return o.ReadOnly },
		try: func(o probeOrders, _ string) error {
			return openTo(filepath.Join(o.Inside, "new"), unix.O_WRONLY|unix.O_CREAT|unix.O_EXCL)
		},
		seen: func(s *probeStage) bool { return exists(filepath.Join(s.orders.Inside, "new")) }},
	fileTrial("truncate a file outside", func(_ probeOrders, victim string) error { return unix.Truncate(victim, 1) }).excepted(),
	fileTrial("remove a file outside", func(_ probeOrders, victim string) error { return unix.Unlink(victim) }),
	fileTrial("rename a file outside", func(_ probeOrders, victim string) error { return unix.Rename(victim, victim+newSuffix) }),
	fileTrial("move a file of one's own over one outside", func(o probeOrders, victim string) error {
		mine, err := o.mine("over")
		if err != nil {
			return err
		}
		return unix.Rename(mine, victim)
	}),
	fileTrial("link a file outside to where one can write", func(o probeOrders, victim string) error {
		return unix.Link(victim, filepath.Join(o.writable(), "linked"))
	}),
	fileTrial("make a folder outside", func(_ probeOrders, victim string) error { return unix.Mkdir(victim+newSuffix, 0o700) }),
	fileTrial("make a link outside", func(_ probeOrders, victim string) error { return unix.Symlink("/", victim+newSuffix) }),
	fileTrial("write outside through a link of one's own", func(o probeOrders, victim string) error {
		link := filepath.Join(o.writable(), "link")
		if err := unix.Symlink(victim, link); err != nil {
			return need(err)
		}
		return overwrite(link)
	}),
	fileTrial("open a file outside again for writing by its descriptor", func(_ probeOrders, victim string) error {
		fd, err := unix.Open(victim, unix.O_RDONLY|unix.O_CLOEXEC, 0)
		if err != nil {
			return need(err)
		}
		defer unix.Close(fd)
		return overwrite(fmt.Sprintf("/proc/self/fd/%d", fd))
	}),
}

func fileTrial(name string, try func(probeOrders, string) error) trial {
	return trial{facet: sandbox.FileWrite, name: name, try: try, thorough: true}
}

// quick makes a trial part of every probe.
func (t trial) quick() trial {
	t.thorough = false
	return t
}

// excepted lets the trial pass where its facet is called partial.
func (t trial) excepted() trial {
	t.exception = true
	return t
}

// openTo opens a file, with flags, and closes it again.
func openTo(path string, flags int) error {
	fd, err := unix.Open(path, flags|unix.O_CLOEXEC|unix.O_NOCTTY|unix.O_NONBLOCK, 0o600)
	if err == nil {
		unix.Close(fd)
	}
	return err
}

// overwrite changes the first bytes of a file.
func overwrite(path string) error {
	fd, err := unix.Open(path, unix.O_WRONLY|unix.O_CLOEXEC|unix.O_NONBLOCK, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	_, err = unix.Write(fd, []byte("x"))
	return err
}

func exists(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}

// metadataTrials change what is known about files outside.
var metadataTrials = []trial{
	metadataTrial("change the mode of a file outside", func(_ probeOrders, victim string) error { return unix.Chmod(victim, 0o640) }).quick(),
	metadataTrial("change the times of a file outside", func(_ probeOrders, victim string) error {
		return unix.UtimesNanoAt(unix.AT_FDCWD, victim, make([]unix.Timespec, 2), 0)
	}).quick(),
	metadataTrial("change the owner of a file outside", func(_ probeOrders, victim string) error {
		return unix.Lchown(victim, os.Getuid(), os.Getgid()) // to the same: the kernel allows that to everybody who owns it
	}),
	metadataTrial("set an attribute of a file outside", func(_ probeOrders, victim string) error {
		return unix.Setxattr(victim, "user.confine", []byte("x"), 0)
	}),
	metadataTrial("change the mode of a file outside by its descriptor", func(_ probeOrders, victim string) error {
		fd, err := unix.Open(victim, unix.O_RDONLY|unix.O_CLOEXEC, 0)
		if err != nil {
			return need(err)
		}
		defer unix.Close(fd)
		return unix.Fchmod(fd, 0o640)
	}),
}

func metadataTrial(name string, try func(probeOrders, string) error) trial {
	return trial{facet: sandbox.Metadata, name: name, try: try, thorough: true}
}

// readTrials read what is, or may be, hidden.
var readTrials = []trial{
	readTrial("read a file of confine's own", func(o probeOrders) error { return readHost(o.Own) }),
	readTrial("read a hidden file", func(o probeOrders) error { return readHost(o.Hidden) }).quick(),
	readTrial("read a file in a hidden folder", func(o probeOrders) error { return readHost(o.HiddenIn) }).quick(),
	readTrial("read a hidden file by another spelling", func(o probeOrders) error { return readHost("/proc/self/root" + o.Hidden) }),
	readTrial("read a hidden file through a link", func(o probeOrders) error {
		return readLinked(o, o.Hidden)
	}),
	readTrial("read a file in a hidden folder through a link", func(o probeOrders) error {
		return readLinked(o, o.HiddenIn)
	}),
	readTrial("read a hidden file by a second name", func(o probeOrders) error {
		name := filepath.Join(o.writable(), "second name")
		defer os.Remove(name)
		if err := os.Link(o.Hidden, name); err != nil {
			return err
		}
		return readHost(name)
	}),
}

func readTrial(name string, try func(probeOrders) error) trial {
	return trial{facet: sandbox.FileRead, name: name, thorough: true, try: func(o probeOrders, _ string) error { return try(o) }}
}

// readLinked reads a file through a link that is made for it.
func readLinked(o probeOrders, path string) error {
	link := filepath.Join(o.writable(), "link to what is hidden")
	if err := os.Symlink(path, link); err != nil {
		return need(err)
	}
	defer os.Remove(link)
	return readHost(link)
}

// ordinaryFile lies beside what is hidden and is not.
const ordinaryFile = "ordinary"

// hostText is what files of the stage hold.
const hostText = "host"

func readHost(path string) error {
	data, err := os.ReadFile(path)
	if err == nil && string(data) != hostText {
		return errors.New("something else is there")
	}
	return err
}

// errnoError is nil for 0.
func errnoError(errno syscall.Errno) error {
	if errno == 0 {
		return nil
	}
	return errno
}

// readMemory copies from the memory of a process.
func readMemory(pid int, address uintptr) error {
	buffer := make([]byte, 4)
	local := unix.Iovec{Base: &buffer[0]}
	local.SetLen(len(buffer))
	remote := unix.RemoteIovec{Base: address, Len: len(buffer)}
	_, _, errno := unix.Syscall6(unix.SYS_PROCESS_VM_READV, uintptr(pid), uintptr(unsafe.Pointer(&local)), 1, uintptr(unsafe.Pointer(&remote)), 1, 0)
	return errnoError(errno)
}
