package observe

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/confine-dev/confine/sandbox"
	"github.com/confine-dev/confine/sandbox/local"
	"golang.org/x/sys/unix"
)

// errno is what a level says to a refused write.
func (s *scene) errno() string {
	if s.view {
		return "EROFS"
	}
	return "EACCES"
}

func TestWhoWasRefused(t *testing.T) {
	levels(t, func(t *testing.T, s *scene) {
		path := filepath.Join(s.out, "new")
		answers, observed := s.act("creat "+path, "creat "+path, "spawn echo x 2>/dev/null >"+path+" || true")
		if answers[0] != s.errno() || len(observed.Denials) != 2 {
			t.Fatalf("answers %v, denials %v", answers, observed.Denials)
		}
		want := sandbox.Denial{Op: "create", Path: path, Errno: s.errno(), Evidence: sandbox.Observed, Count: 2, Exe: "observe.test"}
		got := observed.Denials[0]
		if want.PID = got.PID; got != want {
			t.Errorf("got %+v, want %+v", got, want)
		}
		if s.view && got.PID != 1 || got.PID <= 0 {
			t.Errorf("the actor is process %d, which is 1 of its own namespace", got.PID)
		}
		shell, _ := filepath.EvalSymlinks("/bin/sh")
		if other := observed.Denials[1]; other.Exe != filepath.Base(shell) || other.PID == got.PID {
			t.Errorf("the shell's is %+v", other)
		}
	})
}

func TestThreadsAtOnce(t *testing.T) {
	levels(t, func(t *testing.T, s *scene) {
		const threads = 40
		_, observed := s.act(fmt.Sprintf("threads %d %s/", threads, s.out), fmt.Sprintf("threads %d %s/", threads, s.work))
		var want []string
		for i := range threads {
			want = append(want, fmt.Sprintf("create %s/%d %s", s.out, i, s.errno()))
		}
		got := lines(observed.Denials)
		if slices.Sort(want); !slices.Equal(slices.Sorted(slices.Values(got)), want) {
			t.Errorf("got %v, want %v", got, want)
		}
	})
}

// TestFlood shows that what a command does has no effect on how much is kept.
func TestFlood(t *testing.T) {
	levels(t, func(t *testing.T, s *scene) {
		count := 5000
		if testing.Short() {
			count = 500
		}
		var watched *watch
		s.change = func(w *watch) { watched = w }
		_, observed := s.act(fmt.Sprintf("flood %d %s", count, s.out), "creat "+s.out+"/last")
		if observed.State != sandbox.ObservedPartly || !strings.Contains(observed.Reason, "left out") {
			t.Errorf("state %s: %s", observed.State, observed.Reason)
		}
		if len(observed.Denials) != maxAnswered || observed.Omitted != count+1-maxAnswered {
			t.Errorf("%d denials, %d left out of %d", len(observed.Denials), observed.Omitted, count+1)
		}
		if last := observed.Denials[len(observed.Denials)-1]; last.Path != s.out+"/last" {
			t.Errorf("the last one is %s", last.Path)
		}
		if len(watched.quick.mounts) > 100 {
			t.Errorf("%d mounts are remembered", len(watched.quick.mounts))
		}
	})
}

func TestRecordIsBounded(t *testing.T) {
	r := newRecord()
	for i := range 100000 {
		r.add(sandbox.Denial{Op: "create", Path: fmt.Sprintf("/%0300d", i)})
		if r.order.Len() > 1024 || len(r.byWhat) != r.order.Len() || r.bytes > 256<<10 {
			t.Fatalf("after %d: %d denials, %d keys, %d bytes", i, r.order.Len(), len(r.byWhat), r.bytes)
		}
	}
	r.add(sandbox.Denial{Op: "create", Path: "/huge" + strings.Repeat("x", 300<<10)})
	if r.order.Len() != 0 || r.bytes != 0 {
		t.Errorf("what is too large alone leaves %d denials and %d bytes", r.order.Len(), r.bytes)
	}
	denials, omitted := r.answer()
	if len(denials) != 0 || omitted != 100001 {
		t.Errorf("%d denials, %d left out", len(denials), omitted)
	}
}

func TestRecordKeepsTheLatest(t *testing.T) {
	r := newRecord()
	for i := range maxAnswered + 10 {
		r.add(sandbox.Denial{Op: "create", Path: fmt.Sprint("/", i)})
	}
	r.add(sandbox.Denial{Op: "create", Path: "/10"})
	r.add(sandbox.Denial{Op: "write", Path: "/10"})
	denials, omitted := r.answer()
	// 0 to 9 and 11 are gone; 10 was seen again.
	if n := len(denials); n != 64 || omitted != 11 || denials[0].Path != "/12" || denials[62].Path != "/10" || denials[62].Count != 2 || denials[63].Op != "write" {
		t.Errorf("%d denials from %+v to %+v, %d left out", n, denials[0], denials[n-1], omitted)
	}
}

// TestMistakesDoNotStopTheCommand breaks the observer at its third call.
func TestMistakesDoNotStopTheCommand(t *testing.T) {
	levels(t, func(t *testing.T, s *scene) {
		s.change = func(w *watch) {
			calls, judge := 0, w.judge
			w.judge = func(n *notification) []sandbox.Denial {
				if calls++; calls == 3 {
					panic("planted")
				}
				return judge(n)
			}
		}
		var actions []string
		for i := range 6 {
			actions = append(actions, fmt.Sprintf("creat %s/%d", s.out, i))
		}
		answers, observed := s.act(append(actions, "creat "+s.work+"/new")...)
		if want := append(slices.Repeat([]string{s.errno()}, 6), "ok"); !slices.Equal(answers, want) {
			t.Errorf("the command got %v", answers)
		}
		if len(observed.Denials) != 2 || observed.State != sandbox.ObservedPartly || !strings.Contains(observed.Reason, "planted") {
			t.Errorf("%s (%s): %v", observed.State, observed.Reason, observed.Denials)
		}
	})
}

// TestStarved takes away the descriptors that the observer needs.
func TestStarved(t *testing.T) {
	levels(t, func(t *testing.T, s *scene) {
		var limit unix.Rlimit
		if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &limit); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { unix.Setrlimit(unix.RLIMIT_NOFILE, &limit) })
		s.change = func(w *watch) {
			calls, judge := 0, w.judge
			w.judge = func(n *notification) []sandbox.Denial {
				switch calls++; calls {
				case 2:
					unix.Setrlimit(unix.RLIMIT_NOFILE, &unix.Rlimit{Cur: 3, Max: limit.Max})
				case 4:
					unix.Setrlimit(unix.RLIMIT_NOFILE, &limit)
				}
				return judge(n)
			}
		}
		var actions []string
		for i := range 4 {
			actions = append(actions, fmt.Sprintf("creat %s/%d", s.out, i))
		}
		answers, observed := s.act(actions...)
		if !slices.Equal(answers, slices.Repeat([]string{s.errno()}, 4)) {
			t.Errorf("the command got %v", answers)
		}
		if len(observed.Denials) != 2 || observed.State != sandbox.ObservedPartly || !strings.Contains(observed.Reason, "could not open what a call was about (2 calls)") {
			t.Errorf("%s (%s): %v", observed.State, observed.Reason, observed.Denials)
		}
	})
}

func TestChangingTexts(t *testing.T) {
	levels(t, func(t *testing.T, s *scene) {
		// Both have the same length.
		in, out := filepath.Join(s.work, "in"), filepath.Join(s.out, "out")
		_, observed := s.act(fmt.Sprintf("fliptext 3000 %s %s", in, out), "mkdir "+out, "mkdir "+in+"2", "creat "+out+"3")
		want := []string{"create " + out + " " + s.errno(), "create " + out + "3 " + s.errno()}
		for _, line := range lines(observed.Denials) {
			if !strings.Contains(line, s.out) && !strings.Contains(line, s.work+"/") {
				t.Errorf("noted: %s", line)
			}
		}
		for _, line := range want {
			if !slices.Contains(lines(observed.Denials), line) {
				t.Errorf("not noted: %s in %v", line, lines(observed.Denials))
			}
		}
		if slices.Contains(lines(observed.Denials), "create "+in+"2 "+s.errno()) {
			t.Error("what was allowed was noted")
		}
	})
}

func TestChangingLinks(t *testing.T) {
	levels(t, func(t *testing.T, s *scene) {
		link, in := filepath.Join(s.work, "link"), filepath.Join(s.work, "in")
		if err := os.Mkdir(in, 0o755); err != nil {
			t.Fatal(err)
		}
		_, observed := s.act(
			fmt.Sprintf("fliplink 500 %s %s %s", link, in, s.out), "mkdir "+link+"/afterout",
			fmt.Sprintf("fliplink 500 %s %s %s", link, s.out, in), "mkdir "+link+"/afterin",
			fmt.Sprintf("fliplink 500 %s %s %s", link, in, s.out), "mkdir "+link+"/again")
		got := lines(observed.Denials)
		for _, name := range []string{"afterout", "again"} {
			if line := fmt.Sprintf("create %s/%s %s", s.out, name, s.errno()); !slices.Contains(got, line) {
				t.Errorf("not noted: %s", line)
			}
		}
		for _, line := range got {
			if strings.Contains(line, "afterin") || strings.Contains(line, s.work+"/") {
				t.Errorf("noted: %s", line)
			}
		}
	})
}

// TestSignals shows that each call is reported once whatever comes meanwhile.
func TestSignals(t *testing.T) {
	levels(t, func(t *testing.T, s *scene) {
		const calls = 500
		answers, observed := s.act(fmt.Sprintf("signals %d %s/new", calls, s.out))
		if answers[0] != "ok" || len(observed.Denials) != 1 || observed.Denials[0].Count != calls {
			t.Errorf("got %v, %v", answers, observed.Denials)
		}
	})
}

func TestEndOfTheKilled(t *testing.T) {
	levels(t, func(t *testing.T, s *scene) {
		seen := make(chan bool)
		s.change = func(w *watch) {
			calls, judge := 0, w.judge
			w.judge = func(n *notification) []sandbox.Denial {
				if calls++; calls == 100 {
					close(seen)
				}
				return judge(n)
			}
		}
		c := s.start("/proc/self/exe", "flood 100000000 "+s.out)
		<-seen
		if err := c.cmd.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		c.cmd.Wait()
		if observed := c.end(); len(observed.Denials) != maxAnswered {
			t.Errorf("%d denials", len(observed.Denials))
		}
	})
}

// TestEndOfTheLiving shows that End comes back even if it is called too early.
func TestEndOfTheLiving(t *testing.T) {
	levels(t, func(t *testing.T, s *scene) {
		c := s.start("/bin/sleep", "1000")
		observed := c.end()
		c.cmd.Process.Kill()
		c.cmd.Wait()
		if len(observed.Denials) != 0 {
			t.Errorf("denials %v", observed.Denials)
		}
	})
}

func TestStolenCallsAreSaid(t *testing.T) {
	s := newScene(t, false)
	s.change = func(w *watch) { atomic.StoreUint64(&w.run.Progress.Stolen, 3) }
	_, observed := s.act("creat " + s.work + "/new")
	if observed.State != sandbox.ObservedPartly || !strings.Contains(observed.Reason, "3 calls") {
		t.Errorf("%s: %s", observed.State, observed.Reason)
	}
}

func TestProgress(t *testing.T) {
	levels(t, func(t *testing.T, s *scene) {
		var progress *local.Progress
		s.change = func(w *watch) { progress = w.run.Progress }
		s.act("creat "+s.work+"/new", "read "+s.work+"/new", "mkdir "+s.work+"/folder")
		if progress.Received != 2 {
			t.Errorf("%d calls were received, want 2: reading is not stopped", progress.Received)
		}
	})
}

// TestNotDumpable is about processes that a plain user cannot look into.
func TestNotDumpable(t *testing.T) {
	levels(t, func(t *testing.T, s *scene) {
		_, observed := s.act("creat "+s.out+"/before", "undumpable", "creat "+s.out+"/after", "creat "+s.work+"/new")
		seen := len(observed.Denials)
		switch {
		case seen == 2 && (s.view || os.Geteuid() == 0):
		case seen == 1 && observed.State == sandbox.ObservedPartly && strings.Contains(observed.Reason, "cannot be looked into (2 calls)"):
		default:
			t.Errorf("%s (%s): %v", observed.State, observed.Reason, observed.Denials)
		}
	})
}

func TestMountPoints(t *testing.T) {
	s := newScene(t, true)
	file, folder := filepath.Join(s.work, "file"), filepath.Join(s.work, "folder")
	if os.WriteFile(file, nil, 0o644) != nil || os.Mkdir(folder, 0o755) != nil {
		t.Fatal("no files")
	}
	s.orders.Covered = []string{file, folder}
	answers, observed := s.act("unlink "+file, "rename "+file+" "+file+"2", "rmdir "+folder, "write "+file, "creat "+folder+"/new", "chmod "+file,
		"creat "+file+"3", "rename "+file+"3 "+file)
	want := []string{"remove " + file + " EBUSY", "rename " + file + " EBUSY", "remove " + folder + " EBUSY", "write " + file + " EROFS",
		"create " + folder + "/new EROFS", "chmod " + file + " EROFS"}
	got := lines(observed.Denials)
	// The last is noted once more: "rename file" with the same error.
	if !slices.Equal(got, []string{want[0], want[2], want[3], want[4], want[5], want[1]}) {
		t.Errorf("got %v (answers %v), want %v", got, answers, want)
	}
}

// TestOtherWorkspaces has two places that can be written, which are two mounts.
func TestOtherWorkspaces(t *testing.T) {
	levels(t, func(t *testing.T, s *scene) {
		other := s.out + "/other"
		if os.Mkdir(other, 0o755) != nil || os.WriteFile(s.work+"/file", nil, 0o644) != nil {
			t.Fatal("no files")
		}
		s.orders.Writable = append(s.orders.Writable, other)
		answers, observed := s.act("rename "+s.work+"/file "+other+"/new", "creat "+other+"/file", "unlink "+other+"/file")
		var want []string
		if s.view {
			want = []string{"rename " + other + "/new EXDEV"}
		}
		if got := lines(observed.Denials); !slices.Equal(got, want) || answers[1] != "ok" || answers[2] != "ok" {
			t.Errorf("got %v (answers %v), want %v", got, answers, want)
		}
	})
}

// TestPermissions is about what the host refuses itself.
func TestPermissions(t *testing.T) {
	levels(t, func(t *testing.T, s *scene) {
		locked := s.out + "/locked"
		if os.Mkdir(locked, 0o755) != nil || os.WriteFile(locked+"/file", nil, 0o444) != nil || os.Chmod(locked, 0o555) != nil {
			t.Fatal("no files")
		}
		t.Cleanup(func() { os.Chmod(locked, 0o755) })
		_, observed := s.act("creat "+locked+"/new", "write "+locked+"/file", "unlink "+locked+"/file", "write /proc/version", "creat /proc/new", "creat /sys/new")
		want := []string{}
		if os.Geteuid() == 0 {
			for _, call := range []string{"create " + locked + "/new ", "write " + locked + "/file ", "remove " + locked + "/file "} {
				want = append(want, call+s.errno())
			}
			if !s.view {
				// Root may open it; that writing fails comes later.
				observed.Denials = slices.DeleteFunc(observed.Denials, func(d sandbox.Denial) bool { return d.Path == "/proc/version" })
			}
		}
		if got := lines(observed.Denials); !slices.Equal(got, want) && len(got)+len(want) > 0 {
			t.Errorf("got %v, want %v", got, want)
		}
	})
}

// TestHiddenFolders: what the view hides, the host may have.
func TestHiddenFolders(t *testing.T) {
	s := newScene(t, true)
	hidden := filepath.Join(s.out, "hidden")
	if os.MkdirAll(hidden+"/folder", 0o755) != nil || os.WriteFile(hidden+"/folder/file", nil, 0o644) != nil {
		t.Fatal("no files")
	}
	if err := os.Symlink(hidden, s.work+"/link"); err != nil {
		t.Fatal(err)
	}
	s.orders.Hidden = []string{hidden}
	answers, observed := s.act("creat "+hidden+"/new", "creat "+hidden+"/folder/new", "mkdir "+s.work+"/link/folder/newdir", "creat "+hidden+"/folder/file",
		"creat "+hidden+"/none/new", "write "+hidden+"/folder/file", "mkdir "+hidden+"/folder/file", "creat "+s.out+"/none/new", "creat /proc/999999/comm")
	want := []string{"create " + hidden + "/new EROFS", "create " + hidden + "/folder/new ENOENT", "create " + hidden + "/folder/newdir ENOENT",
		"write " + hidden + "/folder/file ENOENT"}
	if got := lines(observed.Denials); !slices.Equal(got, want) {
		t.Errorf("got %v\nwant %v\nanswers %v", got, want, answers)
	}
}

// TestNoPrivileges: without namespaces root's commands have no privileges, which
// is the sandbox's doing, too.
func TestNoPrivileges(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root has privileges to lose")
	}
	levels(t, func(t *testing.T, s *scene) {
		theirs := s.work + "/theirs"
		if os.Mkdir(theirs, 0o755) != nil || os.WriteFile(theirs+"/file", nil, 0o644) != nil || os.Chown(theirs, 1, 1) != nil || os.Chown(theirs+"/file", 1, 1) != nil {
			t.Fatal("no files")
		}
		answers, observed := s.act("creat "+theirs+"/new", "write "+theirs+"/file", "mknod "+s.work+"/device")
		var want []string
		if !s.view {
			want = []string{"create " + theirs + "/new EACCES", "write " + theirs + "/file EACCES"}
		}
		want = append(want, "create "+s.work+"/device EPERM")
		if got := lines(observed.Denials); !slices.Equal(got, want) {
			t.Errorf("got %v, want %v, answers %v", got, want, answers)
		}
	})
}

// TestNothingIsLeftOpen counts descriptors of this process.
func TestNothingIsLeftOpen(t *testing.T) {
	levels(t, func(t *testing.T, s *scene) {
		actions := []string{"creat " + s.out + "/new", "rename " + s.out + "/none " + s.work + "/x", "creat /proc/self/fd/0/x", "creat " + s.work + "/../out/new",
			"unlink " + s.out + "/none", "creat " + s.out + "/a/b/c", "symlink " + s.work + "/l", "creat " + s.work + "/l/x", "mkdir " + s.work + "/d"}
		s.act(actions...)
		before := descriptors(t)
		s.work += "/d"
		s.orders.Dir = s.work
		s.act(actions...)
		if after := descriptors(t); after > before {
			t.Errorf("%d descriptors before, %d after", before, after)
		}
	})
}

func descriptors(t *testing.T) int {
	list, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	return len(list)
}

// TestReadText reads texts at the end of memory.
func TestReadText(t *testing.T) {
	page := os.Getpagesize()
	memory, err := unix.Mmap(-1, 0, 3*page, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANON)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Munmap(memory)
	if err := unix.Mprotect(memory[2*page:], unix.PROT_NONE); err != nil {
		t.Fatal(err)
	}
	put := func(text string, end int) uint64 {
		copy(memory[end-len(text):], text)
		return uint64(uintptrOf(memory)) + uint64(end-len(text))
	}
	long := strings.Repeat("x", 4000)
	for _, c := range []struct {
		text  string
		end   int
		want  string
		errno unix.Errno
	}{
		{"a\x00", 2 * page, "a", 0},
		{"abc", 2 * page, "", unix.EFAULT},
		{"\x00", page, "", 0},
		{"abcdef\x00", page + 3, "abcdef", 0},
		{long + "\x00", 2 * page, long, 0},
		{strings.Repeat("y", 4095) + "\x00", 2 * page, strings.Repeat("y", 4095), 0},
		{strings.Repeat("z", 4096) + "\x00", 2 * page, "", unix.ENAMETOOLONG},
	} {
		var buffer [maxPath]byte
		got, errno := readText(unix.Gettid(), put(c.text, c.end), buffer[:])
		if string(got) != c.want || errno != c.errno {
			t.Errorf("%d bytes that end at %d: got %d bytes, %v; want %d, %v", len(c.text), c.end, len(got), errno, len(c.want), c.errno)
		}
	}
}
