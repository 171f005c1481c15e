package sandboxtest

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"syscall"
	"time"

	"github.com/confine-dev/confine/sandbox"
	"golang.org/x/sys/unix"
)

// allowances are what honest programs do.
var allowances = slices.Concat(fileWork, processWork, socketWork, grantWork, hiddenWork, besideProtected)

// work makes a row that needs no more than a name and the operation.
func work(name string, try func(stage) error) allowance { return allowance{name: name, try: try} }

// with changes a row.
func (r allowance) with(change func(*allowance)) allowance {
	change(&r)
	return r
}

func inBothModes(r *allowance)     { r.modes = bothModes }
func byNamespaces(r *allowance)    { r.levels = withNamespaces }
func asRootOfTheView(r *allowance) { r.levels, r.root, r.users = withNamespaces, true, true }

// fileWork is done with files. In read-only mode Inside lies in the temporary
// folder.
var fileWork = []allowance{
	work("write, append and read a file", func(s stage) error {
		if err := os.WriteFile(s.in("file"), []byte("one"), 0o644); err != nil {
			return err
		}
		f, err := os.OpenFile(s.in("file"), os.O_APPEND|os.O_WRONLY, 0)
		if err != nil {
			return err
		}
		_, err = f.WriteString(" two")
		return errors.Join(err, f.Close(), holds(s.in("file"), "one two"))
	}).with(inBothModes).with(func(r *allowance) {
		r.missing = func(s *scene) string {
			if s.mode == sandbox.ReadOnly {
				return ""
			}
			data, err := os.ReadFile(s.stage.in("file"))
			if string(data) != "one two" {
				return fmt.Sprintf("the file holds %q (%v)", data, err)
			}
			return ""
		}
	}),
	work("truncate and remove a file", func(s stage) error {
		return errors.Join(os.WriteFile(s.in("file"), []byte("one"), 0o644), os.Truncate(s.in("file"), 1), holds(s.in("file"), "o"), os.Remove(s.in("file")))
	}).with(inBothModes),
	work("make and remove folders", func(s stage) error {
		return errors.Join(os.MkdirAll(s.in("a/b/c"), 0o755), os.Remove(s.in("a/b/c")), os.RemoveAll(s.in("a")))
	}).with(inBothModes),
	work("rename in every way", func(s stage) error {
		err := errors.Join(os.Mkdir(s.in("a"), 0o755), os.Mkdir(s.in("b"), 0o755), os.WriteFile(s.in("a/file"), []byte("1"), 0o644), os.WriteFile(s.in("b/file"), []byte("2"), 0o644),
			unix.Renameat2(unix.AT_FDCWD, s.in("a/file"), unix.AT_FDCWD, s.in("b/file"), unix.RENAME_EXCHANGE), holds(s.in("a/file"), "2"),
			unix.Rename(s.in("a/file"), s.in("b/other")), unix.Rename(s.in("b/other"), s.in("b/file")), holds(s.in("b/file"), "2"), unix.Rename(s.in("b"), s.in("a/b")))
		if err == nil && unix.Renameat2(unix.AT_FDCWD, s.in("a/b"), unix.AT_FDCWD, s.in("a"), unix.RENAME_NOREPLACE) == nil {
			err = errors.New("a folder was renamed over another that should have stayed")
		}
		return err
	}).with(inBothModes),
	work("link", func(s stage) error {
		return errors.Join(os.Mkdir(s.in("a"), 0o755), os.WriteFile(s.in("file"), []byte("1"), 0o644), os.Link(s.in("file"), s.in("a/hard")), holds(s.in("a/hard"), "1"),
			os.Symlink("../file", s.in("a/soft")), holds(s.in("a/soft"), "1"))
	}).with(inBothModes),
	work("change modes, times and owners", func(s stage) error {
		then := time.Unix(1e9, 0)
		err := errors.Join(os.WriteFile(s.in("file"), nil, 0o644), os.Chmod(s.in("file"), 0o750), os.Chown(s.in("file"), os.Getuid(), os.Getgid()), os.Chtimes(s.in("file"), then, then))
		if err != nil {
			return err
		}
		info, err := os.Stat(s.in("file"))
		if err == nil && (info.Mode() != 0o750 || !info.ModTime().Equal(then)) {
			err = fmt.Errorf("mode %v, time %v", info.Mode(), info.ModTime())
		}
		return err
	}).with(inBothModes),
	work("set the sticky bit", func(s stage) error { return errors.Join(os.Mkdir(s.in("a"), 0o755), unix.Chmod(s.in("a"), 0o1777)) }),
	work("set an attribute of an own file", func(s stage) error {
		err := errors.Join(os.WriteFile(s.in("file"), nil, 0o644), unix.Setxattr(s.in("file"), "user.suite", []byte("x"), 0))
		if errors.Is(err, unix.EOPNOTSUPP) {
			return nil // a file system without them
		}
		return err
	}),
	work("make a sparse file", func(s stage) error {
		f, err := os.Create(s.in("file"))
		if err != nil {
			return err
		}
		defer f.Close()
		_, err = f.WriteAt([]byte("x"), 1<<20)
		return errors.Join(err, unix.Fallocate(int(f.Fd()), unix.FALLOC_FL_KEEP_SIZE, 0, 4096))
	}).with(inBothModes),
	work("write through a shared mapping of an own file", func(s stage) error {
		err := os.WriteFile(s.in("file"), []byte("0123"), 0o644)
		if err != nil {
			return err
		}
		return errors.Join(mapAndWrite(s.in("file")), holds(s.in("file"), "done"))
	}).with(inBothModes),
	work("lock a file", func(s stage) error {
		f, err := os.Create(s.in("file"))
		if err != nil {
			return err
		}
		defer f.Close()
		byProcess, byFile := unix.Flock_t{Type: unix.F_WRLCK, Len: 1}, unix.Flock_t{Type: unix.F_WRLCK, Start: 1, Len: 1}
		return errors.Join(unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB), unix.FcntlFlock(f.Fd(), unix.F_SETLK, &byProcess), unix.FcntlFlock(f.Fd(), unix.F_OFD_SETLK, &byFile))
	}).with(inBothModes),
	work("link an own unnamed file", func(s stage) error {
		fd, err := unix.Open(s.Inside, unix.O_TMPFILE|unix.O_WRONLY|unix.O_CLOEXEC, 0o600)
		if slices.Contains(noUnnamed, errnoIn(err)) {
			return nil // a file system without them
		}
		if err != nil {
			return err
		}
		return unix.Linkat(unix.AT_FDCWD, procFd(fd), unix.AT_FDCWD, s.in("file"), unix.AT_SYMLINK_FOLLOW)
	}).with(inBothModes),
	work("copy by the kernel", func(s stage) error {
		return errors.Join(os.WriteFile(s.in("a"), []byte("done"), 0o644), os.WriteFile(s.in("b"), nil, 0o644), copyOver(s.in("a"), s.in("b")), holds(s.in("b"), "done"))
	}),
	work("watch a folder", func(s stage) error {
		fd, err := unix.InotifyInit1(unix.IN_CLOEXEC)
		if err != nil {
			return err
		}
		_, err = unix.InotifyAddWatch(fd, s.Inside, unix.IN_CREATE)
		if err = errors.Join(err, os.WriteFile(s.in("file"), nil, 0o644)); err != nil {
			return err
		}
		_, err = unix.Read(fd, make([]byte, 4096))
		return err
	}).with(inBothModes),
	work("use a FIFO", func(s stage) error {
		if err := unix.Mkfifo(s.in("pipe"), 0o600); err != nil {
			return err
		}
		f, err := os.OpenFile(s.in("pipe"), os.O_RDWR, 0)
		if err != nil {
			return err
		}
		defer f.Close()
		_, err = f.WriteString("x")
		return err
	}).with(inBothModes),
	work("run a program from the workspace and from the temporary folder", func(s stage) error {
		for _, dir := range []string{s.Inside, os.TempDir()} {
			path := filepath.Join(dir, s.Token)
			if err := os.WriteFile(path, []byte("#!/bin/sh\necho done\n"), 0o755); err != nil {
				return err
			}
			if out, err := exec.Command(path).Output(); err != nil || string(out) != "done\n" {
				return fmt.Errorf("%s: %q, %w", path, out, err)
			}
		}
		return nil
	}).with(inBothModes),
	work("read what is outside", func(s stage) error { return holds(s.out("file"), "host") }).with(inBothModes),
	work("keep temporary files", func(s stage) error {
		f, err := os.CreateTemp("", "x")
		if err != nil {
			return err
		}
		_, err = f.WriteString("x")
		return errors.Join(err, f.Close(), os.Remove(f.Name()))
	}).with(inBothModes),
	work("write to /tmp by name", func(s stage) error {
		return errors.Join(os.WriteFile("/tmp/"+s.Token, []byte("x"), 0o600), os.Remove("/tmp/"+s.Token))
	}).with(inBothModes).with(byNamespaces),
	work("write in the shared memory folder", func(s stage) error {
		path := "/dev/shm/" + s.Token
		return errors.Join(os.WriteFile(path, []byte("0123"), 0o600), mapAndWrite(path), os.Remove(path))
	}).with(inBothModes).with(byNamespaces),
	work("use the harmless devices", func(stage) error {
		buffer := make([]byte, 8)
		for _, name := range []string{"zero", "urandom", "random"} {
			f, err := os.Open("/dev/" + name)
			if err != nil {
				return err
			}
			if _, err := io.ReadFull(f, buffer); err != nil {
				return err
			}
			f.Close()
		}
		for _, name := range []string{"null", "zero"} {
			if err := openAndWrite(unix.AT_FDCWD, "/dev/"+name, os.O_APPEND); err != nil {
				return err
			}
		}
		if err := openAndWrite(unix.AT_FDCWD, "/dev/full", 0); err != unix.ENOSPC {
			return fmt.Errorf("/dev/full: %v", err)
		}
		for _, name := range []string{"fd/1", "stdout"} {
			if _, err := os.Stat("/dev/" + name); err != nil {
				return err
			}
		}
		return closing(unix.Open("/dev/null", unix.O_WRONLY|unix.O_CREAT|unix.O_TRUNC|unix.O_CLOEXEC, 0o666)) // as shells do
	}).with(inBothModes),
	work("find no terminal", func(stage) error {
		if err := closing(unix.Open("/dev/tty", unix.O_RDWR|unix.O_CLOEXEC, 0)); err != unix.ENXIO {
			return fmt.Errorf("/dev/tty: %v", err)
		}
		return nil
	}).with(inBothModes),
	work("open a pseudoterminal", openTerminal).with(inBothModes).with(byNamespaces),
	work("own files as root does", func(s stage) error {
		err := errors.Join(os.WriteFile(s.in("file"), []byte("x"), 0o600), os.Chown(s.in("file"), 1, 1), os.WriteFile(s.in("file"), []byte("done"), 0), os.Chmod(s.in("file"), 0o640))
		if err != nil {
			return err
		}
		var st unix.Stat_t
		if err := unix.Stat(s.in("file"), &st); err != nil || st.Uid != 1 || st.Gid != 1 {
			return fmt.Errorf("owner %d:%d, %v", st.Uid, st.Gid, err)
		}
		return nil
	}).with(asRootOfTheView),
}

func errnoIn(err error) syscall.Errno {
	errno, _ := err.(syscall.Errno)
	return errno
}

func holds(path, want string) error {
	data, err := os.ReadFile(path)
	if err == nil && string(data) != want {
		err = fmt.Errorf("%s holds %q, not %q", path, data, want)
	}
	return err
}

func mapAndWrite(path string) error {
	fd, err := unix.Open(path, unix.O_RDWR|unix.O_CLOEXEC, 0)
	if err != nil {
		return err
	}
	data, err := unix.Mmap(fd, 0, 4, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	if err != nil {
		return err
	}
	copy(data, "done")
	return unix.Msync(data, unix.MS_SYNC)
}

// openTerminal opens a pseudoterminal and makes it the terminal of a program.
func openTerminal(stage) error {
	master, err := os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		return err
	}
	defer master.Close()
	number, err := unix.IoctlGetInt(int(master.Fd()), unix.TIOCGPTN)
	if err = errors.Join(err, unix.IoctlSetPointerInt(int(master.Fd()), unix.TIOCSPTLCK, 0)); err != nil {
		return err
	}
	slave, err := os.OpenFile(fmt.Sprintf("/dev/pts/%d", number), os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		return err
	}
	defer slave.Close()
	cmd := exec.Command("/bin/sh", "-c", "echo done >/dev/tty")
	cmd.Stdin, cmd.Stdout, cmd.Stderr = slave, slave, slave
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	if err := cmd.Run(); err != nil {
		return err
	}
	buffer := make([]byte, 64)
	n, err := master.Read(buffer)
	if err == nil && !bytes.HasPrefix(buffer[:n], []byte("done")) {
		err = fmt.Errorf("the terminal shows %q", buffer[:n])
	}
	return err
}
