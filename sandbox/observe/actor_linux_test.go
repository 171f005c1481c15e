package observe

import (
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"unsafe"

	"golang.org/x/sys/unix"
)

// actorMain does what its arguments say, one after the other, and prints the error
// that each gets, or "ok". An action is a word and its operands, separated by
// spaces.
func actorMain(actions []string) {
	for _, action := range actions {
		fields := strings.Fields(action)
		do := acts[fields[0]]
		if do == nil {
			fmt.Println("unknown action", fields[0])
			continue
		}
		if err := do(fields[1:]); err == nil {
			fmt.Println("ok")
		} else if errno, is := err.(unix.Errno); is {
			fmt.Println(unix.ErrnoName(errno))
		} else {
			fmt.Println(err)
		}
	}
}

type act = func(operands []string) error

var acts = map[string]act{
	"creat":     func(o []string) error { return opened(o[0], unix.O_CREAT|unix.O_WRONLY|unix.O_TRUNC) },
	"excl":      func(o []string) error { return opened(o[0], unix.O_CREAT|unix.O_EXCL|unix.O_WRONLY) },
	"write":     func(o []string) error { return opened(o[0], unix.O_WRONLY) },
	"update":    func(o []string) error { return opened(o[0], unix.O_RDWR) },
	"append":    func(o []string) error { return opened(o[0], unix.O_WRONLY|unix.O_APPEND) },
	"nofollow":  func(o []string) error { return opened(o[0], unix.O_WRONLY|unix.O_NOFOLLOW) },
	"readtrunc": func(o []string) error { return opened(o[0], unix.O_RDONLY|unix.O_TRUNC) },
	"readcreat": func(o []string) error { return opened(o[0], unix.O_RDONLY|unix.O_CREAT) },
	"read":      func(o []string) error { return opened(o[0], unix.O_RDONLY) },
	"tmpfile":   func(o []string) error { return opened(o[0], unix.O_TMPFILE|unix.O_WRONLY) },
	"path":      func(o []string) error { return opened(o[0], unix.O_PATH|unix.O_CREAT|unix.O_TRUNC) },
	"fifo":      func(o []string) error { return opened(o[0], unix.O_WRONLY|unix.O_NONBLOCK) },
	"mkdir":     func(o []string) error { return unix.Mkdir(o[0], 0o755) },
	"mkfifo":    func(o []string) error { return unix.Mknod(o[0], unix.S_IFIFO|0o644, 0) },
	"mknod":     func(o []string) error { return unix.Mknod(o[0], unix.S_IFCHR|0o644, 0x103) },
	"symlink":   func(o []string) error { return unix.Symlink("anywhere", o[0]) },
	"link":      func(o []string) error { return unix.Link(o[0], o[1]) },
	"unlink":    func(o []string) error { return unix.Unlink(o[0]) },
	"rmdir":     func(o []string) error { return unix.Rmdir(o[0]) },
	"rename":    func(o []string) error { return unix.Rename(o[0], o[1]) },
	"exchange": func(o []string) error {
		return unix.Renameat2(unix.AT_FDCWD, o[0], unix.AT_FDCWD, o[1], unix.RENAME_EXCHANGE)
	},
	"noreplace": func(o []string) error {
		return unix.Renameat2(unix.AT_FDCWD, o[0], unix.AT_FDCWD, o[1], unix.RENAME_NOREPLACE)
	},
	"truncate": func(o []string) error { return unix.Truncate(o[0], 1) },
	"chmod":    func(o []string) error { return unix.Chmod(o[0], 0o600) },
	"chmod2": func(o []string) error {
		return call(unix.SYS_FCHMODAT2, atCwd, ptr(o[0]), 0o600, 0)
	},
	"chown":     func(o []string) error { return unix.Chown(o[0], -1, os.Getgid()) },
	"chownnone": func(o []string) error { return unix.Chown(o[0], -1, -1) },
	"lchown":    func(o []string) error { return unix.Lchown(o[0], os.Getuid(), -1) },
	"utime":     func(o []string) error { return unix.UtimesNanoAt(unix.AT_FDCWD, o[0], make([]unix.Timespec, 2), 0) },
	"now":       func(o []string) error { return call(unix.SYS_UTIMENSAT, atCwd, ptr(o[0]), 0, 0) },
	"setxattr":  func(o []string) error { return unix.Setxattr(o[0], "user.x", []byte("1"), 0) },
	"lsetxattr": func(o []string) error { return unix.Lsetxattr(o[0], "user.x", []byte("1"), 0) },
	"rmxattr":   func(o []string) error { return unix.Removexattr(o[0], "user.x") },
	"chdir":     func(o []string) error { return unix.Chdir(o[0]) },
	"close":     func(o []string) error { return unix.Close(number(o[0])) },

	// dup holds a file by the given descriptor, opened only for reading.
	"hold": func(o []string) error {
		fd, err := unix.Open(o[1], unix.O_RDONLY, 0)
		if err != nil {
			return err
		}
		defer unix.Close(fd)
		return unix.Dup3(fd, number(o[0]), 0)
	},
	"creatat":  func(o []string) error { return openedAt(number(o[0]), o[1], unix.O_CREAT|unix.O_WRONLY) },
	"unlinkat": func(o []string) error { return unix.Unlinkat(number(o[0]), o[1], 0) },
	"renameat": func(o []string) error { return unix.Renameat(number(o[0]), o[1], number(o[2]), o[3]) },
	"utimefd": func(o []string) error {
		times := [2]unix.Timespec{}
		return call(unix.SYS_UTIMENSAT, uintptr(number(o[0])), 0, uintptr(unsafe.Pointer(&times)), 0)
	},
	"many": func(o []string) error {
		return createMany(os.Getenv("HOME")+"/", o[0], unix.O_CREAT|unix.O_EXCL|unix.O_WRONLY)
	},
	"manyrelative": func(o []string) error { return createMany("", o[0], unix.O_CREAT|unix.O_EXCL|unix.O_WRONLY) },
	"manyover":     func(o []string) error { return createMany("", o[0], unix.O_CREAT|unix.O_TRUNC|unix.O_WRONLY) },
	"threads":      func(o []string) error { return together(number(o[0]), o[1]) },
	"spawn":        func(o []string) error { return exec.Command("/bin/sh", "-c", strings.Join(o, " ")).Run() },
	"flood":        func(o []string) error { return flood(number(o[0]), o[1]) },
	"fliptext":     func(o []string) error { return flipText(number(o[0]), o[1], o[2]) },
	"fliplink":     func(o []string) error { return flipLink(number(o[0]), o[1], o[2], o[3]) },
	"signals":      func(o []string) error { return underSignals(number(o[0]), o[1]) },
	"undumpable":   func([]string) error { return unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0) },
	"tcp":          func(o []string) error { return reach(unix.SOCK_STREAM, o[0]) },
	"udp":          func(o []string) error { return reach(unix.SOCK_DGRAM, o[0]) },
	"sendto":       func(o []string) error { return sendTo(o[0]) },
	"sendmmsg":     func(o []string) error { return sendMessages(o[0]) },
	"unix":         func(o []string) error { return reachUnix(unix.SOCK_STREAM, o[0]) },
	"bind":         func(o []string) error { return bindUnix(o[0]) },
	"listen":       func(o []string) error { return listen(o[0]) },
	"nothing":      func([]string) error { return call(unix.SYS_OPENAT, atCwd, 8, unix.O_WRONLY, 0) },
	"empty":        func([]string) error { return opened("", unix.O_WRONLY|unix.O_CREAT) },
}

// together creates files from many threads at the same time.
func together(count int, prefix string) error {
	var ready, done sync.WaitGroup
	ready.Add(count)
	for i := range count {
		done.Go(func() {
			runtime.LockOSThread()
			ready.Done()
			ready.Wait()
			opened(fmt.Sprintf("%s%d", prefix, i), unix.O_CREAT|unix.O_WRONLY)
		})
	}
	done.Wait()
	return nil
}

// flood is refused many files with long names.
func flood(count int, dir string) error {
	for i := range count {
		opened(fmt.Sprintf("%s/%0200d", dir, i), unix.O_CREAT|unix.O_WRONLY)
	}
	return nil
}

// flipText opens a path that another thread keeps changing in memory.
func flipText(count int, one, other string) error {
	if len(one) != len(other) {
		return unix.EINVAL
	}
	text := append([]byte(one), 0)
	stop := make(chan bool)
	go func() {
		for {
			select {
			case <-stop:
				return
			default:
				copy(text, other)
				copy(text, one)
			}
		}
	}()
	for range count {
		fd, _, errno := unix.Syscall6(unix.SYS_OPENAT, atCwd, uintptr(unsafe.Pointer(&text[0])), unix.O_WRONLY|unix.O_CREAT, 0o644, 0, 0)
		if errno == 0 {
			unix.Close(int(fd))
		}
	}
	stop <- true
	return nil
}

// flipLink creates files below a link that another thread keeps turning from one
// folder to another, and leaves it with the second.
func flipLink(count int, link, one, other string) error {
	stop := make(chan bool)
	turn := func(target string) {
		unix.Symlink(target, link+".new")
		unix.Rename(link+".new", link)
	}
	turn(one)
	go func() {
		for {
			select {
			case <-stop:
				return
			default:
				turn(other)
				turn(one)
			}
		}
	}()
	for range count {
		opened(link+"/new", unix.O_CREAT|unix.O_WRONLY)
	}
	stop <- true
	turn(other)
	return nil
}

// underSignals is refused a file many times while signals come.
func underSignals(count int, path string) error {
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, unix.SIGALRM)
	const often = 200 // microseconds
	timer := unix.Itimerval{Interval: unix.Timeval{Usec: often}, Value: unix.Timeval{Usec: often}}
	if _, err := unix.Setitimer(unix.ItimerReal, timer); err != nil {
		return err
	}
	for range count {
		if err := opened(path, unix.O_CREAT|unix.O_WRONLY); err != unix.EROFS && err != unix.EACCES {
			return err
		}
	}
	return nil
}

const atCwd = ^uintptr(99) // AT_FDCWD

func number(s string) int {
	n, err := strconv.Atoi(s)
	if err != nil {
		panic(err)
	}
	return n
}

func opened(path string, flags int) error { return openedAt(unix.AT_FDCWD, path, flags) }

func openedAt(dir int, path string, flags int) error {
	fd, err := unix.Openat(dir, path, flags|unix.O_CLOEXEC, 0o644)
	if err == nil {
		unix.Close(fd)
	}
	return err
}

func ptr(s string) uintptr { return uintptr(unsafe.Pointer(unsafe.StringData(s + "\x00"))) }

func call(nr uintptr, a ...uintptr) error {
	var six [6]uintptr
	copy(six[:], a)
	_, _, errno := unix.Syscall6(nr, six[0], six[1], six[2], six[3], six[4], six[5])
	if errno != 0 {
		return errno
	}
	return nil
}

func uintptrOf(memory []byte) uintptr { return uintptr(unsafe.Pointer(&memory[0])) }
