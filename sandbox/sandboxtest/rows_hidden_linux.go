package sandboxtest

import (
	"errors"
	"os"
	"path/filepath"
	"syscall"

	"github.com/confine-dev/confine/sandbox"
	"golang.org/x/sys/unix"
)

// hiding makes paths of a scene unreadable.
func hiding(paths ...func(stage) string) grant {
	return func(s *scene, p *sandbox.Policy) {
		for _, path := range paths {
			p.Unreadable = append(p.Unreadable, path(s.stage))
		}
	}
}

var (
	outsideFile   = func(s stage) string { return s.out("file") }
	outsideFolder = func(s stage) string { return s.out("folder") }
	hidden        = hiding(outsideFile, outsideFolder)
)

// hiddenBut hides a folder and grants reading one file in it.
func hiddenBut(s *scene, p *sandbox.Policy) {
	hidden(s, p)
	p.Readable = append(p.Readable, identify(s.t, s.stage.out("folder/file")))
}

// secret makes a row about what must not be read.
func secret(name string, try func(stage) error) refusal {
	return refusal{name: name, facet: sandbox.FileRead, modes: bothModes, gap: withoutNamespaces, grant: hidden, try: try,
		errnos: []syscall.Errno{unix.EACCES, unix.ENOENT, unix.EXDEV, unix.EROFS, unix.EPERM, unix.EBUSY}}
}

// hiddenReads are ways of reading what is to be unreadable.
var hiddenReads = []refusal{
	secret("read a hidden file", func(s stage) error { return readHost(s.out("file")) }),
	secret("read a file in a hidden folder", func(s stage) error { return readHost(s.out("folder/file")) }),
	secret("list a hidden folder", func(s stage) error {
		entries, err := os.ReadDir(s.out("folder"))
		if err == nil && len(entries) == 0 {
			return unix.ENOENT
		}
		return err
	}),
	secret("read a hidden file by another spelling", func(s stage) error {
		return readHost("//proc/self/root/." + s.Outside + "/../" + filepath.Base(s.Outside) + "/file")
	}),
	secret("read a hidden file by a relative name", func(s stage) error {
		dir, err := unix.Open(s.Outside, unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
		if err != nil {
			return need(err)
		}
		return openAndRead(unix.Openat(dir, "folder/../file", unix.O_RDONLY|unix.O_CLOEXEC, 0))
	}),
	secret("read a hidden file through a link of the host's", func(s stage) error { return readHost(s.out("link")) }),
	secret("read a hidden file through a link", func(s stage) error {
		return viaNew(s, func(name string) error { return os.Symlink(s.out("file"), name) })
	}),
	secret("read a file in a hidden folder through a link", func(s stage) error {
		return viaNew(s, func(name string) error { return os.Symlink(s.out("folder/file"), name) })
	}),
	secret("read a hidden file by a second name", func(s stage) error {
		return viaNew(s, func(name string) error { return unix.Link(s.out("file"), name) })
	}).with(landlockToo),
	secret("move a hidden file", func(s stage) error {
		return viaNew(s, func(name string) error { return unix.Rename(s.out("file"), name) })
	}).with(landlockToo),
	secret("read a hidden file by its handle", func(s stage) error {
		handle, _, err := unix.NameToHandleAt(unix.AT_FDCWD, s.out("file"), 0)
		if err != nil {
			return err
		}
		dir, err := unix.Open(s.Outside, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
		if err != nil {
			return need(err)
		}
		return openAndRead(unix.OpenByHandleAt(dir, handle, unix.O_RDONLY|unix.O_CLOEXEC))
	}).with(func(r *refusal) {
		r.control.root, r.control.optional = true, []syscall.Errno{unix.EOPNOTSUPP, unix.EPERM}
		r.gap, r.errnos = 0, append(r.errnos, unix.ESTALE, unix.ENODATA, unix.EOPNOTSUPP)
	}),
	secret("read beside a granted file in a hidden folder", func(s stage) error { return readHost(s.out("file")) }).with(func(r *refusal) { r.grant = hiddenBut }),
	secret("write to a hidden file", func(s stage) error { return openAndWrite(unix.AT_FDCWD, s.out("file"), 0) }).with(func(r *refusal) { r.facet, r.gap = sandbox.FileWrite, 0 }),
	secret("create in a hidden folder", func(s stage) error {
		return openAndWrite(unix.AT_FDCWD, s.out("folder/new"), unix.O_CREAT|unix.O_EXCL)
	}).with(func(r *refusal) { r.facet, r.gap = sandbox.FileWrite, 0 }),
	inWorkspace("read a hidden file in the workspace", func(s stage) error { return readHost(s.in("deep/key")) }),
	inWorkspace("read a hidden file in the workspace after its folder was moved", func(s stage) error {
		if err := unix.Rename(s.in("deep"), s.in("moved")); err != nil {
			return err
		}
		return readHost(s.in("moved/key"))
	}),
	inWorkspace("read a hidden file in the workspace by a second name", func(s stage) error {
		return viaNew(s, func(name string) error { return unix.Link(s.in("deep/key"), name) })
	}),
}

// landlockToo is for ways that change something outside, which Landlock refuses
// where nothing is hidden.
func landlockToo(r *refusal) { r.gap = 0 }

// inWorkspace makes a row about a hidden file in a writable root.
func inWorkspace(name string, try func(stage) error) refusal {
	return secret(name, try).with(func(r *refusal) {
		r.modes = nil
		r.grant = hiding(func(s stage) string { return s.in("deep/key") })
		r.arrange = func(s *scene) {
			if err := errors.Join(os.Mkdir(s.stage.in("deep"), 0o755), os.WriteFile(s.stage.in("deep/key"), []byte("host"), 0o644)); err != nil {
				s.t.Fatal(err)
			}
		}
	})
}

// viaNew reads a file by a name that is made for it where the command can write.
func viaNew(s stage, make func(name string) error) error {
	name := filepath.Join(os.TempDir(), s.Name+"-name")
	if s.Inside != "" {
		name = s.in("name")
	}
	defer os.Remove(name)
	if err := make(name); err != nil {
		return err
	}
	return readHost(name)
}

func openAndRead(fd int, err error) error {
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	buffer := make([]byte, 16)
	n, err := unix.Read(fd, buffer)
	if err == nil && string(buffer[:n]) != "host" {
		return unix.ENODATA
	}
	return err
}

// hiddenWork is what must go on where something is hidden.
var hiddenWork = []allowance{
	work("read beside what is hidden", func(s stage) error { return holds(s.out("other"), "host") }).with(inBothModes).with(func(r *allowance) { r.grant = hidden }),
	work("read a granted file in a hidden folder", func(s stage) error { return holds(s.out("folder/file"), "host") }).with(inBothModes).with(func(r *allowance) { r.grant = hiddenBut }),
	work("read a hidden folder that was granted", func(s stage) error { return holds(s.out("folder/file"), "host") }).with(inBothModes).with(func(r *allowance) {
		r.grant = func(s *scene, p *sandbox.Policy) {
			hidden(s, p)
			p.Readable = append(p.Readable, identify(s.t, s.stage.out("folder")))
		}
	}),
	work("work in a workspace in a hidden folder", func(s stage) error {
		return errors.Join(os.WriteFile(s.in("a"), []byte("done"), 0o644), os.Rename(s.in("a"), s.in("b")), holds(s.in("b"), "done"))
	}).with(func(r *allowance) { r.grant = hiding(func(s stage) string { return filepath.Dir(s.Root) }) }),
}
