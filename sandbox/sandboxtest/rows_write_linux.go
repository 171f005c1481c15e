package sandboxtest

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/confine-dev/confine/sandbox"
	"golang.org/x/sys/unix"
)

var bothModes = []sandbox.Mode{sandbox.WorkspaceWrite, sandbox.ReadOnly}

// write makes a row about writing outside, which neither mode may let through.
func write(name string, try func(stage) error) refusal {
	return refusal{name: name, facet: sandbox.FileWrite, modes: bothModes, try: try}
}

// fileWrites are ways of creating, changing and removing files outside.
var fileWrites = []refusal{
	write("create a file", func(s stage) error {
		return openAndWrite(unix.AT_FDCWD, s.out("new"), unix.O_CREAT|unix.O_EXCL)
	}),
	write("create a file by creat", func(s stage) error {
		fd, err := unix.Open(s.out("new"), unix.O_CREAT|unix.O_WRONLY|unix.O_TRUNC, 0o644)
		return closing(fd, err)
	}),
	write("write to a file", func(s stage) error { return openAndWrite(unix.AT_FDCWD, s.out("file"), 0) }),
	write("append to a file", func(s stage) error { return openAndWrite(unix.AT_FDCWD, s.out("file"), unix.O_APPEND) }),
	write("empty a file while opening it", func(s stage) error {
		fd, err := unix.Open(s.out("file"), unix.O_WRONLY|unix.O_TRUNC|unix.O_CLOEXEC, 0)
		return closing(fd, err)
	}),
	write("empty a file while opening it for reading", func(s stage) error {
		fd, err := unix.Open(s.out("file"), unix.O_RDONLY|unix.O_TRUNC|unix.O_CLOEXEC, 0)
		return closing(fd, err)
	}),
	write("truncate a file", func(s stage) error { return unix.Truncate(s.out("file"), 1) }),
	write("lengthen a file", func(s stage) error { return unix.Truncate(s.out("file"), 1<<20) }),
	write("remove a file", func(s stage) error { return unix.Unlink(s.out("file")) }),
	write("remove a link", func(s stage) error { return unix.Unlink(s.out("link")) }),
	write("remove a folder", func(s stage) error { return unix.Rmdir(s.out("empty")) }),
	write("make a folder", func(s stage) error { return unix.Mkdir(s.out("new"), 0o755) }),
	write("make a FIFO", func(s stage) error { return unix.Mkfifo(s.out("new"), 0o644) }),
	write("make a file by mknod", func(s stage) error { return unix.Mknod(s.out("new"), unix.S_IFREG|0o644, 0) }),
	write("make a socket by mknod", func(s stage) error { return unix.Mknod(s.out("new"), unix.S_IFSOCK|0o644, 0) }),
	write("bind a socket", func(s stage) error {
		fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
		if err != nil {
			return need(err)
		}
		return unix.Bind(fd, &unix.SockaddrUnix{Name: s.out("new")})
	}),
	write("make a symbolic link", func(s stage) error { return unix.Symlink("file", s.out("new")) }),
	write("make a hard link outside to a file inside", func(s stage) error {
		if err := os.WriteFile(s.in("mine"), []byte("mine"), 0o644); err != nil {
			return need(err)
		}
		return unix.Link(s.in("mine"), s.out("new"))
	}),
	write("make a hard link outside to a file outside", func(s stage) error { return unix.Link(s.out("file"), s.out("new")) }),
	write("write through a hard link inside", func(s stage) error {
		if err := unix.Link(s.out("file"), s.in("mine")); err != nil {
			return err
		}
		return openAndWrite(unix.AT_FDCWD, s.in("mine"), 0)
	}),
	write("write through a hard link made from a descriptor", func(s stage) error {
		fd, err := unix.Open(s.out("file"), unix.O_RDONLY|unix.O_CLOEXEC, 0)
		if err != nil {
			return need(err)
		}
		if err := unix.Linkat(unix.AT_FDCWD, procFd(fd), unix.AT_FDCWD, s.in("mine"), unix.AT_SYMLINK_FOLLOW); err != nil {
			return err
		}
		return openAndWrite(unix.AT_FDCWD, s.in("mine"), 0)
	}),
	write("write through a hard link made from an empty path", func(s stage) error {
		fd, err := unix.Open(s.out("file"), unix.O_PATH|unix.O_CLOEXEC, 0)
		if err != nil {
			return need(err)
		}
		if err := unix.Linkat(fd, "", unix.AT_FDCWD, s.in("mine"), unix.AT_EMPTY_PATH); err != nil {
			return err
		}
		return openAndWrite(unix.AT_FDCWD, s.in("mine"), 0)
	}).with(func(r *refusal) {
		r.errnos = append([]syscall.Errno{unix.ENOENT}, usualErrnos...) // to who lacks the capability it asks for
		r.control.optional = []syscall.Errno{unix.ENOENT}
	}),
	write("move a file out", func(s stage) error {
		if err := os.WriteFile(s.in("mine"), []byte("mine"), 0o644); err != nil {
			return need(err)
		}
		return unix.Rename(s.in("mine"), s.out("new"))
	}),
	write("move a file out over another", func(s stage) error {
		if err := os.WriteFile(s.in("mine"), []byte("mine"), 0o644); err != nil {
			return need(err)
		}
		return unix.Rename(s.in("mine"), s.out("file"))
	}),
	write("move a folder out", func(s stage) error {
		if err := os.Mkdir(s.in("mine"), 0o755); err != nil {
			return need(err)
		}
		return unix.Rename(s.in("mine"), s.out("new"))
	}),
	write("move a file in", func(s stage) error { return unix.Rename(s.out("file"), s.in("mine")) }),
	write("move a folder in", func(s stage) error { return unix.Rename(s.out("folder"), s.in("mine")) }),
	write("rename a file", func(s stage) error { return unix.Rename(s.out("file"), s.out("new")) }),
	write("rename without replacing", func(s stage) error {
		return unix.Renameat2(unix.AT_FDCWD, s.out("file"), unix.AT_FDCWD, s.out("new"), unix.RENAME_NOREPLACE)
	}),
	write("exchange a file with one inside", func(s stage) error {
		if err := os.WriteFile(s.in("mine"), []byte("mine"), 0o644); err != nil {
			return need(err)
		}
		return unix.Renameat2(unix.AT_FDCWD, s.in("mine"), unix.AT_FDCWD, s.out("file"), unix.RENAME_EXCHANGE)
	}),
	write("exchange two files", func(s stage) error {
		return unix.Renameat2(unix.AT_FDCWD, s.out("other"), unix.AT_FDCWD, s.out("file"), unix.RENAME_EXCHANGE)
	}),
	write("link an unnamed file made outside", func(s stage) error {
		fd, err := unix.Open(s.Outside, unix.O_TMPFILE|unix.O_WRONLY|unix.O_CLOEXEC, 0o644)
		if err != nil {
			return err
		}
		return unix.Linkat(unix.AT_FDCWD, procFd(fd), unix.AT_FDCWD, s.out("new"), unix.AT_SYMLINK_FOLLOW)
	}).with(func(r *refusal) { r.control.optional = noUnnamed }),
	write("link an unnamed file made inside", func(s stage) error {
		fd, err := unix.Open(s.Inside, unix.O_TMPFILE|unix.O_WRONLY|unix.O_CLOEXEC, 0o644)
		if err != nil {
			return need(err)
		}
		return unix.Linkat(unix.AT_FDCWD, procFd(fd), unix.AT_FDCWD, s.out("new"), unix.AT_SYMLINK_FOLLOW)
	}),
	write("write by a descriptor of the folder", func(s stage) error { return writeBelow(s, unix.O_RDONLY) }),
	write("write by a path descriptor of the folder", func(s stage) error { return writeBelow(s, unix.O_PATH) }),
	write("write from inside the folder", func(s stage) error {
		if err := unix.Chdir(s.Outside); err != nil {
			return need(err)
		}
		return openAndWrite(unix.AT_FDCWD, "file", 0)
	}),
	write("write through a link", func(s stage) error {
		if err := unix.Symlink(s.out("file"), s.in("mine")); err != nil {
			return need(err)
		}
		return openAndWrite(unix.AT_FDCWD, s.in("mine"), 0)
	}),
	write("create through a dangling link", func(s stage) error {
		if err := unix.Symlink(s.out("new"), s.in("mine")); err != nil {
			return need(err)
		}
		return openAndWrite(unix.AT_FDCWD, s.in("mine"), unix.O_CREAT)
	}),
	write("remove through a link to the folder", func(s stage) error {
		if err := unix.Symlink(s.Outside, s.in("mine")); err != nil {
			return need(err)
		}
		return unix.Unlink(s.in("mine/file"))
	}),
	write("write through dots", func(s stage) error {
		rel, err := filepath.Rel(s.Inside, s.out("file"))
		if err != nil {
			return need(err)
		}
		return openAndWrite(unix.AT_FDCWD, s.Inside+"/"+rel, 0)
	}),
	write("write through /proc/self/root", func(s stage) error {
		return openAndWrite(unix.AT_FDCWD, "/proc/self/root"+s.out("file"), 0)
	}),
	write("write through the root of the parent", func(s stage) error {
		return openAndWrite(unix.AT_FDCWD, fmt.Sprintf("/proc/%d/root%s", os.Getppid(), s.out("file")), 0)
	}).with(func(r *refusal) { r.control.none = "the parent is not the same without a sandbox" }),
	write("write through the root of another process", func(s stage) error {
		return openAndWrite(unix.AT_FDCWD, fmt.Sprintf("/proc/%d/root%s", s.Victim, s.out("file")), 0)
	}).with(func(r *refusal) {
		r.arrange, r.errnos = withVictim, append([]syscall.Errno{unix.ENOENT}, usualErrnos...)
	}),
	write("write through /proc/self/cwd", func(s stage) error {
		if err := unix.Chdir(s.Outside); err != nil {
			return need(err)
		}
		return openAndWrite(unix.AT_FDCWD, "/proc/thread-self/cwd/file", 0)
	}),
	write("open a read descriptor again for writing", func(s stage) error { return reopen(s, unix.O_RDONLY) }),
	write("open a path descriptor again for writing", func(s stage) error { return reopen(s, unix.O_PATH) }),
	write("write by a file handle", func(s stage) error {
		handle, _, err := unix.NameToHandleAt(unix.AT_FDCWD, s.out("file"), 0)
		if err != nil {
			return need(err)
		}
		dir, err := unix.Open(s.Outside, unix.O_RDONLY|unix.O_CLOEXEC, 0)
		if err != nil {
			return need(err)
		}
		fd, err := unix.OpenByHandleAt(dir, handle, unix.O_WRONLY|unix.O_CLOEXEC)
		return writing(fd, err)
	}).with(func(r *refusal) { r.control.root = true }),
	write("write by openat2", func(s stage) error {
		fd, err := unix.Openat2(unix.AT_FDCWD, s.out("file"), &unix.OpenHow{Flags: unix.O_WRONLY | unix.O_CLOEXEC})
		return writing(fd, err)
	}).with(func(r *refusal) { r.errnos = append([]syscall.Errno{unix.ENOSYS}, usualErrnos...) }),
	write("write through a shared mapping", func(s stage) error {
		fd, err := unix.Open(s.out("file"), unix.O_RDWR|unix.O_CLOEXEC, 0)
		if err != nil {
			return err
		}
		data, err := unix.Mmap(fd, 0, 4, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
		if err != nil {
			return err
		}
		copy(data, "gone")
		return unix.Msync(data, unix.MS_SYNC)
	}),
	write("clone over a file", func(s stage) error { // or what copying is without clones
		if err := os.WriteFile(s.in("mine"), []byte("mine"), 0o644); err != nil {
			return need(err)
		}
		return copyOver(s.in("mine"), s.out("file"))
	}),
	write("write into a leaked folder", writeLeaked).with(func(r *refusal) {
		r.modes = nil
		r.errnos = []syscall.Errno{unix.EBADF} // there must be none
		r.control.direct = true
		r.seen = func(s *scene) string {
			if data, _ := os.ReadFile(filepath.Join(s.place.outside, "leaked", "file")); string(data) != "host" {
				os.WriteFile(filepath.Join(s.place.outside, "leaked", "file"), []byte("host"), 0o644)
				return fmt.Sprintf("the file in the leaked folder holds %q", data)
			}
			return ""
		}
	}),
	write("write to the shared memory of the host", func(s stage) error {
		return openAndWrite(unix.AT_FDCWD, filepath.Join("/dev/shm", s.Name), 0)
	}).with(func(r *refusal) {
		r.errnos = append([]syscall.Errno{unix.ENOENT}, usualErrnos...)
		r.arrange = func(s *scene) {
			path := filepath.Join("/dev/shm", s.stage.Name)
			if err := os.WriteFile(path, []byte("host"), 0o600); err != nil {
				s.t.Fatal(err)
			}
			s.t.Cleanup(func() { os.Remove(path) })
		}
		r.seen = func(s *scene) string { return holdsHost(filepath.Join("/dev/shm", s.stage.Name)) }
	}),
	write("create below the host's /tmp", func(s stage) error {
		return openAndWrite(unix.AT_FDCWD, filepath.Join(filepath.Dir(s.TempSocket), s.Token), unix.O_CREAT)
	}).with(func(r *refusal) {
		r.errnos = append([]syscall.Errno{unix.ENOENT}, usualErrnos...)
		r.seen = func(s *scene) string {
			if _, err := os.Lstat(filepath.Join(s.place.temp, s.stage.Token)); err == nil {
				return "a file appeared below /tmp"
			}
			return ""
		}
	}),
	write("make a control group", func(s stage) error { return unix.Mkdir(s.Cgroup, 0o755) }).with(func(r *refusal) {
		r.control.root, r.control.optional = true, []syscall.Errno{unix.ENOENT}
		r.errnos = append([]syscall.Errno{unix.ENOENT}, usualErrnos...)
		r.arrange = withCgroup
		r.seen = func(s *scene) string {
			if s.stage.Cgroup != "" && os.Remove(s.stage.Cgroup) == nil {
				return "a control group was made"
			}
			return ""
		}
	}),
	write("create in confine's own folder", func(s stage) error {
		return openAndWrite(unix.AT_FDCWD, filepath.Join(s.State, s.Token), unix.O_CREAT)
	}).with(func(r *refusal) {
		r.seen = func(s *scene) string {
			path := filepath.Join(s.place.state, s.stage.Token)
			if _, err := os.Lstat(path); err == nil {
				os.Remove(path)
				return "a file appeared in confine's own folder"
			}
			return ""
		}
	}),
}

// with changes a row.
func (r refusal) with(change func(*refusal)) refusal {
	change(&r)
	return r
}

// noUnnamed are the answers of file systems that have no unnamed files.
var noUnnamed = []syscall.Errno{unix.EOPNOTSUPP, unix.EISDIR}

func procFd(fd int) string { return fmt.Sprintf("/proc/self/fd/%d", fd) }

func closing(fd int, err error) error {
	if err == nil {
		unix.Close(fd)
	}
	return err
}

// writing writes to a descriptor that was just opened.
func writing(fd int, err error) error {
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	_, err = unix.Write(fd, []byte("gone"))
	return err
}

func openAndWrite(dir int, path string, flags int) error {
	return writing(unix.Openat(dir, path, unix.O_WRONLY|unix.O_CLOEXEC|flags, 0o644))
}

func writeBelow(s stage, flags int) error {
	dir, err := unix.Open(s.Outside, flags|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return need(err)
	}
	return openAndWrite(dir, "file", 0)
}

func reopen(s stage, flags int) error {
	fd, err := unix.Open(s.out("file"), flags|unix.O_CLOEXEC, 0)
	if err != nil {
		return need(err)
	}
	return openAndWrite(unix.AT_FDCWD, procFd(fd), 0)
}

func copyOver(from, to string) error {
	in, err := unix.Open(from, unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return need(err)
	}
	out, err := unix.Open(to, unix.O_WRONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return err
	}
	if unix.IoctlFileClone(out, in) == nil {
		return nil
	}
	_, err = unix.CopyFileRange(in, nil, out, nil, 4, 0)
	return err
}

// writeLeaked writes by any folder that was open from the start; EBADF means
// that there is none.
func writeLeaked(stage) error {
	for fd := 3; fd < 1024; fd++ {
		err := openAndWrite(fd, "file", 0)
		if err == unix.EBADF || err == unix.ENOTDIR || err == unix.ENOENT {
			continue
		}
		return err
	}
	return unix.EBADF
}

// withCgroup finds a folder of control groups in which this user can make one.
func withCgroup(s *scene) {
	mounts, _ := os.ReadFile("/proc/self/mounts") // none: the row says so
	for line := range strings.Lines(string(mounts)) {
		fields := strings.Fields(line)
		if len(fields) > 2 && strings.HasPrefix(fields[2], "cgroup") && unix.Access(fields[1], unix.W_OK) == nil {
			s.stage.Cgroup = filepath.Join(fields[1], s.stage.Name)
			return
		}
	}
}

func holdsHost(path string) string {
	if data, err := os.ReadFile(path); err != nil || string(data) != "host" {
		return fmt.Sprintf("%s holds %q (%v)", path, data, err)
	}
	return ""
}
