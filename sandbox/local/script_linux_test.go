package local

import (
	"encoding/binary"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// unended is the exit status of a child that came to the end of its script
// without executing a program.
const unended = 125

// runScript runs a script in a child as the engine does.
func runScript(t *testing.T, s *Script, onward int, flags uintptr) error {
	t.Helper()
	spawner := newSpawner()
	defer spawner.close()
	pid, err := spawner.spawn(newProgram(s, onward, flags))
	if err != nil {
		return err
	}
	status, err := children.reap(pid)
	if err != nil {
		t.Fatal(err)
	}
	if status.ExitStatus() != unended {
		t.Errorf("the child ended with status %x, want exit status %d", status, unended)
	}
	return nil
}

// creates adds calls that write text to a file.
func creates(s *Script, path, text string) Ref {
	fd := s.Call("creating a file", unix.SYS_OPENAT, Int(unix.AT_FDCWD), Text(path), Int(unix.O_CREAT|unix.O_WRONLY|unix.O_CLOEXEC), Int(0o644))
	s.Call("writing", unix.SYS_WRITE, Result(fd), Text(text), Int(len(text)))
	return fd
}

func content(t *testing.T, path string) string {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Error(err)
	}
	return string(data)
}

func TestScriptPassesResultsOn(t *testing.T) {
	dir := t.TempDir()
	before := descriptors(t)
	s := &Script{}
	a := creates(s, dir+"/a", "first")
	creates(s, dir+"/b", "second")
	s.Call("writing more", unix.SYS_WRITE, Result(a), Text("more"), Int(4))
	if err := runScript(t, s, -1, 0); err != nil {
		t.Fatal(err)
	}
	if a, b := content(t, dir+"/a"), content(t, dir+"/b"); a != "firstmore" || b != "second" {
		t.Errorf("the files hold %q and %q", a, b)
	}
	if after := descriptors(t); after != before {
		t.Errorf("there are %d descriptors, before it were %d: the child's are its own", after, before)
	}
}

// descriptors counts what is open here.
func descriptors(t *testing.T) int {
	t.Helper()
	entries, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	return len(entries)
}

func TestScriptAppend(t *testing.T) {
	dir := t.TempDir()
	inner := &Script{}
	creates(inner, dir+"/ignored", "x")
	fd := creates(inner, dir+"/inner", "in")
	outer := &Script{}
	creates(outer, dir+"/outer", "out")
	base := outer.Append(inner)
	outer.Call("writing to the inner file", unix.SYS_WRITE, Result(base+fd), Text("side"), Int(4))
	if err := runScript(t, outer, -1, 0); err != nil {
		t.Fatal(err)
	}
	if got := content(t, dir+"/inner"); got != "inside" {
		t.Errorf("the inner file holds %q", got)
	}
	if got := content(t, dir+"/outer"); got != "out" {
		t.Errorf("the outer file holds %q", got)
	}
	// The inner script can be appended again: it was copied.
	again := &Script{}
	again.Append(inner)
	if err := runScript(t, again, -1, 0); err != nil {
		t.Error(err)
	}
}

func TestScriptNamesTheStepThatFailed(t *testing.T) {
	dir := t.TempDir()
	s := &Script{}
	creates(s, dir+"/before", "x")
	s.Call("changing to nowhere", unix.SYS_CHDIR, Text(dir+"/nowhere"))
	creates(s, dir+"/after", "x")
	err := runScript(t, s, -1, 0)
	var step *StepError
	if !errors.As(err, &step) || step.Step != "changing to nowhere" || step.Errno != unix.ENOENT {
		t.Errorf("the error is %v", err)
	}
	if !errors.Is(err, syscall.ENOENT) || !strings.Contains(err.Error(), "changing to nowhere: ") {
		t.Errorf("the error is %q", err)
	}
	if _, err := os.Stat(dir + "/before"); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(dir + "/after"); err == nil {
		t.Error("the script went on after its failure")
	}
}

func TestScriptIgnore(t *testing.T) {
	dir := t.TempDir()
	s := &Script{}
	mkdir := func(path string) {
		s.Call("making "+path, unix.SYS_MKDIRAT, Int(unix.AT_FDCWD), Text(path), Int(0o755))
	}
	mkdir(dir)
	s.Ignore(unix.EEXIST)
	mkdir(dir + "/new")
	s.Ignore(unix.EEXIST)
	if err := runScript(t, s, -1, 0); err != nil {
		t.Fatal(err)
	}
	mkdir(dir + "/missing/new")
	s.Ignore(unix.EEXIST) // and nothing else
	if err := runScript(t, s, -1, 0); !errors.Is(err, unix.ENOENT) {
		t.Errorf("the error is %v, want %v", err, unix.ENOENT)
	}
}

func TestScriptExpect(t *testing.T) {
	dir := t.TempDir()
	var st unix.Stat_t
	if err := unix.Stat(dir, &st); err != nil {
		t.Fatal(err)
	}
	for name, ino := range map[string]uint64{"same": st.Ino, "other": st.Ino + 1} {
		s := &Script{}
		got := make([]byte, 144)
		fd := s.Call("opening", unix.SYS_OPENAT, Int(unix.AT_FDCWD), Text(dir), Int(unix.O_PATH))
		s.Call("comparing", unix.SYS_FSTAT, Result(fd), Bytes(got))
		want := binary.NativeEndian.AppendUint64(binary.NativeEndian.AppendUint64(nil, st.Dev), ino)
		s.Expect(got[:16], want)
		err := runScript(t, s, -1, 0)
		var step *StepError
		switch {
		case name == "same" && err != nil:
			t.Errorf("the same folder: %v", err)
		case name == "other" && (!errors.As(err, &step) || step.Step != "comparing" || step.Errno != unix.ESTALE):
			t.Errorf("another folder: the error is %v", err)
		}
	}
	stale := &StepError{"comparing", unix.ESTALE}
	if !strings.Contains(stale.Error(), "reopen") {
		t.Errorf("%q does not say what to do", stale)
	}
}

// A result that a later call needs inside a structure is put there.
func TestScriptPatch(t *testing.T) {
	path := filepath.Join(t.TempDir(), "file")
	s := &Script{}
	creates(s, path, "x")
	fd := s.Call("opening", unix.SYS_OPENAT, Int(unix.AT_FDCWD), Text(path), Int(unix.O_RDWR))
	poll := []byte{0xff, 0xff, 0xff, 0xff, 4, 0, 0, 0} // struct pollfd for POLLOUT
	s.Patch(poll)
	s.Call("polling", unix.SYS_PPOLL, Bytes(poll), Int(1), Struct(&unix.Timespec{}), Int(0), Int(0))
	want := []byte{4, 0} // and so it answers: POLLOUT for a file, POLLNVAL (32) for no descriptor
	s.Expect(poll[6:], want)
	s.Call("writing", unix.SYS_WRITE, Result(fd), Text("y"), Int(1))
	if err := runScript(t, s, -1, 0); err != nil {
		t.Fatal(err)
	}
	if got := content(t, path); got != "y" {
		t.Errorf("the file holds %q", got)
	}
}

// From the second clone on another child goes on, with what the first did, and
// it is this process's child too.
func TestScriptGoesOnInASecondChild(t *testing.T) {
	dir := t.TempDir()
	const flags = unix.CLONE_PARENT | unix.CLONE_VFORK | unix.CLONE_VM | uintptr(unix.SIGCHLD)
	s := &Script{}
	first := make([]byte, 4)
	s.Call("asking who the first is", unix.SYS_GETPID)
	s.Patch(first)
	fd := creates(s, dir+"/file", "first")
	onward := len(s.calls)
	second := make([]byte, 4)
	s.Call("asking who the second is", unix.SYS_GETPID)
	s.Patch(second)
	parent := make([]byte, 4)
	s.Call("asking for the parent", unix.SYS_GETPPID)
	s.Patch(parent)
	s.Call("writing", unix.SYS_WRITE, Result(fd), Text("second"), Int(6))
	if err := runScript(t, s, onward, flags); err != nil {
		t.Fatal(err)
	}
	if got := content(t, dir+"/file"); got != "firstsecond" {
		t.Errorf("the file holds %q", got)
	}
	if string(first) == string(second) {
		t.Error("there was no second child")
	}
	if pid := int(binary.NativeEndian.Uint32(parent)); pid != os.Getpid() {
		t.Errorf("the second child's parent is %d, want %d", pid, os.Getpid())
	}

	s.Call("failing", unix.SYS_CHDIR, Text(dir+"/nowhere"))
	if err := runScript(t, s, onward, flags); !errors.Is(err, unix.ENOENT) || !strings.HasPrefix(err.Error(), "failing: ") {
		t.Errorf("a failure in the second child is reported as %v", err)
	}
	err := runScript(t, s, onward, unix.CLONE_PARENT|unix.CLONE_SIGHAND|uintptr(unix.SIGCHLD)) // not without CLONE_VM
	var step *StepError
	if !errors.As(err, &step) || step.Errno != unix.EINVAL || step.Step != "making the run's namespaces" {
		t.Errorf("a failure of the second clone is reported as %v", err)
	}
}

// A child sees by a socket whether the server lives.
func TestScriptSeesADeadServer(t *testing.T) {
	life, peer, err := socketPair(unix.SOCK_STREAM)
	if err != nil {
		t.Fatal(err)
	}
	defer peer.Close()
	s := &Script{}
	s.Call("seeing that the server lives", unix.SYS_SENDTO, Int(peer.Fd()), Bytes([]byte{0}), Int(0), Int(unix.MSG_NOSIGNAL))
	for range 1000 { // nobody reads: it must not fill up
		if err := runScript(t, s, -1, 0); err != nil {
			t.Fatal(err)
		}
	}
	life.Close()
	if err := runScript(t, s, -1, 0); !errors.Is(err, unix.EPIPE) {
		t.Errorf("with the other end closed the error is %v", err)
	}
}

func TestTextsRefusesNUL(t *testing.T) {
	if _, err := texts([]string{"a", "b\x00c"}); err == nil {
		t.Error("a text with a NUL inside was accepted")
	}
}
