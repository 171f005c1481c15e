package sandboxtest

import (
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/confine-dev/confine/sandbox"
	"golang.org/x/sys/unix"
)

// TestOpsDraw checks what the parent and its children rely on: that they draw
// the same, wherever the scene lies.
func TestOpsDraw(t *testing.T) {
	seen := map[string]bool{}
	for number := range 300 {
		here := drawOperation(1, number, "/one").String()
		if there := drawOperation(1, number, "/two").String(); strings.ReplaceAll(there, "/two", "/one") != here {
			t.Fatalf("drawn again in another place, operation %d differs:\n%s\n%s", number, here, there)
		}
		_, rest, _ := strings.Cut(here, ":")
		seen[rest] = true
	}
	if len(seen) != 300 {
		t.Errorf("of 300 operations %d differ", len(seen))
	}
}

// opsCase makes an operation on one file, and a judge.
func opsCase(call string, level levels, mode sandbox.Mode, flags int, files ...opsFile) (*opsJudge, *operation) {
	i := slices.IndexFunc(opsCalls, func(c *opsCall) bool { return c.name == call })
	op := &operation{base: "/s", call: opsCalls[i], flags: flags, first: files[0]}
	for _, f := range files {
		op.objects = append(op.objects, f.object)
	}
	if len(files) > 1 {
		op.second = files[1]
	}
	return newOpsJudge("/s", level, mode, []*operation{op}), op
}

func opsAt(path string, kind opsKind) opsFile {
	return opsFile{object: &opsObject{path: filepath.Join("/s", path), kind: kind}, form: formPath}
}

func opsNamed(top opsTop, f opsFile) opsFile {
	f.object.top = top
	return f
}

func opsLinked(path string, to opsFile) opsFile {
	f := opsAt(path, isLink)
	f.object.leads = to.object
	return f
}

// TestOpsVerdict says for some operations, in words of the policy and not of the
// table that they are drawn from, how they must end.
func TestOpsVerdict(t *testing.T) {
	const creates = unix.O_CREAT | unix.O_WRONLY
	none := func(errnos ...syscall.Errno) []syscall.Errno { return errnos }
	for _, test := range []struct {
		what   string
		call   string
		level  levels
		flags  int
		files  []opsFile
		failed syscall.Errno // with nothing confined
		forced bool
		errnos []syscall.Errno // nil: it is not refused
	}{
		{"writing inside", "open", everywhere, unix.O_WRONLY, []opsFile{opsAt("work/f", isFile)}, 0, false, nil},
		{"writing outside", "open", withNamespaces, unix.O_WRONLY, []opsFile{opsAt("work-outside/f", isFile)}, 0, true, none(unix.EROFS)},
		{"writing outside", "open", withoutNamespaces, unix.O_WRONLY, []opsFile{opsAt("work-outside/f", isFile)}, 0, true, none(unix.EACCES)},
		{"writing what may not be written anyway", "open", withNamespaces, unix.O_WRONLY, []opsFile{opsAt("work-outside/f", isSealed)}, unix.EACCES, false, none(unix.EROFS)},
		{"reading outside", "open", everywhere, unix.O_RDONLY, []opsFile{opsAt("work-outside/f", isFile)}, 0, false, nil},
		{"opening what is there with O_CREAT", "open", everywhere, unix.O_CREAT, []opsFile{opsAt("work-outside/f", isFile)}, 0, false, nil},
		{"emptying while opening for reading", "open", withNamespaces, unix.O_TRUNC, []opsFile{opsAt("work-outside/f", isFile)}, 0, true, none(unix.EROFS)},
		{"creating through a link out", "open", withNamespaces, creates, []opsFile{opsLinked("work/l", opsAt("work-outside/f", isAbsent))}, 0, true, none(unix.EROFS)},
		{"creating through a link in", "open", everywhere, creates, []opsFile{opsLinked("work-outside/l", opsAt("work/f", isAbsent))}, 0, false, nil},
		{"opening a FIFO outside", "open", withNamespaces, unix.O_RDWR, []opsFile{opsAt("work-outside/p", isPipe)}, 0, true, none(unix.EACCES)},
		{"writing what is protected", "open", withNamespaces, unix.O_WRONLY, []opsFile{opsNamed(topProtected, opsAt("guarded/f", isFile))}, 0, true, none(unix.EROFS)},
		{"writing what is protected", "open", withoutNamespaces, unix.O_WRONLY, []opsFile{opsNamed(topProtected, opsAt("guarded/f", isFile))}, 0, false, nil},
		{"writing beside what is protected", "open", everywhere, unix.O_WRONLY, []opsFile{opsAt("guarded/f", isFile)}, 0, false, nil},
		{"read-only: writing what is protected", "open", withoutNamespaces, unix.O_WRONLY, []opsFile{opsNamed(topProtected, opsAt("guarded/f", isFile))}, 0, true, none(unix.EACCES)},
		{"removing a link that leads in", "unlink", withNamespaces, 0, []opsFile{opsLinked("work-outside/l", opsAt("work/f", isFile))}, 0, true, none(unix.EROFS)},
		{"removing a link that leads out", "unlink", everywhere, 0, []opsFile{opsLinked("work/l", opsAt("work-outside/f", isFile))}, 0, false, nil},
		{"removing a root", "rmdir", withNamespaces, 0, []opsFile{opsNamed(topRoot, opsAt("tops/d", isFolder))}, 0, true, none(unix.EROFS, unix.EBUSY)},
		{"removing what is protected", "unlink", withNamespaces, 0, []opsFile{opsNamed(topProtected, opsAt("guarded/f", isFile))}, 0, true, none(unix.EROFS, unix.EBUSY)},
		{"moving out", "rename", withNamespaces, 0, []opsFile{opsAt("work/f", isFile), opsAt("work-outside/f", isAbsent)}, 0, true, none(unix.EROFS, unix.EXDEV)},
		{"moving in", "rename", withoutNamespaces, 0, []opsFile{opsAt("work-outside/f", isFile), opsAt("work/f", isAbsent)}, 0, true, none(unix.EACCES, unix.EXDEV)},
		{"moving from root to root", "rename", withNamespaces, 0, []opsFile{opsAt("work/f", isFile), opsAt("work-2/f", isAbsent)}, 0, true, none(unix.EXDEV)},
		{"moving from root to root", "rename", withoutNamespaces, 0, []opsFile{opsAt("work/f", isFile), opsAt("work-2/f", isAbsent)}, 0, false, nil},
		{"naming a file outside inside", "link", withNamespaces, 0, []opsFile{opsAt("work-outside/f", isFile), opsAt("work/f", isAbsent)}, 0, true, none(unix.EROFS, unix.EXDEV)},
		{"changing the mode outside", "chmod", withNamespaces, 0, []opsFile{opsAt("work-outside/f", isFile)}, 0, true, none(unix.EROFS)},
		{"changing the mode outside", "chmod", withoutNamespaces, 0, []opsFile{opsAt("work-outside/f", isFile)}, 0, false, nil},
		{"changing the mode of a root", "chmod", everywhere, 0, []opsFile{opsNamed(topRoot, opsAt("tops/d", isFolder))}, 0, false, nil},
		{"read-only: writing to a root", "open", withNamespaces, unix.O_WRONLY, []opsFile{opsAt("work/f", isFile)}, 0, true, none(unix.EROFS)},
		{"read-only: writing to a root", "open", withoutNamespaces, unix.O_WRONLY, []opsFile{opsAt("work/f", isFile)}, 0, true, none(unix.EACCES)},
		{"read-only: writing to what was granted", "open", everywhere, unix.O_WRONLY, []opsFile{opsNamed(topGranted, opsAt("work/f", isFile))}, 0, false, nil},
		{"read-only: writing in what was granted", "open", everywhere, creates, []opsFile{opsAt("granted/f", isAbsent)}, 0, false, nil},
		{"read-only: removing what was granted", "unlink", withNamespaces, 0, []opsFile{opsNamed(topGranted, opsAt("work/f", isFile))}, 0, true, none(unix.EROFS, unix.EBUSY)},
		{"removing what was granted", "unlink", withNamespaces, 0, []opsFile{opsNamed(topGranted, opsAt("tops/f", isFile))}, 0, true, none(unix.EROFS, unix.EBUSY)},
		{"removing what was granted but is inside", "unlink", everywhere, 0, []opsFile{opsNamed(topGranted, opsAt("work/f", isFile))}, 0, false, nil},
		{"writing to what was granted of the protected", "open", everywhere, unix.O_WRONLY, []opsFile{opsNamed(topGranted, opsAt("guarded/kept/f", isFile))}, 0, false, nil},
	} {
		for _, level := range []levels{withNamespaces, withoutNamespaces} {
			if test.level&level == 0 {
				continue
			}
			mode := sandbox.WorkspaceWrite
			if strings.HasPrefix(test.what, "read-only: ") {
				mode = sandbox.ReadOnly
			}
			j, op := opsCase(test.call, level, mode, test.flags, test.files...)
			plain := opsOutcome{errno: test.failed}
			if test.failed != 0 {
				plain.step = op.call.steps(op)[0].name
			}
			v := j.verdict(op, plain)
			if v.forced != test.forced || !slices.Equal(v.errnos, test.errnos) {
				t.Errorf("%s (level %d): got forced %v, errors %v; want %v, %v", test.what, level, v.forced, errnoNames(v.errnos), test.forced, errnoNames(test.errnos))
			}
		}
	}
}

// TestOpsDisagreement tells lies to the judge.
func TestOpsDisagreement(t *testing.T) {
	denial := sandbox.Denial{Op: "write", Path: "/s/work-outside/f", Errno: "EROFS", Evidence: sandbox.Observed, Count: 1}
	with := func(change func(*sandbox.Denial)) []sandbox.Denial {
		d := denial
		change(&d)
		return []sandbox.Denial{d}
	}
	refused, fine := opsOutcome{"open", unix.EROFS}, opsOutcome{}
	outside := opsAt("work-outside/f", isFile)
	inside := opsAt("work/f", isFile)
	for _, test := range []struct {
		what       string
		file       opsFile
		plain, got opsOutcome
		denials    []sandbox.Denial
		agree      bool
	}{
		{"refused and told", outside, fine, refused, []sandbox.Denial{denial}, true},
		{"let through", outside, fine, fine, nil, false},
		{"let through, though told", outside, fine, fine, []sandbox.Denial{denial}, false},
		{"not told", outside, fine, refused, nil, false},
		{"told twice", outside, fine, refused, []sandbox.Denial{denial, denial}, false},
		{"refused by another error", outside, fine, opsOutcome{"open", unix.EPERM}, []sandbox.Denial{denial}, false},
		{"refused too late", outside, fine, opsOutcome{"write", unix.EROFS}, []sandbox.Denial{denial}, false},
		{"told of another file", outside, fine, refused, with(func(d *sandbox.Denial) { d.Path += "f" }), false},
		{"told another operation", outside, fine, refused, with(func(d *sandbox.Denial) { d.Op = "create" }), false},
		{"told another error", outside, fine, refused, with(func(d *sandbox.Denial) { d.Errno = "EACCES" }), false},
		{"told from a message", outside, fine, refused, with(func(d *sandbox.Denial) { d.Evidence = sandbox.Stderr }), false},
		{"told too often", outside, fine, refused, with(func(d *sandbox.Denial) { d.Count = 2 }), false},
		{"failing anyway", outside, opsOutcome{"open", unix.EACCES}, refused, nil, true},
		{"failing anyway, but told", outside, opsOutcome{"open", unix.EACCES}, refused, []sandbox.Denial{denial}, false},
		{"failing anyway, but let through", outside, opsOutcome{"open", unix.EACCES}, fine, nil, false},
		{"allowed", inside, fine, fine, nil, true},
		{"allowed, but refused", inside, fine, refused, nil, false},
		{"allowed, but told", inside, fine, fine, []sandbox.Denial{denial}, false},
		{"failing by itself", inside, opsOutcome{"open", unix.EACCES}, opsOutcome{"open", unix.EACCES}, nil, true},
		{"failing by itself, but let through", inside, opsOutcome{"open", unix.EACCES}, fine, nil, false},
	} {
		j, op := opsCase("open", withNamespaces, sandbox.WorkspaceWrite, unix.O_WRONLY, test.file)
		if what := j.disagreement(op, test.plain, test.got, test.denials, false); (what == "") != test.agree {
			t.Errorf("%s: got %q", test.what, what)
		}
		// Nothing but a denial may lack where the observer missed something.
		agree := test.agree || test.what == "not told"
		if what := j.disagreement(op, test.plain, test.got, test.denials, true); (what == "") != agree {
			t.Errorf("%s, with calls that were missed: got %q", test.what, what)
		}
	}
}

// TestOpsRecords checks that nothing can change unseen.
func TestOpsRecords(t *testing.T) {
	for what, change := range map[string]func(path string) error{
		"content":   func(path string) error { return unix.Truncate(path, 1) },
		"mode":      func(path string) error { return unix.Chmod(path, 0o600) },
		"attribute": func(path string) error { return unix.Setxattr(path, "user.ops", []byte("x"), 0) },
		"times":     func(path string) error { return unix.Utimes(path, make([]unix.Timeval, 2)) },
		"name":      func(path string) error { return unix.Rename(path, path+"2") },
		"link":      func(path string) error { return unix.Link(path, path+"2") },
		"removal":   unix.Unlink,
		"creation":  func(path string) error { return unix.Mkfifo(path+"2", 0o600) },
	} {
		base := filepath.Join(t.TempDir(), "s")
		file := opsAt("work-outside/g0/0a", isFile)
		file.object.path = filepath.Join(base, "work-outside/g0/0a")
		op := &operation{base: base, objects: []*opsObject{file.object}}
		buildOps(t, base, []*operation{op})
		before := opsRecords(t, base)
		o, j := &opsTest{}, newOpsJudges(base, withNamespaces, nil)
		if changes := o.changed(j, nil, before, opsRecords(t, base)); len(changes) > 0 {
			t.Errorf("nothing: got %q", changes)
		}
		if err := change(file.object.path); err != nil {
			if err == unix.EOPNOTSUPP {
				t.Logf("%s: %v", what, err) // no attributes here
				continue
			}
			t.Fatalf("%s: %v", what, err)
		}
		if changes := o.changed(j, nil, before, opsRecords(t, base)); len(changes) == 0 {
			t.Errorf("%s: nothing was seen", what)
		}
	}
}
