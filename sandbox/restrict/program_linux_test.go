package restrict

import (
	"slices"
	"testing"

	"github.com/confine-dev/confine/sandbox/local"
	"github.com/confine-dev/confine/sandbox/scripttest"
	"golang.org/x/sys/unix"
)

func TestFilterThatNotifies(t *testing.T) {
	program := Assemble([]Case{
		{unix.SYS_OPENAT, []Condition{AnyOf(2, unix.O_CREAT)}, Notify},
		{unix.SYS_OPENAT, []Condition{AnyOf(2, unix.O_TRUNC)}, Notify},
		{unix.SYS_FCHMOD, []Condition{Equals(1, 0)}, Refuse(unix.EPERM)},
		{unix.SYS_FCHMOD, nil, Notify},
	})
	const notify, allow, eperm = 0x7fc00000, 0x7fff0000, 0x00050001 // linux/seccomp.h
	for _, c := range []struct {
		nr   uint32
		args [6]uint64
		want uint32
	}{
		{unix.SYS_OPENAT, [6]uint64{0, 0, unix.O_CREAT}, notify},
		{unix.SYS_OPENAT, [6]uint64{0, 0, unix.O_TRUNC}, notify},
		{unix.SYS_OPENAT, [6]uint64{unix.O_CREAT, unix.O_CREAT, unix.O_RDWR, unix.O_CREAT}, allow},
		{unix.SYS_FCHMOD, [6]uint64{3, 0}, eperm},
		{unix.SYS_FCHMOD, [6]uint64{3, 0o644}, notify},
		{unix.SYS_READ, [6]uint64{}, allow},
	} {
		if got, err := interpret(program, archHere, c.nr, c.args); err != nil || got != c.want {
			t.Errorf("call %d with %#x: got %#x, %v, want %#x", c.nr, c.args, got, err, c.want)
		}
	}
}

// TestCodeIsWhatTheKernelReads writes out struct sock_filter by hand.
func TestCodeIsWhatTheKernelReads(t *testing.T) {
	got := Code([]unix.SockFilter{{Code: 0x15, Jt: 1, Jf: 2, K: 0x04030201}, {Code: 6, K: 0x7fff0000}})
	want := []byte{0x15, 0, 1, 2, 1, 2, 3, 4, 6, 0, 0, 0, 0, 0, 0xff, 0x7f}
	if !slices.Equal(got, want) {
		t.Errorf("got % x, want % x", got, want)
	}
}

func TestInstallRefusals(t *testing.T) {
	var s local.Script
	InstallRefusals(&s)
	list := scripttest.Steps(t, &s)
	if len(list) != 1 || list[0].Call != unix.SYS_SECCOMP || list[0].Args[0].Number != 1 || list[0].Args[1].Number != 0 || list[0].Ignores != 0 {
		t.Fatalf("the calls are %+v", list) // SECCOMP_SET_MODE_FILTER, no flags
	}
	want := Code(Assemble(Refusals()))
	fprog := list[0].Args[2]
	if got := fprog.Word(0) & 0xffff; got != uint64(len(want)/8) {
		t.Errorf("%d instructions are announced, there are %d", got, len(want)/8)
	}
	if got := scripttest.Pointed(t, &s)[fprog.Word(1)]; !slices.Equal(got, want) {
		t.Error("the program is not what the pointer leads to")
	}
}
