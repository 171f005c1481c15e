package local

import (
	"encoding/binary"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"golang.org/x/sys/unix"
)

// The init starts what its orders name, with their environment and not its own.
func TestOrdersNameTheProgram(t *testing.T) {
	file := filepath.Join(t.TempDir(), "out")
	o := orders{path: "/bin/sh", argv: []string{"sh", "-c", `printf '%s.' "$A" "$B" "$@" > "$OUT"; exit 7`, "sh", "", "two words", "\xff\n"},
		envp: []string{"B=from the orders", "OUT=" + file}}
	got := initRunOrders(t, o, 0, "/bin/false", "false")
	if len(got) != 4 || got[0] != recordStarted || got[2] != recordEnded || got[3] != 7<<8 {
		t.Fatalf("the command is told as %v", got)
	}
	if text, _ := os.ReadFile(file); string(text) != ".from the orders..two words.\xff\n." {
		t.Errorf("the command was given %q", text)
	}
}

// The calls of the orders are made in order, with what earlier ones returned, in
// memory that points to other memory.
func TestOrdersMakeCalls(t *testing.T) {
	dir := t.TempDir()
	s := &Script{}
	open := s.Call("opening the folder", unix.SYS_OPENAT, Int(unix.AT_FDCWD), Text(dir), Int(unix.O_PATH|unix.O_CLOEXEC))
	file := s.Call("making a file", unix.SYS_OPENAT, Result(open), Text("file"), Int(unix.O_CREAT|unix.O_WRONLY|unix.O_CLOEXEC), Int(0o600))
	first, second := []byte("one,"), []byte("two,")
	vectors := make([]byte, 32) // struct iovec[2]
	s.Point(vectors, first)
	binary.NativeEndian.PutUint64(vectors[8:], uint64(len(first)))
	s.Point(vectors[16:], second)
	binary.NativeEndian.PutUint64(vectors[24:], uint64(len(second)))
	s.Call("writing", unix.SYS_WRITEV, Result(file), Bytes(vectors), Int(2))
	number := make([]byte, 8)
	s.Call("copying a number", unix.SYS_FCNTL, Result(file), Int(unix.F_DUPFD_CLOEXEC), Int(77))
	s.Patch(number[4:])
	s.Call("writing a number", unix.SYS_WRITE, Result(file), Bytes(number), Int(8))
	s.Call("failing as it may", unix.SYS_CLOSE, Int(5000))
	s.Ignore(unix.EBADF)
	other := &Script{}
	again := other.Call("opening the file", unix.SYS_OPENAT, Int(unix.AT_FDCWD), Text(filepath.Join(dir, "file")), Int(unix.O_RDONLY|unix.O_CLOEXEC))
	read := make([]byte, 8)
	other.Call("reading", unix.SYS_READ, Result(again), Bytes(read), Int(8))
	other.Expect(read[4:], []byte("two,"))
	s.Append(other)
	got := initRunOrders(t, orders{script: s}, 0, "/bin/sh", "sh", "-c", "exit 3")
	if len(got) != 4 || got[3] != 3<<8 {
		t.Fatalf("the command is told as %v", got)
	}
	want := append([]byte("one,two,\x00\x00\x00\x00"), binary.NativeEndian.AppendUint32(nil, 77)...)
	if text, _ := os.ReadFile(filepath.Join(dir, "file")); !slices.Equal(text, want) {
		t.Errorf("the file holds %q, want %q", text, want)
	}
	if first := string(first); first != "one," {
		t.Errorf("memory of this process was changed to %q", first)
	}
}

// A call that fails, or does not find what it expects, is told by its place, and
// nothing is started.
func TestOrdersThatFail(t *testing.T) {
	file := filepath.Join(t.TempDir(), "ran")
	for _, fail := range []func(*Script) unix.Errno{
		func(s *Script) unix.Errno {
			s.Call("entering nothing", unix.SYS_CHDIR, Text("/no/such/folder"))
			return unix.ENOENT
		},
		func(s *Script) unix.Errno {
			s.Call("closing nothing", unix.SYS_CLOSE, Int(5000))
			s.Ignore(unix.ENOENT)
			return unix.EBADF
		},
		func(s *Script) unix.Errno {
			stat := make([]byte, 144)
			s.Call("comparing", unix.SYS_FSTAT, Int(0), Bytes(stat))
			s.Expect(stat[:16], slices.Repeat([]byte{0xab}, 16))
			return unix.ESTALE
		},
	} {
		s := &Script{}
		for range 300 {
			s.Call("waiting for the failure", unix.SYS_GETPID)
		}
		errno := fail(s)
		s.Call("going on", unix.SYS_GETPID)
		got := initRunOrders(t, orders{script: s}, 0, "/bin/sh", "sh", "-c", "> "+file)
		if len(got) != 2 || got[0] != recordOrderFailed || got[1] != 300<<12|uint32(errno) {
			t.Errorf("%s is told as %v", s.calls[300].what, got)
		}
	}
	if _, err := os.Lstat(file); err == nil {
		t.Error("a command ran although the orders failed")
	}
}

// What cannot be carried into another process is refused, not guessed.
func TestOrdersRefuseUnsizedMemory(t *testing.T) {
	list, err := texts([]string{"a"})
	if err != nil {
		t.Fatal(err)
	}
	s := &Script{}
	s.Call("executing", unix.SYS_EXECVE, Text("/bin/true"), list, list)
	if _, err := (orders{script: s}).data(ordersAddress); err == nil {
		t.Error("a list of texts was carried as if it were of no size")
	}
}
