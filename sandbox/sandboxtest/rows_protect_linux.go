package sandboxtest

import (
	"errors"
	"os"
	"path/filepath"
	"syscall"

	"github.com/confine-dev/confine/sandbox"
	"golang.org/x/sys/unix"
)

// Paths that rows protect in a root. The last does not exist.
const (
	keptFile   = "repo/.git/config"
	keptFolder = "repo/.git/hooks"
	keptAbsent = "repo/.envrc"
)

// keep makes a row about what is protected in a root, to which rules alone cannot
// hold anybody.
func keep(name string, try func(stage) error) refusal {
	return refusal{
		name: name, facet: sandbox.FileWrite, gap: withoutNamespaces, try: try,
		errnos: []syscall.Errno{unix.EROFS, unix.EBUSY, unix.EXDEV, unix.EEXIST, unix.EISDIR, unix.ENOTEMPTY},
		arrange: func(s *scene) {
			in := s.stage.in
			if err := errors.Join(os.MkdirAll(in(keptFolder), 0o755), os.WriteFile(in(keptFile), []byte("host"), 0o644),
				os.WriteFile(in(keptFolder+"/pre"), []byte("host"), 0o755), os.WriteFile(in("mine"), []byte("mine"), 0o644),
				os.Mkdir(in("folder"), 0o755)); err != nil {
				s.t.Fatal(err)
			}
		},
		grant: func(s *scene, p *sandbox.Policy) {
			in := s.stage.in
			p.Roots = []*sandbox.Root{s.place.declare(s.t, s.stage.Inside)}
			p.Protected = []string{in(keptFile), in(keptFolder), in(keptAbsent)}
		},
		seen: func(s *scene) string {
			in := s.stage.in
			what := holdsHost(in(keptFile)) + holdsHost(in(keptFolder+"/pre"))
			for _, name := range []string{keptFolder + "/new", keptAbsent} {
				// What kept it absent, an empty folder, stays for a moment.
				if _, err := os.Lstat(in(name)); err == nil && (name != keptAbsent || unix.Rmdir(in(name)) != nil) {
					what += in(name) + " was made"
				}
			}
			return what
		},
	}
}

// protectedChanges are ways of changing what programs outside run or believe.
var protectedChanges = []refusal{
	keep("write to a protected file", func(s stage) error { return openAndWrite(unix.AT_FDCWD, s.in(keptFile), 0) }),
	keep("put a file over a protected one", func(s stage) error { return unix.Rename(s.in("mine"), s.in(keptFile)) }),
	keep("remove a protected file", func(s stage) error { return unix.Unlink(s.in(keptFile)) }),
	keep("give a protected file another name to write to it", func(s stage) error {
		if err := unix.Link(s.in(keptFile), s.in("alias")); err != nil {
			return err
		}
		return openAndWrite(unix.AT_FDCWD, s.in("alias"), 0)
	}),
	keep("make a file in a protected folder", func(s stage) error {
		return openAndWrite(unix.AT_FDCWD, s.in(keptFolder+"/new"), unix.O_CREAT)
	}),
	keep("move a protected folder away", func(s stage) error { return unix.Rename(s.in(keptFolder), s.in("moved")) }),
	keep("exchange a protected folder", func(s stage) error {
		return unix.Renameat2(unix.AT_FDCWD, s.in("folder"), unix.AT_FDCWD, s.in(keptFolder), unix.RENAME_EXCHANGE)
	}),
	keep("move the folder of a protected file away", func(s stage) error { return unix.Rename(s.in("repo/.git"), s.in("moved")) }),
	keep("move what is above it away", func(s stage) error { return unix.Rename(s.in("repo"), s.in("moved")) }),
	keep("make a protected file that is absent", func(s stage) error {
		return openAndWrite(unix.AT_FDCWD, s.in(keptAbsent), unix.O_CREAT)
	}),
	keep("move a file to where a protected one is absent", func(s stage) error { return unix.Rename(s.in("mine"), s.in(keptAbsent)) }),
	keep("link to where a protected file is absent", func(s stage) error { return unix.Symlink(s.in("mine"), s.in(keptAbsent)) }),
	keep("remove what keeps a protected file absent", func(s stage) error {
		if err := unix.Rmdir(s.in(keptAbsent)); err != nil && !errors.Is(err, unix.ENOENT) {
			return err
		}
		return openAndWrite(unix.AT_FDCWD, s.in(keptAbsent), unix.O_CREAT)
	}),
}

// besideProtected is what goes on working.
var besideProtected = []allowance{
	work("move and make files beside what is protected", func(s stage) error {
		in := s.in
		return errors.Join(os.MkdirAll(in("repo/.git/refs/a"), 0o755), os.WriteFile(in("repo/.git/index.lock"), nil, 0o644),
			os.Rename(in("repo/.git/index.lock"), in("repo/.git/index")), os.Rename(in("repo/.git/refs/a"), in("repo/.git/refs/b")),
			os.MkdirAll(in("repo/src"), 0o755), os.Rename(in("repo/src"), in("repo/lib")), os.Rename(in("repo/lib"), filepath.Join(s.Inside, "repo", "src")))
	}).with(func(r *allowance) {
		r.grant = func(s *scene, p *sandbox.Policy) {
			k := keep("", nil)
			k.arrange(s)
			k.grant(s, p)
		}
	}),
}
