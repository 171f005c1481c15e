package sandboxtest

import (
	"errors"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/confine-dev/confine/sandbox"
	"golang.org/x/sys/unix"
)

// grant changes the policy of a row's command.
type grant func(*scene, *sandbox.Policy)

// Grants of what a scene has.
var (
	writableFile   = grantWriting(func(s stage) string { return s.out("file") })
	writableFolder = grantWriting(func(s stage) string { return s.out("folder") })
	readableHidden = grantReading(func(s stage) string { return s.RuntimeFile })
)

func grantWriting(path func(stage) string) grant {
	return func(s *scene, p *sandbox.Policy) { p.Writable = append(p.Writable, identify(s.t, path(s.stage))) }
}

func grantReading(path func(stage) string) grant {
	return func(s *scene, p *sandbox.Policy) { p.Readable = append(p.Readable, identify(s.t, path(s.stage))) }
}

// identify is what is at a path now, as it would be declared for a grant. Nothing
// keeps its inode number from being used again: whoever removes it keeps it.
func identify(t *testing.T, path string) *sandbox.Root {
	t.Helper()
	var st unix.Stat_t
	if err := unix.Lstat(path, &st); err != nil {
		t.Fatalf("declaring %s: %v", path, err)
	}
	return &sandbox.Root{Path: path, File: st.Mode&unix.S_IFMT != unix.S_IFDIR, Dev: st.Dev, Ino: st.Ino}
}

// granted makes a row about what a grant must not bring with it.
func granted(name string, g grant, try func(stage) error) refusal {
	return write(name, try).with(func(r *refusal) {
		r.grant = g
		r.errnos = append([]syscall.Errno{unix.EBUSY}, usualErrnos...) // what was granted may be a mount
	})
}

// grantLimits are ways of doing more than what was granted.
var grantLimits = []refusal{
	granted("write beside a granted file", writableFile, func(s stage) error { return openAndWrite(unix.AT_FDCWD, s.out("other"), 0) }),
	granted("create beside a granted file", writableFile, func(s stage) error {
		return openAndWrite(unix.AT_FDCWD, s.out("new"), unix.O_CREAT|unix.O_EXCL)
	}),
	granted("write below the folder of a granted file", writableFile, func(s stage) error {
		return openAndWrite(unix.AT_FDCWD, s.out("folder/file"), 0)
	}),
	granted("remove a granted file", writableFile, func(s stage) error { return unix.Unlink(s.out("file")) }),
	granted("rename a granted file", writableFile, func(s stage) error { return unix.Rename(s.out("file"), s.out("new")) }),
	granted("exchange a granted file", writableFile, func(s stage) error {
		return unix.Renameat2(unix.AT_FDCWD, s.out("file"), unix.AT_FDCWD, s.out("other"), unix.RENAME_EXCHANGE)
	}),
	granted("rename over a granted file", writableFile, func(s stage) error {
		if err := os.WriteFile(s.in("mine"), []byte("mine"), 0o644); err != nil {
			return need(err)
		}
		return unix.Rename(s.in("mine"), s.out("file"))
	}).with(func(r *refusal) { r.modes = nil }), // in read-only mode the other file lies in another file system
	granted("link a granted file", writableFile, func(s stage) error { return unix.Link(s.out("file"), s.out("new")) }),
	granted("write beside a granted folder", writableFolder, func(s stage) error { return openAndWrite(unix.AT_FDCWD, s.out("file"), 0) }),
	granted("create beside a granted folder", writableFolder, func(s stage) error { return unix.Mkdir(s.out("new"), 0o755) }),
	granted("rename a granted folder", writableFolder, func(s stage) error { return unix.Rename(s.out("folder"), s.out("new")) }),
	granted("rename out of a granted folder", writableFolder, func(s stage) error { return unix.Rename(s.out("folder/file"), s.out("new")) }),
	granted("leave a granted folder upwards", writableFolder, func(s stage) error {
		dir, err := unix.Open(s.out("folder"), unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
		if err != nil {
			return need(err)
		}
		return openAndWrite(dir, "../file", 0)
	}),
	granted("write to a file that was granted for reading", readableHidden, func(s stage) error {
		return openAndWrite(unix.AT_FDCWD, s.RuntimeFile, 0)
	}).with(func(r *refusal) {
		r.control.none = "other rows read the file, and without a grant a row like it has one"
		r.seen = func(s *scene) string { return holdsHost(s.stage.RuntimeFile) }
	}),
	service("connect to a socket beside a file that was granted for reading", withoutNamespaces, func(s stage) error {
		return connect(s.RuntimeSocket, s.Token)
	}).with(func(r *refusal) { r.grant, r.seen = readableHidden, heardBy }),
}

// grantWork is what a grant is for.
var grantWork = []allowance{
	work("write to a granted file", func(s stage) error {
		fd, err := unix.Open(s.out("file"), unix.O_WRONLY|unix.O_TRUNC|unix.O_CLOEXEC, 0)
		return errors.Join(closing(fd, err), os.WriteFile(s.out("file"), []byte("____"), 0), mapAndWrite(s.out("file")), holds(s.out("file"), "done"))
	}).with(inBothModes).with(byGrant(writableFile, func(s stage) string { return s.out("file") })),
	work("append to a granted file", func(s stage) error {
		return errors.Join(openAndWrite(unix.AT_FDCWD, s.out("file"), unix.O_APPEND), holds(s.out("file"), "hostgone"), os.Truncate(s.out("file"), 0),
			openAndWriteText(s.out("file"), "done"))
	}).with(inBothModes).with(byGrant(writableFile, func(s stage) string { return s.out("file") })),
	work("work in a granted folder", func(s stage) error {
		return errors.Join(os.Mkdir(s.out("folder/a"), 0o755), os.Rename(s.out("folder/file"), s.out("folder/a/b")), os.Link(s.out("folder/a/b"), s.out("folder/c")),
			os.RemoveAll(s.out("folder/a")), os.WriteFile(s.out("folder/file"), []byte("done"), 0o644))
	}).with(inBothModes).with(byGrant(writableFolder, func(s stage) string { return s.out("folder/file") })),
	work("write to a granted file that is protected", func(s stage) error { return openAndWriteText(s.in("settings"), "done") }).with(inProtected("settings")),
	work("write to a granted file in a folder that is protected", func(s stage) error { return openAndWriteText(s.in("hooks/pre"), "done") }).with(inProtected("hooks")),
	work("write to a granted file in the runtime folder", func(s stage) error {
		return openAndWriteText(filepath.Join(filepath.Dir(s.RuntimeFile), s.Name), "done")
	}).with(inBothModes).with(byHiddenFile(func(s stage) string { return filepath.Dir(s.RuntimeFile) })),
	work("write to a granted file below the host's /tmp", func(s stage) error {
		return openAndWriteText(filepath.Join(filepath.Dir(s.TempSocket), s.Name), "done")
	}).with(inBothModes).with(byHiddenFile(func(s stage) string { return filepath.Dir(s.TempSocket) })),
	work("write to a granted file in the host's shared memory", func(s stage) error {
		return openAndWriteText(filepath.Join("/dev/shm", s.Name), "done")
	}).with(inBothModes).with(byHiddenFile(func(stage) string { return "/dev/shm" })),
	work("read a granted file in the runtime folder", func(s stage) error { return holds(s.RuntimeFile, "host") }).with(inBothModes).with(func(r *allowance) { r.grant = readableHidden }),
}

// byGrant gives a row its grant, and has it write "done" to a file of the host.
func byGrant(g grant, path func(stage) string) func(*allowance) {
	return func(r *allowance) {
		r.grant = g
		r.missing = func(s *scene) string {
			if err := holds(path(s.stage), "done"); err != nil {
				return err.Error()
			}
			return ""
		}
	}
}

// inProtected grants the file of a root below which a path is protected.
func inProtected(protected string) func(*allowance) {
	path := func(s stage) string {
		if protected == "hooks" {
			return s.in("hooks/pre")
		}
		return s.in(protected)
	}
	return func(r *allowance) {
		byGrant(func(s *scene, p *sandbox.Policy) {
			if err := errors.Join(os.Mkdir(s.stage.in("hooks"), 0o755), os.WriteFile(path(s.stage), []byte("host"), 0o644)); err != nil {
				s.t.Fatal(err)
			}
			p.Roots = []*sandbox.Root{s.place.declare(s.t, s.stage.Inside)}
			p.Protected = []string{s.stage.in(protected)}
			p.Writable = []*sandbox.Root{identify(s.t, path(s.stage))}
		}, path)(r)
	}
}

// byHiddenFile grants a new file, called as the scene, in a folder that is
// hidden.
func byHiddenFile(folder func(stage) string) func(*allowance) {
	path := func(s stage) string { return filepath.Join(folder(s), s.Name) }
	return byGrant(func(s *scene, p *sandbox.Policy) {
		if err := os.WriteFile(path(s.stage), []byte("host"), 0o600); err != nil {
			s.t.Fatal(err)
		}
		s.t.Cleanup(func() { os.Remove(path(s.stage)) })
		p.Writable = []*sandbox.Root{identify(s.t, path(s.stage))}
	}, path)
}
