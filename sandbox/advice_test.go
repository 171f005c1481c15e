package sandbox

import (
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"reflect"
	"slices"
	"testing"
)

// adviceHost is a host in memory. What it does not know is missing.
type adviceHost map[string]FileKind

func (h adviceHost) Kind(path string) FileKind {
	if kind, ok := h[path]; ok {
		return kind
	}
	return FileMissing
}

func (h adviceHost) Grantable(path string) bool {
	kind := h.Kind(path)
	return (kind == FilePlain || kind == FileFolder) && !Within("/home/me", path) && !Within(path, "/home/me/.confine")
}

func newAdviceHost() adviceHost {
	h := adviceHost{
		"/home/me/ws/.git/config": FilePlain, "/home/me/ws/file": FilePlain, "/home/me/.bashrc": FilePlain, "/home/me/.confine/settings": FilePlain,
		"/home/me/out/file": FilePlain, "/home/me/out/other": FilePlain, "/home/me/out/f\xff": FilePlain, "/home/me/out/link": FileLink, "/home/me/out/fifo": FileOther,
		"/etc/hosts": FilePlain, "/home/me/secret/key": FilePlain, "/run/docker.sock": FileOther, "/home/me/ws/.git/hooks": FileFolder,
	}
	for path := range h {
		for folder := filepath.Dir(path); h[folder] == ""; folder = filepath.Dir(folder) {
			h[folder] = FileFolder
		}
	}
	return h
}

func policyOf(mode Mode) Policy {
	p := Policy{Mode: mode, Roots: []*Root{{Path: "/home/me/ws"}}, Unreadable: []string{"/home/me/secret/key"}}
	if mode == WorkspaceWrite {
		p.Protected = []string{"/home/me/ws/.git/config", "/home/me/ws/.git/hooks", "/home/me/ws/.vscode"}
	}
	return p
}

// widerThan are the policies that a server would offer.
func widerThan(p Policy) []Policy {
	var wider []Policy
	for _, mode := range p.Mode.WiderModes() {
		o := policyOf(mode)
		o.Network = p.Network || mode == DangerFullAccess
		wider = append(wider, o)
	}
	return wider
}

func TestAdvise(t *testing.T) {
	write := func(paths ...string) *Additional { return &Additional{Write: paths} }
	const ro, ws, full = ReadOnly, WorkspaceWrite, DangerFullAccess
	files := func(op, errno string, paths ...string) []Denial {
		var denials []Denial
		for _, path := range paths {
			denials = append(denials, Denial{Op: op, Path: path, Errno: errno, Evidence: Observed, Count: 1})
		}
		return denials
	}
	connect := Denial{Op: "connect", Address: "192.0.2.1:443", Errno: "ENETUNREACH"}
	resolve := Denial{Op: "resolve", Address: "example.org"}
	socket := Denial{Op: "connect", Path: "/run/docker.sock", Errno: "ENOENT"}
	for _, test := range []struct {
		name    string
		mode    Mode
		change  func(*Policy)
		denials []Denial
		want    *Additional
		modes   []Mode
	}{
		{"one file outside", ws, nil, files("write", "EROFS", "/home/me/out/file"), write("/home/me/out/file"), []Mode{full}},
		{"its mode, owner and times", ws, nil, slices.Concat(files("chmod", "EROFS", "/home/me/out/file"), files("utime", "EACCES", "/home/me/out/file"), files("chown", "EROFS", "/home/me/out/file")), write("/home/me/out/file"), []Mode{full}},
		{"a new file outside", ws, nil, files("create", "EROFS", "/home/me/out/new"), write("/home/me/out"), []Mode{full}},
		{"a new file, and one that is there", ws, nil, files("create", "EROFS", "/home/me/out/new", "/home/me/out/file"), write("/home/me/out"), []Mode{full}},
		{"deep in a folder that is to be made", ws, nil, files("create", "EROFS", "/home/me/out/a/b/c"), write("/home/me/out"), []Mode{full}},
		{"removing", ws, nil, files("remove", "EROFS", "/home/me/out/file"), write("/home/me/out"), []Mode{full}},
		{"renaming", ws, nil, files("rename", "EROFS", "/home/me/out/file"), write("/home/me/out"), []Mode{full}},
		{"the times of a link", ws, nil, files("utime", "EROFS", "/home/me/out/link"), write("/home/me/out"), []Mode{full}},
		{"files in two places", ws, nil, files("write", "EROFS", "/home/me/out/file", "/etc/hosts"), write("/etc/hosts", "/home/me/out/file"), []Mode{full}},
		{"a name that no message can carry", ws, nil, files("write", "EROFS", "/home/me/out/f\xff"), nil, []Mode{full}},
		{"right in the home folder", ws, nil, files("create", "EROFS", "/home/me/new"), nil, []Mode{full}},
		{"a file right in the home folder", ws, nil, files("write", "EROFS", "/home/me/.bashrc"), write("/home/me/.bashrc"), []Mode{full}},
		{"above the home folder", ws, nil, files("create", "EROFS", "/home/new"), nil, []Mode{full}},
		{"one of several cannot be granted", ws, nil, files("create", "EROFS", "/home/me/new", "/home/me/out/new"), nil, []Mode{full}},
		{"confine's own", ws, nil, files("write", "EROFS", "/home/me/.confine/settings"), nil, []Mode{full}},
		{"in the workspace, read-only", ro, nil, files("write", "EROFS", "/home/me/ws/file", "/home/me/ws/new"), nil, []Mode{ws, full}},
		{"protected in the workspace, read-only", ro, nil, files("write", "EROFS", "/home/me/ws/.git/config"), write("/home/me/ws/.git/config"), []Mode{full}},
		{"inside and outside, read-only", ro, nil, files("write", "EROFS", "/home/me/ws/file", "/etc/hosts"), write("/etc/hosts", "/home/me/ws/file"), []Mode{full}},
		{"inside and network, read-only", ro, nil, append(files("write", "EROFS", "/home/me/ws/file"), connect), &Additional{Write: []string{"/home/me/ws/file"}, Network: true}, []Mode{full}},
		{"a namespace", ro, nil, files("unshare", "EPERM", "/proc/self/ns/user"), nil, []Mode{full}},
		{"network", ro, nil, []Denial{connect, resolve}, &Additional{Network: true}, []Mode{full}},
		{"a connection to nobody knows where", ro, nil, []Denial{{Op: "connect"}}, &Additional{Network: true}, []Mode{full}},
		{"network that is granted already", ws, func(p *Policy) { p.Network = true }, []Denial{connect}, nil, []Mode{full}},
		{"a service", ws, nil, []Denial{socket}, nil, []Mode{full}},
		{"a service in passing", ws, nil, append(files("write", "EROFS", "/home/me/out/file"), socket), write("/home/me/out/file"), []Mode{full}},
		{"a service without a path", ws, nil, []Denial{{Op: "connect", Address: "@/tmp/.X11-unix/X0"}}, nil, []Mode{full}},
		{"a hard link into another place", ws, nil, files("link", "EXDEV", "/home/me/out/file"), nil, []Mode{full}},
		{"a hard link that was copied", ws, nil, append(files("link", "EXDEV", "/home/me/out/file"), files("write", "EROFS", "/etc/hosts")...), write("/etc/hosts"), []Mode{full}},
		{"what programs do without", ws, nil, []Denial{
			{Op: "create", Path: "/home/me/new", Errno: "EROFS", Incidental: true}, {Op: "write", Path: "/etc/hosts", Errno: "EROFS"},
		}, write("/etc/hosts"), []Mode{full}},
		{"a FIFO", ws, nil, files("write", "EROFS", "/home/me/out/fifo"), nil, []Mode{full}},
		{"set-id bits", ws, nil, files("chmod", "EPERM", "/home/me/out/file"), nil, []Mode{full}},
		{"a hidden file", ws, nil, files("read", "EACCES", "/home/me/secret/key"), &Additional{Read: []string{"/home/me/secret/key"}}, []Mode{full}},
		{"writing a hidden file", ws, nil, files("write", "EACCES", "/home/me/secret/key"), &Additional{Write: []string{"/home/me/secret/key"}, Read: []string{"/home/me/secret/key"}}, []Mode{full}},
		{"reading what is not hidden", ws, nil, files("read", "EACCES", "/etc/hosts"), nil, []Mode{full}},
		{"protected and busy", ws, nil, files("rename", "EBUSY", "/home/me/ws/.git/config"), write("/home/me/ws/.git/config"), []Mode{full}},
		{"protected and written", ws, nil, files("write", "EROFS", "/home/me/ws/.git/config"), write("/home/me/ws/.git/config"), []Mode{full}},
		{"new in a protected folder", ws, nil, files("create", "EROFS", "/home/me/ws/.git/hooks/new"), write("/home/me/ws/.git/hooks"), []Mode{full}},
		{"the folder of protected files", ws, nil, files("remove", "EBUSY", "/home/me/ws/.git"), write("/home/me/ws/.git/config", "/home/me/ws/.git/hooks"), []Mode{full}},
		{"protected and missing", ws, nil, files("create", "EROFS", "/home/me/ws/.vscode/x"), write("/home/me/ws/.vscode"), []Mode{full}},
		{"protected by being kept absent", ws, nil, files("create", "EISDIR", "/home/me/ws/.vscode"), write("/home/me/ws/.vscode"), []Mode{full}},
		{"granted, but not to be replaced", ws, func(p *Policy) { p.Writable = []*Root{{Path: "/home/me/out/file", File: true}} }, files("rename", "EBUSY", "/home/me/out/file"), write("/home/me/out"), []Mode{full}},
		{"granted, and refused all the same", ws, func(p *Policy) { p.Writable = []*Root{{Path: "/home/me/out/file", File: true}} }, files("write", "EROFS", "/home/me/out/file"), nil, []Mode{full}},
		{"across places", ws, nil, files("rename", "EXDEV", "/home/me/ws/file", "/home/me/out/file"), nil, []Mode{full}},
		{"into another place", ws, nil, files("rename", "EXDEV", "/home/me/out/file"), write("/home/me/out"), []Mode{full}},
		{"nothing known", ws, nil, []Denial{{Op: "unlike any other"}}, nil, []Mode{full}},
		{"no denial known", ro, nil, nil, nil, []Mode{ws, full}},
		{"not confined", full, nil, files("write", "EROFS", "/etc/hosts"), nil, nil},
		{"confined by somebody else", ExternalSandbox, nil, files("write", "EROFS", "/etc/hosts"), nil, nil},
	} {
		t.Run(test.name, func(t *testing.T) {
			p := policyOf(test.mode)
			if test.change != nil {
				test.change(&p)
			}
			got := Advise(AdviceContext{Policy: p, Wider: widerThan(p), Host: newAdviceHost()}, test.denials)
			if !reflect.DeepEqual(got, Advice{test.want, test.modes}) {
				t.Errorf("advises %+v and %q, want %+v and %q", got.Additional, got.Modes, test.want, test.modes)
			}
		})
	}
}

// TestAdviseIsShort: what nobody would read is no advice.
func TestAdviseIsShort(t *testing.T) {
	in := func(folder string, n int) (denials []Denial) {
		for i := range n {
			denials = append(denials, Denial{Op: "write", Path: fmt.Sprintf("%s/f%d", folder, i), Errno: "EROFS"})
		}
		return denials
	}
	for _, test := range []struct {
		name    string
		denials []Denial
		want    []string // nil for none
	}{
		{"eight files", in("/home/me/a", 8), []string{"/home/me/a/f0", "/home/me/a/f1", "/home/me/a/f2", "/home/me/a/f3", "/home/me/a/f4", "/home/me/a/f5", "/home/me/a/f6", "/home/me/a/f7"}},
		{"nine files", in("/home/me/a", 9), []string{"/home/me/a"}},
		{"the fullest folder first", slices.Concat(in("/home/me/a", 2), in("/home/me/b", 7)), []string{"/home/me/a/f0", "/home/me/a/f1", "/home/me/b"}},
		{"two folders", slices.Concat(in("/home/me/a", 9), in("/home/me/b", 9)), []string{"/home/me/a", "/home/me/b"}},
		{"right in the home folder", in("/home/me", 9), nil},
		{"all over the place", func() (all []Denial) {
			for i := range 9 {
				all = append(all, in(fmt.Sprintf("/home/me/%d", i), 1)...)
			}
			return all
		}(), nil},
	} {
		t.Run(test.name, func(t *testing.T) {
			h := newAdviceHost()
			for _, d := range test.denials {
				h[d.Path], h[filepath.Dir(d.Path)] = FilePlain, FileFolder
			}
			p := policyOf(WorkspaceWrite)
			got := Advise(AdviceContext{Policy: p, Wider: widerThan(p), Host: h}, test.denials)
			if got.Additional == nil && test.want == nil {
				return
			}
			if got.Additional == nil || !slices.Equal(got.Additional.Write, test.want) {
				t.Errorf("advises %+v, want %q", got.Additional, test.want)
			}
		})
	}
}

// TestAdviseKnowsItsLimits: a folder that stands for too many protected paths does not
// open what is protected in it.
func TestAdviseKnowsItsLimits(t *testing.T) {
	p, h := policyOf(WorkspaceWrite), newAdviceHost()
	for i := range 9 {
		path := fmt.Sprintf("/home/me/ws/sub/p%d", i)
		h["/home/me/ws/sub"], h[path] = FileFolder, FilePlain
		p.Protected = append(p.Protected, path)
	}
	got := Advise(AdviceContext{Policy: p, Wider: widerThan(p), Host: h}, []Denial{{Op: "rename", Path: "/home/me/ws/sub", Errno: "EBUSY"}})
	if got.Additional != nil || !slices.Equal(got.Modes, []Mode{DangerFullAccess}) {
		t.Errorf("advises %+v and %q", got.Additional, got.Modes)
	}
}

// TestAdviceSuffices: whatever was refused, an advised grant allows it, grants
// nothing that may not be granted, and needs each of its paths.
func TestAdviceSuffices(t *testing.T) {
	h := newAdviceHost()
	var paths []string
	for path := range h {
		paths = append(paths, path, path+"/new", path+"/new/deep")
	}
	slices.Sort(paths)
	ops := []string{"write", "create", "remove", "rename", "chmod", "read", "connect"}
	errnos := []string{"EROFS", "EACCES", "EBUSY", "EXDEV", "EPERM"}
	random := rand.New(rand.NewPCG(3, 3))
	pick := func(list []string) string { return list[random.IntN(len(list))] }
	advised := 0
	for range 5000 {
		p := policyOf([]Mode{ReadOnly, WorkspaceWrite}[random.IntN(2)])
		var denials []Denial
		for range 1 + random.IntN(4) {
			denials = append(denials, Denial{Op: pick(ops), Path: pick(paths), Errno: pick(errnos)})
		}
		got := Advise(AdviceContext{Policy: p, Wider: widerThan(p), Host: h}, denials).Additional
		if got == nil {
			continue
		}
		advised++
		granted := func(leave string) Policy {
			q := p
			for _, path := range got.Write {
				if path != leave {
					q.Writable = append(q.Writable, &Root{Path: path, File: h[path] == FilePlain})
				}
			}
			for _, path := range got.Read {
				if path != leave {
					q.Readable = append(q.Readable, &Root{Path: path, File: h[path] == FilePlain})
				}
			}
			return q
		}
		for _, d := range denials {
			if reads := d.Op == "read"; reads && !granted("").MayRead(d.Path) || !reads && d.Op != "connect" && h[d.Path] == FilePlain && !granted("").MayWrite(d.Path) {
				t.Fatalf("%+v under %s: %+v does not do", denials, p, got)
			}
		}
		for _, path := range slices.Concat(got.Write, got.Read) {
			if !h.Grantable(path) && !(h.Kind(path) == FileMissing && slices.Contains(p.Protected, path)) {
				t.Fatalf("%+v: %q cannot be granted", denials, path)
			}
			near := func(d Denial) bool {
				return Within(d.Path, path) || Within(path, d.Path) || d.Errno == "EXDEV" && Within(filepath.Dir(d.Path), path)
			}
			if !slices.ContainsFunc(denials, near) {
				t.Fatalf("%+v: nothing was refused near %q", denials, path)
			}
			if q := granted(path); q.MayWrite(path) && q.MayRead(path) && !slices.Contains(got.Read, path) {
				t.Fatalf("%+v: %+v has %q for nothing", denials, got, path)
			}
		}
	}
	if advised < 250 {
		t.Errorf("only %d times was anything advised", advised)
	}
}

func TestPolicyMay(t *testing.T) {
	p := policyOf(WorkspaceWrite)
	p.Unreadable = append(p.Unreadable, "/home/me/hidden")
	p.Writable = []*Root{{Path: "/home/me/ws/.git/config", File: true}, {Path: "/home/me/ws/.git/hooks/sub"}, {Path: "/home/me/hidden/w"}}
	p.Readable = []*Root{{Path: "/home/me/hidden/r"}, {Path: "/run/user/1/doc", File: true}}
	for path, want := range map[string]string{
		"/home/me/ws/file": "rw", "/home/me/ws2/file": "r", "/etc/hosts": "r", "/home/me/ws/.git/config": "rw", "/home/me/ws/.git/hooks/pre": "r",
		"/home/me/ws/.git/hooks/sub/x": "rw", "/home/me/hidden/x": "", "/home/me/hidden/w/x": "rw", "/home/me/hidden/r/x": "r", "/home/me/secret/key": "",
		"/run/x": "", "/run/user/1/doc": "r", "/tmp/x": "", "/proc/1/x": "",
	} {
		got := ""
		if p.MayRead(path) {
			got = "r"
		}
		if p.MayWrite(path) {
			got += "w"
		}
		if got != want {
			t.Errorf("%s: %q, want %q", path, got, want)
		}
	}
	if p.Mode = ReadOnly; p.MayWrite("/home/me/ws/file") || !p.MayWrite("/home/me/ws/.git/config") {
		t.Error("in read-only mode only what was granted is writable")
	}
	if p.Mode = DangerFullAccess; !p.MayWrite("/etc/hosts") || !p.MayRead("/home/me/secret/key") {
		t.Error("without a sandbox something is kept")
	}
}
