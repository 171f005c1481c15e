package local

import (
	"bytes"
	"debug/elf"
	"os"
	"testing"

	"golang.org/x/sys/unix"
)

func TestInitImage(t *testing.T) {
	code, err := initCode()
	if err != nil {
		t.Fatal(err)
	}
	if len(code) < 100 || bytes.Contains(code, []byte(initEnd)) {
		t.Errorf("the init's code has %d bytes", len(code))
	}
	data := []byte("the orders")
	for arch, machine := range map[string]elf.Machine{"amd64": elf.EM_X86_64, "arm64": elf.EM_AARCH64} {
		image := initImage(code, elfMachine[arch], data)
		f, err := elf.NewFile(bytes.NewReader(image))
		if err != nil {
			t.Errorf("%s: %v", arch, err)
			continue
		}
		if f.Class != elf.ELFCLASS64 || f.Data != elf.ELFDATA2LSB || f.Type != elf.ET_EXEC || f.Machine != machine {
			t.Errorf("%s: the header is %+v", arch, f.FileHeader)
		}
		var loads []*elf.Prog
		for _, p := range f.Progs {
			switch {
			case p.Type == elf.PT_LOAD:
				loads = append(loads, p)
			case p.Type != elf.PT_GNU_STACK || p.Flags != elf.PF_R|elf.PF_W:
				t.Errorf("%s: there is a segment %+v", arch, p.ProgHeader)
			}
			if p.Flags&elf.PF_W != 0 && p.Flags&elf.PF_X != 0 {
				t.Errorf("%s: %v can be both written and executed", arch, p.Type)
			}
		}
		if len(loads) != 2 || len(f.Progs) != 3 {
			t.Errorf("%s: the segments are %v", arch, f.Progs)
			continue
		}
		for _, load := range loads {
			if load.Memsz != load.Filesz || load.Vaddr%load.Align != load.Off%load.Align {
				t.Errorf("%s: the segment is %+v", arch, load.ProgHeader)
			}
		}
		text, orders := loads[0], loads[1]
		if entry := f.Entry - text.Vaddr; text.Flags != elf.PF_R|elf.PF_X || !bytes.Equal(image[entry:text.Filesz], code) {
			t.Errorf("%s: the entry %#x is not where the code begins", arch, f.Entry)
		}
		if orders.Flags != elf.PF_R|elf.PF_W || orders.Vaddr != ordersAddress || string(image[orders.Off:]) != string(data) {
			t.Errorf("%s: the orders are not where the init looks for them: %+v", arch, orders.ProgHeader)
		}
	}
}

// Nobody can change the init, through whatever descriptor.
func TestInitIsSealed(t *testing.T) {
	init, err := openInit(orders{})
	if err != nil {
		t.Fatal(err)
	}
	defer init.Close()
	seals, err := unix.FcntlInt(init.Fd(), unix.F_GET_SEALS, 0)
	if want := unix.F_SEAL_WRITE | unix.F_SEAL_GROW | unix.F_SEAL_SHRINK | unix.F_SEAL_SEAL; err != nil || seals&want != want {
		t.Errorf("the seals are %#x (%v), want %#x", seals, err, want)
	}
	if f, err := os.OpenFile(init.Name(), os.O_WRONLY, 0); err == nil {
		f.Close()
		t.Error("the init can be opened for writing")
	}
	flags, err := unix.FcntlInt(init.Fd(), unix.F_GETFD, 0)
	if err != nil || flags&unix.FD_CLOEXEC == 0 {
		t.Errorf("the descriptor's flags are %#x (%v): commands would inherit it", flags, err)
	}
}

// initRun executes the init alone with a program and returns its records.
func initRun(t *testing.T, flags int, argv ...string) []uint32 {
	t.Helper()
	return initRunOrders(t, orders{}, flags, argv...)
}

func initRunOrders(t *testing.T, o orders, flags int, argv ...string) []uint32 {
	t.Helper()
	init, err := openInit(o)
	if err != nil {
		t.Fatal(err)
	}
	defer init.Close()
	read, write, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer read.Close()
	p := &pipes{statusWrite: write}
	if p.stdinRead, err = os.OpenFile(os.DevNull, os.O_RDWR, 0); err != nil {
		t.Fatal(err)
	}
	p.stdoutWrite, p.stderrWrite = p.stdinRead, p.stdinRead
	s := &Script{}
	s.Call("blocking signals", unix.SYS_RT_SIGPROCMASK, Int(unix.SIG_SETMASK), Bytes(bytes.Repeat([]byte{0xff}, 8)), Int(0), Int(8))
	fd := s.place(init, resolved{}, &Launch{}, 0, p, 0)
	args, err := texts(append([]string{"confine", initName(flags, "test")}, argv...))
	if err != nil {
		t.Fatal(err)
	}
	env, err := texts([]string{"A=1"})
	if err != nil {
		t.Fatal(err)
	}
	s.Call(stepInit, unix.SYS_EXECVEAT, Result(fd), Text(""), args, env, Int(unix.AT_EMPTY_PATH))
	spawner := newSpawner()
	defer spawner.close()
	pid, err := spawner.spawn(newProgram(s, -1, 0))
	if err != nil {
		t.Fatal(err)
	}
	write.Close()
	p.stdinRead.Close()
	l := &initLeader{status: read}
	var records []uint32
	for {
		kind, value, err := l.readRecord()
		if err != nil {
			break
		}
		records = append(records, kind, value)
	}
	if _, err := children.reap(pid); err != nil {
		t.Error(err)
	}
	return records
}

func TestInitRecords(t *testing.T) {
	for _, flags := range []int{0, initTree} {
		started := initRun(t, flags, "/bin/sh", "sh", "-c", "exit 3")
		if len(started) != 4 || started[0] != recordStarted || started[1] == 0 || started[2] != recordEnded || started[3] != 3<<8 {
			t.Errorf("flags %d: a command that exits with 3 is told as %v", flags, started)
		}
		killed := initRun(t, flags, "/bin/sh", "sh", "-c", "kill -9 $$")
		if len(killed) != 4 || killed[0] != recordStarted || killed[2] != recordEnded || killed[3]&0x7f != 9 {
			t.Errorf("flags %d: a command that is killed is told as %v", flags, killed)
		}
		missing := initRun(t, flags, "/no/such/program", "x")
		if len(missing) != 2 || missing[0] != recordExecFailed || missing[1] != uint32(unix.ENOENT) {
			t.Errorf("flags %d: a missing program is told as %v", flags, missing)
		}
		// Descriptor 4 is no ruleset here.
		unrestricted := initRun(t, flags|initLandlock, "/bin/true", "true")
		if len(unrestricted) != 2 || unrestricted[0] != recordLandlockFailed || unrestricted[1] == 0 {
			t.Errorf("flags %d: a command that could not be restricted is told as %v: it must not run", flags, unrestricted)
		}
		// Descriptor 0 is no terminal.
		alone := initRun(t, flags|initTerminal, "/bin/true", "true")
		if len(alone) != 2 || alone[0] != recordTerminalFailed || alone[1] != uint32(unix.ENOTTY) {
			t.Errorf("flags %d: a command without its terminal is told as %v: it must not run", flags, alone)
		}
	}
	// In tree mode the command's end is told before that of what it left.
	left := initRun(t, initTree, "/bin/sh", "sh", "-c", "sleep 0.1 & exit 4")
	if len(left) != 4 || left[3] != 4<<8 {
		t.Errorf("a command that leaves a child is told as %v", left)
	}
}

func TestInitNames(t *testing.T) {
	for _, flags := range []int{0, initLandlock, initTree, initLandlock | initTree, initLandlock | initTree | initTerminal} {
		got, ok := parseInitName(initName(flags, "0123abcd"), "0123abcd")
		if !ok || got != flags {
			t.Errorf("flags %d are read as %d, %v", flags, got, ok)
		}
	}
	for _, name := range []string{"", "confine-init", "confine-init:", "confine-init:a", "confine-init:a:", "confine-init::0123abcd",
		"confine-init:aa:0123abcd", "confine-init:a:x0123abcd", "bash confine-init:a:0123abcd", "confine-init:a:0123abcd:0123abcd"} {
		if _, ok := parseInitName(name, "0123abcd"); ok {
			t.Errorf("%q is taken for an init of the server", name)
		}
	}
}
